//! The blocklist and the allowlist: list, add and remove entries.
//!
//! An entry is about an address range or an attribute value, and may have an end. The engine's
//! lists and the records change together, one request at a time. Entries about private values
//! hold pseudonyms.

use catraca::Time;
use catraca::core::address::AddressRange;
use catraca::core::lists::{AccessListEntry, ListTarget};
use catraca::core::request::VALUE_BYTES_MAX;
use catraca::records::{ListName, Record, RecordKind};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::blocks::parse_duration;
use super::{AdminContext, AdminResult, ApiRequest, Problem, TEXT_MAX, check_text};
use super::{not_found, parse_instant, parse_number, to_json};
use crate::http::bodies::record_bodies;
use crate::http::bodies::wire::{is_list, read_list};

/// Maximum number of entries in one request.
pub const ENTRIES_MAX: usize = 1_000;
/// Maximum length of an attribute's name, in bytes; the catalog has the same.
const NAME_MAX: usize = 64;
/// Default number of rows in a page.
const PAGE: u32 = 50;

/// Held while a list changes, so that two changes of one entry are recorded in the order in which
/// they took effect.
static CHANGE_LOCK: Mutex<()> = Mutex::new(());

/// `GET /v1/blocklist`.
pub fn list_blocklist(context: &AdminContext<'_>, request: &ApiRequest) -> AdminResult {
    page(context, request, ListName::Block)
}

/// `POST /v1/blocklist`.
pub fn add_to_blocklist(context: &AdminContext<'_>, request: &ApiRequest) -> AdminResult {
    add(context, request, ListName::Block)
}

/// `DELETE /v1/blocklist`.
pub fn remove_from_blocklist(context: &AdminContext<'_>, request: &ApiRequest) -> AdminResult {
    remove(context, request, ListName::Block)
}

/// `GET /v1/allowlist`.
pub fn list_allowlist(context: &AdminContext<'_>, request: &ApiRequest) -> AdminResult {
    page(context, request, ListName::Allow)
}

/// `POST /v1/allowlist`.
pub fn add_to_allowlist(context: &AdminContext<'_>, request: &ApiRequest) -> AdminResult {
    add(context, request, ListName::Allow)
}

/// `DELETE /v1/allowlist`.
pub fn remove_from_allowlist(context: &AdminContext<'_>, request: &ApiRequest) -> AdminResult {
    remove(context, request, ListName::Allow)
}

/// An entry to add: a `range`, or an `attribute` and its `value`; `for` or `until`, or neither.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({
    "range": "203.0.113.0/24", "reason": "open proxies", "for": "7d",
}))]
pub struct NewEntry {
    /// An address range, or one address.
    range: Option<String>,
    /// An attribute other than `ip`.
    #[schemars(length(min = 1, max = NAME_MAX))]
    attribute: Option<String>,
    /// Its value: 1 to 256 bytes.
    #[schemars(length(min = 1, max = VALUE_BYTES_MAX))]
    value: Option<String>,
    /// Shown with the entry.
    #[schemars(length(max = TEXT_MAX))]
    reason: Option<String>,
    /// For the audit; `reason` unless given.
    #[schemars(length(max = TEXT_MAX))]
    why: Option<String>,
    /// How long, such as `24h`.
    r#for: Option<String>,
    /// When it ends.
    until: Option<String>,
}

/// An entry to remove: a `range`, or an `attribute` and its `value`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({ "range": "203.0.113.0/24", "why": "they have moved" }))]
pub struct EntryToRemove {
    range: Option<String>,
    attribute: Option<String>,
    value: Option<String>,
    /// For the audit.
    #[schemars(length(max = TEXT_MAX))]
    why: Option<String>,
}

/// A page of a list's entries.
#[derive(Serialize, JsonSchema)]
pub struct ListPage {
    entries: Vec<record_bodies::ListEntry>,
    /// The `after` of the next page; null on the last.
    next: Option<String>,
    /// The number of entries in the catalog, which are not listed: only the catalog changes them.
    #[schemars(example = 2)]
    catalog_entries: usize,
}

/// The entries that a request added.
#[derive(Serialize, JsonSchema)]
pub struct AddedEntries {
    /// Which list.
    #[schemars(example = &"blocklist")]
    list: &'static str,
    entries: Vec<AddedEntry>,
    /// Whether they are on disk.
    durable: bool,
    /// Whether this was a dry run, which changes nothing.
    #[schemars(example = false)]
    dry_run: bool,
}

/// An entry that a request removed.
#[derive(Serialize, JsonSchema)]
pub struct RemovedEntry {
    /// Which list.
    #[schemars(example = &"blocklist")]
    list: &'static str,
    /// The entry before it was removed.
    before: EntryTerms,
    /// Always null.
    after: (),
    /// Whether it is on disk.
    durable: bool,
}

/// An entry, and the one that it replaced.
#[derive(Serialize, JsonSchema)]
pub struct AddedEntry {
    #[serde(flatten)]
    terms: EntryTerms,
    /// The entry about the same range or value that it replaced; null if there was none.
    before: Option<EntryTerms>,
}

/// The target, the reason and the end of an entry.
#[derive(Serialize, JsonSchema)]
pub struct EntryTerms {
    #[serde(flatten)]
    target: record_bodies::ListTargetBody,
    #[schemars(example = &"open proxies")]
    reason: Option<String>,
    /// When it ends; null if it lasts until it is removed.
    #[schemars(extend("format" = "date-time"))]
    until: Option<String>,
}

/// A page of the entries in the records, with the number of entries in the catalog.
fn page(context: &AdminContext<'_>, request: &ApiRequest, list: ListName) -> AdminResult {
    let [after, limit] = request.query_params(["after", "limit"])?;
    let after = parse_number("after", after)?;
    let limit = parse_number("limit", limit)?;
    let now = context.engine.now();
    let page = context.records()?.lists(list, after, limit.unwrap_or(PAGE), now)?;
    let entries = page.rows.iter().map(record_bodies::ListEntry::from).collect();
    let catalog = context.engine.catalog();
    let catalog_list = match list {
        ListName::Allow => &catalog.allowlist,
        ListName::Block => &catalog.blocklist,
    };
    let next = page.next.map(|next| next.to_string());
    to_json(&ListPage { entries, next, catalog_entries: catalog_list.len() })
}

fn add(context: &AdminContext<'_>, request: &ApiRequest, list: ListName) -> AdminResult {
    let dry_run = parse_dry_run(request)?;
    let is_list = is_list(&request.body);
    let bodies: Vec<NewEntry> =
        if is_list { read_list(&request.body)? } else { vec![request.json_body()?] };
    if bodies.len() > ENTRIES_MAX {
        let sent = bodies.len();
        let detail = format!("a request may have {ENTRIES_MAX} entries and this one has {sent}");
        return Err(Problem::bad("list-too-long", detail));
    }
    // Refused before anything changes: without records the change would be lost at a restart.
    context.records()?;
    let now = context.engine.now();
    let parsed: Vec<_> = bodies.iter().map(|body| parse_entry(context, body, now)).collect();
    // A single entry fails with its own problem, a list with one that names all invalid entries.
    let entries =
        if is_list { all_valid(parsed)? } else { parsed.into_iter().collect::<Result<_, _>>()? };
    let _lock = CHANGE_LOCK.lock();
    let (before, durable) = if dry_run {
        let current =
            |entry: &AccessListEntry| context.engine.run_time_list_entry(list, &entry.target);
        (entries.iter().map(current).collect(), false)
    } else {
        add_and_record(context, list, now, &bodies, &entries)?
    };
    let added = entries.iter().zip(&before).map(|(entry, before)| {
        let before = before.as_ref().map(EntryTerms::from);
        AddedEntry { terms: EntryTerms::from(entry), before }
    });
    to_json(&AddedEntries { list: list.as_str(), entries: added.collect(), durable, dry_run })
}

/// Adds entries to the engine's list and to the records; returns the entries that were replaced,
/// and whether the records are on disk.
fn add_and_record(
    context: &AdminContext<'_>,
    list: ListName,
    now: Time,
    bodies: &[NewEntry],
    entries: &[AccessListEntry],
) -> Result<(Vec<Option<AccessListEntry>>, bool), Problem> {
    let before = context.engine.add_to_list(list, entries.to_vec());
    let records = bodies.iter().zip(entries).map(|(body, entry)| {
        // An entry without a `why` is audited with its `reason`.
        let why = body.why.as_deref().filter(|why| !why.is_empty()).or(entry.reason.as_deref());
        Record::operator(now, context.caller.name(), why, RecordKind::List(list, entry.clone()))
    });
    Ok((before, context.write_records(records.collect())?))
}

fn parse_dry_run(request: &ApiRequest) -> Result<bool, Problem> {
    let [dry_run] = request.query_params(["dry_run"])?;
    match dry_run {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(_) => Err(Problem::bad("bad-query", "`dry_run` must be true or false")),
    }
}

/// The entries of a list, or a problem that names every invalid one by its position, from one.
fn all_valid(
    parsed: Vec<Result<AccessListEntry, Problem>>,
) -> Result<Vec<AccessListEntry>, Problem> {
    let invalid = parsed.iter().enumerate().filter_map(|(index, entry)| {
        entry.as_ref().err().map(|problem| (index + 1, problem.detail.clone()))
    });
    let invalid: Vec<(usize, String)> = invalid.collect();
    let entries: Result<Vec<AccessListEntry>, Problem> = parsed.into_iter().collect();
    entries.map_err(|first| Problem {
        detail: format!(
            "entry {} is invalid: {}; invalid entries: {}; nothing was changed",
            invalid[0].0,
            first.detail,
            invalid.len()
        ),
        entries: invalid,
        ..first
    })
}

fn remove(context: &AdminContext<'_>, request: &ApiRequest, list: ListName) -> AdminResult {
    let body: EntryToRemove = request.json_body()?;
    let range = body.range.as_deref();
    let target = parse_target(context, range, body.attribute.as_deref(), body.value.as_deref())?;
    let why = check_text("why", body.why.as_deref())?;
    // Refused before anything changes: without records the change would be lost at a restart.
    context.records()?;
    let _lock = CHANGE_LOCK.lock();
    let Some(before) = context.engine.remove_from_list(list, &target) else {
        let detail = format!(
            "the {} has no such entry made at run time; the catalog's are changed in its file",
            list.as_str()
        );
        return Err(not_found("unknown-entry", detail));
    };
    let durable = context.record_acts(why, vec![RecordKind::Unlist(list, target)])?;
    let before = EntryTerms::from(&before);
    to_json(&RemovedEntry { list: list.as_str(), before, after: (), durable })
}

/// Refuses a name or value that no subject can have. Only for entries to add: one that was
/// recorded before this rule can still be removed.
fn check_bounds(attribute: &str, value: &str) -> Result<(), Problem> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    if !(1..=NAME_MAX).contains(&attribute.len()) || !attribute.chars().all(allowed) {
        let detail = format!(
            "an attribute's name has 1 to {NAME_MAX} letters, digits, `_`, `.` or `-`; this one \
             has {} bytes, or other characters",
            attribute.len()
        );
        return Err(Problem::bad("bad-entry", detail));
    }
    if !(1..=VALUE_BYTES_MAX).contains(&value.len()) {
        let detail = format!(
            "the value of `{attribute}` has {} bytes and may have 1 to {VALUE_BYTES_MAX}",
            value.len()
        );
        return Err(Problem::bad("bad-entry", detail));
    }
    Ok(())
}

fn parse_entry(
    context: &AdminContext<'_>,
    body: &NewEntry,
    now: Time,
) -> Result<AccessListEntry, Problem> {
    if let (Some(attribute), Some(value)) = (&body.attribute, &body.value) {
        check_bounds(attribute, value)?;
    }
    let range = body.range.as_deref();
    let target = parse_target(context, range, body.attribute.as_deref(), body.value.as_deref())?;
    let until = match (&body.r#for, &body.until) {
        (Some(text), None) => {
            // `forever` is an entry without an end.
            Some(now.after(parse_duration("for", text)?)).filter(|at| !at.is_forever())
        }
        (None, until) => parse_instant("until", until.as_deref())?,
        (Some(_), Some(_)) => {
            return Err(Problem::bad("bad-entry", "send `for` or `until`, not both"));
        }
    };
    if until.is_some_and(|until| until <= now) {
        return Err(Problem::bad("bad-entry", "the entry would have ended already"));
    }
    check_text("why", body.why.as_deref())?;
    let reason = check_text("reason", body.reason.as_deref())?.map(str::to_owned);
    Ok(AccessListEntry { target, reason, until })
}

fn parse_target(
    context: &AdminContext<'_>,
    range: Option<&str>,
    attribute: Option<&str>,
    value: Option<&str>,
) -> Result<ListTarget, Problem> {
    match (range, attribute, value) {
        (Some(range), None, None) => {
            let range = AddressRange::parse(range);
            let range = range.map_err(|error| Problem::bad("bad-range", error.to_string()))?;
            Ok(ListTarget::Range(range))
        }
        (None, Some("ip"), Some(_)) => {
            Err(Problem::bad("bad-entry", "write an address as `range`, such as 203.0.113.0/24"))
        }
        (None, Some(attribute), Some(value)) => {
            // The first form is that of the catalog in use; the others are older ones.
            let stored = context.engine.stored_names(attribute, value)?.into_iter().next();
            let stored =
                stored.ok_or_else(|| Problem::bad("bad-entry", "the value has no stored form"))?;
            Ok(ListTarget::Value { attribute: stored.attribute, value: stored.value })
        }
        _ => Err(Problem::bad(
            "bad-entry",
            "an entry has a `range`, such as 203.0.113.0/24, or an `attribute` and its `value`",
        )),
    }
}

impl From<&AccessListEntry> for EntryTerms {
    fn from(entry: &AccessListEntry) -> Self {
        Self {
            target: record_bodies::ListTargetBody::from(&entry.target),
            reason: entry.reason.clone(),
            until: entry.until.map(Time::to_rfc3339),
        }
    }
}

//! The blocklist and the allowlist: address ranges and attribute values, with or without an end.
//!
//! What is in force and what is recorded change together, one call at a time. Must not keep a
//! private value: entries about one hold its pseudonym.

use catraca::Time;
use catraca::core::address::Range;
use catraca::core::lists::{Entry, What};
use catraca::core::request::VALUE_BYTES_MAX;
use catraca::records::{Deed, ListName, Record};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::shown;
use super::super::wire::{is_list, read_list};
use super::blocks::span;
use super::{Answered, Call, Desk, Problem, TEXT_MAX, bounded};
use super::{instant, missing, number, told};

/// Entries in one call.
pub const ENTRIES_MAX: usize = 1_000;
/// The longest name of an attribute, as in a catalog.
const NAME_MAX: usize = 64;
/// Rows of a page, unless asked otherwise.
const PAGE: u32 = 50;

/// Two changes of one entry must be recorded in the order in which they came in force.
static TURN: Mutex<()> = Mutex::new(());

/// `GET /v1/blocklist`.
pub fn blocked(desk: &Desk<'_>, call: &Call) -> Answered {
    page(desk, call, ListName::Block)
}

/// `POST /v1/blocklist`.
pub fn block(desk: &Desk<'_>, call: &Call) -> Answered {
    add(desk, call, ListName::Block)
}

/// `DELETE /v1/blocklist`.
pub fn unblock(desk: &Desk<'_>, call: &Call) -> Answered {
    remove(desk, call, ListName::Block)
}

/// `GET /v1/allowlist`.
pub fn allowed(desk: &Desk<'_>, call: &Call) -> Answered {
    page(desk, call, ListName::Allow)
}

/// `POST /v1/allowlist`.
pub fn allow(desk: &Desk<'_>, call: &Call) -> Answered {
    add(desk, call, ListName::Allow)
}

/// `DELETE /v1/allowlist`.
pub fn disallow(desk: &Desk<'_>, call: &Call) -> Answered {
    remove(desk, call, ListName::Allow)
}

/// An entry to make: a `range`, or an `attribute` and its `value`; `for` or `until`, or neither.
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
    /// For whoever looks at the entry.
    #[schemars(length(max = TEXT_MAX))]
    reason: Option<String>,
    /// For the audit; the reason unless given.
    #[schemars(length(max = TEXT_MAX))]
    why: Option<String>,
    /// How long, such as `24h`.
    r#for: Option<String>,
    /// Until when.
    until: Option<String>,
}

/// An entry to remove: a `range`, or an `attribute` and its `value`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({ "range": "203.0.113.0/24", "why": "they have moved" }))]
pub struct GoneEntry {
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
    entries: Vec<shown::ListEntry>,
    /// The `after` of the next page; null on the last.
    next: Option<String>,
    /// How many more the catalog has, which only the catalog can change.
    #[schemars(example = 2)]
    catalog_entries: usize,
}

/// Entries that are in force now.
#[derive(Serialize, JsonSchema)]
pub struct NewEntries {
    /// Which list.
    #[schemars(example = &"blocklist")]
    list: &'static str,
    entries: Vec<MadeEntry>,
    /// Whether they are on disk.
    durable: bool,
    /// Whether nothing was done.
    #[schemars(example = false)]
    dry_run: bool,
}

/// An entry that is no more.
#[derive(Serialize, JsonSchema)]
pub struct RemovedEntry {
    /// Which list.
    #[schemars(example = &"blocklist")]
    list: &'static str,
    /// As it was.
    before: Terms,
    /// Always null.
    after: (),
    /// Whether it is on disk.
    durable: bool,
}

/// An entry, and the one that it replaced.
#[derive(Serialize, JsonSchema)]
pub struct MadeEntry {
    #[serde(flatten)]
    terms: Terms,
    /// What stood before about the same; null if nothing did.
    before: Option<Terms>,
}

/// Whom an entry is about, why, and until when.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "EntryTerms")]
pub struct Terms {
    #[serde(flatten)]
    target: shown::Target,
    #[schemars(example = &"open proxies")]
    reason: Option<String>,
    /// When it ends; null if it stands until it is removed.
    #[schemars(extend("format" = "date-time"))]
    until: Option<String>,
}

/// Entries of the records, and those of the catalog, which only the catalog can change.
fn page(desk: &Desk<'_>, call: &Call, list: ListName) -> Answered {
    let [after, limit] = call.asked(["after", "limit"])?;
    let (after, limit) = (number("after", after)?, number("limit", limit)?);
    let now = desk.engine.now();
    let page = desk.records()?.lists(list, after, limit.unwrap_or(PAGE), now)?;
    let entries = page.rows.iter().map(shown::ListEntry::from).collect();
    let catalog = desk.engine.catalog();
    let fixed = match list {
        ListName::Allow => &catalog.allowlist,
        ListName::Block => &catalog.blocklist,
    };
    let next = page.next.map(|next| next.to_string());
    told(&ListPage { entries, next, catalog_entries: fixed.len() })
}

fn add(desk: &Desk<'_>, call: &Call, list: ListName) -> Answered {
    let dry_run = dry_run(call)?;
    let body = &call.body;
    let wires: Vec<NewEntry> = if is_list(body) { read_list(body)? } else { vec![call.wire()?] };
    if wires.len() > ENTRIES_MAX {
        let detail = format!("a call may bring {ENTRIES_MAX} entries and this one {}", wires.len());
        return Err(Problem::bad("list-too-long", detail));
    }
    desk.records()?;
    let now = desk.engine.now();
    let read: Vec<_> = wires.iter().map(|wire| entry(desk, wire, now)).collect();
    let entries =
        if is_list(body) { all(read)? } else { read.into_iter().collect::<Result<_, _>>()? };
    let _turn = TURN.lock();
    let (before, durable) = if dry_run {
        (entries.iter().map(|entry| desk.engine.listed(list, &entry.what)).collect(), false)
    } else {
        put(desk, (list, now), (&wires, &entries))?
    };
    let made = entries.iter().zip(&before).map(|(entry, before)| {
        let before = before.as_ref().map(Terms::from);
        MadeEntry { terms: Terms::from(entry), before }
    });
    told(&NewEntries { list: list.as_str(), entries: made.collect(), durable, dry_run })
}

/// Puts entries in force and in the records; says what was there, and whether it is on disk.
fn put(
    desk: &Desk<'_>,
    (list, now): (ListName, Time),
    (wires, entries): (&[NewEntry], &[Entry]),
) -> Result<(Vec<Option<Entry>>, bool), Problem> {
    let before = desk.engine.list(list, entries.to_vec());
    let made = wires.iter().zip(entries).map(|(wire, entry)| {
        // Without a motive of its own, an entry's reason is that of whoever made it.
        let why = wire.why.as_deref().filter(|why| !why.is_empty()).or(entry.reason.as_deref());
        Record::operator(now, desk.by.name(), why, Deed::List(list, entry.clone()))
    });
    Ok((before, desk.written(made.collect())?))
}

fn dry_run(call: &Call) -> Result<bool, Problem> {
    let [dry_run] = call.asked(["dry_run"])?;
    match dry_run {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(_) => Err(Problem::bad("bad-query", "`dry_run` must be true or false")),
    }
}

/// Every entry of a list, or all that is wrong with them, each by its place.
fn all(read: Vec<Result<Entry, Problem>>) -> Result<Vec<Entry>, Problem> {
    let wrong = read.iter().enumerate().filter_map(|(place, entry)| {
        entry.as_ref().err().map(|problem| (place + 1, problem.detail.clone()))
    });
    let wrong: Vec<(usize, String)> = wrong.collect();
    let entries: Result<Vec<Entry>, Problem> = read.into_iter().collect();
    entries.map_err(|first| Problem {
        detail: format!(
            "entry {} is wrong: {}; of {} wrong ones, and nothing was done",
            wrong[0].0,
            first.detail,
            wrong.len()
        ),
        entries: wrong,
        ..first
    })
}

fn remove(desk: &Desk<'_>, call: &Call, list: ListName) -> Answered {
    let gone: GoneEntry = call.wire()?;
    let what = what(desk, gone.range.as_deref(), gone.attribute.as_deref(), gone.value.as_deref())?;
    let why = bounded("why", gone.why.as_deref())?;
    desk.records()?;
    let _turn = TURN.lock();
    let Some(before) = desk.engine.unlist(list, &what) else {
        let detail = format!(
            "the {} has no such entry made at run time; those of the catalog are changed there",
            list.as_str()
        );
        return Err(missing("unknown-entry", detail));
    };
    let durable = desk.recorded(why, vec![Deed::Unlist(list, what)])?;
    let before = Terms::from(&before);
    told(&RemovedEntry { list: list.as_str(), before, after: (), durable })
}

/// What no subject can have is on no list. An entry from before may still be removed.
fn in_bounds(attribute: &str, value: &str) -> Result<(), Problem> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    if !(1..=NAME_MAX).contains(&attribute.len()) || !attribute.chars().all(allowed) {
        let detail = format!(
            "an attribute's name has 1 to {NAME_MAX} letters, digits, `_`, `.` or `-`; this one \
             has {} bytes, or others",
            attribute.len()
        );
        return Err(Problem::bad("bad-entry", detail));
    }
    if !(1..=VALUE_BYTES_MAX).contains(&value.len()) {
        let detail = format!(
            "the value of `{attribute}` has {} bytes and takes 1 to {VALUE_BYTES_MAX}",
            value.len()
        );
        return Err(Problem::bad("bad-entry", detail));
    }
    Ok(())
}

fn entry(desk: &Desk<'_>, wire: &NewEntry, now: Time) -> Result<Entry, Problem> {
    if let (Some(attribute), Some(value)) = (&wire.attribute, &wire.value) {
        in_bounds(attribute, value)?;
    }
    let what = what(desk, wire.range.as_deref(), wire.attribute.as_deref(), wire.value.as_deref())?;
    let until = match (&wire.r#for, &wire.until) {
        (Some(text), None) => Some(now.after(span("for", text)?)).filter(|at| !at.is_forever()),
        (None, until) => instant("until", until.as_deref())?,
        (Some(_), Some(_)) => {
            return Err(Problem::bad("bad-entry", "give `for` or `until`, not both"));
        }
    };
    if until.is_some_and(|until| until <= now) {
        return Err(Problem::bad("bad-entry", "the entry would have ended already"));
    }
    bounded("why", wire.why.as_deref())?;
    let reason = bounded("reason", wire.reason.as_deref())?.map(str::to_owned);
    Ok(Entry { what, reason, until })
}

fn what(
    desk: &Desk<'_>,
    range: Option<&str>,
    attribute: Option<&str>,
    value: Option<&str>,
) -> Result<What, Problem> {
    match (range, attribute, value) {
        (Some(range), None, None) => {
            let range = Range::parse(range);
            let range = range.map_err(|error| Problem::bad("bad-range", error.to_string()))?;
            Ok(What::Range(range))
        }
        (None, Some("ip"), Some(_)) => {
            Err(Problem::bad("bad-entry", "write an address as `range`, such as 203.0.113.0/24"))
        }
        (None, Some(attribute), Some(value)) => {
            // The name as the catalog has it now comes first.
            let known = desk.engine.known_as(attribute, value)?.into_iter().next();
            let known = known.ok_or_else(|| Problem::bad("bad-entry", "the value is no name"))?;
            Ok(What::Value { attribute: known.attribute, value: known.value })
        }
        _ => Err(Problem::bad(
            "bad-entry",
            "an entry has a `range`, such as 203.0.113.0/24, or an `attribute` and its `value`",
        )),
    }
}

impl From<&Entry> for Terms {
    fn from(entry: &Entry) -> Self {
        Self {
            target: shown::Target::from(&entry.what),
            reason: entry.reason.clone(),
            until: entry.until.map(Time::to_rfc3339),
        }
    }
}

//! The blocklist and the allowlist: list, add and remove entries.
//!
//! An entry is about an address range or an attribute value, and may have an end. Entries about
//! private values hold pseudonyms.

use std::collections::BTreeMap;

use catraca::Time;
use catraca::app::{ListTargetText, NewListEntry, TEXT_MAX};
use catraca::core::lists::AccessListEntry;
use catraca::core::located::names::NAME_MAX;
use catraca::core::request::VALUE_BYTES_MAX;
use catraca::records::{Incomplete, ListName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::blocks::parse_duration;
use super::{ApiRequest, ApiResult, Problem, parse_instant, parse_limit, parse_number, to_json};
use crate::http::bodies::record_bodies;
use crate::http::bodies::wire::{is_list, read_list};

/// Default number of rows in a page.
const PAGE: u32 = 50;

/// `GET /v1/blocklist`.
pub async fn list_blocklist(request: &ApiRequest) -> ApiResult {
    page(request, ListName::Block).await
}

/// `POST /v1/blocklist`.
pub async fn add_to_blocklist(request: &ApiRequest) -> ApiResult {
    add(request, ListName::Block).await
}

/// `DELETE /v1/blocklist`.
pub async fn remove_from_blocklist(request: &ApiRequest) -> ApiResult {
    remove(request, ListName::Block).await
}

/// `GET /v1/allowlist`.
pub async fn list_allowlist(request: &ApiRequest) -> ApiResult {
    page(request, ListName::Allow).await
}

/// `POST /v1/allowlist`.
pub async fn add_to_allowlist(request: &ApiRequest) -> ApiResult {
    add(request, ListName::Allow).await
}

/// `DELETE /v1/allowlist`.
pub async fn remove_from_allowlist(request: &ApiRequest) -> ApiResult {
    remove(request, ListName::Allow).await
}

/// An entry to add: a `range`, or an `attribute` and its `value`; `for` or `until`, or neither.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({
    "range": "203.0.113.0/24", "reason": "open proxies", "for": "7d",
}))]
pub struct NewEntry {
    /// The only namespace in which it applies; the default is all, or that of the key.
    namespace: Option<String>,
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
    /// For the audit. Default: `reason`.
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
    /// The namespace of the entry; the default is an entry of all, or of that of the key.
    namespace: Option<String>,
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
    /// The number of entries in the catalog that apply, which are not listed: only the catalog
    /// changes them.
    #[schemars(example = 2)]
    catalog_entries: usize,
    /// Why the newest entries may be missing; absent if none is.
    #[serde(skip_serializing_if = "Option::is_none")]
    incomplete: Option<&'static str>,
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
    /// Other nodes that do not know of it yet; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    nodes_behind: Vec<String>,
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
    /// Other nodes that do not know of it yet; absent if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    nodes_behind: Vec<String>,
}

/// An entry, and the one that it replaced.
#[derive(Serialize, JsonSchema)]
pub struct AddedEntry {
    #[serde(flatten)]
    terms: EntryTerms,
    /// The entry about the same range or value and namespace that it replaced; null if there was
    /// none.
    before: Option<EntryTerms>,
}

/// The target, the reason and the end of an entry.
#[derive(Serialize, JsonSchema)]
pub struct EntryTerms {
    /// The only namespace in which it applies; null if it applies in all.
    #[schemars(example = &"shop")]
    namespace: Option<String>,
    #[serde(flatten)]
    target: record_bodies::ListTargetBody,
    #[schemars(example = &"open proxies")]
    reason: Option<String>,
    /// When it ends; null if it lasts until it is removed.
    #[schemars(extend("format" = "date-time"))]
    until: Option<String>,
}

/// A page of the entries in the records, with the number of entries in the catalog.
async fn page(request: &ApiRequest, list: ListName) -> ApiResult {
    let [namespace, after, limit] = request.query_params(["namespace", "after", "limit"])?;
    let namespace = request.entry_namespace(namespace).await?;
    let namespace = namespace.as_deref();
    let after = parse_number("after", after)?;
    let limit = parse_limit(limit, PAGE)?;
    let page = request.app().list_entries(list, namespace, after, limit).await?;
    let engine = request.app().engine();
    let is_orphaned = |attribute: &str, value: &str| engine.is_orphaned_value(attribute, value);
    let entries = page.rows.iter().map(|row| record_bodies::ListEntry::new(row, is_orphaned));
    let entries = entries.collect();
    let catalog = request.app().catalog();
    let catalog_list = match list {
        ListName::Allow => &catalog.allowlist,
        ListName::Block => &catalog.blocklist,
    };
    let is_visible = |entry: &&AccessListEntry| {
        namespace.is_none() || entry.namespace.is_none() || entry.namespace.as_deref() == namespace
    };
    let catalog_entries = catalog_list.iter().filter(is_visible).count();
    let next = page.next.map(|next| next.to_string());
    let incomplete = page.incomplete.map(Incomplete::as_str);
    to_json(&ListPage { entries, next, catalog_entries, incomplete })
}

async fn add(request: &ApiRequest, list: ListName) -> ApiResult {
    let dry_run = parse_dry_run(request)?;
    let is_list = is_list(&request.body);
    let bodies: Vec<NewEntry> =
        if is_list { read_list(&request.body)? } else { vec![request.json_body()?] };
    let namespaces = entry_namespaces(request, &bodies).await?;
    let parse = |(body, namespace)| parse_entry(request, body, namespace);
    let parsed: Vec<_> = bodies.iter().zip(namespaces).map(parse).collect();
    // A single entry fails with its own problem, a list with one that names all invalid entries.
    let entries: Vec<AccessListEntry> =
        if is_list { all_valid(parsed)? } else { parsed.into_iter().collect::<Result<_, _>>()? };
    let reasons = bodies.into_iter().map(|body| body.why);
    let with_reasons = entries.into_iter().zip(reasons).collect();
    let operator = request.operator(None);
    let app = request.app();
    let added = app.add_to_list(&operator, list, with_reasons, dry_run).await?;
    let entries = added.entries.iter().zip(&added.before).map(|(entry, before)| {
        let before = before.as_ref().map(EntryTerms::from);
        AddedEntry { terms: EntryTerms::from(entry), before }
    });
    let entries = entries.collect();
    let durable = added.durable;
    let nodes_behind = request.app().nodes_behind(durable || dry_run);
    let list = list.as_str();
    to_json(&AddedEntries { list, entries, durable, dry_run, nodes_behind })
}

/// The namespace of each entry. Each name is looked up once.
async fn entry_namespaces(
    request: &ApiRequest,
    bodies: &[NewEntry],
) -> Result<Vec<Option<String>>, Problem> {
    let mut known: BTreeMap<Option<&str>, Option<String>> = BTreeMap::new();
    let mut namespaces = Vec::with_capacity(bodies.len());
    for body in bodies {
        let stated = body.namespace.as_deref();
        let namespace = match known.get(&stated) {
            Some(namespace) => namespace.clone(),
            None => request.entry_namespace(stated).await?,
        };
        known.insert(stated, namespace.clone());
        namespaces.push(namespace);
    }
    Ok(namespaces)
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

async fn remove(request: &ApiRequest, list: ListName) -> ApiResult {
    let body: EntryToRemove = request.json_body()?;
    let operator = request.operator(body.why.as_deref());
    let target = target_text(body.range.as_ref(), body.attribute.as_ref(), body.value.as_ref())?;
    let namespace = request.entry_namespace(body.namespace.as_deref()).await?;
    let namespace = namespace.as_deref();
    let removed = request.app().remove_from_list(&operator, list, namespace, &target).await?;
    let before = EntryTerms::from(&removed.before);
    let durable = removed.durable;
    let nodes_behind = request.app().nodes_behind(durable);
    to_json(&RemovedEntry { list: list.as_str(), before, after: (), durable, nodes_behind })
}

fn parse_entry(
    request: &ApiRequest,
    body: &NewEntry,
    namespace: Option<String>,
) -> Result<AccessListEntry, Problem> {
    let app = request.app();
    let until = match (&body.r#for, &body.until) {
        (Some(text), None) => {
            // `forever` is an entry without an end.
            Some(app.now().after(parse_duration("for", text)?)).filter(|at| !at.is_forever())
        }
        (None, until) => parse_instant("until", until.as_deref())?,
        (Some(_), Some(_)) => {
            return Err(Problem::bad("bad-entry", "send `for` or `until`, not both"));
        }
    };
    Ok(app.list_entry(&NewListEntry {
        namespace,
        target: target_text(body.range.as_ref(), body.attribute.as_ref(), body.value.as_ref())?,
        until,
        reason: body.reason.clone(),
        why: body.why.clone(),
    })?)
}

fn target_text(
    range: Option<&String>,
    attribute: Option<&String>,
    value: Option<&String>,
) -> Result<ListTargetText, Problem> {
    match (range, attribute, value) {
        (Some(range), None, None) => Ok(ListTargetText::Range(range.clone())),
        (None, Some(attribute), Some(value)) => {
            Ok(ListTargetText::Value { attribute: attribute.clone(), value: value.clone() })
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
            namespace: entry.namespace.clone(),
            target: record_bodies::ListTargetBody::from(&entry.target),
            reason: entry.reason.clone(),
            until: entry.until.map(Time::to_rfc3339),
        }
    }
}

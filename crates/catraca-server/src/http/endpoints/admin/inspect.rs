//! `POST /v1/inspect`: all there is to know of a subject.

use std::collections::BTreeMap;

use catraca::Time;
use catraca::app::{EntrySource, InspectedEntry, InspectedTier, Inspection};
use catraca::json::DecisionRowBody;
use catraca::records::Incomplete;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ApiRequest, ApiResult, records_scope, to_json};
use crate::http::bodies::record_bodies::{BlockBody, KeyAttemptsBody, ListTargetBody};
use crate::http::bodies::schema_values;
use crate::http::bodies::wire::OwnedSubject;

/// The subject to inspect.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(example = serde_json::json!({ "subject": { "customer": "c-4711" } }))]
pub struct InspectRequest {
    subject: OwnedSubject,
    /// The namespace; required as soon as there are several, unless the key is bound to one.
    namespace: Option<String>,
}

/// All there is to know of a subject.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Inspection")]
pub struct InspectionBody<'a> {
    #[schemars(example = &"default")]
    namespace: String,
    /// `allowlisted` or `blocklisted` if a list decides for this subject, before its policies; null
    /// otherwise.
    list: Option<&'static str>,
    /// The entry of that list; null if no list decides.
    list_entry: Option<InspectedEntryBody>,
    /// Every policy that applies to these attributes, as a check of cost one would see it. A tier
    /// with a counter of its own, which the attributes neither select nor exclude, is a row too.
    policies: Vec<InspectedPolicyBody<'a>>,
    /// The facts about the values of the subject.
    facts: BTreeMap<&'a str, &'a str>,
    /// The active blocks that name a value of the subject, newest first.
    blocks: Vec<BlockBody>,
    /// Whether there are more active blocks: at most 1,000 acts of each value are listed.
    more_blocks: bool,
    /// The last ten blocks that named a value of the subject and have ended, the last one first.
    ended_blocks: Vec<BlockBody>,
    /// Why the newest blocks may be missing; absent if none is.
    #[serde(skip_serializing_if = "Option::is_none")]
    incomplete: Option<&'static str>,
    /// `node` if each node has records of its own: these are those of the node that answered.
    /// Absent if all nodes share them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"node")]
    scope: Option<&'static str>,
}

/// The list entry that decides for a subject.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "InspectedEntry")]
struct InspectedEntryBody {
    /// The only namespace in which it applies; null if it applies in all.
    #[schemars(example = &"shop")]
    namespace: Option<String>,
    #[serde(flatten)]
    target: ListTargetBody,
    /// Null if none was given, and for a key that is bound to a namespace if the entry applies in
    /// all of them.
    #[schemars(example = &"open proxies")]
    reason: Option<String>,
    /// The operator; null for an entry of the catalog, and where `reason` is hidden.
    #[schemars(example = &"ana")]
    by: Option<String>,
    /// When an operator added or last changed it; null for an entry of the catalog.
    #[schemars(extend("format" = "date-time"), example = schema_values::NOON)]
    since: Option<String>,
    /// When it ends; null if it lasts until it is removed.
    #[schemars(extend("format" = "date-time"))]
    until: Option<String>,
    /// Where it comes from: a file of the `catalog`, or `run-time`.
    #[schemars(extend("enum" = ["catalog", "run-time"]), example = &"run-time")]
    source: &'static str,
}

/// One policy that applies to a subject.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "InspectedPolicy")]
struct InspectedPolicyBody<'a> {
    /// What a request needs to be counted in this row: names with their accepted values. The row is
    /// that of a tier with a counter of its own. Absent for the row that the attributes select.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &serde_json::json!({ "method": ["POST"] }))]
    tier: Option<BTreeMap<&'a str, &'a [String]>>,
    #[serde(flatten)]
    row: DecisionRowBody<'a>,
    /// The message for the caller, if the policy would deny it.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
    /// The attempts of this key in the last day, up to a second ago; absent unless the records
    /// count those of single keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    attempts: Option<KeyAttemptsBody>,
}

/// `POST /v1/inspect`.
pub async fn inspect(request: &ApiRequest) -> ApiResult {
    let body: InspectRequest = request.json_body()?;
    let subject = request.caller.with_fixed_attributes(body.subject.subject())?;
    let namespace = request.act_namespace(body.namespace.as_deref()).await?;
    let app = request.app();
    let found = app.inspect(&namespace, &subject).await?;
    let Inspection { list, policies, facts, blocks, more_blocks, ended_blocks, incomplete } = found;
    let is_bound = request.caller.bound_namespace().is_some();
    let policies = policies.iter().map(|found| InspectedPolicyBody {
        tier: found.tier.as_ref().map(tier_body),
        row: DecisionRowBody::from(&found.row),
        message: found.message.as_deref(),
        attempts: found.attempts.map(KeyAttemptsBody::from),
    });
    to_json(&InspectionBody {
        namespace,
        list: list.as_ref().map(|found| found.decision.as_str()),
        list_entry: list.map(|found| entry_body(found, is_bound)),
        policies: policies.collect(),
        facts: facts.iter().map(|(name, fact)| (name.as_str(), fact.as_str())).collect(),
        blocks: blocks.iter().map(|row| BlockBody::new(row, app)).collect(),
        more_blocks,
        ended_blocks: ended_blocks.iter().map(|row| BlockBody::new(row, app)).collect(),
        incomplete: incomplete.map(Incomplete::as_str),
        scope: records_scope(request),
    })
}

fn tier_body(tier: &InspectedTier) -> BTreeMap<&str, &[String]> {
    tier.iter().map(|(name, values)| (name.as_str(), values.as_slice())).collect()
}

/// The body of an entry. An entry of all namespaces is not of the operators of one: a key that is
/// bound to a namespace does not see who made it and why.
fn entry_body(found: InspectedEntry, is_bound: bool) -> InspectedEntryBody {
    let InspectedEntry { entry, source, .. } = found;
    let is_hidden = is_bound && entry.namespace.is_none();
    let (source, since, by) = match source {
        EntrySource::Catalog => ("catalog", None, None),
        EntrySource::RunTime { since, by } => ("run-time", since, by),
    };
    InspectedEntryBody {
        target: ListTargetBody::from(&entry.target),
        namespace: entry.namespace,
        reason: entry.reason.filter(|_| !is_hidden),
        by: by.filter(|_| !is_hidden),
        since: since.map(Time::to_rfc3339),
        until: entry.until.map(Time::to_rfc3339),
        source,
    }
}

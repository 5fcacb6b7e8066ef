//! Privacy requests: export and erase what the records hold about one identifier.
//!
//! The identifier itself is written nowhere: the audit names only its attribute.

use std::collections::BTreeMap;

use catraca::Time;
use catraca::app::TEXT_MAX;
use catraca::records::ExportedFact;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ApiRequest, ApiResult, records_scope, to_json};
use crate::http::bodies::record_bodies;

/// Sent with both responses: counters are neither exported nor erased.
const COUNTERS: &str = "counters are keyed digests without names; each lapses with its window";

/// The identifier that a privacy request is about.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PrivacyRequest {
    #[schemars(example = &"payer")]
    attribute: String,
    /// The real value; it is never written to disk or logs.
    #[schemars(example = &"52998224725")]
    value: String,
    /// For the audit.
    #[schemars(length(max = TEXT_MAX), example = &"their request of this morning")]
    why: Option<String>,
}

/// Everything that the records hold about an identifier.
#[derive(Serialize, JsonSchema)]
pub struct PrivacyExport {
    #[schemars(example = &"payer")]
    attribute: String,
    blocks: Vec<ExportedBlock>,
    lists: Vec<ExportedEntry>,
    /// Facts that apply in all namespaces, by name.
    facts: BTreeMap<String, String>,
    /// Facts that apply in one namespace only, by namespace.
    #[schemars(example = serde_json::json!({ "shop": { "plan": "gold" } }))]
    namespace_facts: BTreeMap<String, BTreeMap<String, String>>,
    /// The attempts of its keys, if the records count those of single keys.
    attempts: Vec<ExportedAttempts>,
    /// What operators did about this identifier.
    acts: Vec<record_bodies::AuditEntry>,
    /// Why counters are not included.
    #[schemars(example = COUNTERS)]
    counters: &'static str,
    /// Whether the audit of this request is on disk.
    durable: bool,
    /// `node` if each node has records of its own: these are those of the node that answered.
    /// Absent if all nodes share them.
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<&'static str>,
}

/// A block with its history.
#[derive(Serialize, JsonSchema)]
pub struct ExportedBlock {
    #[serde(flatten)]
    block: record_bodies::BlockBody,
    history: Vec<record_bodies::BlockHistoryEntry>,
}

/// An entry of a list about the identifier.
#[derive(Serialize, JsonSchema)]
pub struct ExportedEntry {
    /// The only namespace in which it applies; null if it applies in all.
    #[schemars(example = &"shop")]
    namespace: Option<String>,
    #[schemars(example = &"blocklist")]
    list: String,
    reason: Option<String>,
    #[schemars(extend("format" = "date-time"))]
    until: Option<String>,
}

/// The attempts of one key of the identifier.
#[derive(Serialize, JsonSchema)]
pub struct ExportedAttempts {
    #[schemars(example = &"default")]
    namespace: String,
    #[schemars(example = &"login")]
    policy: String,
    #[serde(flatten)]
    attempts: record_bodies::KeyAttemptsBody,
}

/// What was erased about an identifier, and what was retained.
#[derive(Serialize, JsonSchema)]
pub struct ErasureReport {
    #[schemars(example = &"payer")]
    attribute: String,
    erased: ErasedRows,
    retained: RetainedRows,
    /// Why counters are not erased.
    #[schemars(example = COUNTERS)]
    counters: &'static str,
    /// Whether the audit of this request is on disk.
    durable: bool,
}

/// Numbers of erased rows.
#[derive(Serialize, JsonSchema)]
pub struct ErasedRows {
    #[schemars(example = 2)]
    blocks: u64,
    #[schemars(example = 1)]
    facts: u64,
    #[schemars(example = 3)]
    acts: u64,
}

/// Numbers of rows that are still in effect to protect others; each is deleted when it ends.
#[derive(Serialize, JsonSchema)]
pub struct RetainedRows {
    #[schemars(example = 1)]
    blocks: u64,
    #[schemars(example = 0)]
    lists: u64,
    #[schemars(example = 0)]
    debts: u64,
}

/// `POST /v1/privacy/export`.
pub async fn export(request: &ApiRequest) -> ApiResult {
    let body: PrivacyRequest = request.json_body()?;
    let operator = request.operator(body.why.as_deref());
    let app = &request.app();
    let within = request.caller.bound_namespace();
    let export = app.export(&operator, within, &body.attribute, &body.value).await?;
    let found = export.rows;
    let blocks = found.blocks.iter().map(|(row, history)| ExportedBlock {
        block: record_bodies::BlockBody::new(row, app),
        history: history.iter().map(record_bodies::BlockHistoryEntry::from).collect(),
    });
    let lists = found.lists.into_iter().map(|entry| ExportedEntry {
        namespace: entry.namespace,
        list: entry.list,
        reason: entry.reason,
        until: entry.until.map(Time::to_rfc3339),
    });
    let mut facts = BTreeMap::new();
    let mut namespace_facts: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for ExportedFact { namespace, name, fact } in found.facts {
        let facts = match namespace {
            None => &mut facts,
            Some(namespace) => namespace_facts.entry(namespace).or_default(),
        };
        facts.insert(name, fact);
    }
    let attempts = found.attempts.into_iter().map(|key| ExportedAttempts {
        namespace: key.namespace,
        policy: key.policy,
        attempts: record_bodies::KeyAttemptsBody::from(key.attempts),
    });
    to_json(&PrivacyExport {
        attribute: body.attribute,
        attempts: attempts.collect(),
        blocks: blocks.collect(),
        lists: lists.collect(),
        facts,
        namespace_facts,
        acts: found.audit.iter().map(record_bodies::AuditEntry::from).collect(),
        counters: COUNTERS,
        durable: export.durable,
        scope: records_scope(request),
    })
}

/// `POST /v1/privacy/erase`.
pub async fn erase(request: &ApiRequest) -> ApiResult {
    let body: PrivacyRequest = request.json_body()?;
    let operator = request.operator(body.why.as_deref());
    let app = &request.app();
    let within = request.caller.bound_namespace();
    let erased = app.erase(&operator, within, &body.attribute, &body.value).await?;
    let counts = erased.counts;
    to_json(&ErasureReport {
        attribute: body.attribute,
        erased: ErasedRows { blocks: counts.blocks, facts: counts.facts, acts: counts.audit },
        retained: RetainedRows {
            blocks: counts.retained_blocks,
            lists: counts.retained_lists,
            debts: counts.retained_debts,
        },
        counters: COUNTERS,
        durable: erased.durable,
    })
}

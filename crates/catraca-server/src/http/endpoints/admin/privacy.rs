//! Privacy requests: export and erase what the records hold about one identifier.
//!
//! The identifier itself is written nowhere: the audit names only its attribute.

use std::collections::BTreeMap;

use catraca::Time;
use catraca::records::{AuditNote, RecordKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AdminContext, AdminResult, ApiRequest, Problem, TEXT_MAX, check_text, to_json};
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
    /// Facts by name.
    facts: BTreeMap<String, String>,
    /// What operators did about this identifier.
    acts: Vec<record_bodies::AuditEntry>,
    /// Why counters are not included.
    #[schemars(example = COUNTERS)]
    counters: &'static str,
    /// Whether the audit of this request is on disk.
    durable: bool,
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
    #[schemars(example = &"blocklist")]
    list: String,
    reason: Option<String>,
    #[schemars(extend("format" = "date-time"))]
    until: Option<String>,
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
pub fn export(context: &AdminContext<'_>, request: &ApiRequest) -> AdminResult {
    let body: PrivacyRequest = request.json_body()?;
    let about = context.engine.stored_names(&body.attribute, &body.value)?;
    let why = check_text("why", body.why.as_deref())?;
    // Audited first, so that an export that fails is in the audit too.
    let durable = write_audit(context, &body.attribute, why, "export")?;
    let found = context.records()?.export(&about)?;
    let blocks = found.blocks.iter().map(|(row, history)| ExportedBlock {
        block: record_bodies::BlockBody::from(row),
        history: history.iter().map(record_bodies::BlockHistoryEntry::from).collect(),
    });
    let lists = found.lists.iter().map(|(list, reason, until)| {
        let until = until.map(|until| Time::from_micros(until).to_rfc3339());
        ExportedEntry { list: list.to_string(), reason: reason.clone(), until }
    });
    let facts = found.facts.iter().map(|(name, fact)| (name.to_string(), fact.to_string()));
    to_json(&PrivacyExport {
        attribute: body.attribute,
        blocks: blocks.collect(),
        lists: lists.collect(),
        facts: facts.collect(),
        acts: found.audit.iter().map(record_bodies::AuditEntry::from).collect(),
        counters: COUNTERS,
        durable,
    })
}

/// `POST /v1/privacy/erase`.
pub fn erase(context: &AdminContext<'_>, request: &ApiRequest) -> AdminResult {
    let body: PrivacyRequest = request.json_body()?;
    let about = context.engine.stored_names(&body.attribute, &body.value)?;
    // Before the erasure: a request that is refused must not have erased anything.
    let why = check_text("why", body.why.as_deref())?;
    let erased = context.records()?.erase(&about, context.engine.now())?;
    // Facts are also in the memory of the engine.
    context.engine.forget_facts(&body.attribute, &body.value)?;
    let durable = write_audit(context, &body.attribute, why, "erase")?;
    to_json(&ErasureReport {
        attribute: body.attribute,
        erased: ErasedRows { blocks: erased.blocks, facts: erased.facts, acts: erased.audit },
        retained: RetainedRows {
            blocks: erased.retained_blocks,
            lists: erased.retained_lists,
            debts: erased.retained_debts,
        },
        counters: COUNTERS,
        durable,
    })
}

/// Audits a privacy request; returns whether the audit is on disk.
fn write_audit(
    context: &AdminContext<'_>,
    attribute: &str,
    why: Option<&str>,
    act: &str,
) -> Result<bool, Problem> {
    let target = format!("one value of {attribute}");
    context.record_acts(why, vec![RecordKind::Note(AuditNote { act: act.to_owned(), target })])
}

//! JSON bodies of rows of the records: blocks, list entries, audit entries and counts.
//!
//! Each type is serialised as a response, and its schema is part of the OpenAPI document. The
//! application has replaced private values by pseudonyms, so no private value can be sent.

use std::collections::BTreeMap;

use catraca::core::lists::ListTarget;
use catraca::core::policy::Mode;
use catraca::json::origin_name;
use catraca::records::{AuditRow, BlockRow, HistoryRow, KeyAttempts, ListRow, TopBlocked, Totals};
use catraca::{App, Time};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::http::bodies::schema_values;

/// The attributes of a subject's key; private values are pseudonyms.
pub type SubjectParts = BTreeMap<String, String>;

/// Collects the attributes of a key.
pub fn subject_parts(parts: &[(String, String)]) -> SubjectParts {
    parts.iter().cloned().collect()
}

/// The end of a block or a lease as RFC 3339; `None` if it has no end.
pub fn end_or_null(at: Time) -> Option<String> {
    (!at.is_forever()).then(|| at.to_rfc3339())
}

/// The attempts of one key.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "KeyAttempts")]
pub struct KeyAttemptsBody {
    /// All attempts, allowed or not.
    #[schemars(example = 12)]
    attempts: u64,
    #[schemars(extend("format" = "date-time"), example = schema_values::NOON)]
    first_attempt_at: String,
    #[schemars(extend("format" = "date-time"), example = schema_values::EVENING)]
    last_attempt_at: String,
}

impl From<KeyAttempts> for KeyAttemptsBody {
    fn from(found: KeyAttempts) -> Self {
        Self {
            attempts: found.attempts,
            first_attempt_at: found.first.to_rfc3339(),
            last_attempt_at: found.last.to_rfc3339(),
        }
    }
}

/// A block.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Block")]
pub struct BlockBody {
    /// The block's id. An extension keeps it; a later block of the same key has another.
    #[schemars(example = schema_values::BLOCK_ID)]
    id: String,
    #[schemars(example = &"default")]
    namespace: String,
    #[schemars(example = &"login")]
    policy: String,
    /// The subject that is blocked.
    #[schemars(example = schema_values::example_subject())]
    subject: SubjectParts,
    #[schemars(extend("format" = "date-time"), example = schema_values::NOON)]
    since: String,
    /// The first instant after the block; null if it has no end.
    #[schemars(extend("format" = "date-time"), example = schema_values::EVENING)]
    until: Option<String>,
    /// Whether it is active now.
    standing: bool,
    /// How many escalating offences are remembered: the next one lasts longer. 0 if there is none.
    #[schemars(example = 2)]
    level: u32,
    #[schemars(with = "catraca::json::OriginWord")]
    origin: &'static str,
    reason: Option<String>,
    /// The operator, if one started it.
    by: Option<String>,
    /// Why the block denies no request: the catalog in use makes other keys. Null if it does deny.
    #[schemars(example = &"the policy counts by other attributes")]
    orphaned: Option<String>,
    /// The mode of the policy: a block denies only under `enforce`. Null if the catalog has no such
    /// policy.
    #[schemars(example = &"enforce")]
    mode: Option<&'static str>,
}

impl BlockBody {
    /// The body of a block as it is now.
    pub fn new(row: &BlockRow, app: &App) -> Self {
        Self::at(row, app, app.now())
    }

    /// The body of a block at `now`.
    pub fn at(row: &BlockRow, app: &App, now: Time) -> Self {
        let policy = &row.subject.policy;
        let of_catalog = || app.catalog().find(policy).map(|(_, policy)| policy.mode);
        let mode = app.engine().mode_override(policy).or_else(of_catalog);
        Self {
            mode: mode.map(Mode::as_str),
            id: row.id.to_string(),
            namespace: row.subject.namespace.clone(),
            policy: row.subject.policy.clone(),
            subject: subject_parts(&row.subject.parts),
            since: row.since.to_rfc3339(),
            until: end_or_null(row.block.until),
            standing: now < row.block.until,
            level: row.block.level,
            origin: origin_name(row.block.origin),
            reason: row.block.note.reason.as_deref().map(str::to_owned),
            by: row.by.clone(),
            orphaned: row.orphaned.as_ref().map(ToString::to_string),
        }
    }
}

/// An entry of a block's history.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BlockHistoryEntry {
    /// Later entries have larger ids.
    #[schemars(example = 12)]
    id: i64,
    #[schemars(extend("format" = "date-time"), example = schema_values::NOON)]
    at: String,
    /// `started`, `extended`, `released` or `reset`.
    #[schemars(example = &"started")]
    act: String,
    #[schemars(with = "catraca::json::OriginWord")]
    origin: &'static str,
    reason: Option<String>,
    /// The end of the block after this act; null if it has none.
    #[schemars(extend("format" = "date-time"), example = schema_values::EVENING)]
    until: Option<String>,
    /// The level of the block after this act.
    #[schemars(example = 1)]
    level: u32,
    by: Option<String>,
}

impl From<&HistoryRow> for BlockHistoryEntry {
    fn from(row: &HistoryRow) -> Self {
        Self {
            id: row.id,
            at: row.at.to_rfc3339(),
            act: row.act.clone(),
            origin: origin_name(row.origin),
            reason: row.reason.clone(),
            until: end_or_null(row.until),
            level: row.level,
            by: row.by.clone(),
        }
    }
}

/// A block that the same act made as another one, such as the session of a banned customer.
#[derive(Debug, Serialize, JsonSchema)]
pub struct BlockMember {
    #[schemars(example = schema_values::BLOCK_ID)]
    id: String,
    #[schemars(example = schema_values::example_subject())]
    subject: SubjectParts,
    /// The first instant after the block; null if it has no end.
    #[schemars(extend("format" = "date-time"), example = schema_values::EVENING)]
    until: Option<String>,
}

/// The members of a ban, besides the block that is shown.
pub fn block_members(rows: &[BlockRow]) -> Vec<BlockMember> {
    let member = |row: &BlockRow| BlockMember {
        id: row.id.to_string(),
        subject: subject_parts(&row.subject.parts),
        until: end_or_null(row.block.until),
    };
    rows.iter().map(member).collect()
}

/// What a list entry is about: an address range, or an attribute and its value.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct ListTargetBody {
    /// An address range.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"203.0.113.0/24")]
    range: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attribute: Option<String>,
    /// Its value, or the pseudonym of a private one.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
}

impl From<&ListTarget> for ListTargetBody {
    fn from(target: &ListTarget) -> Self {
        match target {
            ListTarget::Range(range) => Self { range: Some(range.to_string()), ..Self::default() },
            ListTarget::Value { attribute, value } => {
                Self { attribute: Some(attribute.clone()), value: Some(value.clone()), range: None }
            }
        }
    }
}

/// An entry of a list.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ListEntry {
    /// The only namespace in which it applies; null if it applies in all.
    #[schemars(example = &"shop")]
    namespace: Option<String>,
    #[serde(flatten)]
    target: ListTargetBody,
    #[schemars(example = 3)]
    id: i64,
    #[schemars(extend("format" = "date-time"), example = schema_values::NOON)]
    at: String,
    /// When it ends; null if it lasts until it is removed.
    #[schemars(extend("format" = "date-time"))]
    until: Option<String>,
    reason: Option<String>,
    by: Option<String>,
    /// Whether no caller can have the value under the catalog in use.
    orphaned: bool,
}

impl ListEntry {
    /// `is_orphaned` judges an attribute and its stored value.
    pub fn new(row: &ListRow, is_orphaned: impl Fn(&str, &str) -> bool) -> Self {
        let orphaned = match &row.what {
            ListTarget::Value { attribute, value } => is_orphaned(attribute, value),
            ListTarget::Range(_) => false,
        };
        Self {
            orphaned,
            namespace: row.namespace.clone(),
            target: ListTargetBody::from(&row.what),
            id: row.id,
            at: row.at.to_rfc3339(),
            until: row.until.map(Time::to_rfc3339),
            reason: row.reason.clone(),
            by: row.by.clone(),
        }
    }
}

/// An act of an operator.
#[derive(Debug, Serialize, JsonSchema)]
pub struct AuditEntry {
    #[schemars(example = 41)]
    id: i64,
    #[schemars(extend("format" = "date-time"), example = schema_values::NOON)]
    at: String,
    /// The name of the operator's key.
    #[schemars(example = &"ana")]
    by: String,
    #[schemars(example = &"release")]
    act: String,
    /// The namespace of the key, the entry, the facts or the locks that it was on; null if it was
    /// on none, or for all namespaces.
    #[schemars(example = &"default")]
    namespace: Option<String>,
    /// What it was done to.
    #[schemars(example = &"login")]
    target: String,
    why: Option<String>,
    before: Option<Value>,
    after: Option<Value>,
}

impl From<&AuditRow> for AuditEntry {
    fn from(row: &AuditRow) -> Self {
        // The records write these as JSON; a text that cannot be parsed is shown as a string.
        let json = |text: &Option<String>| {
            let text = text.as_deref();
            text.map(|text| serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)))
        };
        Self {
            id: row.id,
            at: row.at.to_rfc3339(),
            by: row.by.clone(),
            act: row.act.clone(),
            namespace: row.namespace.clone(),
            target: row.target.clone(),
            why: row.why.clone(),
            before: json(&row.before),
            after: json(&row.after),
        }
    }
}

/// Requests, or verdicts of one policy; `total` is `allowed` plus `denied` plus `blocked`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct DecisionCounts {
    #[schemars(example = 1000)]
    total: u64,
    #[schemars(example = 950)]
    allowed: u64,
    #[schemars(example = 30)]
    denied: u64,
    #[schemars(example = 20)]
    blocked: u64,
}

impl From<&Totals> for DecisionCounts {
    fn from(row: &Totals) -> Self {
        Self { total: row.total, allowed: row.allowed, denied: row.denied, blocked: row.blocked }
    }
}

impl DecisionCounts {
    /// The sum of all rows.
    pub fn sum(rows: &[Totals]) -> Self {
        let sum = |of: fn(&Totals) -> u64| rows.iter().map(of).sum();
        Self {
            total: sum(|row| row.total),
            allowed: sum(|row| row.allowed),
            denied: sum(|row| row.denied),
            blocked: sum(|row| row.blocked),
        }
    }
}

/// A subject, and how often it was blocked.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TopBlockedSubject {
    #[schemars(example = &"default")]
    namespace: String,
    #[schemars(example = &"login")]
    policy: String,
    #[schemars(example = schema_values::example_subject())]
    subject: SubjectParts,
    /// The number of blocks.
    #[schemars(example = 4)]
    blocks: u64,
    /// The end of the last block; null if it has none.
    #[schemars(extend("format" = "date-time"), example = schema_values::EVENING)]
    last_until: Option<String>,
}

impl From<&TopBlocked> for TopBlockedSubject {
    fn from(row: &TopBlocked) -> Self {
        Self {
            namespace: row.namespace.clone(),
            policy: row.policy.clone(),
            subject: subject_parts(&row.parts),
            blocks: row.blocks,
            last_until: end_or_null(row.last_until),
        }
    }
}

//! How rows of the records are shown as JSON, in the words of the vocabulary.
//!
//! Each type is both what is sent and what the API's description says of it. Must not show more
//! than the records hold: private values are pseudonyms there already.

use std::collections::BTreeMap;

use catraca::Time;
use catraca::core::lists::What;
use catraca::records::{AuditRow, BlockRow, HistoryRow, ListRow, TopBlocked, Totals};
use catraca::shape::origin;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::words;

/// A subject by the parts of its key; private values are pseudonyms.
pub type Parts = BTreeMap<String, String>;

/// A subject by its parts.
pub fn subject(parts: &[(String, String)]) -> Parts {
    parts.iter().cloned().collect()
}

/// The end of something; null if it has none.
pub fn until(at: Time) -> Option<String> {
    (!at.is_forever()).then(|| at.to_rfc3339())
}

/// A block.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Block {
    /// Its id, the same for as long as the subject is known.
    #[schemars(example = 7)]
    id: i64,
    #[schemars(example = &"default")]
    namespace: String,
    #[schemars(example = &"login")]
    policy: String,
    /// Who.
    #[schemars(example = words::subject())]
    subject: Parts,
    #[schemars(extend("format" = "date-time"), example = words::NOON)]
    since: String,
    /// The first free instant; null if it has no end.
    #[schemars(extend("format" = "date-time"), example = words::EVENING)]
    until: Option<String>,
    #[schemars(with = "words::Origin")]
    origin: &'static str,
    reason: Option<String>,
    /// Which operator, if one.
    by: Option<String>,
}

impl From<&BlockRow> for Block {
    fn from(row: &BlockRow) -> Self {
        Self {
            id: row.id,
            namespace: row.namespace.clone(),
            policy: row.policy.clone(),
            subject: subject(&row.parts),
            since: row.since.to_rfc3339(),
            until: until(row.until),
            origin: origin(row.origin),
            reason: row.reason.clone(),
            by: row.by.clone(),
        }
    }
}

/// One act of a block's history.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Act {
    /// Later acts have larger ones.
    #[schemars(example = 12)]
    id: i64,
    #[schemars(extend("format" = "date-time"), example = words::NOON)]
    at: String,
    /// `started`, `extended`, `released` or `reset`.
    #[schemars(example = &"started")]
    act: String,
    #[schemars(with = "words::Origin")]
    origin: &'static str,
    reason: Option<String>,
    /// The end of the block after the act; null if it has none.
    #[schemars(extend("format" = "date-time"), example = words::EVENING)]
    until: Option<String>,
    by: Option<String>,
}

impl From<&HistoryRow> for Act {
    fn from(row: &HistoryRow) -> Self {
        Self {
            id: row.id,
            at: row.at.to_rfc3339(),
            act: row.act.clone(),
            origin: origin(row.origin),
            reason: row.reason.clone(),
            until: until(row.until),
            by: row.by.clone(),
        }
    }
}

/// Whom an entry of a list is about: a range, or an attribute and its value.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Target {
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

impl From<&What> for Target {
    fn from(what: &What) -> Self {
        match what {
            What::Range(range) => Self { range: Some(range.to_string()), ..Self::default() },
            What::Value { attribute, value } => {
                Self { attribute: Some(attribute.clone()), value: Some(value.clone()), range: None }
            }
        }
    }
}

/// An entry of a list.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ListEntry {
    #[serde(flatten)]
    target: Target,
    #[schemars(example = 3)]
    id: i64,
    #[schemars(extend("format" = "date-time"), example = words::NOON)]
    at: String,
    /// When it ends; null if it stands until it is removed.
    #[schemars(extend("format" = "date-time"))]
    until: Option<String>,
    reason: Option<String>,
    by: Option<String>,
}

impl From<&ListRow> for ListEntry {
    fn from(row: &ListRow) -> Self {
        Self {
            target: Target::from(&row.what),
            id: row.id,
            at: row.at.to_rfc3339(),
            until: row.until.map(Time::to_rfc3339),
            reason: row.reason.clone(),
            by: row.by.clone(),
        }
    }
}

/// One audited act.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Audited {
    #[schemars(example = 41)]
    id: i64,
    #[schemars(extend("format" = "date-time"), example = words::NOON)]
    at: String,
    /// The name of the operator's key.
    #[schemars(example = &"ana")]
    by: String,
    #[schemars(example = &"release")]
    act: String,
    /// On what.
    #[schemars(example = &"login")]
    target: String,
    why: Option<String>,
    before: Option<Value>,
    after: Option<Value>,
}

impl From<&AuditRow> for Audited {
    fn from(row: &AuditRow) -> Self {
        // Written by us as JSON; a text that is none is still worth showing.
        let json = |text: &Option<String>| {
            let text = text.as_deref();
            text.map(|text| serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)))
        };
        Self {
            id: row.id,
            at: row.at.to_rfc3339(),
            by: row.by.clone(),
            act: row.act.clone(),
            target: row.target.clone(),
            why: row.why.clone(),
            before: json(&row.before),
            after: json(&row.after),
        }
    }
}

/// Requests, or verdicts of one policy; `total` is `allowed` plus `denied` plus `blocked`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Counted {
    #[schemars(example = 1000)]
    total: u64,
    #[schemars(example = 950)]
    allowed: u64,
    #[schemars(example = 30)]
    denied: u64,
    #[schemars(example = 20)]
    blocked: u64,
}

impl From<&Totals> for Counted {
    fn from(row: &Totals) -> Self {
        Self { total: row.total, allowed: row.allowed, denied: row.denied, blocked: row.blocked }
    }
}

impl Counted {
    /// All of them together.
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

/// How often a subject was blocked.
#[derive(Debug, Serialize, JsonSchema)]
pub struct OftenBlocked {
    #[schemars(example = &"default")]
    namespace: String,
    #[schemars(example = &"login")]
    policy: String,
    #[schemars(example = words::subject())]
    subject: Parts,
    /// How many times.
    #[schemars(example = 4)]
    blocks: u64,
    /// The end of the last one; null if it has none.
    #[schemars(extend("format" = "date-time"), example = words::EVENING)]
    last_until: Option<String>,
}

impl From<&TopBlocked> for OftenBlocked {
    fn from(row: &TopBlocked) -> Self {
        Self {
            namespace: row.namespace.clone(),
            policy: row.policy.clone(),
            subject: subject(&row.parts),
            blocks: row.blocks,
            last_until: until(row.last_until),
        }
    }
}

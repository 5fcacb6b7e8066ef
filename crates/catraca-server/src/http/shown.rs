//! How rows of the records are shown as JSON, in the words of the vocabulary.
//!
//! Must not show more than the records hold: private values are pseudonyms there already.

use catraca::Time;
use catraca::core::lists::What;
use catraca::records::{AuditRow, BlockRow, HistoryRow, ListRow, TopBlocked, Totals};
use catraca::shape::origin;
use serde_json::{Map, Value, json};

/// A subject by its parts.
pub fn subject(parts: &[(String, String)]) -> Value {
    let pairs = parts.iter().map(|(name, value)| (name.clone(), Value::from(value.as_str())));
    Value::Object(pairs.collect::<Map<_, _>>())
}

/// The end of something; null if it has none.
pub fn until(at: Time) -> Option<String> {
    (!at.is_forever()).then(|| at.to_rfc3339())
}

/// A block.
pub fn block(row: &BlockRow) -> Value {
    json!({
        "id": row.id,
        "namespace": row.namespace,
        "policy": row.policy,
        "subject": subject(&row.parts),
        "since": row.since.to_rfc3339(),
        "until": until(row.until),
        "origin": origin(row.origin),
        "reason": row.reason,
        "by": row.by,
    })
}

/// One act of a block's history.
pub fn history(row: &HistoryRow) -> Value {
    json!({
        "id": row.id,
        "at": row.at.to_rfc3339(),
        "act": row.act,
        "origin": origin(row.origin),
        "reason": row.reason,
        "until": until(row.until),
        "by": row.by,
    })
}

/// An entry of a list.
pub fn entry(row: &ListRow) -> Value {
    let mut shown = target(&row.what);
    shown.insert("id".to_owned(), row.id.into());
    shown.insert("at".to_owned(), row.at.to_rfc3339().into());
    shown.insert("until".to_owned(), row.until.map(Time::to_rfc3339).into());
    shown.insert("reason".to_owned(), row.reason.clone().into());
    shown.insert("by".to_owned(), row.by.clone().into());
    Value::Object(shown)
}

/// Whom an entry is about.
pub fn target(what: &What) -> Map<String, Value> {
    let shown = match what {
        What::Range(range) => vec![("range", range.to_string())],
        What::Value { attribute, value } => {
            vec![("attribute", attribute.clone()), ("value", value.clone())]
        }
    };
    shown.into_iter().map(|(name, text)| (name.to_owned(), text.into())).collect()
}

/// One audited act.
pub fn audited(row: &AuditRow) -> Value {
    // Written by us as JSON; a text that is none is still worth showing.
    let json = |text: &Option<String>| {
        let text = text.as_deref();
        text.map(|text| serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)))
    };
    json!({
        "id": row.id,
        "at": row.at.to_rfc3339(),
        "by": row.by,
        "act": row.act,
        "target": row.target,
        "why": row.why,
        "before": json(&row.before),
        "after": json(&row.after),
    })
}

/// Decisions of one policy or action, under the name it is called by.
pub fn totals(name: &str, row: &Totals) -> Value {
    json!({
        name: row.name,
        "total": row.total,
        "allowed": row.allowed,
        "denied": row.denied,
        "blocked": row.blocked,
    })
}

/// How often a subject was blocked.
pub fn top_blocked(row: &TopBlocked) -> Value {
    json!({
        "namespace": row.namespace,
        "policy": row.policy,
        "subject": subject(&row.parts),
        "blocks": row.blocks,
        "last_until": until(row.last_until),
    })
}

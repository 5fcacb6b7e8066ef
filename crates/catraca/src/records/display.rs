//! Texts that name subjects and list entries in the database, the same in every dialect.
//!
//! Values are given as they may be shown: private ones are pseudonyms already.

use catraca_core::lists::ListTarget;

use crate::event::SubjectKey;

/// The value of a single part, or all parts as `attribute=value`.
pub(super) fn identifier(parts: &[(String, String)]) -> String {
    match parts {
        [(_, value)] => value.clone(),
        several => pairs(several),
    }
}

/// The audit target of an action on a block.
pub(super) fn audit_target(subject: &SubjectKey) -> String {
    format!("{} {}", subject.policy, pairs(&subject.parts))
}

fn pairs(parts: &[(String, String)]) -> String {
    let pairs: Vec<String> =
        parts.iter().map(|(attribute, value)| format!("{attribute}={value}")).collect();
    pairs.join(" ")
}

/// The columns `attribute` and `value` of a list entry; a range has an empty attribute.
pub(super) fn entry_columns(what: &ListTarget) -> (String, String) {
    match what {
        ListTarget::Range(range) => (String::new(), range.to_string()),
        ListTarget::Value { attribute, value } => (attribute.clone(), value.clone()),
    }
}

/// The audit name of a list entry.
pub(super) fn entry_name(what: &ListTarget) -> String {
    match what {
        ListTarget::Range(range) => range.to_string(),
        ListTarget::Value { attribute, value } => format!("{attribute}={value}"),
    }
}

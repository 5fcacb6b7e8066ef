//! Texts that name subjects and list entries in the database, the same in every dialect.
//!
//! Values are given as they may be shown: private ones are pseudonyms already.

use catraca_core::lists::{AccessListEntry, ListTarget};

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

/// All parts as `attribute=value`.
pub(crate) fn pairs(parts: &[(String, String)]) -> String {
    let pairs: Vec<String> =
        parts.iter().map(|(attribute, value)| format!("{attribute}={value}")).collect();
    pairs.join(" ")
}

/// The column `namespace`; it is empty for all namespaces.
pub(super) fn namespace_column(namespace: Option<&str>) -> &str {
    namespace.unwrap_or_default()
}

/// The namespace of a column `namespace`.
pub(super) fn namespace_of_column(column: String) -> Option<String> {
    Some(column).filter(|column| !column.is_empty())
}

/// The audit target of a change of a list or of facts, such as `blocklist/shop customer=ana`. The
/// text before the first space has no value, so that it can stay when values are hidden or erased.
pub(super) fn namespaced_target(what: &str, namespace: Option<&str>, name: &str) -> String {
    match namespace {
        None => format!("{what} {name}"),
        Some(namespace) => format!("{what}/{namespace} {name}"),
    }
}

/// The namespace in the audit target of an act that is not on a key: on a list, on facts, on locks
/// or on the records of a person.
pub(super) fn namespace_of_target<'t>(act: &str, target: &'t str) -> Option<&'t str> {
    let (first, _) = target.split_once(' ')?;
    match act {
        "list" | "unlist" | "state" | "forget" | "export" | "erase" => {
            first.split_once('/').map(|(_, namespace)| namespace)
        }
        "force-lock" | "clear-locks" => Some(first),
        _ => None,
    }
}

/// The columns `attribute` and `value` of a list entry; a range has an empty attribute.
pub(super) fn entry_columns(entry: &AccessListEntry) -> (String, String) {
    match &entry.target {
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

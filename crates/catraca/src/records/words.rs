//! The words by which subjects and entries of lists are shown, the same in every dialect.
//!
//! Must not see a private value in clear: what comes here may be shown.

use catraca_core::lists::What;

use super::record::Who;

/// A lone value stands for itself; several need their names.
pub(super) fn identifier(parts: &[(String, String)]) -> String {
    match parts {
        [(_, value)] => value.clone(),
        several => pairs(several),
    }
}

/// What an act on a block is about, in the audit.
pub(super) fn target(who: &Who) -> String {
    format!("{} {}", who.policy, pairs(&who.parts))
}

fn pairs(parts: &[(String, String)]) -> String {
    let pairs: Vec<String> =
        parts.iter().map(|(attribute, value)| format!("{attribute}={value}")).collect();
    pairs.join(" ")
}

/// The attribute and the value of an entry; a range has no attribute.
pub(super) fn columns(what: &What) -> (String, String) {
    match what {
        What::Range(range) => (String::new(), range.to_string()),
        What::Value { attribute, value } => (attribute.clone(), value.clone()),
    }
}

/// An entry of a list, in the audit.
pub(super) fn named(what: &What) -> String {
    match what {
        What::Range(range) => range.to_string(),
        What::Value { attribute, value } => format!("{attribute}={value}"),
    }
}

//! `by` and `each`: the attributes that form the keys of a policy.
//!
//! Attributes need no declaration: callers may send any.

use super::bounds::PARTS_MAX;
use super::schema;
use crate::located::{
    DefaultValue, FieldSchema, Node, Report, SourceLocation, TableFields, ValueSchema, names,
};
use crate::policy::{KeyPart, KeySpec, Name};

/// `by` of a policy.
pub(super) const BY: FieldSchema = FieldSchema::new(
    "by",
    ValueSchema::List { of: &ValueSchema::Text, most: PARTS_MAX },
    "the attributes that form the key; `\"token|ip\"` uses the first that is present; `[]` counts \
     all callers together",
)
.or(DefaultValue::Absent("`by` or `each` is required"));

/// `each` of a policy.
pub(super) const EACH: FieldSchema = FieldSchema::new(
    "each",
    ValueSchema::List { of: &schema::NAME, most: PARTS_MAX },
    "one key for each of these attributes that is present; a block of any of these keys denies, \
     and a ban blocks all of them",
);

/// Reads the key of a policy.
pub(super) fn read(report: &mut Report, fields: &TableFields<'_>) -> Option<KeySpec> {
    match (fields.get("by"), fields.get("each")) {
        (Some(node), None) => parts(report, node).map(KeySpec::By),
        (None, Some(node)) => each(report, node).map(KeySpec::Each),
        (Some(_), Some(_)) => {
            let location = fields.key("each").unwrap_or(fields.location);
            let message = "`by` makes one key of its parts and `each` one key for each: not both";
            report.error("by-and-each", location, message, "remove one of them");
            None
        }
        (None, None) => {
            let message = "the policy has no key: neither `by` nor `each` is given";
            let fix = "add by = [\"ip\"], or by = [] for one counter for all callers";
            report.error("no-key", fields.location, message, fix);
            None
        }
    }
}

fn parts(report: &mut Report, node: Node<'_>) -> Option<Vec<KeyPart>> {
    let items = texts(report, node, "a list of attributes such as [\"ip\"] or [\"token|ip\"]")?;
    check_count(report, node.location, items.len())?;
    let parts: Vec<_> =
        items.iter().map(|(location, text)| part(report, *location, text)).collect();
    for (at, (location, text)) in items.iter().enumerate() {
        if parts[..at].contains(&parts[at]) && parts[at].is_some() {
            report_repeated(report, *location, text);
        }
    }
    parts.into_iter().collect()
}

/// One part of a key: `token|ip` is the first of these attributes that a request has.
fn part(report: &mut Report, location: SourceLocation, text: &str) -> Option<KeyPart> {
    let names: Vec<&str> = text.split('|').map(str::trim).collect();
    check_count(report, location, names.len())?;
    let valid: Vec<bool> =
        names.iter().map(|name| names::check_name(report, location, name, "attribute")).collect();
    let repeats = names.iter().enumerate().any(|(at, name)| names[..at].contains(name));
    if repeats {
        report_repeated(report, location, text);
    }
    (!repeats && valid.iter().all(|valid| *valid))
        .then(|| names.into_iter().map(Name::from).collect())
}

fn each(report: &mut Report, node: Node<'_>) -> Option<Vec<Name>> {
    let items = texts(report, node, "a list of attributes such as [\"customer\", \"session\"]")?;
    if items.is_empty() {
        let message = "the policy has no key: `each` names no attribute";
        report.error("no-key", node.location, message, "name at least one, such as [\"session\"]");
        return None;
    }
    check_count(report, node.location, items.len())?;
    let mut names: Vec<Name> = Vec::new();
    for (location, text) in &items {
        if names.iter().any(|name| **name == **text) {
            report_repeated(report, *location, text);
        } else if names::check_name(report, *location, text, "attribute") {
            names.push((*text).into());
        }
    }
    (names.len() == items.len()).then_some(names)
}

/// A list of texts; unlike `Node::texts`, a single text is an error.
fn texts<'t>(
    report: &mut Report,
    node: Node<'t>,
    wanted: &str,
) -> Option<Vec<(SourceLocation, &'t str)>> {
    let items = node.items(report, wanted)?;
    let texts: Vec<_> = items
        .iter()
        .map(|item| Some((item.location, item.text(report, "an attribute's name")?)))
        .collect();
    texts.into_iter().collect()
}

/// `None` if there are too many parts. The caller then stops, because it compares every part with
/// every other.
fn check_count(report: &mut Report, location: SourceLocation, count: usize) -> Option<()> {
    if count > PARTS_MAX {
        let message = format!("{count} parts are too many for one key");
        report.error("too-many-parts", location, message, format!("name at most {PARTS_MAX}"));
        return None;
    }
    Some(())
}

fn report_repeated(report: &mut Report, location: SourceLocation, text: &str) {
    let message = format!("`{text}` is named twice");
    report.error("repeated-part", location, message, "name each attribute once");
}

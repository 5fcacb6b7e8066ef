//! `by` and `each`: whom a policy counts.
//!
//! Must not require that an attribute is declared: subjects are open.

use super::bounds::PARTS_MAX;
use super::names;
use super::node::{Fields, Node};
use super::report::{Place, Report};
use crate::policy::{Name, Part, Who};

/// Reads whom a policy counts.
pub(super) fn read(report: &mut Report, fields: &Fields<'_>) -> Option<Who> {
    match (fields.get("by"), fields.get("each")) {
        (Some(node), None) => parts(report, node).map(Who::By),
        (None, Some(node)) => each(report, node).map(Who::Each),
        (Some(_), Some(_)) => {
            let place = fields.key("each").unwrap_or(fields.place);
            let message = "`by` makes one key of its parts and `each` one key for each: not both";
            report.error("by-and-each", place, message, "remove one of them");
            None
        }
        (None, None) => {
            let message = "nobody is counted: neither `by` nor `each` is given";
            let fix = "add by = [\"ip\"], or by = [] to count everybody together";
            report.error("no-key", fields.place, message, fix);
            None
        }
    }
}

fn parts(report: &mut Report, node: Node<'_>) -> Option<Vec<Part>> {
    let items = texts(report, node, "a list of attributes such as [\"ip\"] or [\"token|ip\"]")?;
    bounded(report, node.place, items.len())?;
    let parts: Vec<_> = items.iter().map(|(place, text)| part(report, *place, text)).collect();
    for (at, (place, text)) in items.iter().enumerate() {
        if parts[..at].contains(&parts[at]) && parts[at].is_some() {
            repeated(report, *place, text);
        }
    }
    parts.into_iter().collect()
}

/// `token|ip`: the first that is present.
fn part(report: &mut Report, place: Place, text: &str) -> Option<Part> {
    let names: Vec<&str> = text.split('|').map(str::trim).collect();
    bounded(report, place, names.len())?;
    let fine: Vec<bool> =
        names.iter().map(|name| names::check_at(report, place, name, "attribute")).collect();
    let repeats = names.iter().enumerate().any(|(at, name)| names[..at].contains(name));
    if repeats {
        repeated(report, place, text);
    }
    (!repeats && fine.iter().all(|fine| *fine)).then(|| names.into_iter().map(Name::from).collect())
}

fn each(report: &mut Report, node: Node<'_>) -> Option<Vec<Name>> {
    let items = texts(report, node, "a list of attributes such as [\"customer\", \"session\"]")?;
    if items.is_empty() {
        let message = "nobody is counted: `each` names no attribute";
        report.error("no-key", node.place, message, "name at least one, such as [\"session\"]");
        return None;
    }
    bounded(report, node.place, items.len())?;
    let mut names: Vec<Name> = Vec::new();
    for (place, text) in &items {
        if names.iter().any(|name| **name == **text) {
            repeated(report, *place, text);
        } else if names::check_at(report, *place, text, "attribute") {
            names.push((*text).into());
        }
    }
    (names.len() == items.len()).then_some(names)
}

/// A list of texts; one text alone is not a list.
fn texts<'t>(report: &mut Report, node: Node<'t>, wanted: &str) -> Option<Vec<(Place, &'t str)>> {
    let items = node.items(report, wanted)?;
    let texts: Vec<_> = items
        .iter()
        .map(|item| Some((item.place, item.text(report, "an attribute's name")?)))
        .collect();
    texts.into_iter().collect()
}

/// Nothing if there are too many, so that they are not compared with each other.
fn bounded(report: &mut Report, place: Place, count: usize) -> Option<()> {
    if count > PARTS_MAX {
        let message = format!("{count} parts are too many for one key");
        report.error("too-many-parts", place, message, format!("name at most {PARTS_MAX}"));
        return None;
    }
    Some(())
}

fn repeated(report: &mut Report, place: Place, text: &str) {
    let message = format!("`{text}` is named twice");
    report.error("repeated-part", place, message, "name each attribute once");
}

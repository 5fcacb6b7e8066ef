//! `block`, and the lengths of bans: how long, and how repeats lengthen it.
//!
//! Must not know what starts a block.

use toml::de::DeValue;

use super::node::{Fields, Node};
use super::report::Report;
use super::scalar;
use crate::limit::Penalty;
use crate::time::Span;

const FIELDS: [&str; 4] = ["first", "factor", "max", "forget"];

/// Reads `block`; a length of zero is no block.
pub(super) fn read(report: &mut Report, node: Node<'_>) -> Option<Option<Penalty>> {
    if matches!(node.value, DeValue::String(_)) {
        let span = scalar::length(report, node)?;
        return Some((span > Span::ZERO).then(|| Penalty::fixed(span)));
    }
    penalty(report, node).map(Some)
}

/// Reads a length, or an escalation.
pub(super) fn penalty(report: &mut Report, node: Node<'_>) -> Option<Penalty> {
    match node.value {
        DeValue::String(_) => above_zero(report, node).map(Penalty::fixed),
        DeValue::Table(_) => escalation(report, node),
        _ => node.refuse(
            report,
            "a duration such as \"30m\", or an escalation such as { first = \"1m\", factor = 2, \
             max = \"24h\", forget = \"7d\" }",
        ),
    }
}

fn escalation(report: &mut Report, node: Node<'_>) -> Option<Penalty> {
    let fields = Fields::item(report, node, "block", &FIELDS)?;
    let first = fields.need(report, "first", "\"1m\"");
    let first = first.and_then(|node| above_zero(report, node));
    let factor = fields.need(report, "factor", "2").and_then(|node| factor(report, node));
    let max = fields.need(report, "max", "\"24h\"");
    let max = max.and_then(|node| above_zero(report, node));
    let forget = fields.need(report, "forget", "\"7d\"");
    let forget = forget.and_then(|node| scalar::duration(report, node));
    if let (Some(first), Some(max), Some(node)) = (first, max, fields.get("max"))
        && max < first
    {
        let message = format!("the longest block, `{max}`, is shorter than the first, `{first}`");
        let fix = format!("write max = \"{first}\" or longer");
        report.error("max-below-first", node.place, message, fix);
    }
    Some(Penalty { first: first?, factor: factor?, max: max?, forget: forget? })
}

fn factor(report: &mut Report, node: Node<'_>) -> Option<i64> {
    let factor = node.integer(report, "a whole number of at least 1")?;
    if factor < 1 {
        let message = format!("a factor of `{factor}` would shorten repeated blocks");
        report.error("bad-factor", node.place, message, "write 1 or more, such as 2");
        return None;
    }
    scalar::whole(report, node, 1)
}

/// A length, which may have no end.
fn above_zero(report: &mut Report, node: Node<'_>) -> Option<Span> {
    let span = scalar::length(report, node)?;
    if span == Span::ZERO {
        let message = "the duration must be longer than zero";
        report.error("zero-duration", node.place, message, "write a duration such as \"10m\"");
        return None;
    }
    Some(span)
}

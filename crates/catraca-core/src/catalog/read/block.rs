//! The lengths of blocks and bans: one duration, or an escalation that lengthens repeated ones.

use toml::de::DeValue;

use super::scalar;
use super::schema;
use crate::limit::Penalty;
use crate::located::{FieldSchema, Node, Report, TableFields, TableSchema, ValueSchema};
use crate::time::Span;

/// The length of a block on excess, where zero means none: one duration, or an escalation.
pub(super) const PENALTY_OR_NONE: ValueSchema = ValueSchema::AnyOf(&[
    ValueSchema::Duration { least: Span::ZERO, most: Span::FOREVER },
    ValueSchema::Table(&ESCALATION),
]);
/// The length of a ban.
pub(super) const PENALTY: ValueSchema =
    ValueSchema::AnyOf(&[ValueSchema::DURATION_OR_FOREVER, ValueSchema::Table(&ESCALATION)]);

/// The fields of an escalation.
pub(super) static ESCALATION: TableSchema = TableSchema {
    name: "block",
    fields: &[
        FieldSchema::new("first", ValueSchema::DURATION_OR_FOREVER, "the first block").require(),
        FieldSchema::new("factor", schema::COUNT, "how many times longer each further block is")
            .require(),
        FieldSchema::new("max", ValueSchema::DURATION_OR_FOREVER, "the longest block").require(),
        FieldSchema::new("forget", ValueSchema::DURATION, "how long after a block it still counts")
            .require(),
    ],
};

/// Reads `block`. Zero means no block; with it a tier can switch off the block of its policy.
pub(super) fn read(report: &mut Report, node: Node<'_>) -> Option<Option<Penalty>> {
    if matches!(node.value, DeValue::String(_)) {
        let span = scalar::duration_or_forever(report, node)?;
        return Some((span > Span::ZERO).then(|| Penalty::without_escalation(span)));
    }
    penalty(report, node).map(Some)
}

/// Reads a duration above zero, which may be `forever`, or an escalation.
pub(super) fn penalty(report: &mut Report, node: Node<'_>) -> Option<Penalty> {
    match node.value {
        DeValue::String(_) => above_zero(report, node).map(Penalty::without_escalation),
        DeValue::Table(_) => escalation(report, node),
        _ => node.report_wrong_type(
            report,
            "a duration such as \"30m\", or an escalation such as { first = \"1m\", factor = 2, \
             max = \"24h\", forget = \"7d\" }",
        ),
    }
}

fn escalation(report: &mut Report, node: Node<'_>) -> Option<Penalty> {
    let fields = TableFields::read_item(report, node, &ESCALATION)?;
    let first = fields.require(report, "first", "\"1m\"");
    let first = first.and_then(|node| above_zero(report, node));
    let factor = fields.require(report, "factor", "2").and_then(|node| factor(report, node));
    let max = fields.require(report, "max", "\"24h\"");
    let max = max.and_then(|node| above_zero(report, node));
    let forget = fields.require(report, "forget", "\"7d\"");
    let forget = forget.and_then(|node| scalar::duration(report, node));
    if let (Some(first), Some(max), Some(node)) = (first, max, fields.get("max"))
        && max < first
    {
        let message = format!("the longest block, `{max}`, is shorter than the first, `{first}`");
        let fix = format!("write max = \"{first}\" or longer");
        report.error("max-below-first", node.location, message, fix);
    }
    Some(Penalty { first: first?, factor: factor?, max: max?, forget: forget? })
}

fn factor(report: &mut Report, node: Node<'_>) -> Option<i64> {
    let factor = node.integer(report, "a whole number of at least 1")?;
    if factor < 1 {
        let message = format!("a factor of `{factor}` would shorten repeated blocks");
        report.error("bad-factor", node.location, message, "write 1 or more, such as 2");
        return None;
    }
    scalar::whole_number(report, node, 1)
}

/// A duration above zero, or `forever`.
fn above_zero(report: &mut Report, node: Node<'_>) -> Option<Span> {
    let span = scalar::duration_or_forever(report, node)?;
    if span == Span::ZERO {
        let message = "the duration must be longer than zero";
        report.error("zero-duration", node.location, message, "write a duration such as \"10m\"");
        return None;
    }
    Some(span)
}

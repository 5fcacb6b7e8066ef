//! Readers of single values with the bounds of a catalog: costs, whole numbers and texts.

pub(super) use crate::located::scalar::{
    between, duration, duration_or_forever, keyword, name, percent, rate_above_zero,
    report_parse_error,
};

use super::bounds::{MESSAGE_MAX, REASON_MAX};
use crate::limit::EXACT_MAX;
use crate::located::{Node, Report};
use crate::policy::Name;
use crate::request::COST_MAX;

/// A whole number of at least `least` that every store computes exactly.
pub(super) fn whole_number(report: &mut Report, node: Node<'_>, least: i64) -> Option<i64> {
    between(report, node, least, EXACT_MAX - 1)
}

/// A cost of one request, of at least `least` units.
pub(super) fn cost(report: &mut Report, node: Node<'_>, least: i64) -> Option<i64> {
    between(report, node, least, COST_MAX)
}

/// A message for callers, of bounded length.
pub(super) fn message(report: &mut Report, node: Node<'_>) -> Option<Name> {
    bounded_text(report, node, MESSAGE_MAX)
}

/// A reason for operators, of bounded length.
pub(super) fn reason(report: &mut Report, node: Node<'_>) -> Option<Name> {
    bounded_text(report, node, REASON_MAX)
}

fn bounded_text(report: &mut Report, node: Node<'_>, max: usize) -> Option<Name> {
    let text = node.text(report, "a text")?;
    let length = text.chars().count();
    if length > max {
        let message = format!("the text has {length} characters");
        report.error("too-long", node.location, message, format!("write at most {max}"));
        return None;
    }
    Some(text.into())
}

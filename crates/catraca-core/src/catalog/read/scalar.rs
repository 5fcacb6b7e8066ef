//! Small values: durations, rates, shares, amounts, words, names and texts.
//!
//! The leaf modules say what is wrong and what to write; this one adds where. Must not know fields.

use std::fmt::Display;

use super::bounds::MESSAGE_MAX;
use super::names;
use super::node::Node;
use super::report::{Place, Report};
use crate::limit::EXACT_MAX;
use crate::policy::Name;
use crate::rate::{Percent, Rate};
use crate::request::COST_MAX;
use crate::time::{Span, parse_span};

/// A duration above zero and with an end.
pub(super) fn duration(report: &mut Report, node: Node<'_>) -> Option<Span> {
    let span = length(report, node)?;
    if span.is_forever() {
        let message = "`forever` has no meaning here: only blocks and bans may have no end";
        report.error("endless-duration", node.place, message, "write a duration such as \"24h\"");
        return None;
    }
    if span == Span::ZERO {
        let message = "the duration must be longer than zero";
        report.error("zero-duration", node.place, message, "write a duration such as \"10s\"");
        return None;
    }
    Some(span)
}

/// A duration, zero and `forever` included.
pub(super) fn length(report: &mut Report, node: Node<'_>) -> Option<Span> {
    let text = node.text(report, "a duration such as \"15m\"")?;
    parse_span(text).map_err(|error| refuse(report, "bad-duration", node.place, &error)).ok()
}

/// A rate.
pub(super) fn rate(report: &mut Report, node: Node<'_>) -> Option<Rate> {
    let text = node.text(report, "a rate such as \"10 per 15m\"")?;
    Rate::parse(text).map_err(|error| refuse(report, "bad-rate", node.place, &error)).ok()
}

/// A rate of at least one.
pub(super) fn rate_above_zero(report: &mut Report, node: Node<'_>) -> Option<Rate> {
    let rate = rate(report, node)?;
    if rate.amount == 0 {
        let fix = format!("write at least \"1 per {}\"", rate.per);
        report.error("bad-amount", node.place, "a rate of zero has no meaning here", fix);
        return None;
    }
    Some(rate)
}

/// A share above zero.
pub(super) fn percent(report: &mut Report, node: Node<'_>) -> Option<Percent> {
    let share = share(report, node)?;
    if share.hundredths() == 0 {
        let message = "a share of zero has no meaning here";
        report.error("bad-percent", node.place, message, "write a percentage such as \"20%\"");
        return None;
    }
    Some(share)
}

/// A share, which may be none.
pub(super) fn share(report: &mut Report, node: Node<'_>) -> Option<Percent> {
    let text = node.text(report, "a percentage such as \"20%\"")?;
    let read = Percent::parse(text);
    read.map_err(|error| refuse(report, "bad-percent", node.place, &error)).ok()
}

/// A whole number of at least `least` that every store counts exactly.
pub(super) fn whole(report: &mut Report, node: Node<'_>, least: i64) -> Option<i64> {
    between(report, node, (least, EXACT_MAX - 1))
}

/// An amount that one request may cost, of at least `least`.
pub(super) fn cost(report: &mut Report, node: Node<'_>, least: i64) -> Option<i64> {
    between(report, node, (least, COST_MAX))
}

/// A whole number within bounds.
pub(super) fn between(
    report: &mut Report,
    node: Node<'_>,
    (least, most): (i64, i64),
) -> Option<i64> {
    let number = node.integer(report, &format!("a whole number of at least {least}"))?;
    if number < least {
        let message = format!("`{number}` is too small");
        report.error("bad-amount", node.place, message, format!("write at least {least}"));
        return None;
    }
    if number > most {
        let message = format!("`{number}` is too large to be counted exactly");
        report.error("inexact", node.place, message, format!("write at most {most}"));
        return None;
    }
    Some(number)
}

/// One of a few words.
pub(super) fn word<T: Copy>(report: &mut Report, node: Node<'_>, words: &[(&str, T)]) -> Option<T> {
    let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    let text = node.text(report, &format!("one of: \"{}\"", known.join("\", \"")))?;
    let found = words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning);
    if found.is_none() {
        let message = format!("`{}` is not known here", text.escape_debug());
        report.error("unknown-word", node.place, message, names::suggest(report, text, &known));
    }
    found
}

/// A name.
pub(super) fn name(report: &mut Report, node: Node<'_>, what: &str) -> Option<Name> {
    let text = node.text(report, &format!("the name of {}", names::an(what)))?;
    names::check_at(report, node.place, text, what).then(|| text.into())
}

/// A text for people, of bounded length.
pub(super) fn prose(report: &mut Report, node: Node<'_>) -> Option<Name> {
    let text = node.text(report, "a text")?;
    let length = text.chars().count();
    if length > MESSAGE_MAX {
        let message = format!("the text has {length} characters");
        report.error("too-long", node.place, message, format!("write at most {MESSAGE_MAX}"));
        return None;
    }
    Some(text.into())
}

/// Reports what a leaf module says, which puts what to write after the last colon.
pub(super) fn refuse(report: &mut Report, code: &'static str, place: Place, error: &dyn Display) {
    let says = error.to_string();
    match says.rsplit_once(": ") {
        Some((message, fix)) => report.error(code, place, message, fix),
        None => report.error(code, place, says, ""),
    }
}

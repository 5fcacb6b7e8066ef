//! Readers of single values: durations, rates, percentages, numbers, keywords and names.
//!
//! `time`, `rate` and `address` describe what is wrong with a text; this module adds its location.

use std::fmt::Display;

use super::names;
use super::{Node, Report, SourceLocation};
use crate::policy::Name;
use crate::rate::{Percent, Rate};
use crate::request::COST_MAX;
use crate::time::{Span, parse_span};

/// A duration above zero, other than `forever`.
pub fn duration(report: &mut Report, node: Node<'_>) -> Option<Span> {
    let span = duration_or_forever(report, node)?;
    if span.is_forever() {
        let message = "`forever` has no meaning here: only blocks and bans may have no end";
        report.error(
            "endless-duration",
            node.location,
            message,
            "write a duration such as \"24h\"",
        );
        return None;
    }
    if span == Span::ZERO {
        let message = "the duration must be longer than zero";
        report.error("zero-duration", node.location, message, "write a duration such as \"10s\"");
        return None;
    }
    Some(span)
}

/// A duration, zero and `forever` included.
pub fn duration_or_forever(report: &mut Report, node: Node<'_>) -> Option<Span> {
    let text = node.text(report, "a duration such as \"15m\"")?;
    parse_span(text)
        .map_err(|error| report_parse_error(report, "bad-duration", node.location, &error))
        .ok()
}

/// A rate, such as `10 per 15m`; its amount may be zero.
pub fn rate(report: &mut Report, node: Node<'_>) -> Option<Rate> {
    let text = node.text(report, "a rate such as \"10 per 15m\"")?;
    Rate::parse(text)
        .map_err(|error| report_parse_error(report, "bad-rate", node.location, &error))
        .ok()
}

/// A rate of at least one.
pub fn rate_above_zero(report: &mut Report, node: Node<'_>) -> Option<Rate> {
    let rate = rate(report, node)?;
    if rate.amount == 0 {
        let fix = format!("write at least \"1 per {}\"", rate.per);
        report.error("bad-amount", node.location, "a rate of zero has no meaning here", fix);
        return None;
    }
    Some(rate)
}

/// A percentage above zero.
pub fn percent(report: &mut Report, node: Node<'_>) -> Option<Percent> {
    let share = percent_or_zero(report, node)?;
    if share.hundredths() == 0 {
        let message = "a share of zero has no meaning here";
        report.error("bad-percent", node.location, message, "write a percentage such as \"20%\"");
        return None;
    }
    Some(share)
}

/// A percentage, which may be zero.
pub fn percent_or_zero(report: &mut Report, node: Node<'_>) -> Option<Percent> {
    let text = node.text(report, "a percentage such as \"20%\"")?;
    let read = Percent::parse(text);
    read.map_err(|error| report_parse_error(report, "bad-percent", node.location, &error)).ok()
}

/// A whole number from `least` to `most`.
pub fn between(report: &mut Report, node: Node<'_>, least: i64, most: i64) -> Option<i64> {
    let number = node.integer(report, &format!("a whole number of at least {least}"))?;
    if number < least {
        let message = format!("`{number}` is too small");
        report.error("bad-amount", node.location, message, format!("write at least {least}"));
        return None;
    }
    if number > most && most < COST_MAX {
        let message = format!("`{number}` is too large");
        let fix = format!("write a number from {least} to {most}");
        report.error("bad-amount", node.location, message, fix);
        return None;
    }
    if number > most {
        let message = format!("`{number}` is too large to be counted exactly");
        report.error("inexact", node.location, message, format!("write at most {most}"));
        return None;
    }
    Some(number)
}

/// One of the given keywords; returns the value that belongs to it.
pub fn keyword<T: Copy>(report: &mut Report, node: Node<'_>, words: &[(&str, T)]) -> Option<T> {
    let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
    let text = node.text(report, &format!("one of: \"{}\"", known.join("\", \"")))?;
    let found = words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning);
    if found.is_none() {
        let message = format!("`{}` is not a valid value here", text.escape_debug());
        report.error("unknown-word", node.location, message, names::suggest(report, text, &known));
    }
    found
}

/// A valid name of a `what`.
pub fn name(report: &mut Report, node: Node<'_>, what: &str) -> Option<Name> {
    let text = node.text(report, &format!("the name of {}", names::with_article(what)))?;
    names::check_name(report, node.location, text, what).then(|| text.into())
}

/// Reports a parse error of `time`, `rate` or `address`. Their messages end with the fix, after the
/// last colon.
pub fn report_parse_error(
    report: &mut Report,
    code: &'static str,
    location: SourceLocation,
    error: &dyn Display,
) {
    let text = error.to_string();
    match text.rsplit_once(": ") {
        Some((message, fix)) => report.error(code, location, message, fix),
        None => report.error(code, location, text, ""),
    }
}

//! Parses a step: a verb, its instant and repetitions, and the expected answers.

use catraca_core::located::scalar::{between, report_parse_error};
use catraca_core::located::{LocatedKey, Node};
use catraca_core::time::{Span, Time};
use serde_json::Value;

use super::expectation;
use super::fields::{Fields, text};
use super::instant;
use super::parse::Reader;
use super::verb::{self, StepVerb, VERBS};

const FIELDS: [&str; 8] =
    ["at", "every", "times", "as", "expect", "expect_last", "error", "covers"];

/// Maximum repetitions of one step, so that a typing error does not run for hours.
const TIMES_MAX: i64 = 1_000_000;

/// A verb at an instant.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// The line of its verb.
    pub line: usize,
    /// The instant of the first repetition; a step of a cycle runs at the cycle's instant.
    pub at: Time,
    /// The number of repetitions.
    pub times: usize,
    /// The time between repetitions.
    pub every: Span,
    /// The call to make.
    pub verb: StepVerb,
    /// The name under which the ticket is saved.
    pub keep: Option<String>,
    /// The expected answers.
    pub want: Expectation,
}

/// The expected answers of a step.
#[derive(Clone, Debug, Default)]
pub(super) struct Expectation {
    /// Fields of every answer; the last answer is exempt if `last` is given.
    pub each: Option<Value>,
    /// Fields of the last answer.
    pub last: Option<Value>,
    /// The code of the expected refusal.
    pub error: Option<String>,
}

impl Expectation {
    /// Whether the step expects some value of this field.
    pub fn names(&self, field: &str) -> bool {
        let mut wanted = self.each.iter().chain(&self.last);
        wanted.any(|wanted| wanted.get(field).is_some())
    }
}

impl Step {
    /// Whether the step, or a step of its cycle, has an expectation.
    pub fn expects(&self) -> bool {
        let Expectation { each, last, error } = &self.want;
        let inside = match &self.verb {
            StepVerb::Cycle(steps) => steps.iter().any(Step::expects),
            _ => false,
        };
        inside || each.is_some() || last.is_some() || error.is_some()
    }
}

/// Reads a step of a scenario.
pub(super) fn read(reader: &mut Reader<'_>, item: Node<'_>) -> Option<Step> {
    let fields = fields(reader, item)?;
    let at = match fields.get("at") {
        Some(node) => reader.instant(node)?,
        None => reader.latest,
    };
    if at < reader.latest {
        let location = fields.get("at").map_or(item.location, |node| node.location);
        let message = format!("{at} is before the previous step, at {}", reader.latest);
        let fix = "write steps in the order of time";
        reader.report.error("time-reversed", location, message, fix);
    }
    let times = times(reader, &fields);
    let every = every(reader, &fields);
    let mut step = step(reader, &fields)?;
    step.at = at;
    step.times = times?;
    step.every = every?;
    reader.latest = at.after(step.every.times(step.times as i64 - 1));
    repeats(reader, &fields, &step);
    Some(step)
}

/// Reads a step of a cycle; only the cycle has an instant and repetitions.
pub(super) fn inner(reader: &mut Reader<'_>, item: Node<'_>) -> Option<Step> {
    let fields = fields(reader, item)?;
    for name in ["at", "every", "times", "expect_last", "cycle"] {
        if let Some(node) = fields.get(name) {
            let message = format!("`{name}` inside a cycle");
            let fix = "move it to the step that has the cycle";
            reader.report.error("misplaced-field", node.location, message, fix);
        }
    }
    step(reader, &fields)
}

fn fields<'t>(reader: &mut Reader<'_>, item: Node<'t>) -> Option<Fields<'t>> {
    let known = [&FIELDS[..], &VERBS[..]].concat();
    Fields::read(&mut reader.report, item, "step", &known)
}

fn step(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<Step> {
    let (key, node) = one_verb(reader, fields)?;
    let name = key.text;
    let verb = verb::read(reader, name, node);
    let want = want(reader, fields, verb::answer(name, node));
    let keep = fields.text_or(&mut reader.report, "as");
    if let (Some(node), false) = (fields.get("as"), name == "check") {
        let message = format!("`as` saves a ticket, and `{name}` has none");
        reader.report.error("misplaced-field", node.location, message, "remove `as`");
    }
    reader.saved_tickets.extend(keep.clone().flatten());
    let line = reader.line(key.location);
    Some(Step {
        line,
        at: reader.latest,
        times: 1,
        every: Span::ZERO,
        verb: verb?,
        keep: keep?,
        want: want?,
    })
}

fn one_verb<'t>(
    reader: &mut Reader<'_>,
    fields: &Fields<'t>,
) -> Option<(LocatedKey<'t>, Node<'t>)> {
    let mut verbs = fields.entries.iter().filter(|(key, _)| VERBS.contains(&key.text));
    let first = verbs.next().copied();
    if first.is_none() {
        let message = "the step has no verb";
        let fix = format!("add one of: {}", VERBS.join(", "));
        reader.report.error("no-verb", fields.location, message, fix);
    }
    for (key, _) in verbs {
        let message = format!("`{}` is a second verb", key.text);
        let fix = "write one step for each verb";
        reader.report.error("two-verbs", key.location, message, fix);
    }
    first
}

fn times(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<usize> {
    let Some(node) = fields.get("times") else { return Some(1) };
    let times = between(&mut reader.report, node, 1, i64::MAX)?;
    if times > TIMES_MAX {
        let message = format!("{times} repetitions are too many");
        let fix = format!("write at most {TIMES_MAX}");
        reader.report.error("too-many-times", node.location, message, fix);
        return None;
    }
    usize::try_from(times).ok()
}

fn every(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<Span> {
    let Some(node) = fields.get("every") else { return Some(Span::ZERO) };
    let text = text(&mut reader.report, node, "a length of time such as \"100ms\"")?;
    let read = instant::offset(text);
    read.map_err(|why| report_parse_error(&mut reader.report, "bad-duration", node.location, &why))
        .ok()
}

/// Reports repetition of verbs that do not repeat, and `expect_last` without repetition.
fn repeats(reader: &mut Reader<'_>, fields: &Fields<'_>, step: &Step) {
    let once = ["block", "unblock", "reset", "buckets", "reconcile", "facts", "mode", "reload"];
    let verb = once.into_iter().find(|name| fields.get(name).is_some());
    if let (Some(verb), Some(node)) = (verb, fields.get("times").or(fields.get("every"))) {
        let message = format!("`{verb}` cannot be repeated");
        reader.report.error("misplaced-field", node.location, message, "remove it");
    }
    if let (Some(node), true) = (fields.get("expect_last"), step.times < 2) {
        let message = "`expect_last` needs several repetitions";
        let fix = "add `times`, or write `expect`";
        reader.report.error("misplaced-field", node.location, message, fix);
    }
}

fn want(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    answer: &[super::schema::Field],
) -> Option<Expectation> {
    let mut read = |name| match fields.get(name) {
        Some(node) => expectation::read_expectation(&mut reader.report, node, answer).map(Some),
        None => Some(None),
    };
    let each = read("expect");
    let last = read("expect_last");
    let error = fields.text_or(&mut reader.report, "error");
    let expected = fields.get("expect").or(fields.get("expect_last"));
    if let (Some(node), true) = (expected, fields.get("error").is_some()) {
        let message = "a call that is refused has no answer to expect";
        let fix = "keep `error` or `expect`";
        reader.report.error("misplaced-field", node.location, message, fix);
    }
    Some(Expectation { each: each?, last: last?, error: error? })
}

//! A step: one verb at an instant, how often, and what it must answer.
//!
//! Must not know what a verb does.

use catraca_core::time::{Span, Time};
use serde_json::Value;

use super::expect;
use super::instant;
use super::node::{Fields, Node, Place};
use super::read::Reader;
use super::verb::{self, VERBS, Verb};

const FIELDS: [&str; 8] =
    ["at", "every", "times", "as", "expect", "expect_last", "error", "covers"];

/// The most repetitions of one step: a slip of the finger must not run all day.
const TIMES_MAX: i64 = 1_000_000;

/// One verb at an instant.
#[derive(Clone, Debug)]
pub(super) struct Step {
    /// The line of its verb.
    pub line: usize,
    /// The instant; inside a cycle the cycle's own.
    pub at: Time,
    /// How often it is done.
    pub times: usize,
    /// How far apart.
    pub every: Span,
    /// What is done.
    pub verb: Verb,
    /// The name under which the ticket is kept.
    pub keep: Option<String>,
    /// What must come of it.
    pub want: Want,
}

/// What must come of a step.
#[derive(Clone, Debug, Default)]
pub(super) struct Want {
    /// Part of every answer, but of the last if that has its own.
    pub each: Option<Value>,
    /// Part of the last answer.
    pub last: Option<Value>,
    /// The code of the refusal.
    pub error: Option<String>,
}

impl Step {
    /// Whether it, or a step of its cycle, expects anything.
    pub fn expects(&self) -> bool {
        let Want { each, last, error } = &self.want;
        let inside = match &self.verb {
            Verb::Cycle(steps) => steps.iter().any(Step::expects),
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
        let place = fields.get("at").map_or(item.place, |node| node.place);
        let message = format!("{at} lies before the step above, at {}", reader.latest);
        let fix = "write steps in the order of time".to_owned();
        reader.desk.error("time-reversed", place, message, fix);
    }
    let times = times(reader, &fields);
    let every = every(reader, &fields);
    let mut step = step(reader, &fields)?;
    (step.at, step.times, step.every) = (at, times?, every?);
    reader.latest = at.after(step.every.times(step.times as i64 - 1));
    repeats(reader, &fields, &step);
    Some(step)
}

/// Reads a step of a cycle, which has no time of its own.
pub(super) fn inner(reader: &mut Reader<'_>, item: Node<'_>) -> Option<Step> {
    let fields = fields(reader, item)?;
    for name in ["at", "every", "times", "expect_last", "cycle"] {
        if let Some(node) = fields.get(name) {
            let message = format!("`{name}` inside a cycle");
            let fix = "give it to the step that has the cycle".to_owned();
            reader.desk.error("misplaced-field", node.place, message, fix);
        }
    }
    step(reader, &fields)
}

fn fields<'t>(reader: &mut Reader<'_>, item: Node<'t>) -> Option<Fields<'t>> {
    let known = [&FIELDS[..], &VERBS[..]].concat();
    Fields::read(&mut reader.desk, item, "step", &known)
}

fn step(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<Step> {
    let (place, name, node) = one_verb(reader, fields)?;
    let verb = verb::read(reader, name, node);
    let want = want(reader, fields, verb::answer(name, node));
    let keep = fields.text_or(&mut reader.desk, "as");
    if let (Some(node), false) = (fields.get("as"), name == "check") {
        let message = format!("`as` keeps a ticket, and `{name}` has none");
        reader.desk.error("misplaced-field", node.place, message, "remove `as`".to_owned());
    }
    reader.kept.extend(keep.clone().flatten());
    let line = reader.desk.line(place);
    let (at, every) = (reader.latest, Span::ZERO);
    Some(Step { line, at, times: 1, every, verb: verb?, keep: keep?, want: want? })
}

fn one_verb<'t>(
    reader: &mut Reader<'_>,
    fields: &Fields<'t>,
) -> Option<(Place, &'t str, Node<'t>)> {
    let mut verbs = fields.entries.iter().filter(|(_, name, _)| VERBS.contains(name));
    let first = verbs.next().copied();
    if first.is_none() {
        let message = "the step does nothing".to_owned();
        let fix = format!("add one of: {}", VERBS.join(", "));
        reader.desk.error("no-verb", fields.place, message, fix);
    }
    for (place, name, _) in verbs {
        let message = format!("`{name}` is a second verb");
        let fix = "write one step for each".to_owned();
        reader.desk.error("two-verbs", *place, message, fix);
    }
    first
}

fn times(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<usize> {
    let Some(node) = fields.get("times") else { return Some(1) };
    let times = node.integer(&mut reader.desk, 1)?;
    if times > TIMES_MAX {
        let message = format!("{times} repetitions are too many");
        let fix = format!("write at most {TIMES_MAX}");
        reader.desk.error("too-many-times", node.place, message, fix);
        return None;
    }
    usize::try_from(times).ok()
}

fn every(reader: &mut Reader<'_>, fields: &Fields<'_>) -> Option<Span> {
    let Some(node) = fields.get("every") else { return Some(Span::ZERO) };
    let text = node.text(&mut reader.desk, "a length of time such as \"100ms\"")?;
    let read = instant::offset(text);
    read.map_err(|why| reader.refuse("bad-duration", node.place, &why)).ok()
}

/// Refuses repetition where it means nothing.
fn repeats(reader: &mut Reader<'_>, fields: &Fields<'_>, step: &Step) {
    let once = ["block", "unblock", "reset", "buckets", "reconcile", "facts", "mode", "reload"];
    let verb = once.into_iter().find(|name| fields.get(name).is_some());
    if let (Some(verb), Some(node)) = (verb, fields.get("times").or(fields.get("every"))) {
        let message = format!("`{verb}` is done once");
        reader.desk.error("misplaced-field", node.place, message, "remove it".to_owned());
    }
    if let (Some(node), true) = (fields.get("expect_last"), step.times < 2) {
        let message = "`expect_last` speaks of the last of several".to_owned();
        let fix = "add `times`, or write `expect`".to_owned();
        reader.desk.error("misplaced-field", node.place, message, fix);
    }
}

fn want(
    reader: &mut Reader<'_>,
    fields: &Fields<'_>,
    answer: &[super::schema::Field],
) -> Option<Want> {
    let mut read = |name| match fields.get(name) {
        Some(node) => expect::expected(&mut reader.desk, node, answer).map(Some),
        None => Some(None),
    };
    let (each, last) = (read("expect"), read("expect_last"));
    let error = fields.text_or(&mut reader.desk, "error");
    let both = fields.get("expect").or(fields.get("expect_last"));
    if let (Some(node), true) = (both, fields.get("error").is_some()) {
        let message = "a call that is refused has no answer to expect".to_owned();
        let fix = "keep `error` or `expect`".to_owned();
        reader.desk.error("misplaced-field", node.place, message, fix);
    }
    Some(Want { each: each?, last: last?, error: error? })
}

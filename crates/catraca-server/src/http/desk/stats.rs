//! Totals that add up: decisions by policy and by action, and who is blocked most often.
//!
//! Must not count anything itself: the records do.

use catraca::records::{PAGE_MAX, Totals};
use catraca::{Span, Time};
use schemars::JsonSchema;
use serde::Serialize;

use super::super::shown::{Counted, OftenBlocked};
use super::super::words;
use super::{Answered, Call, Desk, Problem, instant, number, told};

/// How far back, unless asked otherwise.
const DAY: Span = Span::from_secs(86_400);
/// Rows, unless asked otherwise.
const TOP: u32 = 20;

/// Requests of a period, and the verdicts of each policy.
#[derive(Serialize, JsonSchema)]
pub struct PolicyStats {
    #[serde(flatten)]
    period: Period,
    policies: Vec<PolicyTotals>,
}

/// Verdicts of one policy: a request counts once in each policy that it was checked against.
#[derive(Serialize, JsonSchema)]
pub struct PolicyTotals {
    #[schemars(example = &"login")]
    policy: String,
    #[serde(flatten)]
    counted: Counted,
}

/// Requests of a period, by the gate that was asked.
#[derive(Serialize, JsonSchema)]
pub struct ActionStats {
    #[serde(flatten)]
    period: Period,
    actions: Vec<ActionTotals>,
}

/// Requests of one gate.
#[derive(Serialize, JsonSchema)]
pub struct ActionTotals {
    #[schemars(example = &"login")]
    action: String,
    #[serde(flatten)]
    counted: Counted,
}

/// A period of whole minutes, and all requests of it: a check counts once, however many policies it
/// was checked against, and so does each check of a list. A peek does not count.
#[derive(Serialize, JsonSchema)]
pub struct Period {
    #[schemars(extend("format" = "date-time"), example = words::NOON)]
    from: String,
    #[schemars(extend("format" = "date-time"), example = words::EVENING)]
    to: String,
    #[serde(flatten)]
    counted: Counted,
}

/// Who was blocked most often.
#[derive(Serialize, JsonSchema)]
pub struct MostBlocked {
    #[schemars(extend("format" = "date-time"), example = words::NOON)]
    from: String,
    subjects: Vec<OftenBlocked>,
}

/// `GET /v1/stats`.
pub fn policies(desk: &Desk<'_>, call: &Call) -> Answered {
    let (from, to) = period(desk, call)?;
    let records = flushed(desk)?;
    let rows = records.policies(from, to)?;
    let policies = rows
        .iter()
        .map(|row| PolicyTotals { policy: row.name.clone(), counted: Counted::from(row) });
    // A request has a verdict of each of its policies, and is of one action.
    let requests = records.actions(from, to)?;
    told(&PolicyStats { policies: policies.collect(), period: Period::of(from, to, &requests) })
}

/// `GET /v1/stats/actions`.
pub fn actions(desk: &Desk<'_>, call: &Call) -> Answered {
    let (from, to) = period(desk, call)?;
    let rows = flushed(desk)?.actions(from, to)?;
    let actions = rows
        .iter()
        .map(|row| ActionTotals { action: row.name.clone(), counted: Counted::from(row) });
    told(&ActionStats { actions: actions.collect(), period: Period::of(from, to, &rows) })
}

/// `GET /v1/stats/top-blocked`.
pub fn top_blocked(desk: &Desk<'_>, call: &Call) -> Answered {
    let [from, limit] = call.asked(["from", "limit"])?;
    let from = instant("from", from)?.unwrap_or(desk.engine.now().before(DAY));
    let limit = number("limit", limit)?.unwrap_or(TOP).clamp(1, PAGE_MAX);
    let rows = flushed(desk)?.top_blocked(from, limit)?;
    let subjects = rows.iter().map(OftenBlocked::from).collect();
    told(&MostBlocked { from: from.to_rfc3339(), subjects })
}

/// What was counted a moment ago is part of the answer.
fn flushed<'d>(desk: &'d Desk<'_>) -> Result<&'d catraca::records::Records, Problem> {
    let records = desk.records()?;
    records.flush()?;
    Ok(records)
}

/// Whole minutes: the one that has begun is counted too.
fn period(desk: &Desk<'_>, call: &Call) -> Result<(Time, Time), Problem> {
    let [from, to] = call.asked(["from", "to"])?;
    let now = desk.engine.now();
    let to = instant("to", to)?.unwrap_or(now.after(Span::from_secs(60)));
    let from = instant("from", from)?.unwrap_or(now.before(DAY));
    if from >= to {
        return Err(Problem::bad("bad-query", "`from` must be before `to`"));
    }
    Ok((from, to))
}

impl Period {
    fn of(from: Time, to: Time, requests: &[Totals]) -> Self {
        let counted = Counted::sum(requests);
        Self { from: from.to_rfc3339(), to: to.to_rfc3339(), counted }
    }
}

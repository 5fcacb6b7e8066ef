//! Totals that add up: decisions by policy and by action, and who is blocked most often.
//!
//! Must not count anything itself: the records do.

use catraca::records::{PAGE_MAX, Totals};
use catraca::{Span, Time};
use serde_json::{Value, json};

use super::super::shown;
use super::{Answered, Call, Desk, Problem, instant, number};

/// How far back, unless asked otherwise.
const DAY: Span = Span::from_secs(86_400);
/// Rows, unless asked otherwise.
const TOP: u32 = 20;

/// `GET /v1/stats`.
pub fn policies(desk: &Desk<'_>, call: &Call) -> Answered {
    let (from, to) = period(desk, call)?;
    let rows = flushed(desk)?.policies(from, to)?;
    answer("policy", "policies", from, to, &rows)
}

/// `GET /v1/stats/actions`.
pub fn actions(desk: &Desk<'_>, call: &Call) -> Answered {
    let (from, to) = period(desk, call)?;
    let rows = flushed(desk)?.actions(from, to)?;
    answer("action", "actions", from, to, &rows)
}

/// `GET /v1/stats/top-blocked`.
pub fn top_blocked(desk: &Desk<'_>, call: &Call) -> Answered {
    let [from, limit] = call.asked(["from", "limit"])?;
    let from = instant("from", from)?.unwrap_or(desk.engine.now().before(DAY));
    let limit = number("limit", limit)?.unwrap_or(TOP).clamp(1, PAGE_MAX);
    let rows = flushed(desk)?.top_blocked(from, limit)?;
    let subjects: Vec<Value> = rows.iter().map(shown::top_blocked).collect();
    Ok(json!({ "from": from.to_rfc3339(), "subjects": subjects }))
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

fn answer(name: &str, all: &str, from: Time, to: Time, rows: &[Totals]) -> Answered {
    let sum = |of: fn(&Totals) -> u64| rows.iter().map(of).sum::<u64>();
    let shown: Vec<Value> = rows.iter().map(|row| shown::totals(name, row)).collect();
    Ok(json!({
        "from": from.to_rfc3339(),
        "to": to.to_rfc3339(),
        "total": sum(|row| row.total),
        "allowed": sum(|row| row.allowed),
        "denied": sum(|row| row.denied),
        "blocked": sum(|row| row.blocked),
        all: shown,
    }))
}

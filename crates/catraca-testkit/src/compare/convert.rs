//! Converts the engine's types to the oracle's, one to one.

use catraca::settlement::SettledRow;
use catraca::{Decision, DecisionRow, Reason, Span, Time};
use catraca_core::cell::block::Origin;
use catraca_core::credit_plan::CreditRejection;
use catraca_core::decision::WindowQuota;
use catraca_core::policy::Mode;

use crate::oracle::answer as plain;
use crate::oracle::{block, catalog};

/// A decision; its ticket becomes the number of the operation that issued it.
pub fn decision(decision: &Decision, number: usize) -> plain::Decision {
    plain::Decision {
        allowed: decision.allowed,
        reason: reason(decision.reason),
        policy: decision.policy.as_ref().map(ToString::to_string),
        limit: decision.limit,
        remaining: decision.remaining,
        retry_at: instant(decision.at, decision.retry_after),
        retry_ms: decision.retry_after.map(Span::ceil_millis),
        reset_at: instant(decision.at, decision.reset_after),
        reset_ms: decision.reset_after.map(Span::ceil_millis),
        blocked_until: decision.blocked_until.map(Time::micros),
        mode: mode(decision.mode),
        ticket: decision.ticket.as_ref().map(|_| number),
        rows: decision.rows.iter().map(|one| row(one, decision.at)).collect(),
    }
}

fn row(row: &DecisionRow, at: Time) -> plain::Row {
    plain::Row {
        policy: row.policy.to_string(),
        attribute: row.attribute.as_ref().map(ToString::to_string),
        allowed: row.allowed,
        reason: reason(row.reason),
        limit: row.limit,
        remaining: row.remaining,
        balance: row.balance,
        retry_at: instant(at, row.retry_after),
        retry_ms: row.retry_after.map(Span::ceil_millis),
        reset_at: instant(at, row.reset_after),
        reset_ms: row.reset_after.map(Span::ceil_millis),
        blocked_until: row.blocked_until.map(Time::micros),
        level: row.level,
        // The engine has no such field; the oracle's side clears it.
        endless: false,
        charged: row.charged,
        mode: mode(row.mode),
        windows: row.windows.iter().map(|window| window_row(window, at)).collect(),
    }
}

fn window_row(window: &WindowQuota, at: Time) -> plain::WindowRow {
    plain::WindowRow {
        limit: window.limit,
        span: window.span.micros(),
        remaining: window.remaining,
        reset_at: instant(at, window.reset_after),
        retry_at: instant(at, window.retry_after),
    }
}

fn instant(at: Time, wait: Option<Span>) -> Option<i64> {
    wait.map(|wait| at.micros() + wait.micros())
}

/// The result of settling one row.
pub fn settled_row(row: &SettledRow) -> plain::SettledRow {
    plain::SettledRow {
        policy: row.policy.to_string(),
        attribute: row.attribute.as_ref().map(ToString::to_string),
        charged: row.charged,
        balance: row.balance,
        blocked_until: row.blocked_until.map(Time::micros),
    }
}

/// Why a credit was rejected.
pub fn not_credited(reason: CreditRejection) -> plain::CreditAnswer {
    match reason {
        CreditRejection::Unknown => plain::CreditAnswer::Unknown,
        CreditRejection::OtherSubject => plain::CreditAnswer::OtherSubject,
        CreditRejection::Duplicate => plain::CreditAnswer::Duplicate,
        CreditRejection::NotSettled => plain::CreditAnswer::NotSettled,
        CreditRejection::NotCreditable => plain::CreditAnswer::NotCreditable,
        other => panic!("the oracle has no answer {other:?}"),
    }
}

/// What started a block.
pub fn origin(origin: Origin) -> block::Origin {
    match origin {
        Origin::Excess => block::Origin::Excess,
        Origin::Ban => block::Origin::Ban,
        Origin::Operator => block::Origin::Operator,
        Origin::Upstream => block::Origin::Upstream,
    }
}

fn reason(reason: Reason) -> plain::Reason {
    match reason {
        Reason::Ok => plain::Reason::Ok,
        Reason::OverLimit => plain::Reason::OverLimit,
        Reason::Blocked => plain::Reason::Blocked,
        Reason::TooCostly => plain::Reason::TooCostly,
        Reason::Missing => plain::Reason::Missing,
        Reason::Allowlisted => plain::Reason::Allowlisted,
        Reason::Blocklisted => plain::Reason::Blocklisted,
        Reason::Unavailable => panic!("the store in memory does not fail"),
        other => panic!("the oracle has no reason {other:?}"),
    }
}

fn mode(mode: Mode) -> catalog::Mode {
    match mode {
        Mode::Enforce => catalog::Mode::Enforce,
        Mode::Shadow => catalog::Mode::Shadow,
        Mode::Off => catalog::Mode::Off,
    }
}

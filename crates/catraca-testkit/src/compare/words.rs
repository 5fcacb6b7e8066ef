//! The engine's values in the oracle's words, one to one.
//!
//! It must stay a table of names; anything that needs a decision does not belong here.

use catraca::settlement::SettledRow;
use catraca::{Decision, Reason, Row, Span, Time};
use catraca_core::cell::block::Origin;
use catraca_core::credit::NotCredited;
use catraca_core::policy::Mode;

use crate::oracle::answer as plain;
use crate::oracle::{block, catalog};

/// A decision; its ticket is named by the operation that issued it.
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

fn row(row: &Row, at: Time) -> plain::Row {
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
        endless: false,
        charged: row.charged,
        mode: mode(row.mode),
    }
}

fn instant(at: Time, wait: Option<Span>) -> Option<i64> {
    wait.map(|wait| at.micros() + wait.micros())
}

/// What a row of a ticket paid.
pub fn paid(row: &SettledRow) -> plain::Paid {
    plain::Paid {
        policy: row.policy.to_string(),
        charged: row.charged,
        balance: row.balance,
        blocked_until: row.blocked_until.map(Time::micros),
    }
}

/// Why nothing was credited.
pub fn not_credited(reason: NotCredited) -> plain::Credited {
    match reason {
        NotCredited::Unknown => plain::Credited::Unknown,
        NotCredited::OtherSubject => plain::Credited::OtherSubject,
        NotCredited::Duplicate => plain::Credited::Duplicate,
        NotCredited::NotSettled => plain::Credited::NotSettled,
        NotCredited::NotCreditable => plain::Credited::NotCreditable,
    }
}

/// Who started a block.
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
    }
}

fn mode(mode: Mode) -> catalog::Mode {
    match mode {
        Mode::Enforce => catalog::Mode::Enforce,
        Mode::Shadow => catalog::Mode::Shadow,
        Mode::Off => catalog::Mode::Off,
    }
}

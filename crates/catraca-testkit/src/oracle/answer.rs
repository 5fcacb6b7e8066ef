//! The answers of the oracle: every figure of sections 2 and 3, plus the exact instants behind the
//! rounded ones.
//!
//! They must stay plain values without behaviour, so that a comparison can print them whole.

use super::Micros;
use super::block::Origin;
use super::catalog::Mode;

/// Why a row or a decision says what it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It fits.
    Ok,
    /// Not enough is free.
    OverLimit,
    /// A block stands.
    Blocked,
    /// More is needed than there can ever be.
    TooCostly,
    /// A key attribute is missing and the policy denies that.
    Missing,
    /// A list let it pass.
    Allowlisted,
    /// A list closed the gate.
    Blocklisted,
}

/// Why a call was refused as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A key attribute is missing.
    MissingAttribute,
    /// No such gate, and no default policy.
    UnknownGate,
    /// No such policy.
    UnknownPolicy,
    /// An observation from the future.
    NotYet,
}

/// What a check or a peek answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Whether every enforcing row fits.
    pub allowed: bool,
    /// Reason of the row that decided.
    pub reason: Reason,
    /// The policy that decided, or the tightest one.
    pub policy: Option<String>,
    /// Its limit.
    pub limit: Option<i64>,
    /// What it has left.
    pub remaining: Option<i64>,
    /// The exact instant at which this check would pass.
    pub retry_at: Option<Micros>,
    /// The same as a wait, rounded up.
    pub retry_ms: Option<i64>,
    /// The exact instant at which its full quota is back.
    pub reset_at: Option<Micros>,
    /// The same as a wait, rounded up.
    pub reset_ms: Option<i64>,
    /// End of the latest block among the rows that deny.
    pub blocked_until: Option<Micros>,
    /// Mode of the policy named.
    pub mode: Mode,
    /// Number of the ticket, if there is something to settle.
    pub ticket: Option<usize>,
    /// One row per (policy, key).
    pub rows: Vec<Row>,
}

/// What one (policy, key) says.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The policy used.
    pub policy: String,
    /// The attribute of an `each` policy.
    pub attribute: Option<String>,
    /// Whether it fits.
    pub allowed: bool,
    /// Why.
    pub reason: Reason,
    /// Its limit.
    pub limit: Option<i64>,
    /// What is left of it.
    pub remaining: Option<i64>,
    /// Whole tokens of a bucket, below zero if it owes.
    pub balance: Option<i64>,
    /// The exact instant at which this check would fit.
    pub retry_at: Option<Micros>,
    /// The same as a wait, rounded up.
    pub retry_ms: Option<i64>,
    /// The exact instant at which the full quota is back.
    pub reset_at: Option<Micros>,
    /// The same as a wait, rounded up.
    pub reset_ms: Option<i64>,
    /// End of the block that stands.
    pub blocked_until: Option<Micros>,
    /// Whether a block without end stands.
    pub endless: bool,
    /// What was charged now.
    pub charged: i64,
    /// Whether its verdict counts.
    pub mode: Mode,
}

/// What a settle answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Settled {
    /// What every row of the ticket paid in the end.
    Applied(Vec<Paid>),
    /// The ticket is too old.
    Expired,
    /// No such ticket.
    Unknown,
}

/// What one row of a ticket paid.
#[derive(Clone, Debug, PartialEq)]
pub struct Paid {
    /// The policy.
    pub policy: String,
    /// Units.
    pub charged: i64,
    /// What is free after it, below zero if it owes; none where nothing is counted.
    pub balance: Option<i64>,
    /// End of the block that stands after it.
    pub blocked_until: Option<Micros>,
}

/// The block that stands after an operator's act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stands {
    /// First instant without it; `FOREVER` if there is none.
    pub until: Micros,
    /// Who started it.
    pub origin: Origin,
    /// Whether this act moved its end.
    pub changed: bool,
}

/// Whole tokens of a bucket before and after an upstream's view of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drift {
    /// Before.
    pub before: i64,
    /// After.
    pub after: i64,
}

/// What a credit answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Credited {
    /// It was given; tokens each bucket took.
    Applied(Vec<(String, i64)>),
    /// No such `ref`, or forgotten.
    Unknown,
    /// The subject is another one.
    OtherSubject,
    /// This event was applied before.
    Duplicate,
    /// Nothing is known of the outcome yet.
    NotSettled,
    /// Nothing gives credit for it.
    NotCreditable,
}

/// `micros` as milliseconds, rounded up.
pub fn to_ms(micros: Micros) -> i64 {
    micros / 1000 + i64::from(micros % 1000 > 0)
}

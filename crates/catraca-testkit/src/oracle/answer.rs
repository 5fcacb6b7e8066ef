//! The answers of the oracle: every figure of sections 2 and 3, and the exact instants behind the
//! rounded waits.

use super::Micros;
use super::block::Origin;
use super::catalog::Mode;

/// The reason of a row or a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It fits.
    Ok,
    /// Not enough units are free.
    OverLimit,
    /// A block is active.
    Blocked,
    /// The cost is above the limit itself.
    TooCostly,
    /// A key attribute is missing and the policy denies that.
    Missing,
    /// An allowlist entry matched.
    Allowlisted,
    /// A blocklist entry matched.
    Blocklisted,
}

/// Why a call was refused without a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// A key attribute is missing.
    MissingAttribute,
    /// No such gate, and no default policy.
    UnknownGate,
    /// No such policy.
    UnknownPolicy,
    /// The observation of a reconcile is in the future.
    NotYet,
}

/// The answer of a check or a peek.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Whether every enforcing row fits.
    pub allowed: bool,
    /// The reason of the first denying row.
    pub reason: Reason,
    /// The policy of the first denying row, else of the tightest one.
    pub policy: Option<String>,
    /// Its limit.
    pub limit: Option<i64>,
    /// Its remaining units.
    pub remaining: Option<i64>,
    /// The exact instant at which this check would pass.
    pub retry_at: Option<Micros>,
    /// The wait until then in milliseconds, rounded up.
    pub retry_ms: Option<i64>,
    /// The exact instant at which its full quota is available.
    pub reset_at: Option<Micros>,
    /// The wait until then in milliseconds, rounded up.
    pub reset_ms: Option<i64>,
    /// The end of the latest block among the denying rows.
    pub blocked_until: Option<Micros>,
    /// The mode of `policy`.
    pub mode: Mode,
    /// The number of the ticket, if there is something to settle.
    pub ticket: Option<usize>,
    /// One row per (policy, key).
    pub rows: Vec<Row>,
}

/// The result of one (policy, key).
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The policy.
    pub policy: String,
    /// The attribute of an `each` policy.
    pub attribute: Option<String>,
    /// Whether it fits.
    pub allowed: bool,
    /// The reason.
    pub reason: Reason,
    /// Its limit.
    pub limit: Option<i64>,
    /// The remaining units.
    pub remaining: Option<i64>,
    /// The whole tokens of a bucket; negative in debt.
    pub balance: Option<i64>,
    /// The exact instant at which this check would fit.
    pub retry_at: Option<Micros>,
    /// The wait until then in milliseconds, rounded up.
    pub retry_ms: Option<i64>,
    /// The exact instant at which the full quota is available.
    pub reset_at: Option<Micros>,
    /// The wait until then in milliseconds, rounded up.
    pub reset_ms: Option<i64>,
    /// The end of the active block.
    pub blocked_until: Option<Micros>,
    /// The escalating offences of the active block that are remembered, if there are some.
    pub level: Option<u32>,
    /// Whether the active block has no end.
    pub endless: bool,
    /// The units charged by this check.
    pub charged: i64,
    /// The mode of the policy.
    pub mode: Mode,
    /// The windows in the order of the policy, if it has several.
    pub windows: Vec<WindowRow>,
}

/// The numbers of one of several windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowRow {
    /// Its limit.
    pub limit: i64,
    /// Its length.
    pub span: Micros,
    /// The remaining units.
    pub remaining: i64,
    /// The exact instant at which it is empty and no block is active.
    pub reset_at: Option<Micros>,
    /// The exact instant at which this check would fit in it and no block is active.
    pub retry_at: Option<Micros>,
}

/// The answer of a settle.
#[derive(Clone, Debug, PartialEq)]
pub enum SettleAnswer {
    /// The result of every row of the ticket.
    Applied(Vec<SettledRow>),
    /// The ticket has expired.
    Expired,
    /// No such ticket.
    Unknown,
}

/// The result of settling one row of a ticket.
#[derive(Clone, Debug, PartialEq)]
pub struct SettledRow {
    /// The policy.
    pub policy: String,
    /// The attribute of an `each` policy.
    pub attribute: Option<String>,
    /// The units charged in total.
    pub charged: i64,
    /// The units free afterwards, negative in debt; none where nothing is counted.
    pub balance: Option<i64>,
    /// The end of the block that is active afterwards.
    pub blocked_until: Option<Micros>,
}

/// The block that is active after an operator's call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StartedBlock {
    /// The end, or `FOREVER`.
    pub until: Micros,
    /// What started it.
    pub origin: Origin,
    /// Whether this call changed its end.
    pub changed: bool,
}

/// The whole tokens of a bucket before and after a reconcile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drift {
    /// Before.
    pub before: i64,
    /// After.
    pub after: i64,
}

/// The answer of a credit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CreditAnswer {
    /// The tokens that each bucket gained, by policy.
    Applied(Vec<(String, i64)>),
    /// The `ref` is unknown or has expired.
    Unknown,
    /// The `ref` belongs to another subject.
    OtherSubject,
    /// This event was applied before.
    Duplicate,
    /// The check has not been settled yet.
    NotSettled,
    /// No policy gives credit for this event and status.
    NotCreditable,
}

/// `micros` as milliseconds, rounded up.
pub fn to_ms(micros: Micros) -> i64 {
    micros / 1000 + i64::from(micros % 1000 > 0)
}

//! Decision: the result of a check, with the same fields on every interface.
//!
//! Front ends translate it to their protocol.

use std::fmt;

use smallvec::SmallVec;

use crate::policy::{Mode, Name};
use crate::time::{Span, Time};

/// The result of a check or a peek.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Whether the request is allowed.
    pub allowed: bool,
    /// Why it is allowed or denied.
    pub reason: Reason,
    /// The policy that denied; if allowed, the tightest one.
    pub policy: Option<Name>,
    /// The limit of that policy.
    pub limit: Option<i64>,
    /// Units of that limit that are free after this decision.
    pub remaining: Option<i64>,
    /// The time until the full quota is available and no block is active.
    pub reset_after: Option<Span>,
    /// The time until the same check would be allowed; absent if it is allowed now, or never will
    /// be.
    pub retry_after: Option<Span>,
    /// The end of the active block.
    pub blocked_until: Option<Time>,
    /// The mode of that policy.
    pub mode: Mode,
    /// Whether the decision was made without the complete state: the shared store was unavailable,
    /// or memory was full.
    pub degraded: bool,
    /// Whether a block in the node's cache decided, without a call to the store.
    pub cached: bool,
    /// The revision of the catalog.
    pub revision: Name,
    /// The message for the caller.
    pub message: Option<String>,
    /// The HTTP status for gateways, if a rule sets one.
    pub status: Option<u16>,
    /// The ticket with which an admitted check is settled.
    pub ticket: Option<String>,
    /// Whether the gate is not declared, so that the default policies decided.
    pub unlisted: bool,
    /// The instant of the decision.
    pub at: Time,
    /// One row per (policy, key), in gate order.
    pub rows: SmallVec<[DecisionRow; 1]>,
}

/// One (policy, key) of a decision.
#[derive(Clone, Debug, PartialEq)]
pub struct DecisionRow {
    /// The policy.
    pub policy: Name,
    /// The attribute that this row counts, for a policy with `each`.
    pub attribute: Option<Name>,
    /// Whether this row fits.
    pub allowed: bool,
    /// Why it fits or does not.
    pub reason: Reason,
    /// The limit.
    pub limit: Option<i64>,
    /// Units that are free after this decision; zero while a block is active.
    pub remaining: Option<i64>,
    /// The span of the limit: the window, or how long an empty bucket takes to fill.
    pub window: Option<Span>,
    /// The balance of a bucket; negative for debt.
    pub balance: Option<i64>,
    /// The time until the full quota is available and no block is active.
    pub reset_after: Option<Span>,
    /// The time until this row would fit.
    pub retry_after: Option<Span>,
    /// The end of the active block.
    pub blocked_until: Option<Time>,
    /// Units charged.
    pub charged: i64,
    /// The mode of the policy. Only enforcing rows can deny.
    pub mode: Mode,
}

/// Why a decision or a row is allowed or denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Enough units are free.
    Ok,
    /// Too few units are free now.
    OverLimit,
    /// A block is active.
    Blocked,
    /// An entry of the blocklist denies.
    Blocklisted,
    /// An entry of the allowlist allows.
    Allowlisted,
    /// The amount is larger than the capacity, so it can never fit.
    TooCostly,
    /// A key attribute is missing, and the policy denies in that case.
    Missing,
    /// The store is unavailable, and the policy denies in that case.
    Unavailable,
}

impl Reason {
    /// The name of the reason on every interface.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::OverLimit => "over_limit",
            Self::Blocked => "blocked",
            Self::Blocklisted => "blocklisted",
            Self::Allowlisted => "allowlisted",
            Self::TooCostly => "too_costly",
            Self::Missing => "missing",
            Self::Unavailable => "unavailable",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

//! The decision: the one answer object, the same on every interface.
//!
//! Must not carry wire attributes: front ends render it.

use std::fmt;

use smallvec::SmallVec;

use crate::policy::{Mode, Name};
use crate::time::{Span, Time};

/// May this caller pass now, and what else there is to say about it.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision {
    /// Whether the caller may pass.
    pub allowed: bool,
    /// Why.
    pub reason: Reason,
    /// The policy that decided, or the tightest when allowed.
    pub policy: Option<Name>,
    /// Its limit.
    pub limit: Option<i64>,
    /// What is left of it.
    pub remaining: Option<i64>,
    /// Until the full quota is back and no block stands.
    pub reset_after: Option<Span>,
    /// Until this same check would pass; absent when allowed or never.
    pub retry_after: Option<Span>,
    /// The end of the block that stands.
    pub blocked_until: Option<Time>,
    /// The named policy's mode.
    pub mode: Mode,
    /// Whether something other than the exact state decided.
    pub degraded: bool,
    /// Whether a block that this node knew of decided, and nothing else was looked at.
    pub cached: bool,
    /// The catalog that decided.
    pub revision: Name,
    /// Text for the caller.
    pub message: Option<String>,
    /// The status a gateway answers, when a rule names one.
    pub status: Option<u16>,
    /// Proof of an admitted check, to settle it.
    pub ticket: Option<String>,
    /// Whether the gate was not declared and the default policy decided.
    pub unlisted: bool,
    /// The instant of the decision.
    pub at: Time,
    /// One row per policy and key.
    pub rows: SmallVec<[Row; 1]>,
}

/// One policy's part in a decision.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The policy.
    pub policy: Name,
    /// The attribute, for a policy that counts each.
    pub attribute: Option<Name>,
    /// Whether this row has room.
    pub allowed: bool,
    /// Why.
    pub reason: Reason,
    /// The limit.
    pub limit: Option<i64>,
    /// What is left of it.
    pub remaining: Option<i64>,
    /// The time that the limit speaks of: the window, or how long a bucket takes to fill.
    pub window: Option<Span>,
    /// The signed balance, for buckets.
    pub balance: Option<i64>,
    /// Until the full quota is back and no block stands.
    pub reset_after: Option<Span>,
    /// Until this row would have room.
    pub retry_after: Option<Span>,
    /// The end of the block that stands.
    pub blocked_until: Option<Time>,
    /// Units charged.
    pub charged: i64,
    /// Whether it decides.
    pub mode: Mode,
}

/// Why a decision or a row is what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// There is room.
    Ok,
    /// There is no room now.
    OverLimit,
    /// A block stands.
    Blocked,
    /// A standing entry denies.
    Blocklisted,
    /// A standing entry lets pass.
    Allowlisted,
    /// More was asked than could ever fit.
    TooCostly,
    /// A key attribute is missing and the policy denies.
    Missing,
    /// The store failed and the policy denies.
    Unavailable,
}

impl Reason {
    /// The word used on every interface.
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

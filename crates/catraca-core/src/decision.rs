//! Decision: the result of a check, with the same fields on every interface.
//!
//! Front ends translate it to their protocol.

mod reason;
mod std_types;

use std::cmp::Ordering;

use smallvec::SmallVec;

use crate::policy::{Mode, Name};
use crate::time::{Span, Time};

pub use reason::Reason;

/// The result of a check or a peek.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Decision {
    /// Whether the request is allowed.
    pub allowed: bool,
    /// Why it is allowed or denied.
    pub reason: Reason,
    /// The policy that denied; if allowed, the one with the smallest share of its limit left.
    pub policy: Option<Name>,
    /// The limit of that policy.
    pub limit: Option<i64>,
    /// Units of that limit that are free after this decision.
    pub remaining: Option<i64>,
    /// The time until the full quota is available and no block is active.
    #[doc(hidden)]
    pub reset_after: Option<Span>,
    /// The time until the same check would be allowed; absent if it is allowed now, or never will
    /// be.
    #[doc(hidden)]
    pub retry_after: Option<Span>,
    /// The end of the active block.
    #[doc(hidden)]
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
    #[doc(hidden)]
    pub at: Time,
    /// One row per (policy, key), in gate order.
    pub rows: SmallVec<[DecisionRow; 1]>,
}

// Every check builds and returns one.
const _: () = assert!(size_of::<Decision>() <= 392);

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
    /// The limit; of several windows, that of the window with the smallest share left, of those
    /// that do not fit if the row does not. `remaining`, `window` and `reset_after` are of the
    /// same window.
    pub limit: Option<i64>,
    /// Units that are free after this decision; zero while a block is active.
    pub remaining: Option<i64>,
    /// The span of the limit: the window, or how long an empty bucket takes to fill.
    #[doc(hidden)]
    pub window: Option<Span>,
    /// The balance of a bucket; negative for debt.
    pub balance: Option<i64>,
    /// The time until the full quota is available and no block is active.
    #[doc(hidden)]
    pub reset_after: Option<Span>,
    /// The time until this row would fit.
    #[doc(hidden)]
    pub retry_after: Option<Span>,
    /// The end of the active block.
    #[doc(hidden)]
    pub blocked_until: Option<Time>,
    /// The escalation level of the active block: how many escalating offences are remembered.
    /// Absent without a block, and if none escalated.
    pub level: Option<u32>,
    /// Units charged.
    pub charged: i64,
    /// The mode of the policy. Only enforcing rows can deny.
    pub mode: Mode,
    /// The windows in the order of the policy; empty unless it has several.
    pub windows: Vec<WindowQuota>,
}

/// The numbers of one of several windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowQuota {
    /// The limit.
    pub limit: i64,
    /// The length of the window.
    #[doc(hidden)]
    pub span: Span,
    /// Units that are free after this decision; zero while a block is active.
    pub remaining: i64,
    /// The time until the window is empty and no block is active.
    #[doc(hidden)]
    pub reset_after: Option<Span>,
    /// The time until this window would fit and no block is active; absent if it fits now, or never
    /// will.
    #[doc(hidden)]
    pub retry_after: Option<Span>,
}

impl Decision {
    /// A decision that no policy made, such as that of a client without its server.
    #[doc(hidden)]
    pub fn without_policy(allowed: bool, reason: Reason, revision: Name, at: Time) -> Self {
        Self {
            allowed,
            reason,
            policy: None,
            limit: None,
            remaining: None,
            reset_after: None,
            retry_after: None,
            blocked_until: None,
            mode: Mode::Enforce,
            degraded: false,
            cached: false,
            revision,
            message: None,
            status: None,
            ticket: None,
            unlisted: false,
            at,
            rows: SmallVec::new(),
        }
    }

    /// The row whose policy and numbers the decision has: the first enforcing one that does not
    /// fit; if allowed, the enforcing one with the smallest share of its limit left, the first if
    /// several are equal.
    pub fn reported_row(&self) -> Option<&DecisionRow> {
        let mut enforcing = self.rows.iter().filter(|row| row.mode == Mode::Enforce);
        if !self.allowed {
            return enforcing.find(|row| !row.allowed);
        }
        let with_numbers = enforcing.filter(|row| row.remaining.is_some());
        with_numbers.min_by(|one, other| compare_shares(one.quota(), other.quota()))
    }
}

impl DecisionRow {
    /// Remaining units and limit.
    fn quota(&self) -> (i64, i64) {
        (self.remaining.unwrap_or(0), self.limit.unwrap_or(0))
    }
}

/// Compares the shares that are left of two limits: (remaining, limit) of each.
pub(crate) fn compare_shares(one: (i64, i64), other: (i64, i64)) -> Ordering {
    // One divided by its limit, against the other divided by its own, without a division.
    let left = i128::from(one.0) * i128::from(other.1);
    let right = i128::from(other.0) * i128::from(one.1);
    left.cmp(&right)
}

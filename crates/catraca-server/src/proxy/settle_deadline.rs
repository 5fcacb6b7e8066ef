//! Until when the check of a proxied request is settled: while the engine still applies the settle.
//! What a client does in slow motion must not outlive the rules that count it.

use std::time::Duration;

use catraca::Decision;
use catraca::core::catalog::Catalog;
use catraca::core::decision::Reason;
use catraca::core::policy::{Mode, Policy};
use tokio::time::Instant;

/// How the outcome names a response that was in progress when its check had to be settled.
pub const HOLD_OVER: &str = "hold-over";

/// The instant at which a check is settled with what is known by then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SettleDeadline {
    /// Nine tenths of `hold` after the check.
    pub at: Instant,
    /// When the engine no longer applies it.
    pub expires: Instant,
    /// Whether the response ends then, because a lease of `inflight` counts it: without the lease
    /// the client could have any number of responses in progress.
    pub ends_response: bool,
}

impl SettleDeadline {
    /// The deadline of an admitted check that began at this instant.
    pub fn new(catalog: &Catalog, gate: &str, decision: &Decision, begun: Instant) -> Self {
        let policies = || catalog.policies_of_gate(gate);
        // A row that denies for want of its key is not part of the ticket.
        let rows = || decision.rows.iter().filter(|row| row.reason != Reason::Missing);
        let of_ticket = policies().filter(|policy| rows().any(|row| row.policy == policy.name));
        // A catalog that was loaded during the check may have other policies.
        let hold = of_ticket.map(|policy| policy.hold).max();
        let hold = hold.or_else(|| policies().map(|policy| policy.hold).min()).unwrap_or_default();
        let is_leased = |policy: &Policy| {
            let mut own = rows().filter(|row| row.policy == policy.name);
            policy.takes_lease() && own.any(|row| row.mode == Mode::Enforce)
        };
        let lease = policies().filter(|policy| is_leased(policy)).map(|policy| policy.hold).min();
        let span = Duration::from(lease.map_or(hold, |lease| lease.min(hold)));
        let expires = begun + Duration::from(hold);
        Self { at: begun + span / 10 * 9, expires, ends_response: lease.is_some() }
    }
}

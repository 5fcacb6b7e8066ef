//! Applies an operation that is given as one value, by calling its method.

use std::ops::ControlFlow;

use super::LockTable;
use crate::lock::operation::{LockOp, LockOutcome, LockReply};
use crate::lock::reply::{AcquireReply, Lease};
use crate::lock::requests::Acquire;
use crate::time::Time;

impl LockTable {
    /// Applies an operation. An instant before the latest known one is raised to it.
    pub fn apply(&mut self, op: &LockOp, now: Time) -> LockReply {
        let now = self.now.max(now);
        LockReply { now, outcome: self.apply_at(op, now) }
    }

    fn apply_at(&mut self, op: &LockOp, now: Time) -> LockOutcome {
        match op {
            LockOp::Acquire { request: asked, counts_conflict: counts } => {
                self.acquire_and_count(asked, *counts, now)
            }
            LockOp::Hold(asked) => {
                let acquired = self.hold(asked, now);
                self.count_if_conflict(&acquired, asked.tenant.as_deref(), &asked.kind);
                LockOutcome::Acquired(acquired)
            }
            LockOp::CountConflict { tenant, kind } => {
                self.count_conflict(tenant.as_deref(), kind);
                LockOutcome::Done
            }
            LockOp::Renew { proof, ttl, .. } => LockOutcome::Renewed(self.renew(proof, *ttl, now)),
            LockOp::Release(proof) => LockOutcome::Ended(self.release(proof, now)),
            LockOp::Cancel(proof) => LockOutcome::Ended(self.cancel(proof, now)),
            LockOp::Confirm { proof, again, .. } => {
                LockOutcome::Confirmed(self.confirm(proof, *again, now))
            }
            LockOp::Relocate(asked) => LockOutcome::Moved(self.relocate(asked, now)),
            LockOp::Availability(asked) => LockOutcome::Availability(self.availability(asked, now)),
            LockOp::Show(proof) => {
                self.begin(now);
                LockOutcome::Shown(self.lease_of_proof(proof).map(Box::new))
            }
            LockOp::List { after, most } => self.list_page(*after, *most, now),
            // Checked before the lease is ended: an operator who is bound to a tenant must not end
            // leases of another.
            LockOp::Force { fence, tenant, cool_down } => {
                let found = self.find(*fence, now);
                let may_end = found
                    .is_some_and(|lease| tenant.is_none() || lease.tenant() == tenant.as_deref());
                let forced = if may_end { self.force(*fence, *cool_down, now) } else { None };
                LockOutcome::Forced(forced.map(Box::new))
            }
            LockOp::Clear { tenant, after, upto, most } => {
                // Fixed at the first page: leases granted while the pages are worked through are
                // not ended.
                let upto = upto.unwrap_or(self.fence);
                let fences = after.saturating_add(1)..=upto;
                let (ended, next) = self.clear(tenant.as_deref(), fences, *most, now);
                LockOutcome::Cleared { ended, next, upto }
            }
            LockOp::Undo(key) => {
                self.begin(now);
                self.undo(*key);
                LockOutcome::Done
            }
            LockOp::Sweep => LockOutcome::Swept { more: self.sweep(now) },
            LockOp::Counters => {
                let rows = self.counters.rows().map(|(row, counts)| (row.clone(), *counts));
                LockOutcome::Counters(rows.collect())
            }
        }
    }

    fn acquire_and_count(&mut self, asked: &Acquire, counts: bool, now: Time) -> LockOutcome {
        let acquired = self.acquire(asked, now);
        if counts {
            self.count_if_conflict(&acquired, asked.tenant.as_deref(), &asked.kind);
        }
        LockOutcome::Acquired(acquired)
    }

    fn count_if_conflict(&mut self, acquired: &AcquireReply, tenant: Option<&str>, kind: &str) {
        if matches!(acquired, AcquireReply::Conflict(_) | AcquireReply::Stale { .. }) {
            self.count_conflict(tenant, kind);
        }
    }

    fn list_page(&mut self, after: i64, most: usize, now: Time) -> LockOutcome {
        let mut leases = Vec::new();
        let mut more = false;
        self.list(after, now, |lease| {
            more = leases.len() == most;
            if more {
                return ControlFlow::Break(());
            }
            leases.push(lease.clone());
            ControlFlow::Continue(())
        });
        let next = leases.last().map(|lease: &Lease| lease.fence).filter(|_| more);
        LockOutcome::Listed { leases, next }
    }
}

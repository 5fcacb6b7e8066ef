//! Any operation as one value: what it means is what its own method does.
//!
//! Must not hold a rule.

use std::ops::ControlFlow;

use super::Book;
use crate::lock::call::{LockOp, LockReply, LockTold};
use crate::lock::op::Acquire;
use crate::lock::reply::{Acquired, View};
use crate::time::Time;

impl Book {
    /// Does an operation at an instant, which is never before one that it has known.
    pub fn apply(&mut self, op: &LockOp, now: Time) -> LockReply {
        let now = self.now.max(now);
        LockReply { now, told: self.told(op, now) }
    }

    fn told(&mut self, op: &LockOp, now: Time) -> LockTold {
        match op {
            LockOp::Acquire { asked, counts } => self.attempt(asked, *counts, now),
            LockOp::Hold(asked) => {
                let acquired = self.hold(asked, now);
                self.met_somebody(&acquired, asked.tenant.as_deref(), &asked.kind);
                LockTold::Acquired(acquired)
            }
            LockOp::Miss { tenant, kind } => {
                self.missed(tenant.as_deref(), kind);
                LockTold::Done
            }
            LockOp::Renew { proof, ttl } => LockTold::Renewed(self.renew(proof, *ttl, now)),
            LockOp::Release(proof) => LockTold::Ended(self.release(proof, now)),
            LockOp::Cancel(proof) => LockTold::Ended(self.cancel(proof, now)),
            LockOp::Confirm { proof, again, .. } => {
                LockTold::Confirmed(self.confirm(proof, *again, now))
            }
            LockOp::Relocate(asked) => LockTold::Moved(self.relocate(asked, now)),
            LockOp::Look(asked) => LockTold::Seen(self.look(asked, now)),
            LockOp::Show(proof) => {
                self.begin(now);
                LockTold::Shown(self.shown(proof).map(Box::new))
            }
            LockOp::List { after, most } => self.listed(*after, *most, now),
            LockOp::Force { fence, tenant, cool_down } => {
                let found = self.find(*fence, now);
                let ours = |view: &View| tenant.is_none() || view.tenant() == tenant.as_deref();
                let ours = found.is_some_and(|view| ours(&view));
                let forced = if ours { self.force(*fence, *cool_down, now) } else { None };
                LockTold::Forced(forced.map(Box::new))
            }
            LockOp::Clear { tenant, after, upto, most } => {
                let upto = upto.unwrap_or(self.fence);
                let (ended, next) = self.clear(tenant.as_deref(), (*after, upto), *most, now);
                LockTold::Cleared { ended, next, upto }
            }
            LockOp::Undo(key) => {
                self.begin(now);
                self.undo(*key);
                LockTold::Done
            }
            LockOp::Sweep => LockTold::Swept { more: self.sweep(now) },
            LockOp::Tally => {
                let rows = self.tally.rows().map(|(row, counts)| (row.clone(), *counts));
                LockTold::Tallied(rows.collect())
            }
        }
    }

    fn attempt(&mut self, asked: &Acquire, counts: bool, now: Time) -> LockTold {
        let acquired = self.acquire(asked, now);
        if counts {
            self.met_somebody(&acquired, asked.tenant.as_deref(), &asked.kind);
        }
        LockTold::Acquired(acquired)
    }

    fn met_somebody(&mut self, acquired: &Acquired, tenant: Option<&str>, kind: &str) {
        if matches!(acquired, Acquired::Conflict(_) | Acquired::Stale { .. }) {
            self.missed(tenant, kind);
        }
    }

    fn listed(&mut self, after: i64, most: usize, now: Time) -> LockTold {
        let mut leases = Vec::new();
        let mut more = false;
        self.list(after, now, |view| {
            more = leases.len() == most;
            if more {
                return ControlFlow::Break(());
            }
            leases.push(view.clone());
            ControlFlow::Continue(())
        });
        let next = leases.last().map(|view: &View| view.fence).filter(|_| more);
        LockTold::Listed { leases, next }
    }
}

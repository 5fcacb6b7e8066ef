//! Reverts a confirmation or a move of a slot that could not be persisted.
//!
//! A slot that was changed again in the meantime is left alone, and it is not put where another
//! lease is by now.

use super::{LockTable, StoredLease};
use crate::lock::id::LeaseKey;
use crate::lock::reply::{Lease, LeaseTarget};
use crate::time::Time;

impl LockTable {
    /// A lease as it is now, ended or not, from which it can be restored.
    pub fn snapshot(&mut self, key: LeaseKey, now: Time) -> Option<StoredLease> {
        self.begin(now);
        // Ends the lease first if it has expired.
        self.current_lease(key)?;
        self.stored_lease(key)
    }

    /// Restores a slot to its state before a confirmation or a move. Returns whether it was
    /// restored: not if the slot was changed again, or if its former range is taken by now.
    pub fn restore_previous(&mut self, before: &StoredLease, changed: &Lease) -> bool {
        let key = changed.key;
        let Some(current) = self.stored_lease(key).filter(|current| current.lease == *changed)
        else {
            return false;
        };
        // Removed first, so that it does not conflict with itself.
        self.free(key);
        self.forget(key);
        let fits = !before.lease.state.is_live() || !self.is_range_taken(&before.lease);
        // The confirmation had revived an expired hold, which counted as a grant.
        if fits && !before.lease.state.is_live() {
            self.counters.on_undone(changed.tenant(), &changed.kind);
        }
        self.load_lease(if fits { before.clone() } else { current });
        fits
    }

    /// Whether another lease has the range of a slot. Names are never restored by this module.
    fn is_range_taken(&mut self, lease: &Lease) -> bool {
        match &lease.target {
            LeaseTarget::Slot(names, range) => self.overlap(names, *range).is_some(),
            LeaseTarget::Names(_) => true,
        }
    }

    pub(super) fn stored_lease(&self, key: LeaseKey) -> Option<StoredLease> {
        let entry = self.leases.get(&key)?;
        Some(StoredLease {
            lease: entry.lease.clone(),
            request: entry.request,
            due: entry.due,
            cool_until: entry.cool_until,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::reply::ConfirmReply;
    use crate::lock::requests::{Hold, LeaseRequest, Proof, TimeRange};
    use crate::time::Span;

    #[test]
    fn a_confirmation_is_undone_although_its_hold_was_live() {
        let mut table = LockTable::default();
        let key = LeaseKey::from_bytes([1; 16]);
        let ttl = Span::from_secs(10);
        let range = TimeRange {
            start: Time::ZERO,
            end: Time::ZERO.after(ttl),
            before: Span::ZERO,
            after: Span::ZERO,
        };
        table.hold(
            &Hold {
                tenant: None,
                kind: "k".into(),
                calendars: vec!["c".into()],
                range,
                lease: LeaseRequest::new(key, ttl, ttl),
            },
            Time::ZERO,
        );
        let before = table.snapshot(key, Time::ZERO).unwrap();
        let proof = Proof { key, tenant: None };
        let ConfirmReply::Done(confirmed) = table.confirm(&proof, false, Time::ZERO) else {
            panic!("not confirmed");
        };
        assert!(table.restore_previous(&before, &confirmed));
        assert_eq!(table.stored_lease(key).unwrap().lease, before.lease);
    }
}

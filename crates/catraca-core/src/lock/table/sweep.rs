//! Removal of expired leases, a limited number with every operation.
//!
//! This only frees memory: whether a lease is held depends on `expires_at` alone.

use super::LockTable;
use crate::lock::SWEEP;
use crate::lock::id::LeaseKey;
use crate::lock::reply::{LeaseState, LeaseTarget};
use crate::time::Time;

/// Hash maps with a smaller capacity are not shrunk.
const SMALL: usize = 1_024;

impl LockTable {
    /// Handles at most [`SWEEP`] leases that are due, and removes as many expired versions. Returns
    /// whether there may be more.
    pub fn sweep(&mut self, now: Time) -> bool {
        self.now = self.now.max(now);
        self.versions.sweep(self.now, SWEEP);
        for _ in 0..SWEEP {
            let first = self.due.first().copied();
            let Some((due, key)) = first.filter(|(due, _)| self.has_passed(*due)) else {
                self.shrink();
                return false;
            };
            self.due.remove(&(due, key));
            self.handle_due(key);
        }
        true
    }

    /// Handles a lease that is due: an expired lease ends, an ended one is forgotten.
    fn handle_due(&mut self, key: LeaseKey) {
        let Some(entry) = self.leases.get(&key) else { return };
        match entry.lease.state {
            LeaseState::Held => self.end(key, LeaseState::Expired),
            // Long past its end: it needs no tombstone.
            LeaseState::Confirmed => {
                self.end(key, LeaseState::Expired);
                self.forget(key);
            }
            LeaseState::Released | LeaseState::Expired | LeaseState::Forced => self.forget(key),
        }
    }

    /// Removes a lease, with its request and the names that it still has.
    pub(super) fn forget(&mut self, key: LeaseKey) {
        let Some(entry) = self.leases.remove(&key) else { return };
        self.due.remove(&(entry.due, key));
        // The request id may belong to a later lease by now.
        if let Some((id, _)) = entry.request
            && self.requests.get(&id).is_some_and(|(_, owner)| *owner == key)
        {
            self.requests.remove(&id);
        }
        // After a cool-down, the names still point to this lease unless another has taken them.
        if let LeaseTarget::Names(names) = entry.lease.target {
            self.free_names(names, key);
        }
    }

    /// Shrinks hash maps that are mostly empty. The cost is proportional to the remaining entries,
    /// of which there are less than a quarter of the capacity.
    fn shrink(&mut self) {
        let is_sparse = |capacity: usize, len: usize| capacity > SMALL && len < capacity / 4;
        if is_sparse(self.leases.capacity(), self.leases.len()) {
            self.leases.shrink_to(self.leases.len() * 2);
        }
        if is_sparse(self.requests.capacity(), self.requests.len()) {
            self.requests.shrink_to(self.requests.len() * 2);
        }
    }
}

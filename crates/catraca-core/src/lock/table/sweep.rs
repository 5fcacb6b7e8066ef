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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::requests::{Acquire, LeaseRequest, Proof};
    use crate::lock::terms::VersionPolicy;
    use crate::lock::{TOMBSTONE, VERSION_RETENTION};
    use crate::time::Span;

    #[test]
    fn a_table_that_has_become_sparse_keeps_room_for_twice_its_leases() {
        let mut table = LockTable::default();
        let long = Span::from_secs(3_600);
        let keys: Vec<LeaseKey> =
            (0..10_000_u128).map(|n| LeaseKey::from_bytes(n.to_le_bytes())).collect();
        for (number, key) in keys.iter().enumerate() {
            let name: Box<str> = number.to_string().into();
            let request = Acquire {
                tenant: None,
                kind: "k".into(),
                keys: vec![name.clone()],
                lease: LeaseRequest { request: Some(name), ..LeaseRequest::new(*key, long, long) },
                policy: VersionPolicy::Opaque,
            };
            table.acquire(&request, Time::ZERO);
        }
        for key in &keys[1_000..] {
            table.release(&Proof { key: *key, tenant: None }, Time::ZERO);
        }
        while table.sweep(Time::ZERO.after(TOMBSTONE)) {}
        let capacities = [table.leases.capacity(), table.requests.capacity()];
        assert_eq!((table.leases.len(), table.requests.len()), (1_000, 1_000));
        assert!(capacities.iter().all(|room| (2_000..8_000).contains(room)), "{capacities:?}");
    }

    #[test]
    fn versions_are_removed_when_they_expire() {
        let mut table = LockTable::default();
        let ttl = Span::from_secs(1);
        let lease = LeaseRequest::new(LeaseKey::from_bytes([1; 16]), ttl, ttl);
        let request = Acquire {
            tenant: None,
            kind: "k".into(),
            keys: vec!["a".into()],
            lease: LeaseRequest { version: Some(7), ..lease },
            policy: VersionPolicy::Monotonic,
        };
        table.acquire(&request, Time::ZERO);
        let expiry = Time::ZERO.after(VERSION_RETENTION);
        table.sweep(expiry.before(Span::from_micros(1)));
        assert!(!table.take_versions_expired());
        table.sweep(expiry);
        assert!(table.take_versions_expired());
    }
}

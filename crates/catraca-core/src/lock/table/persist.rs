//! Converts leases for persistence, and restores them.
//!
//! A restored lease lasts at least as long as its holder was promised.

use super::{LockTable, lease_target};
use crate::lock::id::LeaseKey;
use crate::lock::persistence::PersistedLease;
use crate::lock::reply::{Lease, LeaseState, LeaseTarget};
use crate::time::{Span, Time};

impl LockTable {
    /// How long the longest held lease still lasts. Confirmed slots are not considered, since they
    /// never expire.
    pub fn longest_remaining(&mut self, now: Time) -> Span {
        self.now = self.now.max(now);
        let held = self.live.values().filter_map(|key| self.leases.get(key));
        let held = held.filter(|entry| entry.lease.state == LeaseState::Held);
        held.map(|entry| entry.lease.expires_at.since(self.now)).max().unwrap_or_default()
    }

    /// A live lease as it is persisted; `None` if it has ended.
    pub fn to_persisted(&self, key: LeaseKey) -> Option<PersistedLease> {
        let entry = self.leases.get(&key).filter(|entry| entry.lease.state.is_live())?;
        let lease = &entry.lease;
        let (names, range) = match &lease.target {
            LeaseTarget::Names(names) => {
                (names.iter().map(|name| name.key.clone()).collect(), None)
            }
            LeaseTarget::Slot(names, range) => {
                (names.iter().map(|name| name.calendar.clone()).collect(), Some(*range))
            }
        };
        Some(PersistedLease {
            key,
            tenant: lease.tenant().map(Box::from),
            kind: lease.kind.clone(),
            names,
            range,
            fence: lease.fence,
            version: lease.version,
            label: lease.label.clone(),
            meta: lease.meta.clone(),
            acquired_at: lease.acquired_at,
            expires_at: lease.expires_at,
            hold_until: lease.hold_until,
            ttl: lease.ttl,
            state: lease.state,
            request: entry.request,
        })
    }

    /// Held leases as they are persisted at a clean shutdown. Their TTL is the time that is left,
    /// and starts again when they are restored.
    pub fn held_leases(&mut self, now: Time) -> impl Iterator<Item = PersistedLease> + '_ {
        self.now = self.now.max(now);
        let live = self.live.values().filter_map(|key| self.to_persisted(*key));
        let held =
            live.filter(|lease| lease.state == LeaseState::Held && self.now < lease.expires_at);
        held.map(|lease| PersistedLease { ttl: lease.expires_at.since(self.now), ..lease })
    }

    /// Restores a lease. A held lease gets its whole TTL again: the clock may have been changed
    /// while the process was down, so `expires_at` cannot be trusted, and a lease must not be
    /// shorter than promised.
    pub fn restore(&mut self, persisted: PersistedLease, now: Time) {
        self.now = self.now.max(now);
        self.raise_fence(persisted.fence);
        let expires_at = match persisted.state {
            LeaseState::Confirmed => Time::FOREVER,
            _ => self.now.after(persisted.ttl),
        };
        let target = lease_target(
            persisted.tenant.as_deref(),
            &persisted.kind,
            &persisted.names,
            persisted.range,
        );
        let lease = Lease {
            key: persisted.key,
            fence: persisted.fence,
            kind: persisted.kind,
            target,
            version: persisted.version,
            label: persisted.label,
            meta: persisted.meta,
            acquired_at: persisted.acquired_at,
            expires_at,
            hold_until: persisted.hold_until.max(expires_at),
            ttl: persisted.ttl,
            state: persisted.state,
        };
        self.counters.on_granted(lease.tenant(), &lease.kind);
        self.insert(lease, persisted.request);
    }
}

//! Partial lock table: the leases and versions that one operation can affect, loaded from a store.
//!
//! A store such as PostgreSQL loads them, applies the operation to the partial table, and writes
//! back what has changed. The rules are those of the full table.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::idempotency::RequestDigest;
use super::{LeaseEntry, LockTable};
use crate::lock::id::LeaseKey;
use crate::lock::persistence::PersistedVersion;
use crate::lock::reply::{Lease, LeaseState, LeaseTarget};
use crate::time::Time;

/// A lease as a store keeps it, ended or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredLease {
    /// The lease.
    pub lease: Lease,
    /// The digests of the request id, and of the parameters of the request.
    pub request: Option<RequestDigest>,
    /// When the lease expires, or if it has ended, when it is forgotten.
    pub due: Time,
    /// The end of the cool-down after an operator ended the lease: until then its names stay taken.
    pub cool_until: Time,
}

/// The part of a namespace that one operation can affect.
#[derive(Clone, Debug, Default)]
pub struct PartialLockTable {
    /// The latest instant of any operation in the namespace.
    pub now: Time,
    /// The last fence that was given out.
    pub fence: i64,
    /// The leases that the operation can affect.
    pub leases: Vec<StoredLease>,
    /// The versions that the operation can affect.
    pub versions: Vec<PersistedVersion>,
    /// How many other leases the namespace has.
    pub elsewhere: usize,
    /// How many other versions the namespace has.
    pub versions_elsewhere: usize,
}

impl StoredLease {
    /// Whether the lease takes its names or range at an instant, as stored. A held lease that has
    /// expired counts until it is ended.
    pub fn takes(&self, now: Time) -> bool {
        self.lease.state.is_live() || self.is_cooling_down(now)
    }

    /// Only names have a cool-down; a slot is free at once.
    fn is_cooling_down(&self, now: Time) -> bool {
        let has_names = matches!(self.lease.target, LeaseTarget::Names(_));
        has_names && self.lease.state == LeaseState::Forced && now < self.cool_until
    }
}

impl LockTable {
    /// A lock table with only these leases and versions.
    pub fn from_partial(part: PartialLockTable) -> Self {
        let mut table =
            Self { now: part.now, fence: part.fence, elsewhere: part.elsewhere, ..Self::default() };
        table.versions.elsewhere = part.versions_elsewhere;
        for stored in part.leases {
            table.load_lease(stored);
        }
        for version in part.versions {
            table.restore_version(version);
        }
        table
    }

    /// All leases of the table by key, to be compared with those that were loaded.
    pub fn stored_leases(&self) -> BTreeMap<LeaseKey, StoredLease> {
        // Every lease is in `due`, in a defined order, unlike in the hash map.
        let leases = self.due.iter().filter_map(|(_, key)| {
            let stored = self.stored_lease(*key)?;
            Some((*key, stored))
        });
        leases.collect()
    }

    /// Inserts a stored lease. An ended one takes its names only in its cool-down, and is not
    /// counted again.
    pub(super) fn load_lease(&mut self, stored: StoredLease) {
        let takes_names = stored.is_cooling_down(self.now);
        let StoredLease { lease, request, due, cool_until } = stored;
        if lease.state.is_live() {
            return self.insert(lease, request);
        }
        let key = lease.key;
        if let (LeaseTarget::Names(names), true) = (&lease.target, takes_names) {
            self.names.extend(names.iter().map(|name| (Arc::clone(name), key)));
        }
        if let Some((id, parameters)) = request {
            self.requests.insert(id, (parameters, key));
        }
        self.due.insert((due, key));
        self.leases.insert(key, LeaseEntry { lease, request, due, cool_until });
    }
}

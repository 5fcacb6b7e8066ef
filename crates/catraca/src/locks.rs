//! Locks and slots, in this process ([`Locks`]) or in a store that nodes share ([`SharedLocks`]).
//!
//! [`Locks`] adds a clock, queues of waiting callers and a journal to the lock table of core. Each
//! namespace has one mutex, which is never held across an await. `acquire` grants names, `wait`
//! keeps the queues, `hold` grants time slots, `pending_change` reverts changes of slots, `admin`
//! has the operator calls, `persistence` writes what must survive the process, `shutdown` stops and
//! restores. Locks fail closed: a grant that cannot be persisted as promised is refused.

mod acquire;
mod admin;
mod hold;
mod id;
mod lock_error;
mod metrics;
mod namespace;
mod pending_change;
mod persistence;
mod shared;
mod shutdown;
mod store;
#[cfg(test)]
mod tests;
mod wait;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use catraca_core::digest::Secret;
use catraca_core::lock::LeaseId;
use catraca_core::lock::persistence::{
    LockWrite, PersistedFence, PersistedLease, PersistedVersion,
};
use catraca_core::time::Time;
use parking_lot::Mutex;

use crate::clock::Clock;
use namespace::{NamespaceLocks, NamespaceState};

pub use acquire::LockAttempt;
pub use admin::{LeaseFilter, LockPage, LockStats, LockTotals, StatsRow};
pub use lock_error::LockError;
pub use metrics::{BOUNDS as TIME_BOUNDS, DurationHistogram, LockTimes};
pub use persistence::{Journal, JournalFuture};
pub use shared::{SharedLocks, StoreTimed};
pub use store::{FreedNotice, LockStore, LockStoreFuture};
pub use wait::WAITERS_MAX;

/// The most namespaces with locks.
pub const NAMESPACES_MAX: usize = 4_096;

/// Locks and slots of all namespaces, in the memory of this process.
pub struct Locks {
    namespaces: Mutex<BTreeMap<Box<str>, Arc<NamespaceLocks>>>,
    clock: Arc<dyn Clock>,
    secret: [u8; 32],
    journal: Option<Arc<dyn Journal>>,
    times: Arc<LockTimes>,
    write_failures: AtomicU64,
    closed: AtomicBool,
    /// Set before shutdown: no caller may start to wait.
    refusing_waiters: AtomicBool,
}

/// Persisted state of a namespace, for [`Locks::open`].
#[derive(Clone, Debug)]
pub enum RestoredLock {
    /// The fences and lease times that may have been granted.
    Fence(Box<str>, PersistedFence),
    /// A lease that was active.
    Lease(Box<str>, Box<PersistedLease>),
    /// The highest version of a name.
    Version(Box<str>, Box<PersistedVersion>),
}

impl Locks {
    /// Locks without a journal: they end with the process.
    pub fn new(clock: Arc<dyn Clock>, secret: &Secret) -> Self {
        Self {
            namespaces: Mutex::default(),
            clock,
            secret: secret.derive("catraca 2026 lease id"),
            journal: None,
            times: Arc::default(),
            write_failures: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            refusing_waiters: AtomicBool::new(false),
        }
    }

    /// The current time of the clock that leases expire by.
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// A new lease id, which proves ownership of the lease. With a request id it is derived from
    /// the secret, so that a repeated request gets the same one and others cannot guess it.
    pub fn lease_id(
        &self,
        namespace: &str,
        tenant: Option<&str>,
        request: Option<&str>,
    ) -> Result<LeaseId, LockError> {
        id::lease_id(&self.secret, namespace, tenant, request)
    }

    /// Removes expired leases and grants their names to waiting callers. Call it periodically.
    pub fn maintain(&self) {
        for ns in self.all_namespaces() {
            loop {
                let now = self.clock.now();
                let mut state = ns.state.lock();
                let more = state.table.sweep(now);
                state.end_cooldowns(now);
                let mut writes = ns.take_ended_writes(&mut state);
                if state.table.take_versions_expired() {
                    writes.push(LockWrite::Forget(ns.namespace.clone(), now));
                }
                drop(state);
                self.write_nowait(writes);
                if !more {
                    break;
                }
            }
        }
    }

    /// Answers all waiting callers with [`LockError::Stopping`], and from now on every call that
    /// would have to wait. Other calls continue.
    pub fn refuse_waiters(&self) {
        self.refusing_waiters.store(true, Ordering::SeqCst);
        for ns in self.all_namespaces() {
            ns.state.lock().refuse_waiters();
        }
    }

    fn all_namespaces(&self) -> Vec<Arc<NamespaceLocks>> {
        self.namespaces.lock().values().cloned().collect()
    }

    fn namespace(&self, namespace: &str) -> Result<Arc<NamespaceLocks>, LockError> {
        if self.closed.load(Ordering::SeqCst) {
            return Err(LockError::Stopping);
        }
        let namespaces = self.namespaces.lock();
        if namespaces.len() >= NAMESPACES_MAX && !namespaces.contains_key(namespace) {
            return Err(LockError::TooManyNamespaces);
        }
        drop(namespaces);
        Ok(self.find_or_create(namespace))
    }

    fn find_or_create(&self, namespace: &str) -> Arc<NamespaceLocks> {
        let mut namespaces = self.namespaces.lock();
        let create = || {
            let state = Mutex::new(NamespaceState::new(self.journal.is_some()));
            Arc::new(NamespaceLocks {
                namespace: namespace.into(),
                times: Arc::clone(&self.times),
                state,
            })
        };
        Arc::clone(namespaces.entry(namespace.into()).or_insert_with(create))
    }
}

impl std::fmt::Debug for Locks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Locks")
            .field("namespaces", &self.namespaces.lock().len())
            .finish_non_exhaustive()
    }
}

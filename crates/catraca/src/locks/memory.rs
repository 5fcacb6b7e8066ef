//! The lock store in the memory of this process: core's lock table per namespace, and a journal.
//!
//! Each namespace has one mutex, which is never held across an await (`namespace`). Changes that
//! must survive the process are handed to the journal under that mutex, so that the journal has
//! them in the order in which they happened (`journal`). A grant that cannot be written is reverted
//! (`namespace`), and so is a change of a slot (`slot_change`). `restart` stops and restores.

mod journal;
mod namespace;
mod restart;
mod slot_change;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use catraca_core::lock::persistence::{PersistedFence, PersistedLease, PersistedVersion};
use catraca_core::lock::{Durability, LockOp};
use catraca_core::time::Span;
use parking_lot::{Mutex, RwLock};

use super::admin::LockTotals;
use super::metrics::DurationHistogram;
use super::port::{FreedCallback, LockStore, LockStoreClosing, LockStoreFuture};
use crate::clock::Clock;
use crate::store::When;
use namespace::NamespaceLocks;

pub use journal::{Journal, JournalFuture};

/// How often expired leases are removed.
const EXPIRY_INTERVAL: Duration = Duration::from_millis(250);

/// Locks and slots of all namespaces, in the memory of this process.
pub struct MemoryLocks {
    namespaces: Mutex<BTreeMap<Box<str>, Arc<NamespaceLocks>>>,
    context: Arc<MemoryContext>,
}

/// What all namespaces use.
struct MemoryContext {
    clock: Arc<dyn Clock>,
    journal: Option<Arc<dyn Journal>>,
    /// Called under the mutex of a namespace, which they must not lock.
    listeners: RwLock<Vec<FreedCallback>>,
    /// How long leases were held.
    held_times: DurationHistogram,
}

/// Persisted state of a namespace, for [`MemoryLocks::open`].
#[derive(Clone, Debug)]
pub enum RestoredLock {
    /// The fences and lease times that may have been granted.
    Fence(Box<str>, PersistedFence),
    /// A lease that was active.
    Lease(Box<str>, Box<PersistedLease>),
    /// The highest version of a name.
    Version(Box<str>, Box<PersistedVersion>),
}

impl MemoryLocks {
    /// Locks without a journal: they end with the process.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self::with_journal(clock, None)
    }

    fn with_journal(clock: Arc<dyn Clock>, journal: Option<Arc<dyn Journal>>) -> Self {
        let listeners = RwLock::default();
        let held_times = DurationHistogram::default();
        let context = MemoryContext { clock, journal, listeners, held_times };
        Self { namespaces: Mutex::default(), context: Arc::new(context) }
    }

    /// The locks of a namespace. `Locks` bounds how many there are.
    fn namespace(&self, name: &str) -> Arc<NamespaceLocks> {
        let mut namespaces = self.namespaces.lock();
        if let Some(namespace) = namespaces.get(name) {
            return Arc::clone(namespace);
        }
        let namespace = Arc::new(NamespaceLocks::new(name, Arc::clone(&self.context)));
        namespaces.insert(name.into(), Arc::clone(&namespace));
        namespace
    }

    fn all_namespaces(&self) -> Vec<Arc<NamespaceLocks>> {
        self.namespaces.lock().values().cloned().collect()
    }
}

impl LockStore for MemoryLocks {
    fn ask<'a>(&'a self, namespace: &'a str, op: &'a LockOp, when: When) -> LockStoreFuture<'a> {
        Box::pin(async move { self.namespace(namespace).ask(op, when).await })
    }

    fn listen(&self, listener: FreedCallback) {
        self.context.listeners.write().push(listener);
    }

    fn durability(&self) -> Option<Durability> {
        if self.context.journal.is_some() { None } else { Some(Durability::Memory) }
    }

    fn expiry_interval(&self) -> Duration {
        EXPIRY_INTERVAL
    }

    fn restored_namespaces(&self) -> Vec<Box<str>> {
        self.namespaces.lock().keys().cloned().collect()
    }

    fn startup_wait(&self) -> Option<Duration> {
        let now = self.context.clock.now();
        let waits = self.all_namespaces().into_iter().map(|namespace| namespace.closed_for(now));
        waits.max().filter(|wait| *wait > Span::ZERO).map(Duration::from)
    }

    fn totals(&self) -> Option<LockTotals<'_>> {
        let held_times = &self.context.held_times;
        let mut totals = LockTotals { kinds: BTreeMap::new(), lease_entries: 0, held_times };
        for namespace in self.all_namespaces() {
            namespace.add_to(&mut totals);
        }
        Some(totals)
    }

    fn close(&self) -> LockStoreClosing<'_> {
        Box::pin(self.stop())
    }
}

impl std::fmt::Debug for MemoryLocks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryLocks")
            .field("namespaces", &self.namespaces.lock().len())
            .finish_non_exhaustive()
    }
}

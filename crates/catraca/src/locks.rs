//! Locks and slots, in this process or in a store that nodes share.
//!
//! In this process: the rules of core, a clock, callers who wait, and a journal. One room per
//! namespace, each behind one mutex that is never held over a wait. `acquire` takes
//! names and waits for them, `wait` keeps the queues, `hold` takes ranges of time, `change` takes
//! them back, `operate` is for operators, `durable` puts on disk what must outlive the process,
//! `stop` ends it in order and takes up again. Locks fail closed: what cannot be kept as promised
//! is not granted. Must not know HTTP.

mod acquire;
mod change;
mod durable;
mod error;
mod hold;
mod id;
mod journal;
mod operate;
mod room;
mod shared;
mod stop;
mod store;
#[cfg(test)]
mod tests;
mod times;
mod wait;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use catraca_core::digest::Secret;
use catraca_core::lock::LeaseId;
use catraca_core::lock::kept::{KeptFence, KeptLease, KeptVersion, LockDeed};
use catraca_core::time::Time;
use parking_lot::Mutex;

use crate::clock::Clock;
use room::{Inner, Room};

pub use acquire::Answer;
pub use error::LockError;
pub use journal::{Journal, Written};
pub use operate::{Filter, LockPage, LockStats, LockTotals, StatsRow};
pub use shared::{At, SharedLocks};
pub use store::{Asking, Freed, LockStore};
pub use times::{BOUNDS as TIME_BOUNDS, Durations, LockTimes};
pub use wait::WAITERS_MAX;

/// The most namespaces.
pub const NAMESPACES_MAX: usize = 4_096;

/// Locks and slots of every namespace.
pub struct Locks {
    rooms: Mutex<BTreeMap<Box<str>, Arc<Room>>>,
    clock: Arc<dyn Clock>,
    secret: [u8; 32],
    journal: Option<Arc<dyn Journal>>,
    times: Arc<LockTimes>,
    unkept: AtomicU64,
    closed: AtomicBool,
    /// Nobody may wait any more.
    leaving: AtomicBool,
}

/// What was kept of a namespace.
#[derive(Clone, Debug)]
pub enum StandingLock {
    /// What it may have given out.
    Fence(Box<str>, KeptFence),
    /// A lease that was in force.
    Lease(Box<str>, Box<KeptLease>),
    /// The highest version of a name.
    Version(Box<str>, Box<KeptVersion>),
}

impl Locks {
    /// Locks that end with the process.
    pub fn new(clock: Arc<dyn Clock>, secret: &Secret) -> Self {
        Self {
            rooms: Mutex::default(),
            clock,
            secret: secret.derive("catraca 2026 lease id"),
            journal: None,
            times: Arc::default(),
            unkept: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            leaving: AtomicBool::new(false),
        }
    }

    /// The present instant, by the clock that leases are timed with.
    pub fn now(&self) -> Time {
        self.clock.now()
    }

    /// The proof of a new lease. A request with a name of its own gets the same one when it is
    /// repeated, and nobody without the secret can work it out.
    pub fn lease_id(
        &self,
        namespace: &str,
        tenant: Option<&str>,
        request: Option<&str>,
    ) -> Result<LeaseId, LockError> {
        id::lease_id(&self.secret, namespace, tenant, request)
    }

    /// Puts away what is over, and serves whoever waited for it. Call it now and then.
    pub fn tend(&self) {
        for room in self.all() {
            loop {
                let (now, mut inner) = (self.clock.now(), room.inner.lock());
                let more = inner.book.sweep(now);
                inner.warm(now);
                let mut deeds = room.gone(&mut inner);
                if inner.book.take_forgotten() {
                    deeds.push(LockDeed::Forget(room.namespace.clone(), now));
                }
                drop(inner);
                self.note(deeds);
                if !more {
                    break;
                }
            }
        }
    }

    /// Nobody waits any more: whoever does is told at once that the process ends, and so is
    /// whoever would have to. All else goes on.
    pub fn dismiss(&self) {
        self.leaving.store(true, Ordering::SeqCst);
        for room in self.all() {
            room.inner.lock().dismiss();
        }
    }

    fn all(&self) -> Vec<Arc<Room>> {
        self.rooms.lock().values().cloned().collect()
    }

    fn room(&self, namespace: &str) -> Result<Arc<Room>, LockError> {
        if self.closed.load(Ordering::SeqCst) {
            return Err(LockError::Stopping);
        }
        let rooms = self.rooms.lock();
        if rooms.len() >= NAMESPACES_MAX && !rooms.contains_key(namespace) {
            return Err(LockError::TooManyNamespaces);
        }
        drop(rooms);
        Ok(self.made(namespace))
    }

    fn made(&self, namespace: &str) -> Arc<Room> {
        let mut rooms = self.rooms.lock();
        let made = || {
            let inner = Mutex::new(Inner::new(self.journal.is_some()));
            Arc::new(Room { namespace: namespace.into(), times: Arc::clone(&self.times), inner })
        };
        Arc::clone(rooms.entry(namespace.into()).or_insert_with(made))
    }
}

impl std::fmt::Debug for Locks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Locks")
            .field("namespaces", &self.rooms.lock().len())
            .finish_non_exhaustive()
    }
}

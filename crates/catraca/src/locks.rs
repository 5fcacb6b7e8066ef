//! Locks and slots: queues, waiting and operator calls, over a store of leases.
//!
//! [`Locks`] has the verbs; a [`LockStore`] has the leases and applies core's rules to them:
//! [`MemoryLocks`] in this process, Redis or PostgreSQL for several nodes. `acquire` grants names
//! and waits for them in `wait_queues`, `holder` has the other calls of holders, `admin` those of
//! operators, `undo` reverts grants that no caller was answered with. [`LockService`] is the same
//! for programs, here and on a server, and [`Lock`] its guard. Locks fail closed: without an
//! answer of the store in time, and without the promised durability, nothing is granted.
//!
//! ```
//! use std::sync::Arc;
//!
//! use catraca::locks::{LocalLocks, Locks, LockRequest, LockService, NotGranted};
//! use catraca::{Secret, SystemClock};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let locks = Locks::in_memory(Arc::new(SystemClock::new()), &Secret::from_bytes([7; 32]));
//! let locks = LocalLocks::new(Arc::new(locks), Default::default()); // or a `Client`
//! let Ok(lock) = locks.lock(LockRequest::new("payment", "order-7")).await? else {
//!     return Ok(()); // another program has it
//! };
//! println!("write with fence {}", lock.fence());
//! let second = locks.lock(LockRequest::new("payment", "order-7")).await?;
//! assert!(matches!(second, Err(NotGranted::Taken(taken)) if taken.taken == "order-7"));
//! lock.release().await?;
//! # Ok(())
//! # }
//! ```

mod acquire;
mod admin;
mod guard;
mod holder;
mod local_locks;
mod lock_error;
mod lock_request;
mod memory;
mod metrics;
mod port;
mod service;
#[cfg(test)]
mod tests;
mod undo;
mod wait_queues;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use catraca_core::digest::Secret;
use catraca_core::lock::{Durability, LeaseId, LockOp, LockOutcome, LockReply};
use catraca_core::time::Time;
use parking_lot::Mutex;

use crate::clock::Clock;
use crate::store::When;
use undo::Undoer;
use wait_queues::WaitQueues;

pub use acquire::LockAttempt;
pub use admin::{LeaseFilter, LockPage, LockStats, LockTotals, StatsRow};
// Its own page is that of core: a catalog makes it, and programs only pass it on.
#[doc(no_inline)]
pub use catraca_core::lock::LockTerms;
pub use guard::Lock;
pub use holder::Confirmation;
pub use local_locks::LocalLocks;
pub use lock_error::LockError;
#[cfg(feature = "client")]
pub(crate) use lock_request::whole_millis;
pub use lock_request::{LeaseOptions, LockRequest, SlotRequest};
pub use memory::{Journal, JournalFuture, MemoryLocks, RestoredLock};
pub use metrics::{BOUNDS as TIME_BOUNDS, DurationHistogram};
#[cfg(any(feature = "redis", feature = "postgres-store"))]
pub(crate) use port::forward_freed;
pub use port::{FreedCallback, FreedNotice, LockStore, LockStoreClosing, LockStoreFuture};
pub use service::{
    AcquireResult, LeaseGrant, LeaseLoss, LeaseRenewal, LockService, NotGranted, SlotConfirmation,
    TakenLease,
};
pub use wait_queues::WAITERS_MAX;

/// The most namespaces with locks.
pub const NAMESPACES_MAX: usize = 4_096;
/// The most sweeps of one namespace in a row, so that a large one does not delay the others.
const SWEEPS_MAX: usize = 64;

/// Locks and slots of all namespaces.
///
/// ```
/// use std::sync::Arc;
///
/// use catraca::locks::LocalLocks;
/// use catraca::{LockRequest, LockService, Locks, Secret, SystemClock};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let locks = Locks::in_memory(Arc::new(SystemClock::new()), &Secret::from_bytes([7; 32]));
/// let locks = Arc::new(locks);
/// let shop = LocalLocks::new(Arc::clone(&locks), Default::default()).namespace("shop");
/// assert!(shop.lock(LockRequest::new("payment", "order-7")).await?.is_ok());
/// locks.close().await?; // before the process ends
/// assert!(shop.lock(LockRequest::new("payment", "order-8")).await.is_err());
/// # Ok(())
/// # }
/// ```
pub struct Locks {
    store: Arc<dyn LockStore>,
    /// The durability of all changes; `None` if each request chooses its own.
    durability: Option<Durability>,
    /// The key of lease ids that are derived from a request id.
    secret: [u8; 32],
    queues: Arc<WaitQueues>,
    undoer: Undoer,
    /// Namespaces that this process has used, to remove their expired leases.
    namespaces: Mutex<BTreeSet<Box<str>>>,
    closed: AtomicBool,
    /// How long callers waited, of those that waited.
    waited: DurationHistogram,
    failed_calls: AtomicU64,
    failed_sweeps: AtomicU64,
    /// Why the last round of [`Locks::expire`] failed, if it did.
    sweep_error: Mutex<Option<String>>,
}

/// A reply, and its instant by the clock that leases expire by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimedReply<T> {
    /// The reply.
    pub reply: T,
    /// The instant.
    #[doc(hidden)]
    pub now: Time,
}

impl Locks {
    /// Locks in a store; for a shared store, it must be called on an async runtime. Nodes that
    /// share a store must share the secret, so that a request can be repeated through another
    /// node.
    pub fn new(store: Arc<dyn LockStore>, secret: &Secret) -> Self {
        let queues = Arc::new(WaitQueues::default());
        let woken_queues = Arc::clone(&queues);
        store.listen(Box::new(move |notice| woken_queues.on_freed(notice)));
        Self {
            undoer: Undoer::new(Arc::clone(&store)),
            namespaces: Mutex::new(store.restored_namespaces().into_iter().collect()),
            durability: store.durability(),
            store,
            secret: secret.derive("catraca 2026 lease id"),
            queues,
            closed: AtomicBool::new(false),
            waited: DurationHistogram::default(),
            failed_calls: AtomicU64::new(0),
            failed_sweeps: AtomicU64::new(0),
            sweep_error: Mutex::default(),
        }
    }

    /// Locks in the memory of this process, which end with it.
    pub fn in_memory(clock: Arc<dyn Clock>, secret: &Secret) -> Self {
        Self::new(Arc::new(MemoryLocks::new(clock)), secret)
    }

    /// A new lease id, which proves ownership of the lease. With a request id it is derived from
    /// the secret, so that a request that is repeated, through any node, gets the same one and
    /// others cannot guess it.
    pub fn lease_id(
        &self,
        namespace: &str,
        tenant: Option<&str>,
        request: Option<&str>,
    ) -> Result<LeaseId, LockError> {
        let mut bytes = [0; 16];
        let Some(request) = request else {
            getrandom::fill(&mut bytes).map_err(|error| LockError::write_failed(&error))?;
            return Ok(LeaseId::from_bytes(bytes));
        };
        let mut mac = blake3::Hasher::new_keyed(&self.secret);
        // The length before each part distinguishes ("ab", "c") from ("a", "bc"); -1 marks an
        // absent tenant, which differs from an empty one.
        for part in [Some(namespace), tenant, Some(request)] {
            let length = part.map_or(-1, |part| part.len() as i64);
            mac.update(&length.to_le_bytes()).update(part.unwrap_or_default().as_bytes());
        }
        bytes.copy_from_slice(&mac.finalize().as_bytes()[..16]);
        Ok(LeaseId::from_bytes(bytes))
    }

    /// Removes expired leases in the namespaces that this process has used. Call it every
    /// [`Locks::expiry_interval`]: leases of names that are not used again would stay. An error
    /// leaves a namespace to the next round; it is counted, and [`Locks::background_error`] has it.
    pub async fn expire(&self) {
        let namespaces: Vec<Box<str>> = self.namespaces.lock().iter().cloned().collect();
        let mut first_error = None;
        for namespace in namespaces {
            match self.sweep(&namespace).await {
                Ok(()) | Err(LockError::Stopping) => {}
                Err(error) => {
                    self.failed_sweeps.fetch_add(1, Ordering::Relaxed);
                    first_error.get_or_insert_with(|| {
                        format!(
                            "expired leases of the namespace `{namespace}` are not removed: \
                             {error}; they count towards the limits of the namespace until then"
                        )
                    });
                }
            }
        }
        *self.sweep_error.lock() = first_error;
    }

    /// The namespaces that this process has used since its start, and those whose leases it has
    /// restored. In a shared store, other processes may have used more.
    pub fn namespaces(&self) -> Vec<Box<str>> {
        self.namespaces.lock().iter().cloned().collect()
    }

    /// Why expired leases are not removed, or why a task of the store fails, with the consequence.
    /// Calls work nevertheless.
    pub fn background_error(&self) -> Option<String> {
        let sweep_error = self.sweep_error.lock().clone();
        sweep_error.or_else(|| self.store.background_error())
    }

    /// How the deployment of the store makes callers slower, and the remedy. Nothing fails.
    pub fn limitation(&self) -> Option<String> {
        self.store.limitation()
    }

    /// Rounds in which expired leases of a namespace could not be removed.
    pub fn failed_sweeps(&self) -> u64 {
        self.failed_sweeps.load(Ordering::Relaxed)
    }

    /// How often to call [`Locks::expire`].
    pub fn expiry_interval(&self) -> Duration {
        self.store.expiry_interval()
    }

    /// How long nothing is granted after a start, because leases of the previous process may still
    /// be valid.
    pub fn startup_wait(&self) -> Option<Duration> {
        self.store.startup_wait()
    }

    /// Answers all waiting callers with [`LockError::Stopping`], and from now on every call that
    /// would have to wait. Other calls continue.
    pub fn refuse_waiters(&self) {
        self.queues.refuse_waiters();
    }

    /// Refuses all further calls. Leases in memory are written to the journal; in a shared store
    /// they stay. After an error the next start waits as after a crash.
    pub async fn close(&self) -> Result<(), LockError> {
        self.closed.store(true, Ordering::SeqCst);
        self.store.close().await
    }

    /// Callers of this process that wait now.
    pub fn waiters(&self) -> usize {
        self.queues.waiting()
    }

    /// How long callers of this process waited, of those that waited.
    pub fn wait_times(&self) -> &DurationHistogram {
        &self.waited
    }

    /// Calls of this process that failed because of the disk or the shared store.
    pub fn failed_calls(&self) -> u64 {
        self.failed_calls.load(Ordering::Relaxed)
    }

    /// Leases that may have been granted to a caller that got no answer, and could not be reverted:
    /// they hold their names until they expire.
    pub fn failed_undos(&self) -> u64 {
        self.undoer.failures()
    }

    /// Counts of all namespaces for metrics; `None` if a server would have to be asked.
    pub fn totals(&self) -> Option<LockTotals<'_>> {
        self.store.totals()
    }

    /// Removes expired leases of a namespace.
    async fn sweep(&self, namespace: &str) -> Result<(), LockError> {
        for _ in 0..SWEEPS_MAX {
            let swept = self.ask(namespace, &LockOp::Sweep).await?.outcome;
            if swept != (LockOutcome::Swept { more: true }) {
                break;
            }
        }
        Ok(())
    }

    /// Asks the store once. No operation is sent twice: it may have been applied.
    async fn ask(&self, namespace: &str, op: &LockOp) -> Result<LockReply, LockError> {
        if self.closed.load(Ordering::SeqCst) {
            return Err(LockError::Stopping);
        }
        self.register_namespace(namespace)?;
        let answer = self.store.ask(namespace, op, When::Store).await;
        if let Err(LockError::StoreUnavailable { .. } | LockError::WriteFailed { .. }) = answer {
            self.failed_calls.fetch_add(1, Ordering::Relaxed);
        }
        answer
    }

    fn register_namespace(&self, namespace: &str) -> Result<(), LockError> {
        let mut namespaces = self.namespaces.lock();
        if namespaces.contains(namespace) {
            return Ok(());
        }
        if namespaces.len() >= NAMESPACES_MAX {
            return Err(LockError::TooManyNamespaces);
        }
        namespaces.insert(namespace.into());
        Ok(())
    }
}

impl std::fmt::Debug for Locks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Locks")
            .field("namespaces", &self.namespaces.lock().len())
            .finish_non_exhaustive()
    }
}

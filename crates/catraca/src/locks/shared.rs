//! Locks and slots in a store that several nodes share. The store decides; this node sends
//! operations and queues its waiting callers.
//!
//! `wait` waits for names, `wait_queues` has this node's queues, `undo` reverts grants that no
//! caller was answered with, `operations` has the calls of holders and operators. Locks fail
//! closed: without an answer in time nothing is granted. No operation is sent twice.

mod operations;
mod undo;
mod wait;
mod wait_queues;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use catraca_core::digest::Secret;
use catraca_core::lock::reply::AcquireReply;
use catraca_core::lock::requests::{Acquire, Hold};
use catraca_core::lock::{Durability, LeaseId, LockOp, LockOutcome, LockReply};
use catraca_core::time::{Span, Time};
use parking_lot::Mutex;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::NAMESPACES_MAX;
use super::acquire::LockAttempt;
use super::id::lease_id;
use super::lock_error::LockError;
use super::metrics::DurationHistogram;
use super::store::LockStore;
use crate::store::{StoreError, When};
use undo::Undoer;
use wait_queues::WaitQueues;

/// The most sweeps of one namespace in a row.
const SWEEPS_MAX: usize = 64;

/// Locks and slots of all namespaces, in a store that nodes share.
pub struct SharedLocks {
    store: Arc<dyn LockStore>,
    secret: [u8; 32],
    queues: Arc<WaitQueues>,
    undoer: Undoer,
    /// Namespaces that this node has used.
    namespaces: Mutex<BTreeSet<Box<str>>>,
    closed: AtomicBool,
    waited: DurationHistogram,
    unanswered: AtomicU64,
    /// The task that forwards freed notices to the queues.
    freed_listener: AbortHandle,
}

/// An answer with its time by the store's clock.
pub type StoreTimed<T> = (T, Time);

impl SharedLocks {
    /// Locks in a store. Must be called on an async runtime. Nodes that share a store must share
    /// the secret, so that a request can be repeated through another node.
    pub fn new(store: Arc<dyn LockStore>, secret: &Secret) -> Self {
        let queues = Arc::new(WaitQueues::default());
        let freed_listener =
            tokio::spawn(Arc::clone(&queues).forward_freed(store.freed_notices())).abort_handle();
        Self {
            undoer: Undoer::new(Arc::clone(&store)),
            store,
            secret: secret.derive("catraca 2026 lease id"),
            queues,
            namespaces: Mutex::default(),
            closed: AtomicBool::new(false),
            waited: DurationHistogram::default(),
            unanswered: AtomicU64::new(0),
            freed_listener,
        }
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
        lease_id(&self.secret, namespace, tenant, request)
    }

    /// The durability of grants in the store.
    pub fn durability(&self) -> Durability {
        if self.store.is_durable() { Durability::Fsync } else { Durability::Memory }
    }

    /// Acquires all of some names or none, waiting up to `wait` for them.
    pub async fn acquire(
        &self,
        namespace: &str,
        request: &Acquire,
        wait: Span,
    ) -> Result<StoreTimed<LockAttempt>, LockError> {
        let (acquired, now) = match wait {
            Span::ZERO => self.attempt(namespace, request, true).await?,
            wait => {
                let since = Instant::now();
                let answer = self.acquire_waiting(namespace, request, wait).await?;
                self.waited.observe(span(since.elapsed()));
                answer
            }
        };
        let waiters = match &acquired {
            AcquireReply::Conflict(conflict) => {
                self.queues.len(wait::name_digest(namespace, request, &conflict.taken))
            }
            AcquireReply::Refused(refusal) => return Err(refusal.clone().into()),
            _ => 0,
        };
        Ok((LockAttempt { acquired, waiters }, now))
    }

    /// Holds a time range in all of some calendars, or none.
    pub async fn hold(
        &self,
        namespace: &str,
        request: &Hold,
    ) -> Result<StoreTimed<LockAttempt>, LockError> {
        let undo_guard = self.undoer.guard(namespace, &request.lease);
        let reply = self.ask(namespace, &LockOp::Hold(request.clone())).await?;
        undo_guard.disarm();
        match reply.outcome {
            LockOutcome::Acquired(AcquireReply::Refused(refusal)) => Err(refusal.into()),
            LockOutcome::Acquired(acquired) => {
                Ok((LockAttempt { acquired, waiters: 0 }, reply.now))
            }
            _ => Err(unexpected_reply()),
        }
    }

    /// Removes expired leases in the namespaces that this node has used. Call it periodically:
    /// leases of names that are not used again would stay.
    pub async fn maintain(&self) {
        let namespaces: Vec<Box<str>> = self.namespaces.lock().iter().cloned().collect();
        for namespace in namespaces {
            // Bounded, so that a large namespace does not keep the others waiting.
            for _ in 0..SWEEPS_MAX {
                let swept = self.ask(&namespace, &LockOp::Sweep).await;
                let more =
                    swept.is_ok_and(|reply| reply.outcome == LockOutcome::Swept { more: true });
                if !more {
                    break;
                }
            }
        }
    }

    /// Refuses all further calls. Leases stay in the store.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    /// Answers all waiting callers with [`LockError::Stopping`], and from now on every call that
    /// would have to wait. Other calls continue.
    pub fn refuse_waiters(&self) {
        self.queues.refuse_waiters();
    }

    /// Callers that wait on this node now.
    pub fn waiters(&self) -> usize {
        self.queues.waiting()
    }

    /// Wait times of callers of this node.
    pub fn wait_times(&self) -> &DurationHistogram {
        &self.waited
    }

    /// Calls of this node that the store did not answer.
    pub fn unanswered_calls(&self) -> u64 {
        self.unanswered.load(Ordering::Relaxed)
    }

    /// One attempt to acquire names. If it gets no answer, a possible grant is reverted.
    async fn attempt(
        &self,
        namespace: &str,
        request: &Acquire,
        counts: bool,
    ) -> Result<StoreTimed<AcquireReply>, LockError> {
        let undo_guard = self.undoer.guard(namespace, &request.lease);
        let op = LockOp::Acquire { request: request.clone(), counts_conflict: counts };
        let reply = self.ask(namespace, &op).await?;
        undo_guard.disarm();
        match reply.outcome {
            LockOutcome::Acquired(acquired) => Ok((acquired, reply.now)),
            _ => Err(unexpected_reply()),
        }
    }

    async fn ask(&self, namespace: &str, op: &LockOp) -> Result<LockReply, LockError> {
        if self.closed.load(Ordering::SeqCst) {
            return Err(LockError::Stopping);
        }
        self.register_namespace(namespace)?;
        let reply = self.store.ask(namespace, op, When::Store).await;
        if reply.is_err() {
            self.unanswered.fetch_add(1, Ordering::Relaxed);
        }
        reply.map_err(to_lock_error)
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

fn span(duration: std::time::Duration) -> Span {
    Span::from_micros(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX))
}

fn to_lock_error(error: StoreError) -> LockError {
    LockError::StoreUnavailable {
        why: match error {
            StoreError::Unavailable { reason } => reason,
            other => other.to_string(),
        },
    }
}

/// The error for a reply that does not match its operation.
fn unexpected_reply() -> LockError {
    to_lock_error(StoreError::mismatched_reply())
}

impl Drop for SharedLocks {
    fn drop(&mut self) {
        self.freed_listener.abort();
    }
}

impl std::fmt::Debug for SharedLocks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedLocks")
            .field("namespaces", &self.namespaces.lock().len())
            .finish_non_exhaustive()
    }
}

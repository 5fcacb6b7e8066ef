//! Locks and slots that several nodes share: the store decides, this node asks, waits and tells.
//!
//! `wait` keeps this node's queues, `undo` takes back what nobody was told of, `verbs` are the
//! calls of holders and operators. Locks fail closed: what the store does not answer in time is not
//! granted. Must not decide who gets what, nor send an operation twice.

mod queue;
mod undo;
mod verbs;
mod wait;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use catraca_core::digest::Secret;
use catraca_core::lock::op::{Acquire, Hold};
use catraca_core::lock::reply::Acquired;
use catraca_core::lock::{Durability, LeaseId, LockOp, LockReply, LockTold};
use catraca_core::time::{Span, Time};
use parking_lot::Mutex;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::NAMESPACES_MAX;
use super::acquire::Answer;
use super::error::LockError;
use super::id::lease_id;
use super::store::LockStore;
use super::times::Durations;
use crate::store::{StoreError, When};
use queue::Queues;
use undo::Undoer;

/// Sweeps of one namespace before others get their turn.
const SWEEPS_MAX: usize = 64;

/// Locks and slots of every namespace, in a store that nodes share.
pub struct SharedLocks {
    store: Arc<dyn LockStore>,
    secret: [u8; 32],
    queues: Arc<Queues>,
    undoer: Undoer,
    /// Namespaces that this node has asked about.
    namespaces: Mutex<BTreeSet<Box<str>>>,
    closed: AtomicBool,
    waited: Durations,
    away: AtomicU64,
    hearing: AbortHandle,
}

/// An answer, and when it was true by the store's clock.
pub type At<T> = (T, Time);

impl SharedLocks {
    /// Locks in a store, on the runtime that this is called on. Nodes that share it must share
    /// the secret, or a request could not be repeated through another.
    pub fn new(store: Arc<dyn LockStore>, secret: &Secret) -> Self {
        let queues = Arc::new(Queues::default());
        let hearing = tokio::spawn(Arc::clone(&queues).hear(store.freed())).abort_handle();
        Self {
            undoer: Undoer::new(Arc::clone(&store)),
            store,
            secret: secret.derive("catraca 2026 lease id"),
            queues,
            namespaces: Mutex::default(),
            closed: AtomicBool::new(false),
            waited: Durations::default(),
            away: AtomicU64::new(0),
            hearing,
        }
    }

    /// The proof of a new lease. A request with a name of its own gets the same one when it is
    /// repeated, through whichever node, and nobody without the secret can work it out.
    pub fn lease_id(
        &self,
        namespace: &str,
        tenant: Option<&str>,
        request: Option<&str>,
    ) -> Result<LeaseId, LockError> {
        lease_id(&self.secret, namespace, tenant, request)
    }

    /// How safely the store keeps a grant.
    pub fn durability(&self) -> Durability {
        if self.store.is_durable() { Durability::Fsync } else { Durability::Memory }
    }

    /// Takes some names, all or none, and waits for them as long as is asked.
    pub async fn acquire(
        &self,
        namespace: &str,
        asked: &Acquire,
        wait: Span,
    ) -> Result<At<Answer>, LockError> {
        let (acquired, now) = match wait {
            Span::ZERO => self.attempt(namespace, asked, true).await?,
            wait => {
                let since = Instant::now();
                let answer = self.patiently(namespace, asked, wait).await?;
                self.waited.note(span(since.elapsed()));
                answer
            }
        };
        let waiters = match &acquired {
            Acquired::Conflict(conflict) => {
                self.queues.len(wait::mark(namespace, asked, &conflict.taken))
            }
            Acquired::Refused(refusal) => return Err(refusal.clone().into()),
            _ => 0,
        };
        Ok((Answer { acquired, waiters }, now))
    }

    /// Takes a range of time in some calendars, all or none.
    pub async fn hold(&self, namespace: &str, asked: &Hold) -> Result<At<Answer>, LockError> {
        let unsure = self.undoer.watch(namespace, &asked.lease);
        let reply = self.ask(namespace, &LockOp::Hold(asked.clone())).await?;
        unsure.answered();
        match reply.told {
            LockTold::Acquired(Acquired::Refused(refusal)) => Err(refusal.into()),
            LockTold::Acquired(acquired) => Ok((Answer { acquired, waiters: 0 }, reply.now)),
            _ => Err(odd()),
        }
    }

    /// Puts away what is over in the namespaces that this node has asked about. Call it now and
    /// then: what nobody asks about any more would stay.
    pub async fn tend(&self) {
        let namespaces: Vec<Box<str>> = self.namespaces.lock().iter().cloned().collect();
        for namespace in namespaces {
            for _ in 0..SWEEPS_MAX {
                let swept = self.ask(&namespace, &LockOp::Sweep).await;
                let more = swept.is_ok_and(|reply| reply.told == LockTold::Swept { more: true });
                if !more {
                    break;
                }
            }
        }
    }

    /// Grants nothing any more. Leases stay with the store.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    /// Nobody waits any more: whoever does is told at once that the process ends, and so is
    /// whoever would have to. All else goes on.
    pub fn dismiss(&self) {
        self.queues.dismiss();
    }

    /// How many wait through this node right now.
    pub fn waiters(&self) -> usize {
        self.queues.waiting()
    }

    /// How long callers of this node waited that were ready to.
    pub fn waited(&self) -> &Durations {
        &self.waited
    }

    /// Calls of this node that the store did not answer.
    pub fn unanswered(&self) -> u64 {
        self.away.load(Ordering::Relaxed)
    }

    /// One attempt to take some names. One that was cut off is taken back.
    async fn attempt(
        &self,
        namespace: &str,
        asked: &Acquire,
        counts: bool,
    ) -> Result<At<Acquired>, LockError> {
        let unsure = self.undoer.watch(namespace, &asked.lease);
        let op = LockOp::Acquire { asked: asked.clone(), counts };
        let reply = self.ask(namespace, &op).await?;
        unsure.answered();
        match reply.told {
            LockTold::Acquired(acquired) => Ok((acquired, reply.now)),
            _ => Err(odd()),
        }
    }

    async fn ask(&self, namespace: &str, op: &LockOp) -> Result<LockReply, LockError> {
        if self.closed.load(Ordering::SeqCst) {
            return Err(LockError::Stopping);
        }
        self.known(namespace)?;
        let reply = self.store.ask(namespace, op, When::Store).await;
        if reply.is_err() {
            self.away.fetch_add(1, Ordering::Relaxed);
        }
        reply.map_err(away)
    }

    fn known(&self, namespace: &str) -> Result<(), LockError> {
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

fn away(error: StoreError) -> LockError {
    LockError::Away {
        why: match error {
            StoreError::Unavailable { reason } => reason,
            other => other.to_string(),
        },
    }
}

/// The store answered another question.
fn odd() -> LockError {
    away(StoreError::odd_reply())
}

impl Drop for SharedLocks {
    fn drop(&mut self) {
        self.hearing.abort();
    }
}

impl std::fmt::Debug for SharedLocks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedLocks")
            .field("namespaces", &self.namespaces.lock().len())
            .finish_non_exhaustive()
    }
}

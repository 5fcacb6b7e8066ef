//! Reverts grants that no caller was answered with: an attempt that got no answer may have been
//! granted.
//!
//! Its caller has gone or got an error. Without a `request_id` no one can ask for the same lease
//! again, so it would block its names until it expires. With a `request_id` the lease stays,
//! because the caller may repeat the request.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use catraca_core::lock::requests::LeaseRequest;
use catraca_core::lock::{LeaseKey, LockOp};
use tokio::sync::Semaphore;
use tokio::time::sleep;

use super::port::LockStore;
use crate::store::When;

/// Pauses before each undo: the delayed attempt may reach the store after the first ones.
const PAUSES: [Duration; 4] = [
    Duration::from_millis(10),
    Duration::from_millis(250),
    Duration::from_secs(1),
    Duration::from_secs(4),
];
/// The most leases that are reverted at the same time; further ones expire by themselves.
const AT_ONCE: usize = 1_024;

#[derive(Clone)]
pub(super) struct Undoer {
    store: Arc<dyn LockStore>,
    permits: Arc<Semaphore>,
    /// Leases that could not be reverted.
    failures: Arc<AtomicU64>,
}

/// An attempt without an answer. Dropped before [`UndoGuard::disarm`], it reverts the possible
/// grant.
pub(super) struct UndoGuard<'a> {
    undoer: &'a Undoer,
    namespace: &'a str,
    /// The lease to revert.
    key: Option<LeaseKey>,
}

impl Undoer {
    pub fn new(store: Arc<dyn LockStore>) -> Self {
        let permits = Arc::new(Semaphore::new(AT_ONCE));
        Self { store, permits, failures: Arc::default() }
    }

    /// Leases that may have been granted without an answer to their caller, and could not be
    /// reverted: they hold their names until they expire.
    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }

    /// Watches an attempt; see [`UndoGuard`].
    pub fn guard<'a>(&'a self, namespace: &'a str, request: &LeaseRequest) -> UndoGuard<'a> {
        let cannot_repeat = request.request.is_none();
        UndoGuard { undoer: self, namespace, key: cannot_repeat.then_some(request.key) }
    }

    async fn undo(self, namespace: Box<str>, key: LeaseKey) {
        let Ok(_permit) = self.permits.try_acquire() else {
            self.failures.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let mut is_reverted = false;
        for pause in PAUSES {
            sleep(pause).await;
            // Undo is idempotent, and harmless if nothing was granted. Only the last answer counts:
            // the attempt may have reached the store after an earlier one.
            let undone = self.store.ask(&namespace, &LockOp::Undo(key), When::Store).await;
            is_reverted = undone.is_ok();
        }
        if !is_reverted {
            self.failures.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl UndoGuard<'_> {
    /// Call when the outcome is known: nothing is to be reverted.
    pub fn disarm(mut self) {
        self.key = None;
    }
}

impl Drop for UndoGuard<'_> {
    fn drop(&mut self) {
        let Some(key) = self.key else { return };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => {
                runtime.spawn(self.undoer.clone().undo(self.namespace.into(), key));
            }
            // Outside a runtime, as at the end of the process, the lease expires at its time.
            Err(_) => {
                self.undoer.failures.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

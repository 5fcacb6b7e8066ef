//! Reverts grants that no caller was answered with: an attempt that timed out may have been
//! granted.
//!
//! Its caller has gone or got an error. Without a `request_id` no one can ask for the same lease
//! again, so it would block its names until it expires. With a `request_id` the lease stays,
//! because the caller may repeat the request.

use std::sync::Arc;
use std::time::Duration;

use catraca_core::lock::requests::LeaseRequest;
use catraca_core::lock::{LeaseKey, LockOp};
use tokio::sync::Semaphore;
use tokio::time::sleep;

use crate::locks::store::LockStore;
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
}

/// An attempt without an answer. Dropped before [`UndoGuard::disarm`], it reverts the possible
/// grant.
pub(super) struct UndoGuard(Option<(Undoer, Box<str>, LeaseKey)>);

impl Undoer {
    pub fn new(store: Arc<dyn LockStore>) -> Self {
        Self { store, permits: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    /// Watches an attempt; see [`UndoGuard`].
    pub fn guard(&self, namespace: &str, request: &LeaseRequest) -> UndoGuard {
        let cannot_repeat = request.request.is_none();
        UndoGuard(cannot_repeat.then(|| (self.clone(), namespace.into(), request.key)))
    }

    async fn undo(self, namespace: Box<str>, key: LeaseKey) {
        let Ok(_permit) = self.permits.try_acquire() else { return };
        for pause in PAUSES {
            sleep(pause).await;
            // Undo is idempotent, and harmless if nothing was granted.
            let _ = self.store.ask(&namespace, &LockOp::Undo(key), When::Store).await;
        }
    }
}

impl UndoGuard {
    /// Call when the store has answered: nothing is to be reverted.
    pub fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for UndoGuard {
    fn drop(&mut self) {
        let Some((undoer, namespace, key)) = self.0.take() else { return };
        // Outside a runtime, as at the end of the process, the lease expires at its time.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(undoer.undo(namespace, key));
        }
    }
}

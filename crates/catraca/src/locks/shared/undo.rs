//! Taking back what nobody was told of: an attempt that was cut off may have been granted.
//!
//! Whoever asked is gone, or was told that nobody knows. Without a `request_id` nobody can ask
//! again for the same lease, so it would keep others out until it expires. One with a `request_id`
//! stays: its caller may repeat it at any moment. Must not undo what somebody was told of.

use std::sync::Arc;
use std::time::Duration;

use catraca_core::lock::op::Wanted;
use catraca_core::lock::{LeaseKey, LockOp};
use tokio::sync::Semaphore;
use tokio::time::sleep;

use crate::locks::store::LockStore;
use crate::store::When;

/// When it is tried: an attempt that is still on its way may come after the first.
const PAUSES: [Duration; 4] = [
    Duration::from_millis(10),
    Duration::from_millis(250),
    Duration::from_secs(1),
    Duration::from_secs(4),
];
/// Leases that are taken back at one time; those beyond run out by themselves.
const AT_ONCE: usize = 1_024;

#[derive(Clone)]
pub(super) struct Undoer {
    store: Arc<dyn LockStore>,
    room: Arc<Semaphore>,
}

/// An attempt that is on its way. Dropped before it was answered, it is taken back.
pub(super) struct Unsure(Option<(Undoer, Box<str>, LeaseKey)>);

impl Undoer {
    pub fn new(store: Arc<dyn LockStore>) -> Self {
        Self { store, room: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    pub fn watch(&self, namespace: &str, wanted: &Wanted) -> Unsure {
        let alone = wanted.request.is_none();
        Unsure(alone.then(|| (self.clone(), namespace.into(), wanted.key)))
    }

    async fn undo(self, namespace: Box<str>, key: LeaseKey) {
        let Ok(_permit) = self.room.try_acquire() else { return };
        for pause in PAUSES {
            sleep(pause).await;
            // It is harmless to undo what never was, and to do it again.
            let _ = self.store.ask(&namespace, &LockOp::Undo(key), When::Store).await;
        }
    }
}

impl Unsure {
    /// It was answered, whatever the answer was.
    pub fn answered(mut self) {
        self.0 = None;
    }
}

impl Drop for Unsure {
    fn drop(&mut self) {
        let Some((undoer, namespace, key)) = self.0.take() else { return };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(undoer.undo(namespace, key));
        }
    }
}

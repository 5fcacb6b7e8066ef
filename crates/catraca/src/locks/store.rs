//! The port of locks: a place that several nodes share, and that applies operations to it.
//!
//! What each operation means is what core's `Book::apply` does; `docs/locks-store.md` says what a
//! store must promise. Must not wait for a name: queues are each node's own.

use std::pin::Pin;

use catraca_core::lock::{LockOp, LockReply, Mark};
use tokio::sync::broadcast;

use crate::store::{StoreError, When};

/// What a store will answer.
pub type Asking<'a> = Pin<Box<dyn Future<Output = Result<LockReply, StoreError>> + Send + 'a>>;

/// A place that keeps the leases of every namespace, which several nodes share.
pub trait LockStore: Send + Sync + 'static {
    /// Applies an operation to a namespace, whole or not at all, at one instant.
    ///
    /// It ends within the store's own deadline. One that was cut off may have been applied, so it
    /// is never sent again here: whoever asked knows whether it may be.
    fn ask<'a>(&'a self, namespace: &'a str, op: &'a LockOp, when: When) -> Asking<'a>;

    /// What becomes free from now on, on whichever node. Messages may be lost, or come twice, or
    /// for nothing: who waits looks again, and sleeps no longer than until the holder's time is
    /// over. A listener that is too slow is told so by its receiver, and must look at everything.
    fn freed(&self) -> broadcast::Receiver<Freed>;

    /// Whether what it has answered survives a crash of its server.
    fn is_durable(&self) -> bool {
        false
    }
}

/// Something became free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Freed {
    /// This name.
    Name(Mark),
    /// Nobody knows what: the store could not be listened to for a while.
    Any,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A node holds locks of any store behind one pointer.
    fn _is_object_safe(_: &dyn LockStore) {}
}

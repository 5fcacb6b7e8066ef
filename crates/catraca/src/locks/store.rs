//! The trait of a lock store that several nodes share.
//!
//! Core's `LockTable::apply` defines what each operation does; `docs/locks-store.md` lists what a
//! store must guarantee. A store never waits for a name: each node has its own queues.

use std::pin::Pin;

use catraca_core::lock::{LockOp, LockReply, NameDigest};
use tokio::sync::broadcast;

use crate::store::{StoreError, When};

/// The reply of a store.
pub type LockStoreFuture<'a> =
    Pin<Box<dyn Future<Output = Result<LockReply, StoreError>> + Send + 'a>>;

/// A store of the leases of all namespaces, shared by several nodes.
pub trait LockStore: Send + Sync + 'static {
    /// Applies an operation to a namespace atomically, at one point in time.
    ///
    /// It ends within the timeout of the store. An operation that timed out may have been applied,
    /// so the store never sends it again: only the caller knows whether it is safe to repeat.
    fn ask<'a>(&'a self, namespace: &'a str, op: &'a LockOp, when: When) -> LockStoreFuture<'a>;

    /// Notices of names that become free, on any node. Notices may be lost, duplicated or wrong: a
    /// waiter checks again, and sleeps at most until the lease of the holder expires. After the
    /// receiver reports a lag, all names must be checked.
    fn freed_notices(&self) -> broadcast::Receiver<FreedNotice>;

    /// Whether an answered operation survives a crash of its server.
    fn is_durable(&self) -> bool {
        false
    }
}

/// A notice that a name may be free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FreedNotice {
    /// This name.
    Name(NameDigest),
    /// Any name: notices may have been lost.
    Any,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The trait must be usable as `dyn LockStore`.
    fn _is_object_safe(_: &dyn LockStore) {}
}

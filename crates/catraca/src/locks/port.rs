//! The port of a lock store: one trait for memory, Redis and PostgreSQL.
//!
//! Core's `LockTable::apply` defines what each operation does; `docs/locks-store.md` lists what a
//! store must guarantee. A store never waits for a name: the queues are in `Locks`.

use std::pin::Pin;
#[cfg(any(feature = "redis", feature = "postgres-store"))]
use std::sync::Arc;
use std::time::Duration;

use catraca_core::lock::{Durability, LockOp, LockReply, NameDigest};
#[cfg(any(feature = "redis", feature = "postgres-store"))]
use tokio::sync::broadcast;

use super::admin::LockTotals;
use super::lock_error::LockError;
use crate::store::When;
#[cfg(any(feature = "redis", feature = "postgres-store"))]
use crate::supervise::supervise;

/// The reply of a store.
pub type LockStoreFuture<'a> =
    Pin<Box<dyn Future<Output = Result<LockReply, LockError>> + Send + 'a>>;
/// Completes when a store is closed; fails if what the next start needs could not be written.
pub type LockStoreClosing<'a> = Pin<Box<dyn Future<Output = Result<(), LockError>> + Send + 'a>>;
/// Receives the names that become free. It returns at once.
pub type FreedCallback = Box<dyn Fn(FreedNotice) + Send + Sync>;

/// A store of the leases of all namespaces.
///
/// The methods with a default are for a store whose leases are in the memory of this process.
pub trait LockStore: Send + Sync + 'static {
    /// Applies an operation to a namespace atomically, at one point in time.
    ///
    /// It ends within the timeout of the store. [`LockError::StoreUnavailable`] means that the
    /// operation may have been applied, so the store never sends it again: only the caller knows
    /// whether it is safe to repeat. After any other error it was not applied, or was reverted.
    fn ask<'a>(&'a self, namespace: &'a str, op: &'a LockOp, when: When) -> LockStoreFuture<'a>;

    /// Reports names that become free, on any node, to `listener`. Notices may be lost, duplicated
    /// or wrong: a waiter asks again, and sleeps at most until the lease of the holder expires.
    fn listen(&self, listener: FreedCallback);

    /// The durability of all changes; `None` if each request chooses its own.
    fn durability(&self) -> Option<Durability>;

    /// How often expired leases should be removed. For a shared store, each round is a round trip.
    fn expiry_interval(&self) -> Duration {
        Duration::from_secs(2)
    }

    /// Namespaces that have leases already when the store is opened and that only this process
    /// sweeps.
    fn restored_namespaces(&self) -> Vec<Box<str>> {
        Vec::new()
    }

    /// How long nothing is granted after a start, because leases of the previous process may still
    /// be valid.
    fn startup_wait(&self) -> Option<Duration> {
        None
    }

    /// Counts of all namespaces, if they can be read without asking a server.
    fn totals(&self) -> Option<LockTotals<'_>> {
        None
    }

    /// Why a task in the background fails on which the store depends, and the consequence. Calls
    /// work nevertheless.
    fn background_error(&self) -> Option<String> {
        None
    }

    /// How the deployment of the store makes callers slower, and the remedy. Nothing fails.
    fn limitation(&self) -> Option<String> {
        None
    }

    /// Stops granting, and writes what the next start needs.
    fn close(&self) -> LockStoreClosing<'_> {
        Box::pin(std::future::ready(Ok(())))
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

/// Passes notices on to a listener, until the store that sends them is dropped.
#[cfg(any(feature = "redis", feature = "postgres-store"))]
pub(crate) fn forward_freed(notices: broadcast::Receiver<FreedNotice>, listener: FreedCallback) {
    let listener = Arc::new(listener);
    let forward = supervise("lock notices", move || {
        let mut notices = notices.resubscribe();
        let listener = Arc::clone(&listener);
        async move {
            // Notices before this moment may have been missed.
            listener(FreedNotice::Any);
            loop {
                match notices.recv().await {
                    Ok(notice) => listener(notice),
                    Err(broadcast::error::RecvError::Lagged(_)) => listener(FreedNotice::Any),
                    Err(broadcast::error::RecvError::Closed) => return,
                }
            }
        }
    });
    drop(tokio::spawn(forward));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The trait must be usable as `dyn LockStore`.
    fn _is_object_safe(_: &dyn LockStore) {}
}

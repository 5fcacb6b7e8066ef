//! Leases of callers without an answer: those that cannot be taken back are counted, and so are
//! rounds that could not remove expired ones.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use catraca_core::digest::Secret;
use catraca_core::lock::{Durability, LockOp};
use tokio::time::sleep;

use super::{NS, acquire_request};
use crate::locks::{FreedCallback, LockError, LockStore, LockStoreFuture, Locks};
use crate::store::When;

/// A store that never answers in time.
struct SilentStore;

impl LockStore for SilentStore {
    fn ask<'a>(&'a self, _: &'a str, _: &'a LockOp, _: When) -> LockStoreFuture<'a> {
        let why = "no answer".to_owned();
        Box::pin(std::future::ready(Err(LockError::StoreUnavailable { why })))
    }

    fn listen(&self, _: FreedCallback) {}

    fn durability(&self) -> Option<Durability> {
        None
    }
}

/// Regression: both were silent, a lease beyond those that are reverted at once and one whose store
/// did not answer any attempt.
#[tokio::test(start_paused = true)]
async fn leases_that_cannot_be_reverted_are_counted() {
    let locks = Locks::new(Arc::new(SilentStore), &Secret::from_bytes([3; 32]));
    for _ in 0..1_100 {
        let request = acquire_request(&locks, &["a"], 60_000);
        let failed = locks.acquire(NS, &request, catraca_core::time::Span::ZERO).await;
        assert!(matches!(failed, Err(LockError::StoreUnavailable { .. })), "{failed:?}");
    }
    sleep(Duration::from_millis(1)).await;
    assert_eq!(locks.failed_undos(), 1_100 - 1_024, "beyond those that are reverted at once");
    sleep(Duration::from_secs(10)).await;
    assert_eq!(locks.failed_undos(), 1_100);
}

/// A store that never answers at all.
struct HangingStore;

impl LockStore for HangingStore {
    fn ask<'a>(&'a self, _: &'a str, _: &'a LockOp, _: When) -> LockStoreFuture<'a> {
        Box::pin(std::future::pending())
    }

    fn listen(&self, _: FreedCallback) {}

    fn durability(&self) -> Option<Durability> {
        None
    }
}

/// Regression: a grant without an answer was not counted if no runtime was left to take it back.
#[test]
fn a_lease_that_no_runtime_is_left_to_revert_is_counted() {
    let locks = Locks::new(Arc::new(HangingStore), &Secret::from_bytes([3; 32]));
    let request = acquire_request(&locks, &["a"], 60_000);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let mut acquire = Box::pin(locks.acquire(NS, &request, catraca_core::time::Span::ZERO));
    runtime.block_on(poll_fn(|context| {
        assert!(acquire.as_mut().poll(context).is_pending());
        Poll::Ready(())
    }));
    drop(runtime);
    assert_eq!(locks.failed_undos(), 0, "it may still be answered");
    drop(acquire);
    assert_eq!(locks.failed_undos(), 1);
}

/// Regression: a round that could not remove expired leases was silent.
#[tokio::test(start_paused = true)]
async fn a_failed_round_of_expiry_is_counted_and_reported() {
    let locks = Locks::new(Arc::new(SilentStore), &Secret::from_bytes([3; 32]));
    locks.expire().await;
    assert_eq!((locks.failed_sweeps(), locks.background_error()), (0, None), "no namespace yet");
    let request = acquire_request(&locks, &["a"], 60_000);
    let _ = locks.acquire(NS, &request, catraca_core::time::Span::ZERO).await;
    locks.expire().await;
    locks.expire().await;
    assert_eq!(locks.failed_sweeps(), 2);
    let reported = locks.background_error().expect("the last round failed");
    assert!(reported.contains(NS) && reported.contains("no answer"), "{reported}");
}

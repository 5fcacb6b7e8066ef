//! Whose turn it is: no newcomer overtakes a queue, a repeated request does not wait for itself,
//! and a grant whose caller has gone is reverted. Time is virtual.

use std::sync::Arc;
use std::time::Duration;

use catraca_core::digest::Secret;
use catraca_core::lock::reply::{AcquireReply, ReleaseReply};
use catraca_core::lock::requests::Acquire;
use catraca_core::time::Span;
use tokio::task::JoinHandle;
use tokio::time::Instant;

use super::super::{LockAttempt, LockError, Locks, MemoryLocks};
use super::crash_recovery::FakeJournal;
use super::{
    NS, VirtualClock, acquire, acquire_request, fsync_request, locks, release, sleep_ms, stats,
};

const LONG: Span = Span::from_secs(9);

/// Starts a call that waits, and lets it join its queue.
async fn spawn_waiter(
    locks: &Arc<Locks>,
    request: Acquire,
) -> JoinHandle<Result<LockAttempt, LockError>> {
    let locks = Arc::clone(locks);
    let waiter = tokio::spawn(async move { locks.acquire(NS, &request, LONG).await });
    sleep_ms(10).await;
    waiter
}

fn with_request_id(locks: &Locks, name: &str, id: &str) -> Acquire {
    let mut request = acquire_request(locks, &[name], 60_000);
    request.lease.key = locks.lease_id(NS, None, Some(id)).unwrap().key();
    request.lease.request = Some(id.into());
    request
}

/// The name is free between the release and the waiter's next attempt.
#[tokio::test(start_paused = true)]
async fn a_caller_that_does_not_wait_does_not_overtake_one_that_does() {
    let locks = locks();
    let held = acquire(&locks, &["p"], 60_000, 0).await.unwrap();
    let waiter = spawn_waiter(&locks, acquire_request(&locks, &["p"], 60_000)).await;
    release(&locks, held.key).await;
    let newcomer = acquire(&locks, &["p"], 60_000, 0).await.unwrap_err();
    assert!(matches!(newcomer, AcquireReply::Conflict(_)), "{newcomer:?}");
    let both = acquire(&locks, &["o", "p"], 60_000, 0).await.unwrap_err();
    assert!(matches!(both, AcquireReply::Conflict(conflict) if &*conflict.taken == "p"));
    let by_id = locks.acquire(NS, &with_request_id(&locks, "p", "new"), Span::ZERO).await.unwrap();
    assert!(matches!(by_id.acquired, AcquireReply::Conflict(_)), "{by_id:?}");
    assert!(matches!(waiter.await.unwrap().unwrap().acquired, AcquireReply::Granted(_)));
    let all = stats(&locks).await.all;
    assert_eq!((all.success, all.conflicts), (2, 3), "{all:?}");
}

#[tokio::test(start_paused = true)]
async fn a_repeated_request_does_not_wait_behind_its_own_lease() {
    let locks = locks();
    let request = with_request_id(&locks, "p", "r1");
    let first = locks.acquire(NS, &request, LONG).await.unwrap();
    assert!(matches!(first.acquired, AcquireReply::Granted(_)), "{first:?}");
    let waiter = spawn_waiter(&locks, acquire_request(&locks, &["p"], 60_000)).await;
    let begun = Instant::now();
    for wait in [Span::ZERO, LONG] {
        let again = locks.acquire(NS, &request, wait).await.unwrap();
        assert!(matches!(again.acquired, AcquireReply::Again(_)), "{again:?}");
    }
    assert_eq!(begun.elapsed(), Duration::ZERO);
    assert_eq!(locks.waiters(), 1);
    waiter.abort();
}

/// As two nodes share a store: each has its own queues.
#[tokio::test(start_paused = true)]
async fn a_release_through_one_node_wakes_a_waiter_of_another() {
    let store = Arc::new(MemoryLocks::new(Arc::new(VirtualClock(Instant::now()))));
    let secret = Secret::from_bytes([3; 32]);
    let one = Arc::new(Locks::new(Arc::clone(&store) as _, &secret));
    let other = Arc::new(Locks::new(store, &secret));
    let held = acquire(&one, &["p"], 60_000, 0).await.unwrap();
    let waiter = spawn_waiter(&other, acquire_request(&other, &["p"], 1_000)).await;
    assert_eq!((one.waiters(), other.waiters()), (0, 1));
    let begun = Instant::now();
    release(&one, held.key).await;
    assert!(matches!(waiter.await.unwrap().unwrap().acquired, AcquireReply::Granted(_)));
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

/// The caller leaves while its grant is being written; without a `request_id` it cannot ask for the
/// lease again.
#[tokio::test(start_paused = true)]
async fn a_grant_whose_caller_has_left_is_reverted() {
    let journal = Arc::new(FakeJournal::default());
    let locks = Arc::new(journal.open(Instant::now()));
    *journal.stalled.lock() = true;
    let gone = spawn_waiter(&locks, fsync_request(&locks, &["p"], 60_000)).await;
    gone.abort();
    assert!(gone.await.is_err());
    *journal.stalled.lock() = false;
    assert!(acquire(&locks, &["p"], 60_000, 0).await.is_err(), "it is reverted a moment later");
    sleep_ms(20).await;
    let next = acquire(&locks, &["p"], 60_000, 0).await.unwrap();
    assert_eq!(release(&locks, next.key).await, ReleaseReply::Released);
    assert_eq!(stats(&locks).await.all.undone, 1);
}

//! Clean shutdowns: leases are restored with their remaining time, and locks are granted at once; a
//! crash after a clean shutdown waits like any other. Time is virtual.

use std::sync::Arc;

use catraca_core::lock::reply::{AcquireReply, Lease, LeaseState, ReleaseReply, RenewReply};
use catraca_core::lock::requests::Proof;
use catraca_core::lock::{Durability, LeaseKey};
use catraca_core::time::Span;
use tokio::time::Instant;

use super::super::{LockError, Locks, RestoredLock};
use super::crash_recovery::FakeJournal;
use super::{NS, acquire, acquire_request, fsync_request, release, sleep_ms, stats};

async fn renew(locks: &Locks, key: LeaseKey, ms: i64) -> RenewReply {
    super::renew(locks, &Proof { key, tenant: None }, ms).await
}

/// The lease that holds a name.
async fn holder(locks: &Locks, name: &str) -> Lease {
    match acquire(locks, &[name], 1_000, 0).await {
        Err(AcquireReply::Conflict(conflict)) => conflict.holder,
        other => panic!("{name} is not held: {other:?}"),
    }
}

fn held(journal: &FakeJournal) -> usize {
    journal.stored().iter().filter(|one| matches!(one, RestoredLock::Lease(..))).count()
}

async fn refused(locks: &Locks) -> LockError {
    let one = acquire_request(locks, &["any"], 1_000);
    locks.acquire(NS, &one, Span::ZERO).await.unwrap_err()
}

/// covers: B-72
#[tokio::test(start_paused = true)]
async fn a_stop_in_order_keeps_every_lease_and_refuses_nobody_after_it() {
    let journal = Arc::new(FakeJournal::default());
    let begun = Instant::now();
    let before = journal.open(begun);
    let long = acquire(&before, &["long"], 7_000, 0).await.unwrap();
    let short = acquire(&before, &["short"], 2_000, 0).await.unwrap();
    let gone = acquire(&before, &["gone"], 9_000, 0).await.unwrap();
    release(&before, gone.key).await;
    sleep_ms(500).await;
    before.close().await.unwrap();
    assert_eq!(refused(&before).await, LockError::Stopping);
    // Down for a while: remaining times are neither shorter nor longer.
    sleep_ms(300).await;
    let after = journal.open(begun);
    assert_eq!(after.startup_wait(), None);
    let back = holder(&after, "short").await;
    assert_eq!((back.fence, back.key), (short.fence, short.key));
    assert_eq!(back.expires_at, short.expires_at.after(Span::from_millis(300)));
    let new = acquire(&after, &["gone"], 1_000, 0).await.unwrap();
    assert!(new.fence > gone.fence);
    let RenewReply::Extended(renewed) = renew(&after, long.key, 7_000).await else { panic!() };
    assert_eq!(renewed.fence, long.fence);
    sleep_ms(1_500).await;
    assert!(acquire(&after, &["short"], 1_000, 0).await.is_ok(), "it ended when it had to");
    let all = stats(&after).await.all;
    assert_eq!(all.success, all.active + all.released + all.expired + all.forced, "{all:?}");
    assert_eq!(renew(&after, short.key, 1_000).await, RenewReply::Over(LeaseState::Expired));
}

/// A restored lease that has ended is not on disk, where a crash could restore it once more while
/// its names belong to another lease.
#[tokio::test(start_paused = true)]
async fn a_crash_after_a_stop_in_order_is_as_careful_as_any() {
    let journal = Arc::new(FakeJournal::default());
    let begun = Instant::now();
    let before = journal.open(begun);
    let first = acquire(&before, &["p"], 5_000, 0).await.unwrap();
    before.close().await.unwrap();
    assert_eq!(held(&journal), 1);
    let after = journal.open(begun);
    assert_eq!(held(&journal), 0, "from now on it is only in memory");
    assert_eq!(release(&after, first.key).await, ReleaseReply::Released);
    let second = acquire(&after, &["p"], 3_000, 0).await.unwrap();
    let crashed = journal.open(begun);
    let wait = Span::from_millis(5_000);
    assert_eq!(refused(&crashed).await, LockError::Starting { wait });
    assert_eq!(crashed.startup_wait(), Some(wait.into()));
    assert_eq!(renew(&crashed, first.key, 1_000).await, RenewReply::NotHolder);
    // A shutdown during the wait keeps the remaining wait for the next start.
    sleep_ms(1_000).await;
    crashed.close().await.unwrap();
    let again = journal.open(begun);
    assert_eq!(refused(&again).await, LockError::Starting { wait: Span::from_millis(4_000) });
    sleep_ms(4_000).await;
    assert!(acquire(&again, &["p"], 1_000, 0).await.unwrap().fence > second.fence);
}

/// With every grant on disk, leases are restored after a crash too.
#[tokio::test(start_paused = true)]
async fn with_fsync_nobody_waits_after_either_end() {
    let journal = Arc::new(FakeJournal::default());
    let begun = Instant::now();
    let open = || journal.open_with(begun, Durability::Fsync);
    let before = open();
    let one = fsync_request(&before, &["p"], 5_000);
    let two = fsync_request(&before, &["q"], 5_000);
    for request in [&one, &two] {
        before.acquire(NS, request, Span::ZERO).await.unwrap();
    }
    before.close().await.unwrap();
    let after = open();
    assert_eq!((after.startup_wait(), held(&journal)), (None, 2));
    assert_eq!(release(&after, two.lease.key).await, ReleaseReply::Released);
    assert_eq!(held(&journal), 1, "its end is on disk");
    let crashed = open();
    assert_eq!(crashed.startup_wait(), None);
    assert_eq!(holder(&crashed, "p").await.key, one.lease.key);
    assert!(acquire(&crashed, &["q"], 1_000, 0).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_stop_that_the_disk_does_not_hear_of_is_a_crash() {
    let journal = Arc::new(FakeJournal::default());
    let begun = Instant::now();
    let before = journal.open(begun);
    acquire(&before, &["p"], 5_000, 0).await.unwrap();
    journal.set_failing(true);
    let failed = before.close().await;
    assert!(matches!(failed, Err(LockError::WriteFailed { .. })), "{failed:?}");
    journal.set_failing(false);
    let wait = Span::from_millis(5_000);
    assert_eq!(refused(&journal.open(begun)).await, LockError::Starting { wait });
}

/// The cooldown after a forced end survives a shutdown.
#[tokio::test(start_paused = true)]
async fn a_stop_does_not_cut_short_the_moment_after_a_forced_end() {
    let journal = Arc::new(FakeJournal::default());
    let begun = Instant::now();
    let before = journal.open(begun);
    let lease = acquire(&before, &["p"], 9_000, 0).await.unwrap();
    let moment = Span::from_millis(2_000);
    assert!(before.force(NS, lease.fence, None, moment).await.unwrap().is_some());
    sleep_ms(500).await;
    before.close().await.unwrap();
    let wait = Span::from_millis(1_500);
    assert_eq!(refused(&journal.open(begun)).await, LockError::Starting { wait });
}

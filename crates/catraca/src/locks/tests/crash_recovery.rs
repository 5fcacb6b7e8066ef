//! State that survives the process, and grants that are refused after a crash. Time is virtual.

use std::sync::Arc;

use catraca_core::digest::Secret;
use catraca_core::lock::persistence::{LockWrite, PersistedLease};
use catraca_core::lock::reply::{AcquireReply, ConfirmReply, ReleaseReply};
use catraca_core::lock::requests::{Hold, LeaseRequest, Proof, TimeRange};
use catraca_core::lock::{Durability, VersionPolicy};
use catraca_core::time::{Span, Time};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::super::{Journal, JournalFuture, LockError, Locks, MemoryLocks, RestoredLock};
use super::{
    NS, VirtualClock, acquire, acquire_request, confirm, fsync_request, release, sleep_ms, stats,
};

/// A journal that can fail.
#[derive(Default)]
pub(super) struct FakeJournal {
    writes: Mutex<Vec<LockWrite>>,
    down: Mutex<bool>,
    /// Reports a failure but writes the entries, like a disk that recovers after a timeout.
    pub(super) late: Mutex<bool>,
    /// Writes the entries, but never reports it.
    pub(super) stalled: Mutex<bool>,
}

impl Journal for FakeJournal {
    fn write(&self, writes: Vec<LockWrite>) -> JournalFuture {
        let late = *self.late.lock();
        let down = *self.down.lock();
        if !down {
            self.writes.lock().extend(writes);
        }
        if *self.stalled.lock() {
            return Box::pin(std::future::pending());
        }
        Box::pin(async move { if down || late { Err("no disk".to_owned()) } else { Ok(()) } })
    }
}

impl FakeJournal {
    pub(super) fn set_failing(&self, down: bool) {
        *self.down.lock() = down;
    }

    pub(super) fn stored(&self) -> Vec<RestoredLock> {
        let mut fences = std::collections::BTreeMap::new();
        let mut leases = Vec::new();
        let mut versions = Vec::new();
        for write in self.writes.lock().iter().cloned() {
            match write {
                LockWrite::Fence(namespace, fence) => {
                    fences.insert(namespace, fence);
                }
                LockWrite::Keep(namespace, lease) => {
                    leases.retain(|(_, other): &(Box<str>, Box<PersistedLease>)| {
                        other.key != lease.key
                    });
                    leases.push((namespace, lease));
                }
                LockWrite::Drop(_, key) => leases.retain(|(_, lease)| lease.key != key),
                LockWrite::Version(namespace, version) => {
                    versions.push(RestoredLock::Version(namespace, version));
                }
                LockWrite::Forget(..) => versions.clear(),
            }
        }
        let fences = fences.into_iter().map(|(name, fence)| RestoredLock::Fence(name, fence));
        let leases = leases.into_iter().map(|(name, lease)| RestoredLock::Lease(name, lease));
        fences.chain(leases).chain(versions).collect()
    }

    pub(super) fn open(self: &Arc<Self>, begun: Instant) -> Locks {
        self.open_with(begun, Durability::Memory)
    }

    pub(super) fn open_with(self: &Arc<Self>, begun: Instant, durability: Durability) -> Locks {
        let journal: Arc<dyn Journal> = Arc::clone(self) as _;
        let secret = Secret::from_bytes([3; 32]);
        let clock = Arc::new(VirtualClock(begun));
        let store = MemoryLocks::open(clock, journal, durability, self.stored());
        Locks::new(Arc::new(store), &secret)
    }
}

/// covers: B-72
#[tokio::test(start_paused = true)]
async fn after_a_crash_nothing_is_granted_until_every_lost_lease_has_run_out() {
    let journal = Arc::new(FakeJournal::default());
    let begun = Instant::now();
    let before = journal.open(begun);
    acquire(&before, &["q"], 2_000, 0).await.unwrap();
    let lost = acquire(&before, &["p"], 7_000, 0).await.unwrap();
    sleep_ms(1_000).await;
    let after = journal.open(begun);
    let one = acquire_request(&after, &["p"], 1_000);
    let refused = after.acquire(NS, &one, Span::ZERO).await;
    assert_eq!(refused, Err(LockError::Starting { wait: Span::from_millis(7_000) }));
    sleep_ms(6_999).await;
    assert!(after.acquire(NS, &one, Span::ZERO).await.is_err());
    sleep_ms(1).await;
    let lease = acquire(&after, &["p"], 1_000, 0).await.unwrap();
    assert!(lease.fence > lost.fence);
}

#[tokio::test(start_paused = true)]
async fn numbers_rise_over_every_start_even_if_the_clock_goes_back() {
    let journal = Arc::new(FakeJournal::default());
    let mut last = 0;
    for _ in 0..5 {
        // Every process starts with the same clock time.
        let locks = journal.open(Instant::now());
        sleep_ms(60_000).await;
        for _ in 0..3 {
            let lease = acquire(&locks, &["p"], 1_000, 0).await.unwrap();
            assert!(lease.fence > last, "{} after {last}", lease.fence);
            last = lease.fence;
            release(&locks, lease.key).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn with_fsync_a_lease_outlives_the_process_and_is_never_shorter() {
    let journal = Arc::new(FakeJournal::default());
    let begun = Instant::now();
    let before = journal.open(begun);
    let one = fsync_request(&before, &["p"], 5_000);
    let two = fsync_request(&before, &["q"], 5_000);
    for request in [&one, &two] {
        before.acquire(NS, request, Span::ZERO).await.unwrap();
    }
    release(&before, two.lease.key).await;
    sleep_ms(3_000).await;
    let after = journal.open(begun);
    assert!(acquire(&after, &["p"], 1_000, 0).await.is_err());
    assert!(acquire(&after, &["q"], 1_000, 0).await.is_ok());
    sleep_ms(4_999).await;
    assert!(acquire(&after, &["p"], 1_000, 0).await.is_err());
    sleep_ms(1).await;
    assert!(acquire(&after, &["p"], 1_000, 0).await.is_ok());
}

/// The highest version of a name survives the process, and is remembered for a day.
#[tokio::test(start_paused = true)]
async fn the_highest_version_outlives_the_process_for_a_day() {
    let journal = Arc::new(FakeJournal::default());
    let begun = Instant::now();
    let ask = async |locks: &Locks, version| {
        let mut one = fsync_request(locks, &["p"], 1_000);
        (one.policy, one.lease.version) = (VersionPolicy::Monotonic, Some(version));
        let answer = locks.acquire(NS, &one, Span::ZERO).await;
        release(locks, one.lease.key).await;
        answer.map(|answer| matches!(answer.acquired, AcquireReply::Granted(_)))
    };
    let before = journal.open(begun);
    assert_eq!(ask(&before, 5).await, Ok(true));
    *journal.down.lock() = true;
    assert!(matches!(ask(&before, 6).await, Err(LockError::WriteFailed { .. })));
    *journal.down.lock() = false;
    assert_eq!(ask(&before, 5).await, Ok(false), "the previous version counts again");
    assert_eq!(ask(&before, 6).await, Ok(true), "the reverted version does not count");
    let after = journal.open(begun);
    assert_eq!((ask(&after, 6).await, ask(&after, 7).await), (Ok(false), Ok(true)));
    sleep_ms(24 * 3_600_000).await;
    after.expire().await;
    assert!(matches!(journal.writes.lock().last(), Some(LockWrite::Forget(..))));
    assert_eq!(ask(&journal.open(begun), 1).await, Ok(true));
}

/// covers: B-74
#[tokio::test(start_paused = true)]
async fn a_grant_that_cannot_be_written_is_refused() {
    let journal = Arc::new(FakeJournal::default());
    let begun = Instant::now();
    let locks = journal.open(begun);
    *journal.down.lock() = true;
    let one = acquire_request(&locks, &["p"], 5_000);
    let failed = locks.acquire(NS, &one, Span::ZERO).await;
    assert!(matches!(failed, Err(LockError::WriteFailed { .. })), "{failed:?}");
    *journal.down.lock() = false;
    assert!(acquire(&locks, &["p"], 5_000, 0).await.is_ok(), "nothing was left locked");
    let begins = Time::from_micros(1_900_000_000_000_000);
    let range = TimeRange::of(begins, begins.after(Span::from_secs(1_800)));
    let request = LeaseRequest::new(
        locks.lease_id(NS, None, None).unwrap().key(),
        Span::from_secs(9),
        Span::from_secs(9),
    );
    let kind = "appointment".into();
    let calendars = vec!["ana".into()];
    let hold = Hold { tenant: None, kind, calendars, range, lease: request };
    locks.hold(NS, &hold).await.unwrap();
    let proof = Proof { key: hold.lease.key, tenant: None };
    *journal.down.lock() = true;
    assert!(confirm(&locks, &proof, false).await.is_err());
    let after = journal.open(begun);
    assert!(stats(&after).await.rows.is_empty());
    *journal.down.lock() = false;
    let done = confirm(&locks, &proof, false).await.unwrap();
    assert!(matches!(done.reply, ConfirmReply::Done(_)) && done.durable);
    // A confirmed slot survives a crash.
    let after = journal.open(begun);
    sleep_ms(60_000).await;
    let taken = after.hold(NS, &hold_like(&hold, &after)).await.unwrap();
    assert!(matches!(taken.acquired, AcquireReply::Conflict(_)), "{taken:?}");
    assert_eq!(after.cancel(NS, &proof).await, Ok(ReleaseReply::Released));
    let third = journal.open(begun);
    sleep_ms(60_000).await;
    let free = third.hold(NS, &hold_like(&hold, &third)).await.unwrap();
    assert!(matches!(free.acquired, AcquireReply::Granted(_)), "{free:?}");
}

fn hold_like(hold: &Hold, locks: &Locks) -> Hold {
    let mut other = hold.clone();
    other.lease.key = locks.lease_id(NS, None, None).unwrap().key();
    other
}

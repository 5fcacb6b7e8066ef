//! What outlives the process, and what a start after a crash may not grant. Time is virtual.

use std::sync::Arc;

use catraca_core::digest::Secret;
use catraca_core::lock::kept::{KeptLease, LockDeed};
use catraca_core::lock::op::{Hold, Proof, Range, Wanted};
use catraca_core::lock::reply::{Acquired, Confirmed, Ended};
use catraca_core::lock::{Durability, VersionPolicy};
use catraca_core::time::{Span, Time};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::super::{Journal, LockError, Locks, StandingLock, Written};
use super::{NS, Virtual, asked, give, ms, take};

/// A journal that can fail.
#[derive(Default)]
pub(super) struct Book {
    deeds: Mutex<Vec<LockDeed>>,
    down: Mutex<bool>,
    /// Says that it failed, and writes all the same: later, as a disk that comes back does.
    pub(super) late: Mutex<bool>,
}

impl Journal for Book {
    fn write(&self, deeds: Vec<LockDeed>) -> Written {
        let (late, down) = (*self.late.lock(), *self.down.lock());
        if !down {
            self.deeds.lock().extend(deeds);
        }
        Box::pin(async move { if down || late { Err("no disk".to_owned()) } else { Ok(()) } })
    }
}

impl Book {
    pub(super) fn fails(&self, down: bool) {
        *self.down.lock() = down;
    }

    pub(super) fn standing(&self) -> Vec<StandingLock> {
        let (mut fences, mut leases) = (std::collections::BTreeMap::new(), Vec::new());
        let mut versions = Vec::new();
        for deed in self.deeds.lock().iter().cloned() {
            match deed {
                LockDeed::Fence(namespace, kept) => {
                    fences.insert(namespace, kept);
                }
                LockDeed::Keep(namespace, lease) => {
                    leases.retain(|(_, other): &(Box<str>, Box<KeptLease>)| other.key != lease.key);
                    leases.push((namespace, lease));
                }
                LockDeed::Drop(_, key) => leases.retain(|(_, lease)| lease.key != key),
                LockDeed::Version(namespace, kept) => {
                    versions.push(StandingLock::Version(namespace, kept));
                }
                LockDeed::Forget(..) => versions.clear(),
            }
        }
        let fences = fences.into_iter().map(|(name, kept)| StandingLock::Fence(name, kept));
        let leases = leases.into_iter().map(|(name, lease)| StandingLock::Lease(name, lease));
        fences.chain(leases).chain(versions).collect()
    }

    pub(super) fn open(self: &Arc<Self>, begun: Instant) -> Locks {
        self.open_with(begun, Durability::Memory)
    }

    pub(super) fn open_with(self: &Arc<Self>, begun: Instant, durability: Durability) -> Locks {
        let journal: Arc<dyn Journal> = Arc::clone(self) as _;
        let secret = Secret::from_bytes([3; 32]);
        let kept = (journal, durability);
        Locks::open(Arc::new(Virtual(begun)), &secret, kept, self.standing())
    }
}

/// covers: 004-93, B-72
#[tokio::test(start_paused = true)]
async fn after_a_crash_nothing_is_granted_until_every_lost_lease_has_run_out() {
    let (book, begun) = (Arc::new(Book::default()), Instant::now());
    let before = book.open(begun);
    take(&before, &["q"], 2_000, 0).await.unwrap();
    let lost = take(&before, &["p"], 7_000, 0).await.unwrap();
    ms(1_000).await;
    let after = book.open(begun);
    let one = asked(&after, &["p"], 1_000);
    let refused = after.acquire(NS, &one, Span::ZERO, Durability::Memory).await;
    assert_eq!(refused, Err(LockError::Starting { wait: Span::from_millis(7_000) }));
    ms(6_999).await;
    assert!(after.acquire(NS, &one, Span::ZERO, Durability::Memory).await.is_err());
    ms(1).await;
    let view = take(&after, &["p"], 1_000, 0).await.unwrap();
    assert!(view.fence > lost.fence);
}

#[tokio::test(start_paused = true)]
async fn numbers_rise_over_every_start_even_if_the_clock_goes_back() {
    let (book, mut last) = (Arc::new(Book::default()), 0);
    for _ in 0..5 {
        // Each process begins with its clock where the first began.
        let locks = book.open(Instant::now());
        ms(60_000).await;
        for _ in 0..3 {
            let view = take(&locks, &["p"], 1_000, 0).await.unwrap();
            assert!(view.fence > last, "{} after {last}", view.fence);
            last = view.fence;
            give(&locks, view.key);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn with_fsync_a_lease_outlives_the_process_and_is_never_shorter() {
    let (book, begun) = (Arc::new(Book::default()), Instant::now());
    let before = book.open(begun);
    let (one, two) = (asked(&before, &["p"], 5_000), asked(&before, &["q"], 5_000));
    for asked in [&one, &two] {
        before.acquire(NS, asked, Span::ZERO, Durability::Fsync).await.unwrap();
    }
    give(&before, two.lease.key);
    ms(3_000).await;
    let after = book.open(begun);
    assert!(take(&after, &["p"], 1_000, 0).await.is_err());
    assert!(take(&after, &["q"], 1_000, 0).await.is_ok());
    ms(4_999).await;
    assert!(take(&after, &["p"], 1_000, 0).await.is_err());
    ms(1).await;
    assert!(take(&after, &["p"], 1_000, 0).await.is_ok());
}

/// What a version must be above outlives the process, and is a memory of a day.
#[tokio::test(start_paused = true)]
async fn the_highest_version_outlives_the_process_for_a_day() {
    let (book, begun) = (Arc::new(Book::default()), Instant::now());
    let ask = async |locks: &Locks, version| {
        let mut one = asked(locks, &["p"], 1_000);
        (one.policy, one.lease.version) = (VersionPolicy::Monotonic, Some(version));
        let answer = locks.acquire(NS, &one, Span::ZERO, Durability::Fsync).await;
        give(locks, one.lease.key);
        answer.map(|answer| matches!(answer.acquired, Acquired::Granted(_)))
    };
    let before = book.open(begun);
    assert_eq!(ask(&before, 5).await, Ok(true));
    *book.down.lock() = true;
    assert!(matches!(ask(&before, 6).await, Err(LockError::Unkept { .. })));
    *book.down.lock() = false;
    assert_eq!(ask(&before, 5).await, Ok(false), "what it was raised from is known again");
    assert_eq!(ask(&before, 6).await, Ok(true), "what was taken back does not count");
    let after = book.open(begun);
    assert_eq!((ask(&after, 6).await, ask(&after, 7).await), (Ok(false), Ok(true)));
    ms(24 * 3_600_000).await;
    after.tend();
    assert!(matches!(book.deeds.lock().last(), Some(LockDeed::Forget(..))));
    assert_eq!(ask(&book.open(begun), 1).await, Ok(true));
}

/// covers: B-74
#[tokio::test(start_paused = true)]
async fn what_cannot_be_kept_is_not_granted() {
    let (book, begun) = (Arc::new(Book::default()), Instant::now());
    let locks = book.open(begun);
    *book.down.lock() = true;
    let one = asked(&locks, &["p"], 5_000);
    let failed = locks.acquire(NS, &one, Span::ZERO, Durability::Memory).await;
    assert!(matches!(failed, Err(LockError::Unkept { .. })), "{failed:?}");
    *book.down.lock() = false;
    assert!(take(&locks, &["p"], 5_000, 0).await.is_ok(), "nothing was left locked");
    let begins = Time::from_micros(1_900_000_000_000_000);
    let range = Range::of(begins, begins.after(Span::from_secs(1_800)));
    let wanted = Wanted::new(
        locks.lease_id(NS, None, None).unwrap().key(),
        Span::from_secs(9),
        Span::from_secs(9),
    );
    let (kind, calendars) = ("appointment".into(), vec!["ana".into()]);
    let hold = Hold { tenant: None, kind, calendars, range, lease: wanted };
    locks.hold(NS, &hold, Durability::Memory).await.unwrap();
    let proof = Proof { key: hold.lease.key, tenant: None };
    *book.down.lock() = true;
    assert!(locks.confirm(NS, &proof, false).await.is_err());
    let after = book.open(begun);
    assert!(after.stats(NS).unwrap().rows.is_empty());
    *book.down.lock() = false;
    let (done, durable) = locks.confirm(NS, &proof, false).await.unwrap();
    assert!(matches!(done, Confirmed::Done(_)) && durable);
    // A confirmed slot is there after any end.
    let after = book.open(begun);
    ms(60_000).await;
    let taken = after.hold(NS, &hold_like(&hold, &after), Durability::Memory).await.unwrap();
    assert!(matches!(taken.acquired, Acquired::Conflict(_)), "{taken:?}");
    assert_eq!(after.cancel(NS, &proof).await, Ok(Ended::Released));
    let third = book.open(begun);
    ms(60_000).await;
    let free = third.hold(NS, &hold_like(&hold, &third), Durability::Memory).await.unwrap();
    assert!(matches!(free.acquired, Acquired::Granted(_)), "{free:?}");
}

fn hold_like(hold: &Hold, locks: &Locks) -> Hold {
    let mut other = hold.clone();
    other.lease.key = locks.lease_id(NS, None, None).unwrap().key();
    other
}

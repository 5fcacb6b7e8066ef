//! What was refused for want of a disk never was, though the disk takes it later; and who is told
//! when the process ends. Time is virtual.

use std::sync::Arc;

use catraca_core::lock::op::{Hold, Move, Proof, Range, Wanted};
use catraca_core::lock::reply::{Acquired, Confirmed, Moved, State};
use catraca_core::lock::{Durability, VersionPolicy};
use catraca_core::time::{Span, Time};
use tokio::time::Instant;

use super::super::{LockError, Locks};
use super::kept::Book;
use super::{NS, asked, locks, ms, take};

const HOUR: i64 = 3_600;

fn time(hour: i64) -> Time {
    Time::from_micros((1_900_000_000 + hour * HOUR) * 1_000_000)
}

fn wanted(locks: &Locks, hour: i64, ttl: i64) -> Hold {
    let key = locks.lease_id(NS, None, None).unwrap().key();
    let lease = Wanted::new(key, Span::from_secs(ttl), Span::from_secs(HOUR));
    let (kind, calendars) = ("appointment".into(), vec!["ana".into()]);
    let range = Range::of(time(hour), time(hour + 1));
    Hold { tenant: None, kind, calendars, range, lease }
}

async fn hold(locks: &Locks, hour: i64, ttl: i64, how: Durability) -> Option<Proof> {
    let one = wanted(locks, hour, ttl);
    let answer = locks.hold(NS, &one, how).await.unwrap();
    let granted = matches!(answer.acquired, Acquired::Granted(_));
    granted.then_some(Proof { key: one.lease.key, tenant: None })
}

async fn confirmed(locks: &Locks, hour: i64) -> Proof {
    let proof = hold(locks, hour, 9, Durability::Memory).await.unwrap();
    assert!(matches!(locks.confirm(NS, &proof, false).await, Ok((Confirmed::Done(_), true))));
    proof
}

fn to(proof: &Proof, hour: i64) -> Move {
    let (start, end, grace) = (time(hour), time(hour + 1), Span::ZERO);
    Move { proof: proof.clone(), calendars: None, start, end, grace }
}

/// What is in force: the hours since the first, and how.
fn standing(locks: &Locks) -> Vec<(i64, State)> {
    let page = locks.list(NS, &super::super::Filter::default(), (0, 100)).unwrap();
    let slot = |view: &catraca_core::lock::reply::View| match &view.what {
        catraca_core::lock::reply::What::Slot(_, range) => {
            (range.start.since(time(0)).micros() / 1_000_000 / HOUR, view.state)
        }
        catraca_core::lock::reply::What::Names(_) => panic!("a name"),
    };
    let mut all: Vec<(i64, State)> = page.leases.iter().map(slot).collect();
    all.sort_by_key(|(hour, _)| *hour);
    all
}

/// covers: B-74
#[tokio::test(start_paused = true)]
async fn a_confirmation_that_was_refused_does_not_come_back_beside_another() {
    for durability in [Durability::Memory, Durability::Fsync] {
        let (book, begun) = (Arc::new(Book::default()), Instant::now());
        let locks = book.open(begun);
        let first = hold(&locks, 0, 8, durability).await.unwrap();
        *book.late.lock() = true;
        assert!(matches!(locks.confirm(NS, &first, false).await, Err(LockError::Unkept { .. })));
        assert_eq!(standing(&locks), [(0, State::Held)], "as it was");
        *book.late.lock() = false;
        ms(8_000).await;
        confirmed(&locks, 0).await;
        assert_eq!(standing(&book.open(begun)), [(0, State::Confirmed)], "{durability:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hold_that_could_not_be_taken_anew_is_over_as_before() {
    let (book, begun) = (Arc::new(Book::default()), Instant::now());
    let locks = book.open(begun);
    let late = hold(&locks, 0, 8, Durability::Memory).await.unwrap();
    ms(8_000).await;
    *book.late.lock() = true;
    assert!(matches!(locks.confirm(NS, &late, true).await, Err(LockError::Unkept { .. })));
    assert_eq!((standing(&locks), standing(&book.open(begun))), (vec![], vec![]));
    let all = locks.stats(NS).unwrap().all;
    assert_eq!((all.success, all.active, all.expired, all.undone), (1, 0, 1, 1), "{all:?}");
    *book.late.lock() = false;
    let again = locks.confirm(NS, &late, true).await;
    assert!(matches!(again, Ok((Confirmed::Done(_), true))), "{again:?}");
    assert_eq!(standing(&book.open(begun)), [(0, State::Confirmed)]);
}

#[tokio::test(start_paused = true)]
async fn a_move_that_was_refused_leaves_the_slot_where_it_was() {
    for durability in [Durability::Memory, Durability::Fsync] {
        let (book, begun) = (Arc::new(Book::default()), Instant::now());
        let locks = book.open(begun);
        let first = confirmed(&locks, 0).await;
        let held = hold(&locks, 2, 60, Durability::Fsync).await.unwrap();
        *book.late.lock() = true;
        let moved = locks.relocate(NS, &to(&first, 1), durability).await;
        assert!(matches!(moved, Err(LockError::Unkept { .. })), "{moved:?}");
        let moved = locks.relocate(NS, &to(&held, 3), Durability::Fsync).await;
        assert!(matches!(moved, Err(LockError::Unkept { .. })), "{moved:?}");
        let as_it_was = [(0, State::Confirmed), (2, State::Held)];
        assert_eq!(standing(&locks), as_it_was);
        assert_eq!(standing(&book.open(begun)), as_it_was);
        *book.late.lock() = false;
        assert!(hold(&locks, 0, 9, durability).await.is_none());
        assert!(hold(&locks, 1, 9, durability).await.is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_moved_nor_taken_anew_while_lost_leases_may_be_in_force() {
    let (book, begun) = (Arc::new(Book::default()), Instant::now());
    let before = book.open(begun);
    let first = confirmed(&before, 0).await;
    let over = hold(&before, 4, 1, Durability::Fsync).await.unwrap();
    hold(&before, 1, 60, Durability::Memory).await.unwrap();
    let after = book.open(begun);
    ms(1_000).await;
    let wait = Span::from_secs(59);
    let moved = after.relocate(NS, &to(&first, 1), Durability::Memory).await;
    assert_eq!(moved, Err(LockError::Starting { wait }));
    assert_eq!(after.confirm(NS, &over, true).await, Err(LockError::Starting { wait }));
    assert_eq!(standing(&after), [(0, State::Confirmed)]);
    // What takes nothing is answered.
    assert!(matches!(after.confirm(NS, &first, true).await, Ok((Confirmed::Done(_), true))));
    ms(59_000).await;
    let moved = after.relocate(NS, &to(&first, 1), Durability::Memory).await;
    assert!(matches!(moved, Ok(Moved::Done(_))), "{moved:?}");
    assert!(matches!(after.confirm(NS, &over, true).await, Ok((Confirmed::Done(_), true))));
}

/// A short renewal of a long lease does not make it shorter, not even by a crash.
#[tokio::test(start_paused = true)]
async fn a_renewal_never_shortens_what_a_crash_brings_back() {
    let (book, begun) = (Arc::new(Book::default()), Instant::now());
    let before = book.open(begun);
    let one = asked(&before, &["p"], 60_000);
    before.acquire(NS, &one, Span::ZERO, Durability::Fsync).await.unwrap();
    let proof = Proof { key: one.lease.key, tenant: None };
    ms(10_000).await;
    before.renew(NS, &proof, Span::from_secs(5), Durability::Fsync).await.unwrap();
    let after = book.open(begun);
    ms(49_999).await;
    assert!(take(&after, &["p"], 1_000, 0).await.is_err(), "its holder was told so");
    ms(1).await;
    assert!(take(&after, &["p"], 1_000, 0).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_version_that_was_refused_is_not_remembered() {
    let (book, begun) = (Arc::new(Book::default()), Instant::now());
    let ask = async |locks: &Locks, name, version| {
        let mut one = asked(locks, &[name], 1_000);
        (one.policy, one.lease.version) = (VersionPolicy::Monotonic, Some(version));
        let answer = locks.acquire(NS, &one, Span::ZERO, Durability::Fsync).await;
        super::give(locks, one.lease.key);
        answer.map(|answer| matches!(answer.acquired, Acquired::Granted(_)))
    };
    let before = book.open(begun);
    assert_eq!(ask(&before, "p", 5).await, Ok(true));
    *book.late.lock() = true;
    assert!(ask(&before, "p", 6).await.is_err());
    assert!(ask(&before, "q", 6).await.is_err());
    *book.late.lock() = false;
    let after = book.open(begun);
    assert_eq!(ask(&after, "p", 5).await, Ok(false), "what it was before is remembered");
    assert_eq!(ask(&after, "p", 6).await, Ok(true));
    assert_eq!(ask(&after, "q", 1).await, Ok(true), "nobody was ever granted a version");
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_is_told_at_once_that_the_process_ends() {
    let locks = locks();
    take(&locks, &["p"], 60_000, 0).await.unwrap();
    let waiter = Arc::clone(&locks);
    let one = asked(&locks, &["p"], 1_000);
    let waiting = tokio::spawn(async move {
        waiter.acquire(NS, &one, Span::from_secs(20), Durability::Memory).await
    });
    ms(10).await;
    let begun = Instant::now();
    locks.dismiss();
    assert_eq!(waiting.await.unwrap(), Err(LockError::Stopping));
    let next = asked(&locks, &["p"], 1_000);
    let next = locks.acquire(NS, &next, Span::from_secs(20), Durability::Memory).await;
    assert_eq!(next, Err(LockError::Stopping));
    assert_eq!((begun.elapsed().as_millis(), locks.stats(NS).unwrap().waiters), (0, 0));
    assert!(take(&locks, &["q"], 1_000, 9_000).await.is_ok(), "who need not wait is served");
}

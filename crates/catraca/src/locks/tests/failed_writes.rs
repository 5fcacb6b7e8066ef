//! Calls that failed because the journal failed have no effect, even if the write succeeds later;
//! and waiting callers at shutdown. Time is virtual.

use std::sync::Arc;

use catraca_core::lock::reply::{AcquireReply, ConfirmReply, LeaseState, MoveReply};
use catraca_core::lock::requests::{Hold, LeaseRequest, Move, Proof, TimeRange};
use catraca_core::lock::{Durability, VersionPolicy};
use catraca_core::time::{Span, Time};
use tokio::time::Instant;

use super::super::{LockError, Locks};
use super::crash_recovery::FakeJournal;
use super::{
    NS, acquire, acquire_request, confirm, fsync_request, locks, renew_with, sleep_ms, stats, terms,
};

const HOUR: i64 = 3_600;

fn time(hour: i64) -> Time {
    Time::from_micros((1_900_000_000 + hour * HOUR) * 1_000_000)
}

fn hold_request(locks: &Locks, hour: i64, ttl: i64) -> Hold {
    let key = locks.lease_id(NS, None, None).unwrap().key();
    let lease = LeaseRequest::new(key, Span::from_secs(ttl), Span::from_secs(HOUR));
    let kind = "appointment".into();
    let calendars = vec!["ana".into()];
    let range = TimeRange::of(time(hour), time(hour + 1));
    Hold { tenant: None, kind, calendars, range, lease }
}

async fn hold(locks: &Locks, hour: i64, ttl: i64, how: Durability) -> Option<Proof> {
    let mut one = hold_request(locks, hour, ttl);
    one.lease.durability = how;
    let answer = locks.hold(NS, &one).await.unwrap();
    let granted = matches!(answer.acquired, AcquireReply::Granted(_));
    granted.then_some(Proof { key: one.lease.key, tenant: None })
}

async fn confirmed_slot(locks: &Locks, hour: i64) -> Proof {
    let proof = hold(locks, hour, 9, Durability::Memory).await.unwrap();
    assert_confirms(locks, &proof, false).await;
    proof
}

fn move_to(proof: &Proof, hour: i64) -> Move {
    Move::new(proof.clone(), time(hour), time(hour + 1))
}

async fn relocate(
    locks: &Locks,
    proof: &Proof,
    hour: i64,
    how: Durability,
) -> Result<MoveReply, LockError> {
    let moved = locks.relocate(NS, move_to(proof, hour), &terms(how)).await;
    moved.map(|moved| moved.reply)
}

/// Confirms a slot, which must be possible, and must be durable.
async fn assert_confirms(locks: &Locks, proof: &Proof, reacquire: bool) {
    let confirmed = confirm(locks, proof, reacquire).await.unwrap();
    assert!(matches!(confirmed.reply, ConfirmReply::Done(_)), "{confirmed:?}");
    assert!(confirmed.durable);
}

/// The active slots: hours since the first one, and their state.
async fn active_slots(locks: &Locks) -> Vec<(i64, LeaseState)> {
    let page = locks.list(NS, &super::super::LeaseFilter::default(), 0, 100).await.unwrap();
    let slot = |lease: &catraca_core::lock::reply::Lease| match &lease.target {
        catraca_core::lock::reply::LeaseTarget::Slot(_, range) => {
            (range.start.since(time(0)).micros() / 1_000_000 / HOUR, lease.state)
        }
        catraca_core::lock::reply::LeaseTarget::Names(_) => panic!("a name"),
    };
    let mut all: Vec<(i64, LeaseState)> = page.leases.iter().map(slot).collect();
    all.sort_by_key(|(hour, _)| *hour);
    all
}

/// covers: B-74
#[tokio::test(start_paused = true)]
async fn a_confirmation_that_was_refused_does_not_come_back_beside_another() {
    for durability in [Durability::Memory, Durability::Fsync] {
        let journal = Arc::new(FakeJournal::default());
        let begun = Instant::now();
        let locks = journal.open(begun);
        let first = hold(&locks, 0, 8, durability).await.unwrap();
        *journal.late.lock() = true;
        let refused = confirm(&locks, &first, false).await;
        assert!(matches!(refused, Err(LockError::WriteFailed { .. })), "{refused:?}");
        assert_eq!(active_slots(&locks).await, [(0, LeaseState::Held)], "as it was");
        *journal.late.lock() = false;
        sleep_ms(8_000).await;
        confirmed_slot(&locks, 0).await;
        assert_eq!(
            active_slots(&journal.open(begun)).await,
            [(0, LeaseState::Confirmed)],
            "{durability:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_hold_that_could_not_be_taken_anew_is_over_as_before() {
    let journal = Arc::new(FakeJournal::default());
    let begun = Instant::now();
    let locks = journal.open(begun);
    let late = hold(&locks, 0, 8, Durability::Memory).await.unwrap();
    sleep_ms(8_000).await;
    *journal.late.lock() = true;
    assert!(matches!(confirm(&locks, &late, true).await, Err(LockError::WriteFailed { .. })));
    assert_eq!(
        (active_slots(&locks).await, active_slots(&journal.open(begun)).await),
        (vec![], vec![])
    );
    let all = stats(&locks).await.all;
    assert_eq!((all.success, all.active, all.expired, all.undone), (1, 0, 1, 1), "{all:?}");
    *journal.late.lock() = false;
    assert_confirms(&locks, &late, true).await;
    assert_eq!(active_slots(&journal.open(begun)).await, [(0, LeaseState::Confirmed)]);
}

#[tokio::test(start_paused = true)]
async fn a_move_that_was_refused_leaves_the_slot_where_it_was() {
    for durability in [Durability::Memory, Durability::Fsync] {
        let journal = Arc::new(FakeJournal::default());
        let begun = Instant::now();
        let locks = journal.open(begun);
        let first = confirmed_slot(&locks, 0).await;
        let held = hold(&locks, 2, 60, Durability::Fsync).await.unwrap();
        *journal.late.lock() = true;
        let moved = relocate(&locks, &first, 1, durability).await;
        assert!(matches!(moved, Err(LockError::WriteFailed { .. })), "{moved:?}");
        let moved = relocate(&locks, &held, 3, Durability::Fsync).await;
        assert!(matches!(moved, Err(LockError::WriteFailed { .. })), "{moved:?}");
        let as_it_was = [(0, LeaseState::Confirmed), (2, LeaseState::Held)];
        assert_eq!(active_slots(&locks).await, as_it_was);
        assert_eq!(active_slots(&journal.open(begun)).await, as_it_was);
        *journal.late.lock() = false;
        assert!(hold(&locks, 0, 9, durability).await.is_none());
        assert!(hold(&locks, 1, 9, durability).await.is_some());
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_moved_nor_taken_anew_while_lost_leases_may_be_in_force() {
    let journal = Arc::new(FakeJournal::default());
    let begun = Instant::now();
    let before = journal.open(begun);
    let first = confirmed_slot(&before, 0).await;
    let over = hold(&before, 4, 1, Durability::Fsync).await.unwrap();
    hold(&before, 1, 60, Durability::Memory).await.unwrap();
    let after = journal.open(begun);
    sleep_ms(1_000).await;
    let wait = Span::from_secs(59);
    let moved = relocate(&after, &first, 1, Durability::Memory).await;
    assert_eq!(moved, Err(LockError::Starting { wait }));
    assert_eq!(confirm(&after, &over, true).await, Err(LockError::Starting { wait }));
    assert_eq!(active_slots(&after).await, [(0, LeaseState::Confirmed)]);
    // Calls that grant nothing new are answered.
    assert_confirms(&after, &first, true).await;
    sleep_ms(59_000).await;
    let moved = relocate(&after, &first, 1, Durability::Memory).await;
    assert!(matches!(moved, Ok(MoveReply::Done(_))), "{moved:?}");
    assert_confirms(&after, &over, true).await;
}

/// A short renewal of a long lease does not shorten it, also after a crash.
#[tokio::test(start_paused = true)]
async fn a_renewal_never_shortens_what_a_crash_brings_back() {
    let journal = Arc::new(FakeJournal::default());
    let begun = Instant::now();
    let before = journal.open(begun);
    let one = fsync_request(&before, &["p"], 60_000);
    before.acquire(NS, &one, Span::ZERO).await.unwrap();
    let proof = Proof { key: one.lease.key, tenant: None };
    sleep_ms(10_000).await;
    renew_with(&before, &proof, 5_000, Durability::Fsync).await;
    let after = journal.open(begun);
    sleep_ms(49_999).await;
    assert!(
        acquire(&after, &["p"], 1_000, 0).await.is_err(),
        "the holder relies on the longer time"
    );
    sleep_ms(1).await;
    assert!(acquire(&after, &["p"], 1_000, 0).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_version_that_was_refused_is_not_remembered() {
    let journal = Arc::new(FakeJournal::default());
    let begun = Instant::now();
    let ask = async |locks: &Locks, name, version| {
        let mut one = fsync_request(locks, &[name], 1_000);
        (one.policy, one.lease.version) = (VersionPolicy::Monotonic, Some(version));
        let answer = locks.acquire(NS, &one, Span::ZERO).await;
        super::release(locks, one.lease.key).await;
        answer.map(|answer| matches!(answer.acquired, AcquireReply::Granted(_)))
    };
    let before = journal.open(begun);
    assert_eq!(ask(&before, "p", 5).await, Ok(true));
    *journal.late.lock() = true;
    assert!(ask(&before, "p", 6).await.is_err());
    assert!(ask(&before, "q", 6).await.is_err());
    *journal.late.lock() = false;
    let after = journal.open(begun);
    assert_eq!(ask(&after, "p", 5).await, Ok(false), "the previous version is remembered");
    assert_eq!(ask(&after, "p", 6).await, Ok(true));
    assert_eq!(ask(&after, "q", 1).await, Ok(true), "no version was ever granted");
}

#[tokio::test(start_paused = true)]
async fn waiters_are_refused_at_once_when_the_process_stops() {
    let locks = locks();
    acquire(&locks, &["p"], 60_000, 0).await.unwrap();
    let waiter = Arc::clone(&locks);
    let one = acquire_request(&locks, &["p"], 1_000);
    let waiting = tokio::spawn(async move { waiter.acquire(NS, &one, Span::from_secs(20)).await });
    sleep_ms(10).await;
    let begun = Instant::now();
    locks.refuse_waiters();
    assert_eq!(waiting.await.unwrap(), Err(LockError::Stopping));
    let next = acquire_request(&locks, &["p"], 1_000);
    let next = locks.acquire(NS, &next, Span::from_secs(20)).await;
    assert_eq!(next, Err(LockError::Stopping));
    assert_eq!((begun.elapsed().as_millis(), stats(&locks).await.waiters), (0, 0));
    assert!(acquire(&locks, &["q"], 1_000, 9_000).await.is_ok(), "a free name is granted");
}

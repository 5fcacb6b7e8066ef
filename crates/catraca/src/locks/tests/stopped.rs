//! Ends in order: what is held comes back with the time that it had left, and nobody is refused;
//! a crash after it is as careful as any. Time is virtual.

use std::sync::Arc;

use catraca_core::lock::op::Proof;
use catraca_core::lock::reply::{Acquired, Ended, Renewed, State, View};
use catraca_core::lock::{Durability, LeaseKey};
use catraca_core::time::Span;
use tokio::time::Instant;

use super::super::{LockError, Locks, StandingLock};
use super::kept::Book;
use super::{NS, asked, give, ms, take};

async fn renew(locks: &Locks, key: LeaseKey, ms: i64) -> Renewed {
    let proof = Proof { key, tenant: None };
    locks.renew(NS, &proof, Span::from_millis(ms), Durability::Memory).await.unwrap()
}

/// Who has a name.
async fn holder(locks: &Locks, name: &str) -> View {
    match take(locks, &[name], 1_000, 0).await {
        Err(Acquired::Conflict(conflict)) => conflict.holder,
        other => panic!("{name} is not held: {other:?}"),
    }
}

fn held(book: &Book) -> usize {
    book.standing().iter().filter(|one| matches!(one, StandingLock::Lease(..))).count()
}

async fn refused(locks: &Locks) -> LockError {
    let one = asked(locks, &["any"], 1_000);
    locks.acquire(NS, &one, Span::ZERO, Durability::Memory).await.unwrap_err()
}

/// covers: B-72
#[tokio::test(start_paused = true)]
async fn a_stop_in_order_keeps_every_lease_and_refuses_nobody_after_it() {
    let (book, begun) = (Arc::new(Book::default()), Instant::now());
    let before = book.open(begun);
    let long = take(&before, &["long"], 7_000, 0).await.unwrap();
    let short = take(&before, &["short"], 2_000, 0).await.unwrap();
    let gone = take(&before, &["gone"], 9_000, 0).await.unwrap();
    give(&before, gone.key);
    ms(500).await;
    before.close().await;
    assert_eq!(refused(&before).await, LockError::Stopping);
    // Down for a while: nothing is shorter than was told, nor longer than it had left.
    ms(300).await;
    let after = book.open(begun);
    assert_eq!(after.starting(), None);
    let back = holder(&after, "short").await;
    assert_eq!((back.fence, back.key), (short.fence, short.key));
    assert_eq!(back.expires_at, short.expires_at.after(Span::from_millis(300)));
    let new = take(&after, &["gone"], 1_000, 0).await.unwrap();
    assert!(new.fence > gone.fence);
    let Renewed::Extended(renewed) = renew(&after, long.key, 7_000).await else { panic!() };
    assert_eq!(renewed.fence, long.fence);
    ms(1_500).await;
    assert!(take(&after, &["short"], 1_000, 0).await.is_ok(), "it ended when it had to");
    let all = after.stats(NS).unwrap().all;
    assert_eq!(all.success, all.active + all.released + all.expired + all.forced, "{all:?}");
    assert_eq!(renew(&after, short.key, 1_000).await, Renewed::Over(State::Expired));
}

/// A lease that was brought back and has ended is not on disk, where it could come back once more
/// while somebody else has its names.
#[tokio::test(start_paused = true)]
async fn a_crash_after_a_stop_in_order_is_as_careful_as_any() {
    let (book, begun) = (Arc::new(Book::default()), Instant::now());
    let before = book.open(begun);
    let first = take(&before, &["p"], 5_000, 0).await.unwrap();
    before.close().await;
    assert_eq!(held(&book), 1);
    let after = book.open(begun);
    assert_eq!(held(&book), 0, "from now on it is as any other");
    assert_eq!(give(&after, first.key), Ended::Released);
    let second = take(&after, &["p"], 3_000, 0).await.unwrap();
    let crashed = book.open(begun);
    let wait = Span::from_millis(5_000);
    assert_eq!(refused(&crashed).await, LockError::Starting { wait });
    assert_eq!(crashed.starting(), Some(wait));
    assert_eq!(renew(&crashed, first.key, 1_000).await, Renewed::NotHolder);
    // A stop while it waits does not make the next start forget what it waits for.
    ms(1_000).await;
    crashed.close().await;
    let again = book.open(begun);
    assert_eq!(refused(&again).await, LockError::Starting { wait: Span::from_millis(4_000) });
    ms(4_000).await;
    assert!(take(&again, &["p"], 1_000, 0).await.unwrap().fence > second.fence);
}

/// Where every grant is on disk, leases come back after a crash too, with the same file.
#[tokio::test(start_paused = true)]
async fn with_fsync_nobody_waits_after_either_end() {
    let (book, begun) = (Arc::new(Book::default()), Instant::now());
    let open = || book.open_with(begun, Durability::Fsync);
    let before = open();
    let (one, two) = (asked(&before, &["p"], 5_000), asked(&before, &["q"], 5_000));
    for asked in [&one, &two] {
        before.acquire(NS, asked, Span::ZERO, Durability::Fsync).await.unwrap();
    }
    before.close().await;
    let after = open();
    assert_eq!((after.starting(), held(&book)), (None, 2));
    assert_eq!(give(&after, two.lease.key), Ended::Released);
    assert_eq!(held(&book), 1, "its end is on disk");
    let crashed = open();
    assert_eq!(crashed.starting(), None);
    assert_eq!(holder(&crashed, "p").await.key, one.lease.key);
    assert!(take(&crashed, &["q"], 1_000, 0).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_stop_that_the_disk_does_not_hear_of_is_a_crash() {
    let (book, begun) = (Arc::new(Book::default()), Instant::now());
    let before = book.open(begun);
    take(&before, &["p"], 5_000, 0).await.unwrap();
    book.fails(true);
    before.close().await;
    book.fails(false);
    let wait = Span::from_millis(5_000);
    assert_eq!(refused(&book.open(begun)).await, LockError::Starting { wait });
}

/// The names of a lease that an operator ended stay taken for a moment, over a stop too.
#[tokio::test(start_paused = true)]
async fn a_stop_does_not_cut_short_the_moment_after_a_forced_end() {
    let (book, begun) = (Arc::new(Book::default()), Instant::now());
    let before = book.open(begun);
    let view = take(&before, &["p"], 9_000, 0).await.unwrap();
    let moment = Span::from_millis(2_000);
    assert!(before.force(NS, view.fence, None, moment).unwrap().is_some());
    ms(500).await;
    before.close().await;
    let wait = Span::from_millis(1_500);
    assert_eq!(refused(&book.open(begun)).await, LockError::Starting { wait });
}

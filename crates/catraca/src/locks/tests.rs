//! How callers wait: in order, until their time is over, and never in vain. Time is virtual.

mod kept;
mod stopped;
mod undone;

use std::sync::Arc;
use std::time::Duration;

use catraca_core::digest::Secret;
use catraca_core::lock::op::{Acquire, Proof, Wanted};
use catraca_core::lock::reply::{Acquired, Ended, Renewed, View};
use catraca_core::lock::{Durability, LeaseKey, VersionPolicy};
use catraca_core::time::{Span, Time};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use super::{LockError, Locks, WAITERS_MAX};
use crate::clock::{Clock, ManualClock};

/// Tokio's own clock, which jumps to the next timer when everybody sleeps.
struct Virtual(Instant);

impl Clock for Virtual {
    fn now(&self) -> Time {
        let passed = i64::try_from(self.0.elapsed().as_micros()).unwrap();
        Time::from_micros(1_700_000_000_000_000 + passed)
    }
}

fn locks() -> Arc<Locks> {
    Arc::new(Locks::new(Arc::new(Virtual(Instant::now())), &Secret::from_bytes([3; 32])))
}

const NS: &str = "default";

fn asked(locks: &Locks, keys: &[&str], ttl_ms: i64) -> Acquire {
    let key = locks.lease_id(NS, None, None).unwrap().key();
    let ttl = Span::from_millis(ttl_ms);
    Acquire {
        tenant: None,
        kind: "payment".into(),
        keys: keys.iter().map(|key| Box::from(*key)).collect(),
        lease: Wanted::new(key, ttl, Span::from_secs(3_600)),
        policy: VersionPolicy::Opaque,
    }
    .checked()
    .unwrap()
}

async fn take(locks: &Locks, keys: &[&str], ttl_ms: i64, wait_ms: i64) -> Result<View, Acquired> {
    let asked = asked(locks, keys, ttl_ms);
    let wait = Span::from_millis(wait_ms);
    match locks.acquire(NS, &asked, wait, Durability::Memory).await.unwrap().acquired {
        Acquired::Granted(view) => Ok(*view),
        other => Err(other),
    }
}

fn give(locks: &Locks, key: LeaseKey) -> Ended {
    locks.release(NS, &Proof { key, tenant: None }).unwrap()
}

async fn ms(millis: u64) {
    sleep(Duration::from_millis(millis)).await;
}

/// covers: 004-26, 004-81, B-75
#[tokio::test(start_paused = true)]
async fn whoever_waits_longest_is_handed_the_name_at_once() {
    let locks = locks();
    let first = take(&locks, &["p"], 10_000, 0).await.unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let waiters: Vec<_> = (0..100)
        .map(|number| {
            let (locks, order) = (Arc::clone(&locks), Arc::clone(&order));
            tokio::spawn(async move {
                let view = take(&locks, &["p"], 10_000, 5_000).await.unwrap();
                order.lock().push((number, view.fence));
                give(&locks, view.key);
            })
        })
        .collect();
    ms(10).await;
    assert_eq!(locks.stats(NS).unwrap().waiters, 100);
    assert_eq!(locks.stats_of(NS, Some("other")).unwrap().waiters, 0);
    let begun = Instant::now();
    give(&locks, first.key);
    for waiter in waiters {
        waiter.await.unwrap();
    }
    assert!(begun.elapsed() < Duration::from_millis(5), "no timer was needed");
    let order = order.lock();
    assert!(order.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1));
    let stats = locks.stats(NS).unwrap();
    assert_eq!((stats.all.success, stats.all.released, stats.waiters), (101, 101, 0));
}

#[tokio::test(start_paused = true)]
async fn a_holders_end_wakes_the_waiter_and_a_deadline_ends_the_wait() {
    let locks = locks();
    take(&locks, &["p"], 300, 0).await.unwrap();
    let begun = Instant::now();
    assert!(take(&locks, &["p"], 1_000, 5_000).await.is_ok());
    assert_eq!(begun.elapsed().as_millis(), 300, "at the holder's end, without a release");
    let begun = Instant::now();
    let missed = take(&locks, &["p"], 1_000, 300).await.unwrap_err();
    assert_eq!(begun.elapsed().as_millis(), 300);
    assert!(matches!(missed, Acquired::Conflict(_)), "{missed:?}");
    ms(5_000).await;
    let stats = locks.stats(NS).unwrap();
    assert_eq!((stats.all.success, stats.all.conflicts, stats.all.active), (2, 1, 0));
}

/// Whoever waits just as long as the holder lasts has waited in vain.
#[tokio::test(start_paused = true)]
async fn a_waiter_whose_time_is_over_is_never_granted() {
    let locks = locks();
    take(&locks, &["p"], 300, 0).await.unwrap();
    let early = take(&locks, &["p"], 1_000, 300);
    let late = take(&locks, &["p"], 1_000, 301);
    let (early, late) = tokio::join!(early, late);
    assert!(early.is_err() && late.is_ok(), "{early:?} {late:?}");
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_is_gone_leaves_the_queue() {
    let locks = locks();
    let first = take(&locks, &["p"], 10_000, 0).await.unwrap();
    let gone = Arc::clone(&locks);
    let gone = tokio::spawn(async move { take(&gone, &["p"], 10_000, 9_000).await });
    ms(10).await;
    let next = Arc::clone(&locks);
    let next = tokio::spawn(async move { take(&next, &["p"], 10_000, 9_000).await });
    ms(10).await;
    gone.abort();
    assert!(gone.await.is_err());
    assert_eq!(locks.stats(NS).unwrap().waiters, 1);
    let begun = Instant::now();
    give(&locks, first.key);
    assert!(next.await.unwrap().is_ok());
    assert!(begun.elapsed() < Duration::from_millis(50));
}

/// Handed over and gone in the same moment: what nobody took is given to the next.
#[tokio::test(start_paused = true)]
async fn what_is_handed_to_somebody_who_is_gone_goes_on_to_the_next() {
    let locks = locks();
    let first = take(&locks, &["p"], 10_000, 0).await.unwrap();
    let gone = Arc::clone(&locks);
    let gone = tokio::spawn(async move { take(&gone, &["p"], 10_000, 9_000).await });
    ms(10).await;
    let next = Arc::clone(&locks);
    let next = tokio::spawn(async move { take(&next, &["p"], 10_000, 9_000).await });
    ms(10).await;
    // The grant is on its way to the first waiter, who never gets to look at it.
    give(&locks, first.key);
    gone.abort();
    assert!(gone.await.is_err());
    let view = next.await.unwrap().unwrap();
    assert_eq!(give(&locks, view.key), Ended::Released);
    let all = locks.stats(NS).unwrap().all;
    assert_eq!(all.success, all.released, "{all:?}");
}

#[tokio::test(start_paused = true)]
async fn several_names_are_taken_together_or_not_at_all() {
    let locks = locks();
    let held = take(&locks, &["b"], 10_000, 0).await.unwrap();
    let missed = take(&locks, &["a", "b"], 10_000, 0).await.unwrap_err();
    assert!(matches!(missed, Acquired::Conflict(conflict) if &*conflict.taken == "b"));
    let free = take(&locks, &["a"], 10_000, 0).await.unwrap();
    // It waits for one, and when that is free, for the other.
    let both = Arc::clone(&locks);
    let both = tokio::spawn(async move { take(&both, &["a", "b"], 10_000, 9_000).await });
    ms(10).await;
    give(&locks, free.key);
    ms(10).await;
    give(&locks, held.key);
    assert!(both.await.unwrap().is_ok());
}

#[tokio::test(start_paused = true)]
async fn opposite_orders_never_wait_for_each_other() {
    let locks = locks();
    let rounds = (0..16).map(|number| {
        let locks = Arc::clone(&locks);
        tokio::spawn(async move {
            let keys = if number % 2 == 0 { ["a", "b"] } else { ["b", "a"] };
            for _ in 0..63 {
                let view = take(&locks, &keys, 10_000, 30_000).await.unwrap();
                tokio::task::yield_now().await;
                assert_eq!(give(&locks, view.key), Ended::Released);
            }
        })
    });
    for round in rounds.collect::<Vec<_>>() {
        round.await.unwrap();
    }
    assert_eq!(locks.stats(NS).unwrap().all.released, 16 * 63);
}

#[tokio::test(start_paused = true)]
async fn a_queue_has_an_end() {
    let locks = locks();
    take(&locks, &["p"], 10_000, 0).await.unwrap();
    for _ in 0..WAITERS_MAX {
        let locks = Arc::clone(&locks);
        tokio::spawn(async move { take(&locks, &["p"], 10_000, 9_000).await });
    }
    ms(10).await;
    let one = asked(&locks, &["p"], 1_000);
    let refused = locks.acquire(NS, &one, Span::from_secs(1), Durability::Memory).await;
    assert_eq!(refused, Err(LockError::TooManyWaiters));
}

#[tokio::test(start_paused = true)]
async fn clearing_counts_exactly_and_serves_whoever_waits() {
    let locks = locks();
    for number in 0..1_000 {
        take(&locks, &[&format!("k{number}")], 60_000, 0).await.unwrap();
    }
    let waiter = Arc::clone(&locks);
    let waiter = tokio::spawn(async move { take(&waiter, &["k7"], 60_000, 9_000).await });
    ms(10).await;
    assert_eq!(locks.clear(NS, None).await, Ok(1_000));
    assert!(waiter.await.unwrap().is_ok());
    let all = locks.stats(NS).unwrap().all;
    assert_eq!((all.forced, all.active), (1_000, 1));
}

/// Whoever waits need not wait for the end that the lease would have had.
#[tokio::test(start_paused = true)]
async fn a_waiter_is_served_when_the_names_of_an_ended_lease_may_be_had() {
    let locks = locks();
    let held = take(&locks, &["p"], 60_000, 0).await.unwrap();
    let waiter = Arc::clone(&locks);
    let waiter = tokio::spawn(async move { take(&waiter, &["p"], 1_000, 9_000).await });
    ms(10).await;
    let begun = Instant::now();
    assert!(locks.force(NS, held.fence, None, Span::from_millis(2_000)).unwrap().is_some());
    ms(1_999).await;
    locks.tend();
    assert!(!waiter.is_finished(), "its holder may not have noticed yet");
    ms(1).await;
    locks.tend();
    assert!(waiter.await.unwrap().is_ok());
    assert!(begun.elapsed() < Duration::from_millis(2_100), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_renewal_stretches_so_far_and_no_further() {
    let locks = locks();
    let mut one = asked(&locks, &["p"], 1_000);
    one.lease.hold_max = Span::from_millis(2_500);
    locks.acquire(NS, &one, Span::ZERO, Durability::Memory).await.unwrap();
    let proof = Proof { key: one.lease.key, tenant: None };
    let ttl = Span::from_secs(1);
    let renew = || locks.renew(NS, &proof, ttl, Durability::Memory);
    ms(900).await;
    assert!(matches!(renew().await, Ok(Renewed::Extended(_))));
    ms(900).await;
    assert!(matches!(renew().await, Ok(Renewed::Extended(_))));
    ms(600).await;
    assert!(matches!(renew().await, Ok(Renewed::AtMost(_))));
    ms(100).await;
    assert!(matches!(renew().await, Ok(Renewed::Over(_))));
    assert!(take(&locks, &["p"], 1_000, 0).await.is_ok(), "it ended on time");
}

/// L24. Leases are timed by a clock that a corrected wall clock does not move (`clock.rs` has the
/// test); should any clock jump, numbers rise all the same and nothing ends early.
#[tokio::test]
async fn numbers_rise_and_nothing_ends_early_whatever_the_clock_does() {
    let noon = Time::from_micros(1_700_000_000_000_000);
    let clock = ManualClock::at(noon);
    let locks = Locks::new(Arc::new(clock.clone()), &Secret::from_bytes([3; 32]));
    let hour = Span::from_secs(3_600);
    let held = take(&locks, &["held"], 5_000, 0).await.unwrap();
    let mut last = held.fence;
    for (at, over) in
        [(noon.before(hour), false), (noon, false), (noon.after(hour), true), (noon, true)]
    {
        clock.set(at);
        let next = take(&locks, &["p"], 1, 0).await.unwrap();
        assert!(next.fence > last, "{} after {last}", next.fence);
        last = next.fence;
        give(&locks, next.key);
        let proof = Proof { key: held.key, tenant: None };
        let ended = locks.renew(NS, &proof, Span::from_millis(1), Durability::Memory).await;
        let ended = matches!(ended, Ok(Renewed::Over(_) | Renewed::NotHolder));
        assert_eq!(ended, over, "{at:?}");
    }
}

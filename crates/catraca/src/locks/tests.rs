//! Waiting callers: in order, until their deadline. Time is virtual.

mod crash_recovery;
mod failed_undos;
mod failed_writes;
mod guards;
mod stopped;
mod turns;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use catraca_core::digest::Secret;
use catraca_core::lock::reply::{AcquireReply, Lease, ReleaseReply, RenewReply};
use catraca_core::lock::requests::{Acquire, LeaseRequest, Proof};
use catraca_core::lock::{Durability, LeaseKey, LockTerms, VersionPolicy};
use catraca_core::time::{Span, Time};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use super::{Confirmation, LockError, LockStats, Locks, WAITERS_MAX};
use crate::clock::{Clock, ManualClock};

/// Tokio's paused clock, which jumps to the next timer when all tasks sleep.
struct VirtualClock(Instant);

impl Clock for VirtualClock {
    fn system_time(&self) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000) + self.0.elapsed()
    }
}

fn locks() -> Arc<Locks> {
    let clock = Arc::new(VirtualClock(Instant::now()));
    Arc::new(Locks::in_memory(clock, &Secret::from_bytes([3; 32])))
}

const NS: &str = "default";

fn acquire_request(locks: &Locks, keys: &[&str], ttl_ms: i64) -> Acquire {
    let key = locks.lease_id(NS, None, None).unwrap().key();
    let ttl = Span::from_millis(ttl_ms);
    Acquire {
        tenant: None,
        kind: "payment".into(),
        keys: keys.iter().map(|key| Box::from(*key)).collect(),
        lease: LeaseRequest::new(key, ttl, Span::from_secs(3_600)),
        policy: VersionPolicy::Opaque,
    }
    .validate()
    .unwrap()
}

fn fsync_request(locks: &Locks, keys: &[&str], ttl_ms: i64) -> Acquire {
    let mut request = acquire_request(locks, keys, ttl_ms);
    request.lease.durability = Durability::Fsync;
    request
}

async fn acquire(
    locks: &Locks,
    keys: &[&str],
    ttl_ms: i64,
    wait_ms: i64,
) -> Result<Lease, AcquireReply> {
    let request = acquire_request(locks, keys, ttl_ms);
    let wait = Span::from_millis(wait_ms);
    match locks.acquire(NS, &request, wait).await.unwrap().acquired {
        AcquireReply::Granted(lease) => Ok(*lease),
        other => Err(other),
    }
}

async fn release(locks: &Locks, key: LeaseKey) -> ReleaseReply {
    locks.release(NS, &Proof { key, tenant: None }).await.unwrap()
}

async fn confirm(locks: &Locks, proof: &Proof, reacquire: bool) -> Result<Confirmation, LockError> {
    locks.confirm(NS, proof, reacquire, &terms(Durability::Memory)).await
}

async fn renew(locks: &Locks, proof: &Proof, ttl_ms: i64) -> RenewReply {
    renew_with(locks, proof, ttl_ms, Durability::Memory).await
}

async fn renew_with(locks: &Locks, proof: &Proof, ttl_ms: i64, how: Durability) -> RenewReply {
    let ttl = Duration::from_millis(ttl_ms.unsigned_abs());
    locks.renew(NS, proof, Some(ttl), &terms(how)).await.unwrap().reply
}

/// The default terms, with this durability.
fn terms(durability: Durability) -> LockTerms {
    LockTerms { durability, ..LockTerms::default() }
}

async fn stats(locks: &Locks) -> LockStats {
    locks.stats_of(NS, None).await.unwrap()
}

async fn sleep_ms(millis: u64) {
    sleep(Duration::from_millis(millis)).await;
}

#[tokio::test(start_paused = true)]
async fn the_longest_waiter_is_granted_the_name_at_once() {
    let locks = locks();
    let first = acquire(&locks, &["p"], 10_000, 0).await.unwrap();
    let order = Arc::new(Mutex::new(Vec::new()));
    let waiters: Vec<_> = (0..100)
        .map(|number| {
            let locks = Arc::clone(&locks);
            let order = Arc::clone(&order);
            tokio::spawn(async move {
                let lease = acquire(&locks, &["p"], 10_000, 5_000).await.unwrap();
                order.lock().push((number, lease.fence));
                release(&locks, lease.key).await;
            })
        })
        .collect();
    sleep_ms(10).await;
    assert_eq!(stats(&locks).await.waiters, 100);
    assert_eq!(locks.stats_of(NS, Some("other")).await.unwrap().waiters, 0);
    let begun = Instant::now();
    release(&locks, first.key).await;
    for waiter in waiters {
        waiter.await.unwrap();
    }
    assert!(begun.elapsed() < Duration::from_millis(5), "no timer was needed");
    let order = order.lock().clone();
    assert!(order.windows(2).all(|pair| pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1));
    let stats = stats(&locks).await;
    assert_eq!((stats.all.success, stats.all.released, stats.waiters), (101, 101, 0));
}

#[tokio::test(start_paused = true)]
async fn a_holders_end_wakes_the_waiter_and_a_deadline_ends_the_wait() {
    let locks = locks();
    acquire(&locks, &["p"], 300, 0).await.unwrap();
    let begun = Instant::now();
    assert!(acquire(&locks, &["p"], 1_000, 5_000).await.is_ok());
    assert_eq!(begun.elapsed().as_millis(), 300, "at the holder's end, without a release");
    let begun = Instant::now();
    let missed = acquire(&locks, &["p"], 1_000, 300).await.unwrap_err();
    assert_eq!(begun.elapsed().as_millis(), 300);
    assert!(matches!(missed, AcquireReply::Conflict(_)), "{missed:?}");
    sleep_ms(5_000).await;
    let stats = stats(&locks).await;
    assert_eq!((stats.all.success, stats.all.conflicts, stats.all.active), (2, 1, 0));
}

/// A deadline equal to the end of the holder's lease is too early.
#[tokio::test(start_paused = true)]
async fn a_waiter_whose_time_is_over_is_never_granted() {
    let locks = locks();
    acquire(&locks, &["p"], 300, 0).await.unwrap();
    let early = acquire(&locks, &["p"], 1_000, 300);
    let late = acquire(&locks, &["p"], 1_000, 301);
    let (early, late) = tokio::join!(early, late);
    assert!(early.is_err() && late.is_ok(), "{early:?} {late:?}");
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_is_gone_leaves_the_queue() {
    let locks = locks();
    let first = acquire(&locks, &["p"], 10_000, 0).await.unwrap();
    let gone = Arc::clone(&locks);
    let gone = tokio::spawn(async move { acquire(&gone, &["p"], 10_000, 9_000).await });
    sleep_ms(10).await;
    let next = Arc::clone(&locks);
    let next = tokio::spawn(async move { acquire(&next, &["p"], 10_000, 9_000).await });
    sleep_ms(10).await;
    gone.abort();
    assert!(gone.await.is_err());
    assert_eq!(stats(&locks).await.waiters, 1);
    let begun = Instant::now();
    release(&locks, first.key).await;
    assert!(next.await.unwrap().is_ok());
    assert!(begun.elapsed() < Duration::from_millis(50));
}

/// A grant whose waiter is dropped before it sees the grant goes to the next waiter.
#[tokio::test(start_paused = true)]
async fn a_grant_to_a_dropped_waiter_goes_to_the_next() {
    let locks = locks();
    let first = acquire(&locks, &["p"], 10_000, 0).await.unwrap();
    let gone = Arc::clone(&locks);
    let gone = tokio::spawn(async move { acquire(&gone, &["p"], 10_000, 9_000).await });
    sleep_ms(10).await;
    let next = Arc::clone(&locks);
    let next = tokio::spawn(async move { acquire(&next, &["p"], 10_000, 9_000).await });
    sleep_ms(10).await;
    // The grant is sent to the first waiter, which is aborted before it reads it.
    release(&locks, first.key).await;
    gone.abort();
    assert!(gone.await.is_err());
    let lease = next.await.unwrap().unwrap();
    assert_eq!(release(&locks, lease.key).await, ReleaseReply::Released);
    let all = stats(&locks).await.all;
    assert_eq!(all.success, all.released, "{all:?}");
}

#[tokio::test(start_paused = true)]
async fn several_names_are_taken_together_or_not_at_all() {
    let locks = locks();
    let held = acquire(&locks, &["b"], 10_000, 0).await.unwrap();
    let missed = acquire(&locks, &["a", "b"], 10_000, 0).await.unwrap_err();
    assert!(matches!(missed, AcquireReply::Conflict(conflict) if &*conflict.taken == "b"));
    let free = acquire(&locks, &["a"], 10_000, 0).await.unwrap();
    // It waits for one name and then for the other.
    let both = Arc::clone(&locks);
    let both = tokio::spawn(async move { acquire(&both, &["a", "b"], 10_000, 9_000).await });
    sleep_ms(10).await;
    release(&locks, free.key).await;
    sleep_ms(10).await;
    release(&locks, held.key).await;
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
                let lease = acquire(&locks, &keys, 10_000, 30_000).await.unwrap();
                tokio::task::yield_now().await;
                assert_eq!(release(&locks, lease.key).await, ReleaseReply::Released);
            }
        })
    });
    for round in rounds.collect::<Vec<_>>() {
        round.await.unwrap();
    }
    assert_eq!(stats(&locks).await.all.released, 16 * 63);
}

#[tokio::test(start_paused = true)]
async fn a_queue_has_an_end() {
    let locks = locks();
    acquire(&locks, &["p"], 10_000, 0).await.unwrap();
    for _ in 0..WAITERS_MAX {
        let locks = Arc::clone(&locks);
        tokio::spawn(async move { acquire(&locks, &["p"], 10_000, 9_000).await });
    }
    sleep_ms(10).await;
    let one = acquire_request(&locks, &["p"], 1_000);
    let refused = locks.acquire(NS, &one, Span::from_secs(1)).await;
    assert_eq!(refused, Err(LockError::TooManyWaiters));
}

#[tokio::test(start_paused = true)]
async fn clearing_counts_exactly_and_serves_waiters() {
    let locks = locks();
    for number in 0..1_000 {
        acquire(&locks, &[&format!("k{number}")], 60_000, 0).await.unwrap();
    }
    let waiter = Arc::clone(&locks);
    let waiter = tokio::spawn(async move { acquire(&waiter, &["k7"], 60_000, 9_000).await });
    sleep_ms(10).await;
    assert_eq!(locks.clear(NS, None).await, Ok(1_000));
    assert!(waiter.await.unwrap().is_ok());
    let all = stats(&locks).await.all;
    assert_eq!((all.forced, all.active), (1_000, 1));
}

/// The cooldown ends the wait, not the original end of the lease.
#[tokio::test(start_paused = true)]
async fn a_waiter_is_served_when_the_names_of_an_ended_lease_may_be_had() {
    let locks = locks();
    let held = acquire(&locks, &["p"], 60_000, 0).await.unwrap();
    let waiter = Arc::clone(&locks);
    let waiter = tokio::spawn(async move { acquire(&waiter, &["p"], 1_000, 9_000).await });
    sleep_ms(10).await;
    let begun = Instant::now();
    assert!(locks.force(NS, held.fence, None, Span::from_millis(2_000)).await.unwrap().is_some());
    sleep_ms(1_999).await;
    locks.expire().await;
    assert!(!waiter.is_finished(), "its holder may not have noticed yet");
    sleep_ms(1).await;
    locks.expire().await;
    assert!(waiter.await.unwrap().is_ok());
    assert!(begun.elapsed() < Duration::from_millis(2_100), "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_renewal_stretches_so_far_and_no_further() {
    let locks = locks();
    let mut one = acquire_request(&locks, &["p"], 1_000);
    one.lease.hold_max = Span::from_millis(2_500);
    locks.acquire(NS, &one, Span::ZERO).await.unwrap();
    let proof = Proof { key: one.lease.key, tenant: None };
    let renew = || renew(&locks, &proof, 1_000);
    sleep_ms(900).await;
    assert!(matches!(renew().await, RenewReply::Extended(_)));
    sleep_ms(900).await;
    assert!(matches!(renew().await, RenewReply::Extended(_)));
    sleep_ms(600).await;
    assert!(matches!(renew().await, RenewReply::AtMost(_)));
    sleep_ms(100).await;
    assert!(matches!(renew().await, RenewReply::Over(_)));
    assert!(acquire(&locks, &["p"], 1_000, 0).await.is_ok(), "it ended on time");
}

/// L24. Leases expire by a monotonic clock (tested in `clock.rs`). Should a clock jump anyway,
/// fences still increase and no lease ends early.
#[tokio::test]
async fn numbers_rise_and_nothing_ends_early_whatever_the_clock_does() {
    let noon = Time::from_micros(1_700_000_000_000_000);
    let clock = ManualClock::at(noon);
    let locks = Locks::in_memory(Arc::new(clock.clone()), &Secret::from_bytes([3; 32]));
    let hour = Span::from_secs(3_600);
    let held = acquire(&locks, &["held"], 5_000, 0).await.unwrap();
    let mut last = held.fence;
    for (at, over) in
        [(noon.before(hour), false), (noon, false), (noon.after(hour), true), (noon, true)]
    {
        clock.set(at);
        let next = acquire(&locks, &["p"], 1, 0).await.unwrap();
        assert!(next.fence > last, "{} after {last}", next.fence);
        last = next.fence;
        release(&locks, next.key).await;
        let proof = Proof { key: held.key, tenant: None };
        let renewed = renew(&locks, &proof, 1).await;
        let ended = matches!(renewed, RenewReply::Over(_) | RenewReply::NotHolder);
        assert_eq!(ended, over, "{at:?}");
    }
}

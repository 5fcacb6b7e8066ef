//! A majority of the Sentinels confirms the primary, or decisions and locks say that it does not: a
//! failover, a Sentinel that hangs, a lost quorum.

use std::time::{Duration, Instant};

use catraca::locks::{LockError, LockStore};
use catraca::redis::{RedisLocks, RedisOptions, RedisStore};
use catraca::store::{SharedStore, When};
use catraca_core::lock::reply::AcquireReply;
use catraca_core::lock::{LockOp, LockOutcome};
use catraca_core::time::Span;
use catraca_testkit::blocking_store::BlockingStore;
use catraca_testkit::redis::{RedisSentinels, until};
use catraca_testkit::resp::RespValue;
use tokio::runtime::Runtime;

use super::helpers::{LONG_DEADLINE, connect, passes};
use super::locks::acquire;

/// Two heartbeats, and the answer of a Sentinel that does not come.
const DOUBTED: Duration = Duration::from_millis(800);
/// What a busy machine may add.
const NOISE: Duration = Duration::from_millis(700);
const TTL: Span = Span::from_secs(2);

/// Locks under Sentinels.
struct Locks {
    redis: RedisLocks,
    threads: Runtime,
    leases: u64,
}

impl Locks {
    fn connect(group: &RedisSentinels) -> Self {
        let threads = Runtime::new().unwrap();
        let options = RedisOptions { deadline: LONG_DEADLINE, ..RedisOptions::default() };
        let redis = threads.block_on(RedisLocks::connect(&group.url(), options)).unwrap();
        Self { redis, threads, leases: 0 }
    }

    /// Acquires a new name of a kind with `failover_grace`.
    fn acquire_careful(&mut self) -> Result<(), LockError> {
        self.acquire(TTL)
    }

    /// Acquires a new name of a kind without it.
    fn acquire_careless(&mut self) -> Result<(), LockError> {
        self.acquire(Span::ZERO)
    }

    fn acquire(&mut self, grace: Span) -> Result<(), LockError> {
        self.leases += 1;
        let mut op = acquire(&format!("name {}", self.leases), self.leases, TTL);
        let LockOp::Acquire { request, .. } = &mut op else { panic!("an acquire") };
        request.lease.grace = grace;
        let reply = self.threads.block_on(self.redis.ask("n", &op, When::Store))?;
        let outcome = reply.outcome;
        let granted = matches!(outcome, LockOutcome::Acquired(AcquireReply::Granted(_)));
        assert!(granted, "{outcome:?}");
        Ok(())
    }
}

fn is_doubtful(store: &BlockingStore<RedisStore>) -> bool {
    store.store().doubt().is_some()
}

/// A Sentinel announces a failover before it promotes a replica; from then on nothing is promised.
#[test]
fn an_ordered_failover_is_doubted_before_another_primary_is_named() {
    let Some(group) = RedisSentinels::start() else { return };
    let store = connect(&group.url());
    let mut locks = Locks::connect(&group);
    assert!(passes(&store, 1).unwrap() && !is_doubtful(&store));
    locks.acquire_careful().expect("a majority confirms the primary");
    let old = group.primary_by(1);
    let role = |server: usize| group.servers[server].field(&["INFO", "replication"], "role");
    let is_promoted = || [1, 2].map(|server| role(server).as_deref() == Some("master"));
    let begun = Instant::now();
    assert_eq!(group.fail_over_by(1), RespValue::Bytes(b"OK".to_vec()));
    let doubted = until("the failover is doubted", || is_doubtful(&store));
    assert_eq!(group.primary_by(1), old, "the leader itself still names the old primary");
    // Decisions and locks ask the Sentinels separately.
    let mut refused = String::new();
    until("careful locks are refused", || match locks.acquire_careful() {
        Ok(()) => false,
        Err(error) => {
            refused = error.to_string();
            true
        }
    });
    assert!(refused.contains("failover_grace") || refused.contains("run out within"), "{refused}");
    until("other kinds are granted", || locks.acquire_careless().is_ok());
    until("a replica is promoted", || is_promoted().contains(&true));
    let promoted = begun.elapsed();
    until("the new primary is confirmed", || passes(&store, 1).is_ok() && !is_doubtful(&store));
    let confirmed = begun.elapsed();
    println!("doubted after {doubted:?}, promoted after {promoted:?}, confirmed {confirmed:?}");
    // The grace begins with the first call on the new primary, and is longer than `ttl_max` by
    // what other nodes may have granted on the old one.
    until("the first call", || locks.acquire_careless().is_ok());
    let first = Instant::now();
    until("leases are granted again", || locks.acquire_careful().is_ok());
    assert!(first.elapsed() > Duration::from_secs(3), "{:?}", first.elapsed());
}

/// R3. A Sentinel that hangs has no vote; the others are enough.
#[test]
fn a_sentinel_that_hangs_hides_no_failover() {
    let Some(group) = RedisSentinels::start() else { return };
    let store = connect(&group.url());
    assert!(passes(&store, 1).unwrap());
    group.sentinels[0].signal("STOP");
    let silent = || store.store().background_error();
    let noticed = until("the silence is noticed", || silent().is_some());
    assert!(noticed < Duration::from_secs(2) + NOISE, "{noticed:?}");
    assert!(silent().is_some_and(|text| text.contains("1 of 3 Sentinels")), "{:?}", silent());
    until("the primary is confirmed", || !is_doubtful(&store));
    let old = group.primary_by(1);
    assert_eq!(group.fail_over_by(1), RespValue::Bytes(b"OK".to_vec()));
    until("another primary is named", || group.primary_by(1) != old);
    let followed = until("calls pass", || passes(&store, 2).is_ok() && !is_doubtful(&store));
    println!("silence noticed after {noticed:?}, failover followed after {followed:?}");
    assert!(followed < Duration::from_secs(3), "{followed:?}");
    group.sentinels[0].signal("CONT");
    until("all answer again", || silent().is_none());
}

/// Without a quorum, decisions go on and are doubtful; locks of careful kinds are refused.
#[test]
fn a_lost_quorum_is_doubted_within_two_heartbeats_and_refuses_careful_locks() {
    let Some(group) = RedisSentinels::start() else { return };
    let store = connect(&group.url());
    let mut locks = Locks::connect(&group);
    assert!(passes(&store, 1).unwrap());
    locks.acquire_careful().expect("a majority confirms the primary");
    group.sentinels[..2].iter().for_each(|sentinel| sentinel.signal("STOP"));
    let doubted = until("it is doubted", || is_doubtful(&store));
    println!("a lost quorum is doubted after {doubted:?}");
    assert!(doubted < DOUBTED + NOISE, "{doubted:?}");
    let why = store.store().doubt().expect("there is a reason");
    assert!(why.contains("no majority of the Sentinels") && why.contains("of 3"), "{why}");
    assert!(passes(&store, 1).unwrap(), "decisions go on");
    let refused = until("careful locks are refused", || locks.acquire_careful().is_err());
    assert!(refused < Duration::from_secs(1) + NOISE, "{refused:?}");
    let why = locks.acquire_careful().unwrap_err().to_string();
    assert!(why.contains("no majority of the Sentinels"), "{why}");
    locks.acquire_careless().expect("other kinds are granted");
    group.sentinels[..2].iter().for_each(|sentinel| sentinel.signal("CONT"));
    let confirmed = until("it is confirmed", || !is_doubtful(&store));
    println!("and confirmed {confirmed:?} after it is back");
    // The locks ask the Sentinels themselves. No failover, no grace, which would be longer.
    let granted = until("careful locks are granted", || locks.acquire_careful().is_ok());
    assert!(granted < Duration::from_secs(1) + NOISE, "{granted:?}");
}

#[test]
fn settings_that_lengthen_or_endanger_a_failover_are_advised() {
    let Some(group) = RedisSentinels::start() else { return };
    assert_eq!(connect(&group.url()).store().config_notice(), None, "as in the example");
    group.servers[0].command(&["CONFIG", "SET", "min-replicas-to-write", "0"]);
    let advice = connect(&group.url()).store().config_notice().expect("there is advice");
    assert!(advice.contains("CONFIG SET min-replicas-to-write 1"), "{advice}");
    group.servers[0].command(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
    // Sentinels take a new primary for down before they ping it, and replace it again.
    group.set_down_after(2, 500);
    let store = connect(&group.url());
    until("the Sentinel's setting is read", || store.store().config_notice().is_some());
    let advice = store.store().config_notice().expect("there is advice");
    assert!(advice.contains("down-after-milliseconds is 500"), "{advice}");
    assert!(advice.contains("SENTINEL SET catraca down-after-milliseconds 2000"), "{advice}");
}

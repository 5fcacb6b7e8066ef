//! Locks on a real Redis: the script, the rules and the model say the same, to the last field of
//! every reply; and what servers do to them.

use std::time::{Duration, Instant};

use catraca::locks::{FreedNotice, LockStore};
use catraca::redis::{RedisLocks, RedisOptions};
use catraca::store::{StoreError, When};
use catraca_core::lock::reply::{
    AcquireReply, ConfirmReply, Lease, MoveReply, ReleaseReply, RenewReply,
};
use catraca_core::lock::requests::{Acquire, Hold, LeaseRequest, Move, Proof, TimeRange};
use catraca_core::lock::{
    LeaseId, LeaseKey, LockName, LockOp, LockOutcome, LockReply, LockTable, VersionPolicy,
};
use catraca_core::time::{Span, Time};
use catraca_testkit::generate::Rng;
use catraca_testkit::locks::trace::{LockDriver, run_trace_on};
use catraca_testkit::redis::{RedisCluster, RedisServer, until};
use catraca_testkit::resp::RespValue;
use tokio::runtime::Runtime;

use super::acl;
use super::desk::{CALM, setting};

const LENGTH: usize = 400;

/// Locks in Redis, and the threads that they are asked on.
struct Asked {
    threads: Runtime,
    redis: RedisLocks,
}

impl Asked {
    fn of(url: &str) -> Self {
        let threads = Runtime::new().unwrap();
        let options = RedisOptions { deadline: CALM, ..RedisOptions::default() };
        let redis = threads.block_on(RedisLocks::connect(url, options)).unwrap();
        Self { threads, redis }
    }

    fn ask(&self, namespace: &str, op: &LockOp, when: When) -> LockReply {
        self.threads.block_on(self.redis.ask(namespace, op, when)).unwrap()
    }

    fn told(&self, op: &LockOp) -> LockOutcome {
        self.ask("n", op, When::Store).outcome
    }

    /// Takes a name, which must be free.
    fn take(&self, name: &str, lease: u64, ttl: Span) -> Lease {
        match self.told(&acquire(name, lease, ttl)) {
            LockOutcome::Acquired(AcquireReply::Granted(view)) => *view,
            other => panic!("not granted: {other:?}"),
        }
    }
}

fn key(number: u64) -> LeaseKey {
    let mut bytes = [7; 16];
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    LeaseId::from_bytes(bytes).key()
}

pub fn acquire(name: &str, lease: u64, ttl: Span) -> LockOp {
    let lease = LeaseRequest::new(key(lease), ttl, Span::from_secs(3_600));
    let (kind, keys, policy) = ("k".into(), vec![name.into()], VersionPolicy::Opaque);
    LockOp::Acquire { asked: Acquire { tenant: None, kind, keys, lease, policy }, counts: true }
}

fn proof(lease: u64) -> Proof {
    Proof { key: key(lease), tenant: None }
}

fn release(lease: u64) -> LockOp {
    LockOp::Release(proof(lease))
}

/// A namespace in Redis, and the rules beside it.
struct Both<'t> {
    asked: &'t Asked,
    namespace: String,
    book: LockTable,
}

impl LockDriver for Both<'_> {
    fn execute(&mut self, op: &LockOp, now: Time) -> LockReply {
        let ours = self.book.apply(op, now);
        let theirs = self.asked.ask(&self.namespace, op, When::At(now));
        assert_eq!(ours, theirs, "{} at {}: {op:?}", self.namespace, now.micros());
        theirs
    }
}

fn tell(asked: &Asked, stories: u64) {
    let seed = setting("CATRACA_REDIS_SEED", 20_261_116);
    let (begun, mut rng) = (Instant::now(), Rng::new(seed));
    for number in 0..stories {
        let namespace = format!("story {number}");
        let mut both = Both { asked, namespace, book: LockTable::default() };
        if let Err(difference) = run_trace_on(&mut both, 1_000_000, rng.next_u64(), LENGTH) {
            panic!("{difference}");
        }
    }
    let operations = stories * LENGTH as u64;
    println!("{operations} operations from seed {seed}, no difference, in {:?}", begun.elapsed());
}

/// covers: B-33, B-62, B-63
#[test]
fn memory_and_redis_answer_alike_about_locks() {
    let Some(server) = RedisServer::start() else { return };
    let operations = setting("CATRACA_REDIS_OPERATIONS", 100_000) / 10;
    tell(&Asked::of(&server.url()), operations / LENGTH as u64);
}

/// Each namespace is on one primary, and a namespace is all that an operation touches.
#[test]
fn locks_are_the_same_on_a_cluster_and_wake_whoever_waits_anywhere() {
    let Some(cluster) = RedisCluster::start() else { return };
    let asked = Asked::of(&cluster.url());
    tell(&asked, 12);
    let empty = |server: usize| cluster.servers[server].command(&["DBSIZE"]) == RespValue::Int(0);
    assert!((0..3).all(|server| !empty(server)), "namespaces spread over the primaries");
    wakes(&asked);
}

#[test]
fn a_user_with_few_rights_may_lock_and_hear() {
    let Some(server) = acl::server() else { return };
    let asked = Asked::of(&acl::url(&server));
    tell(&asked, 3);
    wakes(&asked);
}

/// What is released is told, wherever somebody listens.
fn wakes(asked: &Asked) {
    let mut freed = asked.redis.freed();
    let name = LockName { tenant: None, kind: "k".into(), key: "p".into() };
    let mut lease = 1_000;
    asked.threads.block_on(async {
        // It begins to listen in the background.
        loop {
            lease += 1;
            let op = acquire("p", lease, Span::from_secs(60));
            asked.redis.ask("n", &op, When::Store).await.unwrap();
            asked.redis.ask("n", &release(lease), When::Store).await.unwrap();
            let heard = tokio::time::timeout(Duration::from_millis(200), freed.recv()).await;
            if matches!(heard, Ok(Ok(FreedNotice::Name(mark))) if mark == name.mark("n")) {
                return;
            }
            assert!(lease < 1_100, "nobody was told");
        }
    });
}

#[test]
fn a_forgotten_script_of_locks_is_no_fault() {
    let Some(server) = RedisServer::start() else { return };
    let asked = Asked::of(&server.url());
    asked.take("p", 1, Span::from_secs(60));
    server.command(&["SCRIPT", "FLUSH"]);
    assert_eq!(asked.told(&release(1)), LockOutcome::Ended(ReleaseReply::Released));
}

/// A store that was told an instant never goes behind it, and its numbers never fall.
/// covers: B-62
#[test]
fn a_clock_that_is_set_back_ends_nothing_early_and_numbers_still_rise() {
    let Some(server) = RedisServer::start() else { return };
    let asked = Asked::of(&server.url());
    let (late, early) = (Time::from_micros(9_000_000), Time::from_micros(1_000_000));
    let first = asked.ask("n", &acquire("p", 1, Span::from_secs(5)), When::At(late));
    let LockOutcome::Acquired(AcquireReply::Granted(first)) = first.outcome else {
        panic!("not granted")
    };
    let second = asked.ask("n", &acquire("q", 2, Span::from_secs(5)), When::At(early));
    assert_eq!(second.now, late);
    let LockOutcome::Acquired(AcquireReply::Granted(second)) = second.outcome else {
        panic!("not granted")
    };
    assert!(second.fence > first.fence);
    let taken = asked.ask("n", &acquire("p", 3, Span::from_secs(5)), When::At(early));
    assert!(matches!(taken.outcome, LockOutcome::Acquired(AcquireReply::Conflict(_))), "{taken:?}");
}

/// L22. The replica never heard of the last grant, so its name is given again, with a higher
/// number: whoever checks numbers is safe.
///
#[test]
fn a_failover_that_lost_a_grant_gives_a_higher_number_and_payments_wait() {
    let Some(mut primary) = RedisServer::start() else { return };
    let Some(replica) = RedisServer::start() else { return };
    replica.command(&["REPLICAOF", "127.0.0.1", &primary.port().to_string()]);
    let linked = || {
        let up = replica.field(&["INFO", "replication"], "master_link_status");
        up.as_deref() == Some("up")
    };
    until("the replica follows", linked);
    let asked = Asked::of(&primary.url());
    let known = asked.take("known", 1, Span::from_secs(60));
    for (lease, minute, ttl) in [(20, 10, 60), (21, 20, 1)] {
        asked.ask("careful", &hold(lease, minute, ttl), at(1));
    }
    // The last of them: its name is a key more, by which the replica is known to have all.
    careful(&asked, "p", 10, 1).expect("nobody has it");
    let has = || replica.command(&["DBSIZE"]) == primary.command(&["DBSIZE"]);
    until("the replica has it", has);
    // Cut off: it keeps what it has, and hears of nothing any more.
    replica.command(&["REPLICAOF", "127.0.0.1", "1"]);
    let lost = asked.take("p", 2, Span::from_secs(60));
    assert!(lost.fence > known.fence);
    primary.kill();
    replica.command(&["REPLICAOF", "NO", "ONE"]);
    let after = Asked::of(&replica.url());
    let again = after.take("p", 3, Span::from_secs(60));
    assert!(again.fence > lost.fence, "{} after {}", again.fence, lost.fence);
    let taken = after.told(&acquire("known", 4, Span::from_secs(60)));
    assert!(matches!(taken, LockOutcome::Acquired(AcquireReply::Conflict(_))), "{taken:?}");
    // Whoever would rather wait is told for how long; who holds something may go on.
    let refused = careful(&after, "q", 11, 2).unwrap_err().to_string();
    assert!(refused.contains("run out within 30 s"), "{refused}");
    assert!(careful(&after, "q", 12, 31).is_err(), "counted from when it was noticed");
    for op in [moved(20, 30), anew(21)] {
        let refused = after.threads.block_on(after.redis.ask("careful", &op, at(31))).unwrap_err();
        assert!(refused.to_string().contains("run out within 1 s"), "{refused}");
    }
    let kept = after.ask("careful", &anew(20), at(31)).outcome;
    assert!(
        matches!(kept, LockOutcome::Confirmed(ConfirmReply::Done(_))),
        "it takes nothing: {kept:?}"
    );
    let renewal = LockOp::Renew { proof: proof(10), ttl: Span::from_secs(60) };
    let renewed = after.ask("careful", &renewal, at(31)).outcome;
    assert!(matches!(renewed, LockOutcome::Renewed(RenewReply::Extended(_))), "{renewed:?}");
    assert!(careful(&after, "q", 13, 32).is_ok());
    let done = after.ask("careful", &moved(20, 30), at(32)).outcome;
    assert!(matches!(done, LockOutcome::Moved(MoveReply::Done(_))), "{done:?}");
    let done = after.ask("careful", &anew(21), at(32)).outcome;
    assert!(matches!(done, LockOutcome::Confirmed(ConfirmReply::Done(_))), "{done:?}");
    // A server that forgot everything cannot know that it did; the node does.
    replica.command(&["FLUSHALL"]);
    let refused = careful(&after, "q", 14, 40).unwrap_err().to_string();
    assert!(refused.contains("run out within 30 s"), "{refused}");
}

/// Takes a name that nobody is granted for 30 s after a failover.
fn careful(asked: &Asked, name: &str, lease: u64, second: i64) -> Result<LockReply, StoreError> {
    let mut op = acquire(name, lease, Span::from_secs(60));
    let LockOp::Acquire { asked: wanted, .. } = &mut op else { panic!("an acquire") };
    wanted.lease.grace = Span::from_secs(30);
    asked.threads.block_on(asked.redis.ask("careful", &op, at(second)))
}

fn minutes(minute: i64) -> (Time, Time) {
    let begin = Time::from_micros(minute * 60_000_000);
    (begin, begin.after(Span::from_secs(60)))
}

fn hold(lease: u64, minute: i64, ttl: i64) -> LockOp {
    let lease = LeaseRequest::new(key(lease), Span::from_secs(ttl), Span::from_secs(3_600));
    let (start, end) = minutes(minute);
    let (kind, calendars, range) = ("k".into(), vec!["ana".into()], TimeRange::of(start, end));
    LockOp::Hold(Hold { tenant: None, kind, calendars, range, lease })
}

fn moved(lease: u64, minute: i64) -> LockOp {
    let ((start, end), grace) = (minutes(minute), Span::from_secs(30));
    LockOp::Relocate(Move { proof: proof(lease), calendars: None, start, end, grace })
}

fn anew(lease: u64) -> LockOp {
    LockOp::Confirm { proof: proof(lease), again: true, grace: Span::from_secs(30) }
}

fn at(second: i64) -> When {
    When::At(Time::from_micros(second * 1_000_000))
}

/// L23. The replica is there and stands still: nothing is granted, and nothing is left locked.
#[test]
fn a_grant_that_no_replica_has_heard_of_is_taken_back() {
    let Some(primary) = RedisServer::start() else { return };
    let Some(replica) = RedisServer::start() else { return };
    replica.command(&["REPLICAOF", "127.0.0.1", &primary.port().to_string()]);
    let threads = Runtime::new().unwrap();
    let options = RedisOptions { deadline: Duration::from_secs(1), ..RedisOptions::default() };
    let url = primary.url();
    let connecting = RedisLocks::connect_replicated(&url, options, 1);
    let asked = Asked { redis: threads.block_on(connecting).unwrap(), threads };
    let granted = |lease| {
        let op = acquire("p", lease, Span::from_secs(60));
        asked.threads.block_on(asked.redis.ask("n", &op, When::Store))
    };
    let mut lease = 0;
    until("the replica follows", || {
        lease += 1;
        granted(lease).is_ok()
    });
    assert_eq!(asked.told(&release(lease)), LockOutcome::Ended(ReleaseReply::Released));
    replica.signal("STOP");
    let refused = granted(lease + 1).unwrap_err().to_string();
    assert!(refused.contains("0 of 1 replicas"), "{refused}");
    let alone = Asked::of(&primary.url());
    alone.take("p", lease + 2, Span::from_secs(60));
    let LockOutcome::Tallied(rows) = alone.told(&LockOp::Tally) else { panic!("not counted") };
    assert_eq!(rows[0].1.success, 2, "{rows:?}");
    replica.signal("CONT");
}

/// L30, smaller: leases that nobody gives back are put away, 128 at a time, and a server that
/// nobody asks any more collects the rest itself.
#[test]
fn abandoned_leases_leave_nothing_behind() {
    const LEASES: u64 = 3_000;
    let Some(server) = RedisServer::start() else { return };
    let asked = Asked::of(&server.url());
    asked.take("p", 0, Span::from_secs(5));
    let RespValue::Array(keys) = server.command(&["KEYS", "*"]) else { panic!("keys") };
    let mut client = server.connect();
    let mut lasting = 0;
    for key in keys {
        let RespValue::Bytes(key) = key else { panic!("a key") };
        let RespValue::Int(ttl) = client.call(&[b"TTL", &key]).unwrap() else { panic!("a TTL") };
        lasting += usize::from(ttl == -1);
        assert!(ttl == -1 || ttl >= 7_200, "garbage is collected late: {ttl}");
    }
    assert_eq!(lasting, 2, "only the clock and the counts stay");
    for number in 0..LEASES {
        let op = acquire(&number.to_string(), number, Span::from_secs(5));
        asked.ask("other", &op, at(1_000));
    }
    let mut rounds = 0;
    let more = LockOutcome::Swept { more: true };
    while asked.ask("other", &LockOp::Sweep, at(1_066)).outcome == more {
        rounds += 1;
    }
    assert_eq!(rounds, 2 * LEASES / 128, "each ends, and each is forgotten");
    let LockOutcome::Tallied(rows) = asked.ask("other", &LockOp::Tally, at(1_066)).outcome else {
        panic!("not counted")
    };
    let counts = rows[0].1;
    assert_eq!((counts.success, counts.expired, counts.active), (LEASES, LEASES, 0));
    // What is left: the first namespace's keys, and two of the other.
    let RespValue::Int(left) = server.command(&["DBSIZE"]) else { panic!("a size") };
    assert!(left <= 2 + 7, "{left} keys");
}

//! Locks on a real Redis: the lock script, core's rules and the model give equal replies; and the
//! effects of failovers and lost data.

use std::time::{Duration, Instant};

use catraca::locks::{FreedNotice, LockError, LockStore};
use catraca::redis::{RedisLocks, RedisOptions};
use catraca::store::When;
use catraca_core::lock::reply::{
    AcquireReply, ConfirmReply, Lease, MoveReply, ReleaseReply, RenewReply,
};
use catraca_core::lock::requests::{Acquire, Hold, LeaseRequest, Move, Proof, TimeRange};
use catraca_core::lock::{
    Durability, LeaseId, LeaseKey, LockName, LockOp, LockOutcome, LockReply, LockTable,
    VersionPolicy,
};
use catraca_core::time::{Span, Time};
use catraca_testkit::generate::Rng;
use catraca_testkit::locks::trace::{LockDriver, run_trace_on};
use catraca_testkit::redis::{RedisCluster, RedisServer, until};
use catraca_testkit::resp::RespValue;
use tokio::runtime::Runtime;

use super::acl;
use super::helpers::{LONG_DEADLINE, setting};

const LENGTH: usize = 400;

/// Locks in Redis, and the runtime of their calls.
struct LockClient {
    threads: Runtime,
    redis: RedisLocks,
}

impl LockClient {
    fn of(url: &str) -> Self {
        let threads = Runtime::new().unwrap();
        let options = RedisOptions { deadline: LONG_DEADLINE, ..RedisOptions::default() };
        let redis = threads.block_on(RedisLocks::connect(url, options)).unwrap();
        Self { threads, redis }
    }

    fn execute(&self, namespace: &str, op: &LockOp, when: When) -> LockReply {
        self.threads.block_on(self.redis.ask(namespace, op, when)).unwrap()
    }

    fn outcome(&self, op: &LockOp) -> LockOutcome {
        self.execute("n", op, When::Store).outcome
    }

    /// Acquires a name, which must be free.
    fn take(&self, name: &str, lease: u64, ttl: Span) -> Lease {
        match self.outcome(&acquire(name, lease, ttl)) {
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
    let kind = "k".into();
    let keys = vec![name.into()];
    let policy = VersionPolicy::Opaque;
    LockOp::Acquire {
        request: Acquire { tenant: None, kind, keys, lease, policy },
        counts_conflict: true,
    }
}

fn proof(lease: u64) -> Proof {
    Proof { key: key(lease), tenant: None }
}

fn release(lease: u64) -> LockOp {
    LockOp::Release(proof(lease))
}

/// A namespace in Redis, and core's rules to compare its replies with.
struct ComparedLocks<'t> {
    client: &'t LockClient,
    namespace: String,
    table: LockTable,
}

impl LockDriver for ComparedLocks<'_> {
    fn execute(&mut self, op: &LockOp, now: Time) -> LockReply {
        let ours = self.table.apply(op, now);
        let theirs = self.client.execute(&self.namespace, op, When::At(now));
        assert_eq!(ours, theirs, "{} at {}: {op:?}", self.namespace, now.micros());
        theirs
    }
}

fn compare_traces(client: &LockClient, traces: u64) {
    let seed = setting("CATRACA_REDIS_SEED", 20_261_116);
    let start = Instant::now();
    let mut rng = Rng::new(seed);
    for number in 0..traces {
        let namespace = format!("namespace {number}");
        let mut both = ComparedLocks { client, namespace, table: LockTable::default() };
        if let Err(difference) = run_trace_on(&mut both, 1_000_000, rng.next_u64(), LENGTH) {
            panic!("{difference}");
        }
    }
    let operations = traces * LENGTH as u64;
    println!("{operations} operations from seed {seed}, no difference, in {:?}", start.elapsed());
}

/// covers: B-33, B-62, B-63
#[test]
fn memory_and_redis_answer_alike_about_locks() {
    let Some(server) = RedisServer::start() else { return };
    let operations = setting("CATRACA_REDIS_OPERATIONS", 100_000) / 10;
    compare_traces(&LockClient::of(&server.url()), operations / LENGTH as u64);
}

/// Each namespace is on one primary, and an operation touches only one namespace.
#[test]
fn locks_are_the_same_on_a_cluster_and_wake_whoever_waits_anywhere() {
    let Some(cluster) = RedisCluster::start() else { return };
    let client = LockClient::of(&cluster.url());
    compare_traces(&client, 12);
    let empty = |server: usize| cluster.servers[server].command(&["DBSIZE"]) == RespValue::Int(0);
    assert!((0..3).all(|server| !empty(server)), "namespaces spread over the primaries");
    assert_wakes(&client);
}

#[test]
fn a_user_with_few_rights_may_lock_and_hear() {
    let Some(server) = acl::server() else { return };
    let client = LockClient::of(&acl::url(&server));
    compare_traces(&client, 3);
    assert_wakes(&client);
}

/// Asserts that a release is published to the listeners of every node.
fn assert_wakes(client: &LockClient) {
    let mut freed = client.redis.freed_notices();
    let name = LockName { tenant: None, kind: "k".into(), key: "p".into() };
    let mut lease = 1_000;
    client.threads.block_on(async {
        // The subscription starts in the background, so the first notices may be missed.
        loop {
            lease += 1;
            let op = acquire("p", lease, Span::from_secs(60));
            client.redis.ask("n", &op, When::Store).await.unwrap();
            client.redis.ask("n", &release(lease), When::Store).await.unwrap();
            let notice = tokio::time::timeout(Duration::from_millis(200), freed.recv()).await;
            if matches!(notice, Ok(Ok(FreedNotice::Name(mark))) if mark == name.digest("n")) {
                return;
            }
            assert!(lease < 1_100, "no notice of the released name");
        }
    });
}

#[test]
fn a_forgotten_script_of_locks_is_no_fault() {
    let Some(server) = RedisServer::start() else { return };
    let client = LockClient::of(&server.url());
    client.take("p", 1, Span::from_secs(60));
    server.command(&["SCRIPT", "FLUSH"]);
    assert_eq!(client.outcome(&release(1)), LockOutcome::Ended(ReleaseReply::Released));
}

/// The time of a namespace never goes back, and its fences never decrease.
/// covers: B-62
#[test]
fn a_clock_that_is_set_back_ends_nothing_early_and_numbers_still_rise() {
    let Some(server) = RedisServer::start() else { return };
    let client = LockClient::of(&server.url());
    let late = Time::from_micros(9_000_000);
    let early = Time::from_micros(1_000_000);
    let first = client.execute("n", &acquire("p", 1, Span::from_secs(5)), When::At(late));
    let LockOutcome::Acquired(AcquireReply::Granted(first)) = first.outcome else {
        panic!("not granted")
    };
    let second = client.execute("n", &acquire("q", 2, Span::from_secs(5)), When::At(early));
    assert_eq!(second.now, late);
    let LockOutcome::Acquired(AcquireReply::Granted(second)) = second.outcome else {
        panic!("not granted")
    };
    assert!(second.fence > first.fence);
    let taken = client.execute("n", &acquire("p", 3, Span::from_secs(5)), When::At(early));
    assert!(matches!(taken.outcome, LockOutcome::Acquired(AcquireReply::Conflict(_))), "{taken:?}");
}

/// L22. The replica never received the last grant, so the name is granted again, with a higher
/// fence: a resource that checks fences is safe.
/// covers: 004-93, X-33
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
    let client = LockClient::of(&primary.url());
    let known = client.take("known", 1, Span::from_secs(60));
    for (lease, minute, ttl) in [(20, 10, 60), (21, 20, 1)] {
        client.execute("careful", &hold(lease, minute, ttl), at(1));
    }
    // The last write creates a key, so equal key counts mean that the replica has all writes.
    careful(&client, "p", 10, 1).expect("the name is free");
    let has = || replica.command(&["DBSIZE"]) == primary.command(&["DBSIZE"]);
    until("the replica has it", has);
    // Disconnected from the primary, the replica keeps its data and receives no more writes.
    replica.command(&["REPLICAOF", "127.0.0.1", "1"]);
    let lost = client.take("p", 2, Span::from_secs(60));
    assert!(lost.fence > known.fence);
    primary.kill();
    replica.command(&["REPLICAOF", "NO", "ONE"]);
    let after = LockClient::of(&replica.url());
    let again = after.take("p", 3, Span::from_secs(60));
    assert!(again.fence > lost.fence, "{} after {}", again.fence, lost.fence);
    let taken = after.outcome(&acquire("known", 4, Span::from_secs(60)));
    assert!(matches!(taken, LockOutcome::Acquired(AcquireReply::Conflict(_))), "{taken:?}");
    // With a grace, a new grant is refused with the time to wait; holders may continue.
    let refused = careful(&after, "q", 11, 2).unwrap_err().to_string();
    assert!(refused.contains("run out within 30 s"), "{refused}");
    assert!(careful(&after, "q", 12, 31).is_err(), "counted from when it was noticed");
    for op in [relocate(20, 30), confirm_again(21)] {
        let refused = after.threads.block_on(after.redis.ask("careful", &op, at(31))).unwrap_err();
        assert!(refused.to_string().contains("run out within 1 s"), "{refused}");
    }
    let kept = after.execute("careful", &confirm_again(20), at(31)).outcome;
    assert!(
        matches!(kept, LockOutcome::Confirmed(ConfirmReply::Done(_))),
        "it takes nothing: {kept:?}"
    );
    let renewal = LockOp::Renew {
        proof: proof(10),
        ttl: Span::from_secs(60),
        durability: Durability::Memory,
        grace: Span::from_secs(30),
    };
    let renewed = after.execute("careful", &renewal, at(31)).outcome;
    assert!(matches!(renewed, LockOutcome::Renewed(RenewReply::Extended(_))), "{renewed:?}");
    assert!(careful(&after, "q", 13, 32).is_ok());
    let done = after.execute("careful", &relocate(20, 30), at(32)).outcome;
    assert!(matches!(done, LockOutcome::Moved(MoveReply::Done(_))), "{done:?}");
    let done = after.execute("careful", &confirm_again(21), at(32)).outcome;
    assert!(matches!(done, LockOutcome::Confirmed(ConfirmReply::Done(_))), "{done:?}");
    // An emptied server cannot know that it lost data; the node does.
    replica.command(&["FLUSHALL"]);
    let refused = careful(&after, "q", 14, 40).unwrap_err().to_string();
    assert!(refused.contains("run out within 30 s"), "{refused}");
}

/// Acquires a name with a grace of 30 s after a failover.
fn careful(
    client: &LockClient,
    name: &str,
    lease: u64,
    second: i64,
) -> Result<LockReply, LockError> {
    let mut op = acquire(name, lease, Span::from_secs(60));
    let LockOp::Acquire { request, .. } = &mut op else { panic!("an acquire") };
    request.lease.grace = Span::from_secs(30);
    client.threads.block_on(client.redis.ask("careful", &op, at(second)))
}

fn minutes(minute: i64) -> (Time, Time) {
    let begin = Time::from_micros(minute * 60_000_000);
    (begin, begin.after(Span::from_secs(60)))
}

fn hold(lease: u64, minute: i64, ttl: i64) -> LockOp {
    let lease = LeaseRequest::new(key(lease), Span::from_secs(ttl), Span::from_secs(3_600));
    let (start, end) = minutes(minute);
    let kind = "k".into();
    let calendars = vec!["ana".into()];
    let range = TimeRange::of(start, end);
    LockOp::Hold(Hold { tenant: None, kind, calendars, range, lease })
}

fn relocate(lease: u64, minute: i64) -> LockOp {
    let (start, end) = minutes(minute);
    LockOp::Relocate(Move { grace: Span::from_secs(30), ..Move::new(proof(lease), start, end) })
}

fn confirm_again(lease: u64) -> LockOp {
    LockOp::Confirm { proof: proof(lease), again: true, grace: Span::from_secs(30) }
}

fn at(second: i64) -> When {
    When::At(Time::from_micros(second * 1_000_000))
}

/// L23. The replica is connected but stopped: no lease is granted, and no name stays locked.
#[test]
fn a_grant_that_no_replica_has_heard_of_is_taken_back() {
    let Some(primary) = RedisServer::start() else { return };
    let Some(replica) = RedisServer::start() else { return };
    replica.command(&["REPLICAOF", "127.0.0.1", &primary.port().to_string()]);
    let threads = Runtime::new().unwrap();
    let options = RedisOptions { deadline: Duration::from_secs(1), ..RedisOptions::default() };
    let url = primary.url();
    let connecting = RedisLocks::connect_replicated(&url, options, 1);
    let client = LockClient { redis: threads.block_on(connecting).unwrap(), threads };
    let granted = |lease| {
        let op = acquire("p", lease, Span::from_secs(60));
        client.threads.block_on(client.redis.ask("n", &op, When::Store))
    };
    let mut lease = 0;
    until("the replica follows", || {
        lease += 1;
        granted(lease).is_ok()
    });
    assert_eq!(client.outcome(&release(lease)), LockOutcome::Ended(ReleaseReply::Released));
    replica.signal("STOP");
    let refused = granted(lease + 1).unwrap_err().to_string();
    assert!(refused.contains("0 of 1 replicas"), "{refused}");
    let alone = LockClient::of(&primary.url());
    alone.take("p", lease + 2, Span::from_secs(60));
    let LockOutcome::Counters(rows) = alone.outcome(&LockOp::Counters) else {
        panic!("not counted")
    };
    assert_eq!(rows[0].1.success, 2, "{rows:?}");
    replica.signal("CONT");
}

/// L30, smaller: abandoned leases are removed 128 at a time, and TTLs remove the rest when no call
/// comes any more.
#[test]
fn abandoned_leases_leave_nothing_behind() {
    const LEASES: u64 = 3_000;
    let Some(server) = RedisServer::start() else { return };
    let client = LockClient::of(&server.url());
    client.take("p", 0, Span::from_secs(5));
    let RespValue::Array(keys) = server.command(&["KEYS", "*"]) else { panic!("keys") };
    let mut connection = server.connect();
    let mut lasting = 0;
    for key in keys {
        let RespValue::Bytes(key) = key else { panic!("a key") };
        let RespValue::Int(ttl) = connection.call(&[b"TTL", &key]).unwrap() else {
            panic!("a TTL")
        };
        lasting += usize::from(ttl == -1);
        assert!(ttl == -1 || ttl >= 7_200, "garbage is collected late: {ttl}");
    }
    assert_eq!(lasting, 2, "only the clock and the counts stay");
    for number in 0..LEASES {
        let op = acquire(&number.to_string(), number, Span::from_secs(5));
        client.execute("other", &op, at(1_000));
    }
    let mut rounds = 0;
    let more = LockOutcome::Swept { more: true };
    while client.execute("other", &LockOp::Sweep, at(1_066)).outcome == more {
        rounds += 1;
    }
    assert_eq!(rounds, 2 * LEASES / 128, "each ends, and each is forgotten");
    let LockOutcome::Counters(rows) = client.execute("other", &LockOp::Counters, at(1_066)).outcome
    else {
        panic!("not counted")
    };
    let counts = rows[0].1;
    assert_eq!((counts.success, counts.expired, counts.active), (LEASES, LEASES, 0));
    // Left are the keys of the first namespace, and two of the other.
    let RespValue::Int(left) = server.command(&["DBSIZE"]) else { panic!("a size") };
    assert!(left <= 2 + 7, "{left} keys");
}

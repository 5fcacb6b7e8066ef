//! Locks on a real PostgreSQL: the store, core's rules and the model give equal replies; and the
//! effects of restarts and recoveries.

use std::fs;
use std::os::unix::fs::chown;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use catraca::locks::{FreedNotice, LockStore};
use catraca::postgres::PostgresStore;
use catraca::store::When;
use catraca_core::lock::reply::{AcquireReply, Lease, ReleaseReply};
use catraca_core::lock::requests::{Acquire, Hold, LeaseRequest, Move, Proof, TimeRange};
use catraca_core::lock::{
    Durability, LeaseId, LeaseKey, LockName, LockOp, LockOutcome, LockReply, LockTable,
    VersionPolicy,
};
use catraca_core::time::{Span, Time};
use catraca_testkit::generate::Rng;
use catraca_testkit::locks::trace::{LockDriver, run_trace_on};
use tokio::runtime::Runtime;

use super::helpers::{Database, long_deadline, runtime, setting};
use catraca_testkit::postgres::{PostgresServer, other_user};
use catraca_testkit::redis::until;

const LENGTH: usize = 200;

/// Locks in PostgreSQL, and the runtime of their calls.
pub struct LockClient {
    threads: Runtime,
    store: PostgresStore,
}

impl LockClient {
    pub fn background_error(&self) -> Option<String> {
        LockStore::background_error(&self.store)
    }

    pub fn limitation(&self) -> Option<String> {
        self.store.limitation()
    }

    pub fn of(url: &str) -> Self {
        let threads = runtime();
        let store = threads.block_on(PostgresStore::open(url, long_deadline())).unwrap();
        Self { threads, store }
    }

    fn execute(&self, namespace: &str, op: &LockOp, when: When) -> LockReply {
        self.threads.block_on(self.store.ask(namespace, op, when)).unwrap()
    }

    fn outcome(&self, op: &LockOp) -> LockOutcome {
        self.execute("n", op, When::Store).outcome
    }

    fn take(&self, name: &str, lease: u64) -> Lease {
        match self.outcome(&acquire(name, lease)) {
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

fn wanted(lease: u64) -> LeaseRequest {
    LeaseRequest::new(key(lease), Span::from_secs(60), Span::from_secs(3_600))
}

fn acquire(name: &str, lease: u64) -> LockOp {
    let kind = "k".into();
    let keys = vec![name.into()];
    let policy = VersionPolicy::Opaque;
    let asked = Acquire { tenant: None, kind, keys, lease: wanted(lease), policy };
    LockOp::Acquire { request: asked, counts_conflict: true }
}

fn release(lease: u64) -> LockOp {
    LockOp::Release(Proof { key: key(lease), tenant: None })
}

/// A namespace in PostgreSQL, and core's rules to compare its replies with.
struct ComparedLocks<'t> {
    client: &'t LockClient,
    namespace: String,
    table: LockTable,
}

impl LockDriver for ComparedLocks<'_> {
    fn execute(&mut self, op: &LockOp, now: Time) -> LockReply {
        // Only sweeps delete rows here, while core's table also expires leases in other
        // operations; so both sweep to the end.
        while matches!(op, LockOp::Sweep)
            && self.client.execute(&self.namespace, op, When::At(now)).outcome
                == (LockOutcome::Swept { more: true })
        {}
        while matches!(op, LockOp::Sweep) && self.table.sweep(now) {}
        let ours = self.table.apply(op, now);
        let theirs = self.client.execute(&self.namespace, op, When::At(now));
        assert_eq!(ours, theirs, "{} at {}: {op:?}", self.namespace, now.micros());
        theirs
    }
}

pub fn compare_traces(client: &LockClient, traces: u64) {
    let seed = setting("CATRACA_POSTGRES_SEED", 20_261_116);
    let start = Instant::now();
    let mut rng = Rng::new(seed);
    for number in 0..traces {
        let namespace = format!("trace {number}");
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
fn memory_and_postgres_answer_alike_about_locks() {
    let database = Database::new();
    // Fewer operations, because each one is a commit of its own.
    let steps = setting("CATRACA_POSTGRES_STEPS", 20_000) / 5;
    compare_traces(&LockClient::of(&database.url()), (steps / LENGTH as u64).clamp(10, 500));
}

/// Asserts that a release notifies listeners: by its name, or with a notice that any name may be
/// free.
pub fn assert_wakes(client: &LockClient, by_name: bool) {
    let mut freed = client.threads.block_on(async { client.store.freed_notices() });
    let mark = LockName { tenant: None, kind: "k".into(), key: "p".into() }.digest("n");
    let wanted = |freed: FreedNotice| match freed {
        FreedNotice::Name(name) => name == mark,
        FreedNotice::Any => !by_name,
    };
    for lease in 1_000..1_100 {
        client.take("p", lease);
        assert_eq!(client.outcome(&release(lease)), LockOutcome::Ended(ReleaseReply::Released));
        let until = Instant::now() + Duration::from_millis(300);
        while Instant::now() < until {
            let left = until.saturating_duration_since(Instant::now());
            let notice =
                client.threads.block_on(async { tokio::time::timeout(left, freed.recv()).await });
            if matches!(notice, Ok(Ok(freed)) if wanted(freed)) {
                return;
            }
        }
    }
    panic!("no notice of the released name");
}

#[test]
fn what_is_released_is_heard_on_every_node() {
    let database = Database::new();
    assert_wakes(&LockClient::of(&database.url()), true);
}

/// S09 and L01 on several nodes: constraints of the tables keep ranges and names apart.
/// covers: 004-87
#[test]
fn of_many_nodes_at_once_one_gets_each_name_and_each_moment() {
    let database = Database::new();
    let nodes: Vec<Arc<LockClient>> =
        (0..3).map(|_| Arc::new(LockClient::of(&database.url()))).collect();
    let callers: Vec<_> = (0..6_u64)
        .map(|caller| {
            let node = Arc::clone(&nodes[caller as usize % 3]);
            thread::spawn(move || {
                let mut rng = Rng::new(caller);
                (0..60)
                    .map(|round| request_one(&node, &mut rng, caller * 1_000 + round))
                    .sum::<u64>()
            })
        })
        .collect();
    let granted: u64 = callers.into_iter().map(|caller| caller.join().unwrap()).sum();
    let kept: u64 = database.query("SELECT count(*) FROM catraca_store.slots").parse().unwrap();
    let names: u64 =
        database.query("SELECT count(*) FROM catraca_store.lock_names").parse().unwrap();
    assert_eq!(kept + names, granted);
    let twice = "SELECT count(*) FROM catraca_store.slots AS a JOIN catraca_store.slots AS b \
                 ON a.calendar = b.calendar AND a.during && b.during AND a.ctid <> b.ctid";
    assert_eq!(database.query(twice), "0");
    assert_eq!(
        database.query("SELECT count(DISTINCT fence) = count(*) FROM catraca_store.leases"),
        "t"
    );
    let apart = "SELECT count(*) FROM pg_constraint WHERE conname = 'slots_apart'";
    assert_eq!(database.query(apart), "1", "a constraint of their own");
}

/// Requests a random name or range; returns 1 if it was granted.
fn request_one(node: &LockClient, rng: &mut Rng, lease: u64) -> u64 {
    let op = if rng.chance(30) {
        acquire(rng.pick(&["a", "b", "c"]), lease)
    } else {
        let start = rng.within(0, 400);
        let range = TimeRange::of(
            Time::from_micros(1_900_000_000_000_000 + start),
            Time::from_micros(1_900_000_000_000_000 + start + rng.within(1, 20)),
        );
        let kind = "slot".into();
        let calendars = vec!["ana".into()];
        LockOp::Hold(Hold { tenant: None, kind, calendars, range, lease: wanted(lease) })
    };
    let outcome = node.outcome(&op);
    u64::from(matches!(outcome, LockOutcome::Acquired(AcquireReply::Granted(_))))
}

/// Even for rows that another program writes.
/// covers: 004-87
#[test]
fn the_table_itself_refuses_an_overlap() {
    let database = Database::new();
    let client = LockClient::of(&database.url());
    let mut rng = Rng::new(7);
    let mut lease = 0;
    while database.query("SELECT count(*) FROM catraca_store.slots") == "0" {
        lease += 1;
        request_one(&client, &mut rng, lease);
    }
    let twice = "DO $$ BEGIN
            INSERT INTO catraca_store.slots (calendar, during, namespace, lease)
            SELECT calendar, during, namespace, lease FROM catraca_store.slots LIMIT 1;
        EXCEPTION WHEN exclusion_violation THEN
            CREATE TABLE refused ();
        END $$";
    database.query(twice);
    assert_eq!(database.query("SELECT count(*) FROM pg_class WHERE relname = 'refused'"), "1");
}

/// L21. A granted lease survives any crash of the server.
#[test]
fn a_grant_survives_the_end_of_the_server_and_numbers_rise() {
    let database = Database::on(Arc::new(PostgresServer::start()));
    let before = LockClient::of(&database.url()).take("p", 1);
    database.server.stop("KILL");
    database.server.run();
    let after = LockClient::of(&database.url());
    assert_eq!(after.store.durability(), Some(Durability::Fsync));
    let taken = after.outcome(&acquire("p", 2));
    assert!(matches!(taken, LockOutcome::Acquired(AcquireReply::Conflict(_))), "{taken:?}");
    assert_eq!(after.outcome(&release(1)), LockOutcome::Ended(ReleaseReply::Released));
    assert!(after.take("p", 3).fence > before.fence);
}

fn hour(number: i64) -> (Time, Time) {
    let begin = Time::from_micros((1_900_000_000 + number * 3_600) * 1_000_000);
    (begin, begin.after(Span::from_secs(3_600)))
}

fn hold(lease: u64, number: i64, ttl: Span) -> LockOp {
    let (start, end) = hour(number);
    let lease = LeaseRequest { ttl, ..wanted(lease) };
    let kind = "k".into();
    let calendars = vec!["bia".into()];
    let range = TimeRange::of(start, end);
    LockOp::Hold(Hold { tenant: None, kind, calendars, range, lease })
}

fn relocate(lease: u64, number: i64, grace: i64) -> LockOp {
    let (start, end) = hour(number);
    let proof = Proof { key: key(lease), tenant: None };
    LockOp::Relocate(Move { grace: Span::from_secs(grace), ..Move::new(proof, start, end) })
}

fn confirm_again(lease: u64, grace: i64) -> LockOp {
    let proof = Proof { key: key(lease), tenant: None };
    let grace = Span::from_secs(grace);
    LockOp::Confirm { proof, again: true, grace }
}

/// A promoted standby or a restored backup may have lost leases. Kinds with a grace are not granted
/// by any node until it has passed; other kinds do not wait.
#[test]
fn another_history_is_waited_out_by_kinds_that_want_it() {
    let database = Database::on(Arc::new(PostgresServer::start()));
    let grace = |name: &str, lease: u64, seconds: i64| {
        let LockOp::Acquire { request: mut asked, counts_conflict: counts } = acquire(name, lease)
        else {
            unreachable!()
        };
        asked.lease.grace = Span::from_secs(seconds);
        LockOp::Acquire { request: asked, counts_conflict: counts }
    };
    let client = LockClient::of(&database.url());
    client.take("p", 1);
    let granted = |client: &LockClient, op: &LockOp| {
        let reply = client.threads.block_on(client.store.ask("n", op, When::Store));
        let granted = |outcome| matches!(outcome, LockOutcome::Acquired(AcquireReply::Granted(_)));
        reply.map(|reply| granted(reply.outcome)).map_err(|error| error.to_string())
    };
    assert_eq!(granted(&client, &grace("q", 2, 3_600)), Ok(true), "nothing was lost yet");
    for (lease, hour, ttl) in [(30, 1, Span::from_secs(3_600)), (31, 2, Span::from_micros(1))] {
        assert_eq!(granted(&client, &hold(lease, hour, ttl)), Ok(true));
    }
    drop(client);
    database.server.stop("INT");
    // The end of a recovery starts a new timeline, as the promotion of a standby does.
    let data = database.server.data();
    fs::write(data.join("recovery.signal"), "").unwrap();
    fs::write(data.join("postgresql.auto.conf"), "restore_command = 'false'\n").unwrap();
    if let Some(user) = other_user() {
        chown(data.join("recovery.signal"), Some(user), None).unwrap();
    }
    database.server.run();
    // It accepts reads before its recovery has ended.
    let probe = LockClient::of(&database.url());
    until("the recovery has ended", || granted(&probe, &acquire("probe", 99)).is_ok());
    drop(probe);
    for lease in [10, 20] {
        let client = LockClient::of(&database.url());
        let refused = granted(&client, &grace("r", lease, 3_600)).unwrap_err();
        assert!(refused.contains("run out within") && refused.contains(" s"), "{refused}");
        assert_eq!(granted(&client, &acquire(&format!("s{lease}"), lease + 1)), Ok(true));
        assert_eq!(granted(&client, &grace("p", lease + 2, 3_600)), Ok(false), "known to be held");
    }
    let client = LockClient::of(&database.url());
    let ask = |op: &LockOp| client.threads.block_on(client.store.ask("n", op, When::Store));
    for seconds in [3_600, 0] {
        for op in [relocate(30, 3, seconds), confirm_again(31, seconds)] {
            let waits = ask(&op).is_err_and(|error| error.to_string().contains("run out within"));
            assert_eq!(waits, seconds > 0, "{op:?}");
        }
        assert!(ask(&confirm_again(30, seconds)).is_ok(), "it takes nothing");
    }
    let since = "SELECT count(DISTINCT changed) || ' ' || min(timeline) FROM
                 catraca_store.lock_rooms";
    assert_eq!(database.query(since), "1 00000002");
}

//! Locks that nodes share in Redis or PostgreSQL: every node knows the leases of every other node,
//! also while nodes or the store are stopped or killed.

mod clock;
mod pooler;

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use catraca_testkit::fake_clock::FakeClockLibrary;
use catraca_testkit::redis::RedisServer;
use serde_json::{Value, json};

use super::workload::{TTL, assert_valid, record_history};
use super::{
    CATALOG, acquire, catalog_with_secret, create_database, post, release, status_and_code,
    store_section,
};
use crate::raw_connection::HttpResponse;
use crate::test_server::TestServer;
use catraca_testkit::postgres::{PASSWORD, PostgresServer, kill};

/// A store that nodes share, and its faults.
trait SharedStore {
    fn url(&self) -> String;
    /// Stops the processes of the store until `resume`.
    fn pause(&self);
    fn resume(&self);
    fn die(&mut self);
    fn revive(&mut self);
}

impl SharedStore for RedisServer {
    fn url(&self) -> String {
        Self::url(self)
    }

    fn pause(&self) {
        self.signal("STOP");
    }

    fn resume(&self) {
        self.signal("CONT");
    }

    fn die(&mut self) {
        self.kill();
    }

    fn revive(&mut self) {
        self.restart();
    }
}

/// A PostgreSQL server and a new database of it.
struct Postgres {
    postgres: PostgresServer,
    url: String,
}

impl Postgres {
    fn start() -> Self {
        Self::on(PostgresServer::start())
    }

    /// A server whose clock is that of the library.
    fn start_believing(clock: &FakeClockLibrary) -> Self {
        let postgres = PostgresServer::start();
        postgres.stop("INT");
        *postgres.variables.lock().unwrap() = clock.environment();
        postgres.run();
        Self::on(postgres)
    }

    fn on(postgres: PostgresServer) -> Self {
        let url = create_database(&postgres);
        Self { postgres, url }
    }

    /// Sends a signal to the server and then to its child processes.
    fn signal(&self, name: &str) {
        let pid = fs::read_to_string(self.postgres.data().join("postmaster.pid")).unwrap();
        let pid = pid.lines().next().unwrap().trim().to_owned();
        kill(name, &pid);
        let others = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        for other in others.split_whitespace().filter(|other| is_alive(other)) {
            kill(name, other);
        }
    }
}

fn is_alive(id: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

impl SharedStore for Postgres {
    fn url(&self) -> String {
        self.url.clone()
    }

    fn pause(&self) {
        self.signal("STOP");
    }

    fn resume(&self) {
        self.signal("CONT");
    }

    fn die(&mut self) {
        self.postgres.stop("KILL");
    }

    fn revive(&mut self) {
        self.postgres.run();
    }
}

/// The catalog file of a node over this store.
fn node(store: &dyn SharedStore, records: &str, deadline: &str) -> PathBuf {
    let store = store_section(&store.url(), deadline);
    catalog_with_secret(&format!("{CATALOG}{store}[records]\nurl = {records:?}\n"))
}

#[test]
fn what_one_node_grants_every_node_knows() {
    let Some(redis) = RedisServer::start() else { return };
    assert_leases_are_shared(&redis);
}

#[test]
fn what_one_node_grants_in_postgresql_every_node_knows() {
    assert_leases_are_shared(&Postgres::start());
}

fn assert_leases_are_shared(store: &dyn SharedStore) {
    let postgres = PostgresServer::start();
    let records = format!("postgres://catraca:{PASSWORD}@127.0.0.1:{}/postgres", postgres.port);
    let here = TestServer::from_file(&node(store, &records, "5s"));
    let there = TestServer::from_file(&node(store, &records, "5s"));
    let held = acquire(&here, &json!({ "key": "p", "ttl_ms": 60_000, "request_id": "r1" }));
    let taken = post(&there, "/v1/locks/acquire", &json!({ "key": "p" }));
    assert_eq!((taken.status, &taken.json()["holder"]["version"]), (409, &held["version"]));
    // A request id that is repeated at another node gets the same lease.
    let again = acquire(&there, &json!({ "key": "p", "ttl_ms": 60_000, "request_id": "r1" }));
    assert_eq!(
        (&again["lease_id"], &again["fence"], &again["expires_at"]),
        (&held["lease_id"], &held["fence"], &held["expires_at"])
    );
    // A release at one node wakes a waiter at another.
    let mut waiter = there.connect();
    waiter.post("/v1/locks/acquire", r#"{"key":"p","wait_ms":30000}"#);
    while there.request("GET /v1/stats/locks", &[]).json()["waiters"] != 1 {}
    acquire(&there, &json!({ "key": "q", "tenant": "t1", "ttl_ms": 60_000 }));
    let tenant = there.request("GET /v1/stats/locks?tenant=t1", &[]).json();
    assert_eq!((&tenant["total"], &tenant["waiters"]), (&1.into(), &0.into()), "{tenant}");
    let begun = Instant::now();
    assert_eq!(release(&here, &held), "released");
    let next = waiter.read_response();
    assert_eq!(next.status, 200);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert!(next.json()["fence"].as_i64() > held["fence"].as_i64());
    // Leases granted by a node survive its death.
    there.signal("KILL");
    drop(there);
    assert_eq!(post(&here, "/v1/locks/acquire", &json!({ "key": "p" })).status, 409);
    let stats = here.request("GET /v1/stats/locks", &[]).json();
    assert_eq!((&stats["success"], &stats["active"]), (&3.into(), &2.into()), "{stats}");
}

#[test]
fn without_the_store_nothing_is_granted_and_the_answer_comes_in_time() {
    let Some(mut redis) = RedisServer::start() else { return };
    let (server, held) = grant_then_kill_store(&mut redis);
    // Redis restarts empty: leases are lost, and fences still rise.
    redis.revive();
    let next = retry_until_granted(&server, "p");
    assert!(next["fence"].as_i64() > held["fence"].as_i64(), "{next} after {held}");
}

#[test]
fn without_postgresql_nothing_is_granted_and_what_was_granted_is_there_afterwards() {
    let mut store = Postgres::start();
    let (server, held) = grant_then_kill_store(&mut store);
    store.revive();
    let taken = retry_until_answered(&server, "/v1/locks/acquire", &json!({ "key": "p" }));
    assert_eq!(taken.status, 409, "{taken:?}");
    let proof = json!({ "lease_id": held["lease_id"] });
    // The release that timed out before may have been applied after all.
    let ended = retry_until_answered(&server, "/v1/locks/release", &proof).json();
    let outcome = ended["outcome"].as_str().unwrap();
    assert!(["released", "already_released"].contains(&outcome), "{ended}");
    let next = retry_until_granted(&server, "p");
    assert!(next["fence"].as_i64() > held["fence"].as_i64(), "{next} after {held}");
}

/// Grants a lease, kills the store and asserts that every call is refused within its deadline.
fn grant_then_kill_store(store: &mut dyn SharedStore) -> (TestServer, Value) {
    let server = TestServer::from_file(&node(store, "sqlite:catraca.db", "200ms"));
    let held = acquire(&server, &json!({ "key": "p", "ttl_ms": 60_000 }));
    store.die();
    let proof = json!({ "lease_id": held["lease_id"] });
    let calls = [
        ("/v1/locks/acquire", json!({ "key": "q" })),
        ("/v1/locks/acquire", json!({ "key": "q", "wait_ms": 20_000 })),
        ("/v1/locks/renew", proof.clone()),
        ("/v1/locks/release", proof),
        ("/v1/slots/hold", json!({ "calendar": "ana", "start": 0, "end": 1_000 })),
    ];
    for (path, body) in calls {
        let begun = Instant::now();
        let answer = post(&server, path, &body);
        assert_eq!(status_and_code(&answer), (503, "lock-store-unavailable".to_owned()), "{path}");
        assert_eq!(answer.header("retry-after"), Some("1"), "{path}");
        assert!(begun.elapsed() < Duration::from_secs(5), "{path}: {:?}", begun.elapsed());
    }
    (server, held)
}

/// Repeats a call until the store answers it.
fn retry_until_answered(server: &TestServer, path: &str, body: &Value) -> HttpResponse {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let answer = post(server, path, body);
        if answer.status != 503 {
            return answer;
        }
        assert!(Instant::now() < deadline, "{answer:?}");
    }
}

/// Repeats an acquire until it is granted.
fn retry_until_granted(server: &TestServer, key: &str) -> Value {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let answer = post(server, "/v1/locks/acquire", &json!({ "key": key }));
        if answer.status == 200 {
            return answer.json();
        }
        assert!(Instant::now() < deadline, "{answer:?}");
    }
}

/// L20 with a shared store: a node is stopped, the store is stopped, and a node is killed.
#[test]
fn nodes_and_a_store_that_stand_still_or_die_give_nothing_to_two() {
    let Some(mut redis) = RedisServer::start() else { return };
    // The test's Redis loses all its data when it is killed, so it is not killed.
    assert_exclusive(&mut redis, 41, &[Fault::NodeStops, Fault::StoreStops, Fault::NodeDies]);
}

/// The same, and the store is killed as well: committed rows are on its disk.
#[test]
fn nodes_and_a_postgresql_that_stand_still_or_die_give_nothing_to_two() {
    let faults = [Fault::NodeStops, Fault::StoreStops, Fault::NodeDies, Fault::StoreDies];
    assert_exclusive(&mut Postgres::start(), 43, &faults);
}

#[derive(Clone, Copy)]
enum Fault {
    NodeStops,
    NodeDies,
    StoreStops,
    StoreDies,
}

fn assert_exclusive(store: &mut dyn SharedStore, seed: u64, faults: &[Fault]) {
    let file = node(store, "sqlite:catraca.db", "100ms");
    let while_others_wait = || thread::park_timeout(Duration::from_millis(2 * TTL as u64 / 1_000));
    let again = file.clone();
    let mut round = 0;
    let history = record_history(&file, seed, |server| {
        let fault = faults[round.min(faults.len() - 1)];
        round += 1;
        match fault {
            Fault::NodeStops => {
                server.signal("STOP");
                while_others_wait();
                server.signal("CONT");
            }
            Fault::StoreStops => {
                store.pause();
                while_others_wait();
                store.resume();
            }
            Fault::StoreDies => {
                store.die();
                store.revive();
            }
            Fault::NodeDies => {
                server.signal("KILL");
                drop(server);
                return TestServer::from_file(&again);
            }
        }
        server
    });
    // Leases are counted on the store's wall clock, which NTP may step during the test.
    println!("the wall clock was stepped by {} us", history.stepped);
    assert_valid(&history, history.stepped);
}

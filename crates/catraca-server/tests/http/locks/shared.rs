//! Locks that nodes share in Redis or PostgreSQL: what one node grants every node knows, whoever
//! stands still or dies.

mod clock;

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use catraca_testkit::redis::RedisServer;
use catraca_testkit::wrong_clock::WrongClock;
use serde_json::{Value, json};

use super::world::{TTL, history, right};
use super::{CATALOG, database, give, post, said, secret, shared, take};
use crate::served::Served;
use crate::server::{PASSWORD, Server, kill};
use crate::talk::Answer;

/// A store that nodes share, and what can become of it.
trait Shared {
    fn url(&self) -> String;
    /// It stands still, for a while.
    fn pause(&self);
    fn resume(&self);
    fn die(&mut self);
    fn revive(&mut self);
}

impl Shared for RedisServer {
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

/// A server and a database of its own.
struct Postgres {
    server: Server,
    url: String,
}

impl Postgres {
    fn start() -> Self {
        Self::on(Server::start())
    }

    /// The same, believing another time.
    fn start_believing(clock: &WrongClock) -> Self {
        let server = Server::start();
        server.stop("INT");
        *server.told.lock().unwrap() = clock.told();
        server.run();
        Self::on(server)
    }

    fn on(server: Server) -> Self {
        let url = database(&server);
        Self { server, url }
    }

    /// A signal to the server and then to everything that it has started.
    fn signal(&self, name: &str) {
        let pid = fs::read_to_string(self.server.data().join("postmaster.pid")).unwrap();
        let pid = pid.lines().next().unwrap().trim().to_owned();
        kill(name, &pid);
        let others = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        for other in others.split_whitespace().filter(|other| is_there(other)) {
            kill(name, other);
        }
    }
}

fn is_there(id: &str) -> bool {
    let told = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    told.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
}

impl Shared for Postgres {
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
        self.server.stop("KILL");
    }

    fn revive(&mut self) {
        self.server.run();
    }
}

/// A catalog of nodes that share.
fn node(store: &dyn Shared, records: &str, deadline: &str) -> PathBuf {
    let store = shared(&store.url(), deadline);
    secret(&format!("{CATALOG}{store}[records]\nurl = {records:?}\n"))
}

#[test]
fn what_one_node_grants_every_node_knows() {
    let Some(redis) = RedisServer::start() else { return };
    every_node_knows(&redis);
}

#[test]
fn what_one_node_grants_in_postgresql_every_node_knows() {
    every_node_knows(&Postgres::start());
}

fn every_node_knows(store: &dyn Shared) {
    let server = Server::start();
    let records = format!("postgres://catraca:{PASSWORD}@127.0.0.1:{}/postgres", server.port);
    let here = Served::of(&node(store, &records, "5s"));
    let there = Served::of(&node(store, &records, "5s"));
    let held = take(&here, &json!({ "key": "p", "ttl_ms": 60_000, "request_id": "r1" }));
    let taken = post(&there, "/v1/locks/acquire", &json!({ "key": "p" }));
    assert_eq!((taken.status, &taken.json()["holder"]["version"]), (409, &held["version"]));
    // A request that is repeated through another node is the same one.
    let again = take(&there, &json!({ "key": "p", "ttl_ms": 60_000, "request_id": "r1" }));
    assert_eq!(
        (&again["lease_id"], &again["fence"], &again["expires_at"]),
        (&held["lease_id"], &held["fence"], &held["expires_at"])
    );
    // Who waits through one node is woken by a release through another.
    let mut waiter = there.connect();
    waiter.post("/v1/locks/acquire", r#"{"key":"p","wait_ms":30000}"#);
    while there.ask("GET /v1/stats/locks", &[]).json()["waiters"] != 1 {}
    take(&there, &json!({ "key": "q", "tenant": "t1", "ttl_ms": 60_000 }));
    let tenant = there.ask("GET /v1/stats/locks?tenant=t1", &[]).json();
    assert_eq!((&tenant["total"], &tenant["waiters"]), (&1.into(), &0.into()), "{tenant}");
    let begun = Instant::now();
    assert_eq!(give(&here, &held), "released");
    let next = waiter.answer();
    assert_eq!(next.status, 200);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert!(next.json()["fence"].as_i64() > held["fence"].as_i64());
    // A node that dies takes nothing with it.
    there.signal("KILL");
    drop(there);
    assert_eq!(post(&here, "/v1/locks/acquire", &json!({ "key": "p" })).status, 409);
    let stats = here.ask("GET /v1/stats/locks", &[]).json();
    assert_eq!((&stats["success"], &stats["active"]), (&3.into(), &2.into()), "{stats}");
}

#[test]
fn without_the_store_nothing_is_granted_and_the_answer_comes_in_time() {
    let Some(mut redis) = RedisServer::start() else { return };
    let (served, held) = fails_closed(&mut redis);
    // It comes back without anything: leases are lost, and numbers still rise.
    redis.revive();
    let next = back(&served, "p");
    assert!(next["fence"].as_i64() > held["fence"].as_i64(), "{next} after {held}");
}

#[test]
fn without_postgresql_nothing_is_granted_and_what_was_granted_is_there_afterwards() {
    let mut store = Postgres::start();
    let (served, held) = fails_closed(&mut store);
    store.revive();
    let taken = once_answered(&served, "/v1/locks/acquire", &json!({ "key": "p" }));
    assert_eq!(taken.status, 409, "{taken:?}");
    let proof = json!({ "lease_id": held["lease_id"] });
    // An answer that was late may have been one.
    let ended = once_answered(&served, "/v1/locks/release", &proof).json();
    let outcome = ended["outcome"].as_str().unwrap();
    assert!(["released", "already_released"].contains(&outcome), "{ended}");
    let next = back(&served, "p");
    assert!(next["fence"].as_i64() > held["fence"].as_i64(), "{next} after {held}");
}

/// A node whose store died after it had granted something.
fn fails_closed(store: &mut dyn Shared) -> (Served, Value) {
    let served = Served::of(&node(store, "sqlite:catraca.db", "200ms"));
    let held = take(&served, &json!({ "key": "p", "ttl_ms": 60_000 }));
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
        let answer = post(&served, path, &body);
        assert_eq!(said(&answer), (503, "lock-store-unavailable".to_owned()), "{path}");
        assert_eq!(answer.header("retry-after"), Some("1"), "{path}");
        assert!(begun.elapsed() < Duration::from_secs(5), "{path}: {:?}", begun.elapsed());
    }
    (served, held)
}

/// The first answer that is the store's own.
fn once_answered(served: &Served, path: &str, body: &Value) -> Answer {
    let patience = Instant::now() + Duration::from_secs(20);
    loop {
        let answer = post(served, path, body);
        if answer.status != 503 {
            return answer;
        }
        assert!(Instant::now() < patience, "{answer:?}");
    }
}

/// What is granted as soon as the store is there again.
fn back(served: &Served, key: &str) -> Value {
    let patience = Instant::now() + Duration::from_secs(20);
    loop {
        let answer = post(served, "/v1/locks/acquire", &json!({ "key": key }));
        if answer.status == 200 {
            return answer.json();
        }
        assert!(Instant::now() < patience, "{answer:?}");
    }
}

/// L20, through a store: the node stands still, and so does the store, and a node is killed.
#[test]
fn nodes_and_a_store_that_stand_still_or_die_give_nothing_to_two() {
    let Some(mut redis) = RedisServer::start() else { return };
    // It forgets everything when it dies, so it is left alive.
    nothing_to_two(&mut redis, 41, &[Fault::NodeStops, Fault::StoreStops, Fault::NodeDies]);
}

/// The same, and the store is killed, too: what it has answered is on its disk.
#[test]
fn nodes_and_a_postgresql_that_stand_still_or_die_give_nothing_to_two() {
    let faults = [Fault::NodeStops, Fault::StoreStops, Fault::NodeDies, Fault::StoreDies];
    nothing_to_two(&mut Postgres::start(), 43, &faults);
}

#[derive(Clone, Copy)]
enum Fault {
    NodeStops,
    NodeDies,
    StoreStops,
    StoreDies,
}

fn nothing_to_two(store: &mut dyn Shared, seed: u64, faults: &[Fault]) {
    let file = node(store, "sqlite:catraca.db", "100ms");
    let while_others_wait = || thread::park_timeout(Duration::from_millis(2 * TTL as u64 / 1_000));
    let (again, mut round) = (file.clone(), 0);
    let history = history(&file, seed, |served| {
        let fault = faults[round.min(faults.len() - 1)];
        round += 1;
        match fault {
            Fault::NodeStops => {
                served.signal("STOP");
                while_others_wait();
                served.signal("CONT");
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
                served.signal("KILL");
                drop(served);
                return Served::of(&again);
            }
        }
        served
    });
    // Leases are counted on the store's wall clock, which a machine may correct meanwhile.
    println!("the wall clock was stepped by {} us", history.stepped);
    right(&history, history.stepped);
}

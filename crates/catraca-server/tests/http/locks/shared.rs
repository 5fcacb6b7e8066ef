//! Locks that nodes share in Redis: what one node grants every node knows, whoever dies.

mod clock;

use std::thread;
use std::time::{Duration, Instant};

use catraca_testkit::redis::RedisServer;
use serde_json::json;

use super::world::{TTL, history, right};
use super::{CATALOG, give, post, said, secret, shared, take};
use crate::served::Served;
use crate::server::{PASSWORD, Server};

/// A catalog of nodes that share.
fn node(redis: &RedisServer, records: &str, deadline: &str) -> std::path::PathBuf {
    let store = shared(&redis.url(), deadline);
    secret(&format!("{CATALOG}{store}[records]\nurl = {records:?}\n"))
}

#[test]
fn what_one_node_grants_every_node_knows() {
    let Some(redis) = RedisServer::start() else { return };
    let server = Server::start();
    let records = format!("postgres://catraca:{PASSWORD}@127.0.0.1:{}/postgres", server.port);
    let here = Served::of(&node(&redis, &records, "5s"));
    let there = Served::of(&node(&redis, &records, "5s"));
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
    assert_eq!((&stats["success"], &stats["active"]), (&2.into(), &1.into()), "{stats}");
}

#[test]
fn without_the_store_nothing_is_granted_and_the_answer_comes_in_time() {
    let Some(mut redis) = RedisServer::start() else { return };
    let served = Served::of(&node(&redis, "sqlite:catraca.db", "200ms"));
    let held = take(&served, &json!({ "key": "p", "ttl_ms": 60_000 }));
    redis.kill();
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
        assert_eq!(said(&answer), (503, "locks-away".to_owned()), "{path}");
        assert_eq!(answer.header("retry-after"), Some("1"), "{path}");
        assert!(begun.elapsed() < Duration::from_secs(5), "{path}: {:?}", begun.elapsed());
    }
    // It comes back without anything: leases are lost, and numbers still rise.
    redis.restart();
    let patience = Instant::now() + Duration::from_secs(20);
    let next = loop {
        let answer = post(&served, "/v1/locks/acquire", &json!({ "key": "p" }));
        if answer.status == 200 {
            break answer.json();
        }
        assert!(Instant::now() < patience, "{answer:?}");
    };
    assert!(next["fence"].as_i64() > held["fence"].as_i64(), "{next} after {held}");
}

/// L20, through a store: the node stands still, and so does the store, and a node is killed.
#[test]
fn nodes_and_a_store_that_stand_still_or_die_give_nothing_to_two() {
    let Some(redis) = RedisServer::start() else { return };
    let file = node(&redis, "sqlite:catraca.db", "100ms");
    let (again, mut round) = (file.clone(), 0);
    let history = history(&file, 41, |served| {
        round += 1;
        match round {
            1 => {
                served.signal("STOP");
                thread::park_timeout(Duration::from_millis(2 * TTL as u64 / 1_000));
                served.signal("CONT");
                served
            }
            2 => {
                redis.signal("STOP");
                thread::park_timeout(Duration::from_millis(2 * TTL as u64 / 1_000));
                redis.signal("CONT");
                served
            }
            _ => {
                served.signal("KILL");
                drop(served);
                Served::of(&again)
            }
        }
    });
    // Leases in Redis are counted on its wall clock, which a machine may correct meanwhile.
    println!("the wall clock was stepped by {} us", history.stepped);
    right(&history, history.stepped);
}

//! Errors of a server: each is reported by its name, delays no call, and is over when its cause is.

use std::time::{Duration, Instant};

use catraca::redis::{RedisOptions, RedisStore};
use catraca::store::{RuleStamp, RuleWriteMode, SharedStore, StampedRule, StoreError};
use catraca_testkit::blocking_store::BlockingStore;
use catraca_testkit::pause_watch::PauseWatch;
use catraca_testkit::redis::{RedisServer, until};

use super::helpers::{connect, connect_with, passes};

/// The maximum duration of a call on a busy machine; the deadline is 50 ms.
const SLACK: Duration = Duration::from_millis(250);
/// The maximum time until a store uses a recovered server.
const BACK: Duration = Duration::from_secs(2);

fn default_store(server: &RedisServer) -> BlockingStore<RedisStore> {
    connect_with(&server.url(), RedisOptions::default()).unwrap_or_else(|error| panic!("{error}"))
}

fn answer(store: &BlockingStore<RedisStore>) -> String {
    match passes(store, 1) {
        Ok(passed) => format!("passed: {passed}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_forgotten_script_costs_one_more_trip_and_no_error() {
    let Some(server) = RedisServer::start() else { return };
    let store = connect(&server.url());
    for _ in 0..20 {
        server.command(&["SCRIPT", "FLUSH"]);
        assert!(passes(&store, 1).unwrap());
    }
}

#[test]
fn a_full_server_is_full_until_it_has_room() {
    let Some(server) = RedisServer::start() else { return };
    let store = connect(&server.url());
    server.command(&["CONFIG", "SET", "maxmemory", "1"]);
    let full = passes(&store, 1).unwrap_err();
    assert!(matches!(full, StoreError::Full { .. }), "{full}");
    assert!(full.to_string().contains("maxmemory"), "{full}");
    server.command(&["CONFIG", "SET", "maxmemory", "0"]);
    assert!(passes(&store, 1).unwrap());
}

#[test]
fn each_refusal_of_a_server_is_told_by_its_name() {
    let Some(server) = RedisServer::start() else { return };
    let store = connect(&server.url());
    server.command(&["ACL", "SETUSER", "default", "-evalsha", "-eval"]);
    assert!(answer(&store).contains("NOPERM"), "{}", answer(&store));
    server.command(&["ACL", "SETUSER", "default", "+@all"]);
    assert_eq!(answer(&store), "passed: true");
    server.command(&["REPLICAOF", "127.0.0.1", "1"]);
    assert!(answer(&store).contains("READONLY"), "{}", answer(&store));
    assert!(answer(&store).contains("replica"), "{}", answer(&store));
    server.command(&["REPLICAOF", "NO", "ONE"]);
    let took = until("the primary is taken back", || passes(&store, 1).is_ok());
    assert!(took < BACK, "{took:?}");
}

#[test]
fn a_server_of_a_cluster_and_one_that_cannot_save_say_so() {
    let Some(server) = RedisServer::start_with(&["--cluster-enabled", "yes"]) else { return };
    let Err(refused) = connect_with(&server.url(), RedisOptions::default()) else {
        panic!("a server of a cluster was accepted as a single server");
    };
    assert!(refused.to_string().contains("redis+cluster://"), "{refused}");
    let settings = ["--save", "900 1", "--stop-writes-on-bgsave-error", "yes"];
    let Some(server) = RedisServer::start_with(&settings) else { return };
    let store = connect(&server.url());
    let mut client = server.connect();
    let directory = server.socket().parent().unwrap().to_owned();
    std::fs::remove_dir_all(&directory).unwrap();
    let failed = |line: &[u8]| String::from_utf8_lossy(line).contains("rdb_last_bgsave_status:err");
    until("a save fails", || {
        let _ = client.call(&[b"BGSAVE"]).unwrap();
        match client.call(&[b"INFO", b"persistence"]).unwrap() {
            catraca_testkit::resp::RespValue::Bytes(info) => failed(&info),
            other => panic!("no info: {other:?}"),
        }
    });
    assert!(answer(&store).contains("MISCONF"), "{}", answer(&store));
    std::fs::create_dir_all(&directory).unwrap();
}

#[test]
fn a_server_that_stands_still_delays_nobody_and_is_back_at_once() {
    let Some(server) = RedisServer::start() else { return };
    let store = default_store(&server);
    assert!(passes(&store, 1).unwrap());
    server.signal("STOP");
    let machine = PauseWatch::start();
    let start = Instant::now();
    let mut longest = Duration::ZERO;
    while start.elapsed() < Duration::from_secs(3) {
        let call = Instant::now();
        assert!(passes(&store, 1).is_err());
        longest = longest.max(call.elapsed());
    }
    let added = machine.added_to_a_call();
    assert!(longest < SLACK + added, "a call took {longest:?}, of which at most {added:?} waiting");
    server.signal("CONT");
    let took = until("calls pass", || passes(&store, 1).is_ok());
    println!("longest call {longest:?}, back after {took:?}");
    assert!(took < BACK, "{took:?}");
}

#[test]
fn a_killed_server_delays_nobody_and_is_back_at_once() {
    let Some(mut server) = RedisServer::start() else { return };
    let store = default_store(&server);
    let machine = PauseWatch::start();
    for _ in 0..3 {
        assert!(passes(&store, 1).unwrap());
        server.kill();
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(1) {
            let call = Instant::now();
            assert!(passes(&store, 1).is_err());
            let took = call.elapsed();
            assert!(took < SLACK + machine.added_to_a_call(), "a call took {took:?}");
        }
        server.restart();
        let took = until("calls pass", || passes(&store, 1).is_ok());
        println!("back after {took:?}");
        assert!(took < BACK, "{took:?}");
    }
}

#[test]
fn a_busy_server_is_told_by_its_name_once_it_says_so() {
    let settings = ["--busy-reply-threshold", "100"];
    let Some(server) = RedisServer::start_with(&settings) else { return };
    let store = default_store(&server);
    let mut other = server.connect();
    other.queue(&[b"EVAL", b"while true do end", b"0"]);
    let busy = std::thread::spawn(move || other.receive());
    until("the store reports BUSY", || answer(&store).contains("BUSY"));
    server.command(&["SCRIPT", "KILL"]);
    busy.join().unwrap().unwrap();
    let took = until("calls pass", || passes(&store, 1).is_ok());
    assert!(took < BACK, "{took:?}");
}

/// Scripts, pipelines and transactions are refused in different ways.
#[test]
fn a_primary_that_lacks_replicas_is_named_with_the_remedy_in_every_call() {
    let Some(server) = RedisServer::start() else { return };
    let store = connect(&server.url());
    assert_eq!(answer(&store), "passed: true");
    server.command(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
    let stamp = RuleStamp { micros: 1, tie_breaker: 0 };
    let rules = [StampedRule { name: b"a".to_vec(), stamp, body: Some(b"b".to_vec()) }];
    let shared = store.store();
    let run = store.handle();
    let errors = [
        answer(&store),
        run.block_on(shared.status()).unwrap_err().to_string(),
        run.block_on(shared.publish_change()).unwrap_err().to_string(),
        run.block_on(shared.write_rules(&rules, RuleWriteMode::Merge)).unwrap_err().to_string(),
    ];
    for error in errors {
        let named = format!("Redis at 127.0.0.1:{} answers NOREPLICAS", server.port());
        assert!(error.contains(&named), "{error}");
        assert!(error.contains("start or connect a replica"), "{error}");
    }
    server.command(&["CONFIG", "SET", "min-replicas-to-write", "0"]);
    assert_eq!(answer(&store), "passed: true");
}

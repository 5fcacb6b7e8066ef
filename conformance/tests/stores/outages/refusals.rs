//! F6, F7 and F8: a server that refuses commands, and one that is slow.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use catraca::Check;
use catraca::redis::RedisOptions;
use catraca_testkit::pause_watch::PauseWatch;
use catraca_testkit::redis::RedisServer;
use catraca_testkit::resp::RespValue;

use super::helpers::{DEADLINE, NOISE, Node, RECOVERS, pause};

#[test]
fn f6_a_full_server_degrades_and_says_why() {
    let Some(server) = RedisServer::start() else { return };
    let node = Node::over(&server.url(), 1);
    assert!(!node.check("local", "192.0.2.1").degraded);
    command(&server, &["CONFIG", "SET", "maxmemory", "1"]);
    let seen = node.check("local", "192.0.2.1");
    assert!(seen.allowed && seen.degraded);
    assert_eq!(node.check("closed", "192.0.2.1").reason.as_str(), "unavailable");
    let error = node.stats().error.unwrap_or_default();
    assert!(error.contains("room") || error.contains("OOM"), "{error}");
    command(&server, &["CONFIG", "SET", "maxmemory", "0"]);
    wait_for_recovery(&node, Instant::now());
    assert_eq!(node.stats().error, None);
}

/// When the eviction policy of a server in use is changed, the node warns and names the remedy; no
/// call is refused.
#[test]
fn f6_a_server_that_begins_to_evict_is_named_while_it_does() {
    let Some(server) = RedisServer::start() else { return };
    let node = Node::over(&server.url(), 1);
    command(&server, &["CONFIG", "SET", "maxmemory", "200mb"]);
    assert_eq!(node.stats().config_warning, None);
    for policy in ["allkeys-lru", "volatile-ttl"] {
        command(&server, &["CONFIG", "SET", "maxmemory-policy", policy]);
        let names_policy =
            |warning: &str| warning.contains(policy) && warning.contains("noeviction");
        wait_for_warning(&node, |warning| warning.is_some_and(names_policy));
        assert!(!node.check("local", "192.0.2.1").degraded, "the store is used all the same");
    }
    command(&server, &["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    wait_for_warning(&node, |warning| warning.is_none());
}

/// Waits until the node's configuration warning is as expected.
fn wait_for_warning(node: &Node, is: impl Fn(Option<&str>) -> bool) {
    let start = Instant::now();
    while !is(node.stats().config_warning.as_deref()) {
        assert!(start.elapsed() < RECOVERS, "{:?}", node.stats());
        pause(Duration::from_millis(10));
    }
}

/// A script that the server has dropped is sent again, without an effect on callers.
#[test]
fn f7_a_forgotten_script_is_no_fault() {
    let Some(server) = RedisServer::start() else { return };
    let node = Node::over(&server.url(), 1);
    let stop = Arc::new(AtomicBool::new(false));
    std::thread::scope(|scope| {
        let flushing = Arc::clone(&stop);
        let server = &server;
        scope.spawn(move || {
            while !flushing.load(Ordering::Relaxed) {
                command(server, &["SCRIPT", "FLUSH"]);
                pause(Duration::from_millis(20));
            }
        });
        let degraded = (0..2_000).filter(|_| node.check("local", "192.0.2.1").degraded).count();
        stop.store(true, Ordering::Relaxed);
        assert_eq!(degraded, 0);
    });
}

#[test]
fn f7_refusals_are_named_and_pass() {
    let Some(server) = RedisServer::start() else { return };
    command(&server, &["ACL", "SETUSER", "node", "on", ">pw", "~*", "&*", "+@all"]);
    let url = server.url().replace("redis://", "redis://node:pw@");
    let node = Node::over(&url, 1);
    assert!(!node.check("local", "192.0.2.1").degraded);
    command(&server, &["ACL", "SETUSER", "node", "-evalsha", "-eval"]);
    (0..5).for_each(|_| assert!(node.check("local", "192.0.2.1").degraded));
    let error = node.stats().error.unwrap_or_default();
    assert!(error.contains("NOPERM") && !error.contains("pw@"), "{error}");
    command(&server, &["ACL", "SETUSER", "node", "+evalsha", "+eval"]);
    wait_for_recovery(&node, Instant::now());
}

#[test]
fn f7_a_server_busy_with_somebody_elses_script_is_left_alone() {
    let Some(server) = RedisServer::start_with(&["--busy-reply-threshold", "50"]) else { return };
    let node = Node::over(&server.url(), 1);
    let seen = node.outage(
        Duration::from_secs(2),
        || {
            let mut client = server.connect();
            std::thread::spawn(move || {
                let _ = client.call(&[b"EVAL", b"while true do end", b"0"]);
            });
        },
        || {
            let killed = || matches!(server.command(&["SCRIPT", "KILL"]), RespValue::Error(_));
            while killed() {
                pause(Duration::from_millis(10));
            }
        },
    );
    seen.assert_bounds("F7 BUSY");
}

#[test]
fn f8_callers_beyond_the_bound_are_answered_at_once() {
    let Some(server) = RedisServer::start_with(&["--enable-debug-command", "yes"]) else { return };
    let options = RedisOptions { in_flight_max: 32, ..RedisOptions::default() };
    let node = Node::with(&server.url(), 1, options);
    let mut client = server.connect();
    let sleeping = std::thread::spawn(move || {
        let slept = client.call(&[b"DEBUG", b"SLEEP", b"1"]);
        assert!(matches!(slept, Ok(RespValue::Bytes(_))), "{slept:?}");
    });
    let machine = PauseWatch::start();
    let start = Instant::now();
    let callers: Vec<_> = (0..512)
        .map(|number| {
            let app = node.app.clone();
            node.runtime.spawn(async move {
                let ip = std::net::Ipv4Addr::from(0x0A00_0000_u32 + number).to_string();
                app.check(&Check::new("local", [("ip", ip.as_str())])).await.unwrap().degraded
            })
        })
        .collect();
    for caller in callers {
        node.runtime.block_on(caller).unwrap();
    }
    println!("F8 512 callers answered within {:?}", start.elapsed());
    let took = start.elapsed();
    assert!(took <= DEADLINE + NOISE * 2 + machine.added_to_a_call(), "{took:?}");
    sleeping.join().unwrap();
    wait_for_recovery(&node, Instant::now());
}

/// Waits until the store decides again, within its bound.
fn wait_for_recovery(node: &Node, mended: Instant) {
    while node.check("local", "203.0.113.7").degraded {
        assert!(mended.elapsed() < RECOVERS, "not recovered: {:?}", node.stats());
        pause(Duration::from_millis(10));
    }
}

/// Sends a command that must not be refused.
fn command(server: &RedisServer, command: &[&str]) {
    let answer = server.command(command);
    assert!(!matches!(answer, RespValue::Error(_)), "{command:?}: {answer:?}");
}

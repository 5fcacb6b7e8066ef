//! F6, F7 and F8: a server that is there and will not, and one that is slow for everybody.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use catraca::Check;
use catraca::redis::RedisOptions;
use catraca_testkit::redis::RedisServer;
use catraca_testkit::resp::RespValue;

use crate::helpers::{DEADLINE, NOISE, Node, RECOVERS, pause};

#[test]
fn f6_a_full_server_degrades_and_says_why() {
    let Some(server) = RedisServer::start() else { return };
    let node = Node::over(&server.url(), 1);
    assert!(!node.check("local", "192.0.2.1").degraded);
    done(&server, &["CONFIG", "SET", "maxmemory", "1"]);
    let seen = node.check("local", "192.0.2.1");
    assert!(seen.allowed && seen.degraded);
    assert_eq!(node.check("closed", "192.0.2.1").reason.as_str(), "unavailable");
    let trouble = node.engine.stats().error.unwrap_or_default();
    assert!(trouble.contains("room") || trouble.contains("OOM"), "{trouble}");
    done(&server, &["CONFIG", "SET", "maxmemory", "0"]);
    back(&node, Instant::now());
    assert_eq!(node.engine.stats().error, None);
}

/// Whoever lets a server evict while it is used is told, and what helps; nobody is refused.
#[test]
fn f6_a_server_that_begins_to_evict_is_named_while_it_does() {
    let Some(server) = RedisServer::start() else { return };
    let node = Node::over(&server.url(), 1);
    done(&server, &["CONFIG", "SET", "maxmemory", "200mb"]);
    assert_eq!(node.engine.stats().config_warning, None);
    for policy in ["allkeys-lru", "volatile-ttl"] {
        done(&server, &["CONFIG", "SET", "maxmemory-policy", policy]);
        let told = |danger: &str| danger.contains(policy) && danger.contains("noeviction");
        noticed(&node, |danger| danger.is_some_and(told));
        assert!(!node.check("local", "192.0.2.1").degraded, "it is asked all the same");
    }
    done(&server, &["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    noticed(&node, |danger| danger.is_none());
}

fn noticed(node: &Node, is: impl Fn(Option<&str>) -> bool) {
    let begun = Instant::now();
    while !is(node.engine.stats().config_warning.as_deref()) {
        assert!(begun.elapsed() < RECOVERS, "{:?}", node.engine.stats());
        pause(Duration::from_millis(10));
    }
}

/// A script that is not known is sent once more; nobody notices.
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
                done(server, &["SCRIPT", "FLUSH"]);
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
    done(&server, &["ACL", "SETUSER", "node", "on", ">pw", "~*", "&*", "+@all"]);
    let url = server.url().replace("redis://", "redis://node:pw@");
    let node = Node::over(&url, 1);
    assert!(!node.check("local", "192.0.2.1").degraded);
    done(&server, &["ACL", "SETUSER", "node", "-evalsha", "-eval"]);
    (0..5).for_each(|_| assert!(node.check("local", "192.0.2.1").degraded));
    let trouble = node.engine.stats().error.unwrap_or_default();
    assert!(trouble.contains("NOPERM") && !trouble.contains("pw@"), "{trouble}");
    done(&server, &["ACL", "SETUSER", "node", "+evalsha", "+eval"]);
    back(&node, Instant::now());
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
    seen.hold("F7 BUSY");
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
    let begun = Instant::now();
    let callers: Vec<_> = (0..512)
        .map(|number| {
            let engine = Arc::clone(&node.engine);
            node.runtime.spawn(async move {
                let ip = std::net::Ipv4Addr::from(0x0A00_0000_u32 + number).to_string();
                engine.check(&Check::new("local", [("ip", ip.as_str())])).await.unwrap().degraded
            })
        })
        .collect();
    for caller in callers {
        node.runtime.block_on(caller).unwrap();
    }
    println!("F8 512 callers answered within {:?}", begun.elapsed());
    assert!(begun.elapsed() <= DEADLINE + NOISE * 2, "{:?}", begun.elapsed());
    sleeping.join().unwrap();
    back(&node, Instant::now());
}

/// The store decides again within its bound.
fn back(node: &Node, mended: Instant) {
    while node.check("local", "203.0.113.7").degraded {
        assert!(mended.elapsed() < RECOVERS, "not back: {:?}", node.engine.stats());
        pause(Duration::from_millis(10));
    }
}

fn done(server: &RedisServer, command: &[&str]) {
    let answer = server.command(command);
    assert!(!matches!(answer, RespValue::Error(_)), "{command:?}: {answer:?}");
}

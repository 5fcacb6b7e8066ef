//! F3 and F7: a server that ends connections as it likes, and one that is still reading its data.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use catraca::Check;
use catraca_testkit::redis::RedisServer;
use catraca_testkit::resp::RespValue;

use crate::helpers::{DEADLINE, NOISE, Node, RECOVERS, is_deep, pause};

/// Three seconds to read a thousand keys.
const SLOWLY: [&str; 4] =
    ["--key-load-delay", "3000", "--loading-process-events-interval-bytes", "1024"];

#[test]
fn f7_a_server_that_is_still_loading_is_left_alone_and_named() {
    let Some(server) = RedisServer::start_with(&SLOWLY) else { return };
    let node = Node::over(&server.url(), 1);
    node.block("192.0.2.1");
    done(&server, &["EVAL", "for i = 1, 1000 do redis.call('SET', 'filler' .. i, i) end", "0"]);
    done(&server, &["SAVE"]);
    let server = RefCell::new(server);
    let told = RefCell::new(String::new());
    let breaks = || {
        server.borrow_mut().kill();
        server.borrow_mut().begin_restart();
        let begun = Instant::now();
        while !told.borrow().contains("LOADING") && begun.elapsed() < RECOVERS {
            *told.borrow_mut() = node.engine.stats().error.unwrap_or_default();
            pause(Duration::from_millis(5));
        }
    };
    let mends = || {
        let loading = |server: &RedisServer| {
            let asked = catraca_testkit::resp::RespClient::connect(&server.socket());
            let told = asked.and_then(|mut client| client.call(&[b"DBSIZE"]));
            !matches!(told, Ok(RespValue::Int(_)))
        };
        while loading(&server.borrow()) {
            pause(Duration::from_millis(5));
        }
    };
    let seen = node.outage(Duration::from_secs(2), breaks, mends);
    seen.hold("F7 LOADING");
    assert!(told.borrow().contains("LOADING"), "{}", told.borrow());
    assert_eq!(node.check("login", "192.0.2.1").reason.as_str(), "blocked");
}

/// Whoever is cut off in the middle of a call may have been charged, once; nobody else notices.
#[test]
fn f3_connections_that_the_server_ends_are_made_anew_and_nobody_pays_twice() {
    ended_every(Duration::from_millis(800), 2);
}

/// A line that is lost is made anew at once, and the store asked as soon as there is one.
#[test]
fn f3_connections_that_the_server_ends_without_a_pause_leave_the_store_in_use() {
    ended_every(Duration::from_millis(50), 4);
}

/// Ends all connections again and again; the store must decide at least one call in so many.
fn ended_every(every: Duration, one_in: i64) {
    let Some(server) = RedisServer::start() else { return };
    let node = Node::over(&server.url(), 1);
    let length = Duration::from_secs(if is_deep() { 60 } else { 4 });
    let stop = Arc::new(AtomicBool::new(false));
    let (mut sure, mut all, mut longest) = (0, 0, Duration::ZERO);
    std::thread::scope(|scope| {
        let (server, stopped) = (&server, Arc::clone(&stop));
        scope.spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                server.command(&["CLIENT", "KILL", "TYPE", "normal"]);
                pause(every);
            }
        });
        let begun = Instant::now();
        while begun.elapsed() < length {
            let call = Instant::now();
            let decision = node.check("count", "192.0.2.1");
            longest = longest.max(call.elapsed());
            (all, sure) = (all + 1, sure + i64::from(!decision.degraded));
            assert!(decision.allowed, "{decision:?}");
            // Answers without a trip would outnumber all others.
            pause(Duration::from_millis(1));
        }
        stop.store(true, Ordering::Relaxed);
    });
    let healed = Instant::now();
    while node.check("local", "203.0.113.9").degraded {
        assert!(healed.elapsed() < RECOVERS, "{:?}", node.engine.stats());
        pause(Duration::from_millis(5));
    }
    let peek = Check::new("count", [("ip", "192.0.2.1")]);
    let left = node.runtime.block_on(node.engine.peek(&peek)).unwrap();
    let used = 1_000_000 - left.remaining.unwrap_or_default();
    println!("F3 CLIENT KILL every {every:?}: {all} calls, {sure} by the store, {used} charged");
    assert!((sure..=all).contains(&used), "{used} of {sure} to {all}: somebody paid twice");
    assert!(sure < all, "nothing was cut");
    assert!(sure * one_in > all, "the store decided only {sure} of {all}");
    assert!(longest <= DEADLINE + NOISE, "{longest:?}");
}

fn done(server: &RedisServer, command: &[&str]) {
    let answer = server.command(command);
    assert!(!matches!(answer, RespValue::Error(_)), "{command:?}: {answer:?}");
}

//! F3 and F7: a server that closes connections, and one that is still loading its data.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use catraca::Check;
use catraca_testkit::pause_watch::PauseWatch;
use catraca_testkit::redis::RedisServer;
use catraca_testkit::resp::RespValue;

use super::helpers::{DEADLINE, NOISE, Node, RECOVERS, is_deep, pause};

/// Three seconds to load a thousand keys.
const SLOWLY: [&str; 4] =
    ["--key-load-delay", "3000", "--loading-process-events-interval-bytes", "1024"];

#[test]
fn f7_a_server_that_is_still_loading_is_left_alone_and_named() {
    let Some(server) = RedisServer::start_with(&SLOWLY) else { return };
    let node = Node::over(&server.url(), 1);
    node.block("192.0.2.1");
    command(&server, &["EVAL", "for i = 1, 1000 do redis.call('SET', 'filler' .. i, i) end", "0"]);
    command(&server, &["SAVE"]);
    let server = RefCell::new(server);
    let error = RefCell::new(String::new());
    let breaks = || {
        server.borrow_mut().kill();
        server.borrow_mut().begin_restart();
        let start = Instant::now();
        while !error.borrow().contains("LOADING") && start.elapsed() < RECOVERS {
            *error.borrow_mut() = node.stats().error.unwrap_or_default();
            pause(Duration::from_millis(5));
        }
    };
    let mends = || {
        let loading = |server: &RedisServer| {
            let client = catraca_testkit::resp::RespClient::connect(&server.socket());
            let reply = client.and_then(|mut client| client.call(&[b"DBSIZE"]));
            !matches!(reply, Ok(RespValue::Int(_)))
        };
        while loading(&server.borrow()) {
            pause(Duration::from_millis(5));
        }
    };
    let seen = node.outage(Duration::from_secs(2), breaks, mends);
    seen.assert_bounds("F7 LOADING");
    assert!(error.borrow().contains("LOADING"), "{}", error.borrow());
    assert_eq!(node.check("login", "192.0.2.1").reason.as_str(), "blocked");
}

/// A call whose connection is closed may have been charged, once; other calls are not affected.
#[test]
fn f3_connections_that_the_server_ends_are_made_anew_and_nobody_pays_twice() {
    close_connections_every(Duration::from_millis(800), 2);
}

/// A lost connection is replaced at once, and the store used as soon as there is a new one.
#[test]
fn f3_connections_that_the_server_ends_without_a_pause_leave_the_store_in_use() {
    close_connections_every(Duration::from_millis(50), 4);
}

/// Closes all connections at an interval; the store must decide at least one call in `one_in`.
fn close_connections_every(every: Duration, one_in: i64) {
    let Some(server) = RedisServer::start() else { return };
    let node = Node::over(&server.url(), 1);
    let length = Duration::from_secs(if is_deep() { 60 } else { 4 });
    let stop = Arc::new(AtomicBool::new(false));
    let mut by_store = 0;
    let mut all = 0;
    let machine = PauseWatch::start();
    let mut longest = Duration::ZERO;
    std::thread::scope(|scope| {
        let server = &server;
        let stopped = Arc::clone(&stop);
        scope.spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                server.command(&["CLIENT", "KILL", "TYPE", "normal"]);
                pause(every);
            }
        });
        let start = Instant::now();
        while start.elapsed() < length {
            let call = Instant::now();
            let decision = node.check("count", "192.0.2.1");
            longest = longest.max(call.elapsed());
            all += 1;
            by_store += i64::from(!decision.degraded);
            assert!(decision.allowed, "{decision:?}");
            // Without a pause, local answers would outnumber those of the store.
            pause(Duration::from_millis(1));
        }
        stop.store(true, Ordering::Relaxed);
    });
    let healed = Instant::now();
    while node.check("local", "203.0.113.9").degraded {
        assert!(healed.elapsed() < RECOVERS, "{:?}", node.stats());
        pause(Duration::from_millis(5));
    }
    let peek = Check::new("count", [("ip", "192.0.2.1")]);
    let left = node.runtime.block_on(node.app.peek(&peek)).unwrap();
    let used = 1_000_000 - left.remaining.unwrap_or_default();
    println!(
        "F3 CLIENT KILL every {every:?}: {all} calls, {by_store} by the store, {used} charged"
    );
    assert!(
        (by_store..=all).contains(&used),
        "{used} of {by_store} to {all}: a call was charged twice"
    );
    assert!(by_store < all, "no connection was closed during a call");
    assert!(by_store * one_in > all, "the store decided only {by_store} of {all}");
    assert!(longest <= DEADLINE + NOISE + machine.added_to_a_call(), "{longest:?}");
}

/// Sends a command that must not be refused.
fn command(server: &RedisServer, command: &[&str]) {
    let answer = server.command(command);
    assert!(!matches!(answer, RespValue::Error(_)), "{command:?}: {answer:?}");
}

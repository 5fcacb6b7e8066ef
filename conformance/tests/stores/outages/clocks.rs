//! F14 and F15: a store whose clock jumps, or whose machine was suspended.
//!
//! The store's clock decides, so only its jumps have an effect, which is bounded.

use std::time::{Duration, Instant};

use catraca_testkit::fake_clock::FakeClockLibrary;
use catraca_testkit::redis::RedisServer;

use super::helpers::{Node, RECOVERS, pause};

const HOUR: i64 = 3_600;
const LIMIT: usize = 5;

fn admitted(node: &Node, gate: &str, ip: &str) -> usize {
    let seen: Vec<_> = (0..20).map(|_| node.check(gate, ip)).collect();
    assert!(seen.iter().all(|decision| !decision.degraded), "{:?}", node.stats());
    seen.iter().filter(|decision| decision.allowed).count()
}

/// Waits until the node reports that the store's clock is this far ahead.
fn until_ahead(node: &Node, seconds: i64) {
    let start = Instant::now();
    let apart = || node.stats().clock_offset.map(|micros| (micros / 1_000_000 - seconds).abs());
    while apart().is_none_or(|seconds| seconds > 1) {
        assert!(start.elapsed() < RECOVERS, "not noticed: {:?}", node.stats());
        pause(Duration::from_millis(10));
    }
}

/// A jump forward gives one limit more, and ends the blocks that would have ended in the skipped
/// time. A jump backward gives nothing. A block that is longer than the jump ends at its own end.
///
///
#[test]
fn f14_a_store_clock_that_jumps_gives_one_limit_forward_and_nothing_backward() {
    let clock = FakeClockLibrary::build();
    let Some(server) = RedisServer::start_with_clock(&clock) else { return };
    let node = Node::over(&server.url(), 1);
    let both = ["slow", "login"];
    both.iter().for_each(|gate| assert_eq!(admitted(&node, gate, "192.0.2.1"), LIMIT));
    node.block_for("192.0.2.2", 3 * HOUR);
    clock.set(HOUR);
    until_ahead(&node, HOUR);
    for gate in both {
        let more = admitted(&node, gate, "192.0.2.1");
        println!("F14 an hour forward, {gate}: {more} more of {LIMIT}");
        assert!(more <= LIMIT, "{gate}: {more}");
    }
    assert_eq!(node.check("login", "192.0.2.2").reason.as_str(), "blocked");
    clock.set(0);
    until_ahead(&node, 0);
    for gate in both {
        assert_eq!(admitted(&node, gate, "192.0.2.1"), 0, "{gate}: an hour backward");
    }
    assert_eq!(node.check("login", "192.0.2.2").reason.as_str(), "blocked");
    assert_eq!(admitted(&node, "slow", "192.0.2.3"), LIMIT, "a new caller is admitted");
    clock.set(3 * HOUR + 60);
    until_ahead(&node, 3 * HOUR + 60);
    let start = Instant::now();
    while !node.check("login", "192.0.2.2").allowed {
        assert!(start.elapsed() < RECOVERS, "the block has reached its end");
        pause(Duration::from_millis(10));
    }
}

/// Small steps, as of a clock that is being corrected, while calls continue.
#[test]
fn f14_a_store_clock_that_wavers_admits_no_more_than_its_steps_refill() {
    let clock = FakeClockLibrary::build();
    let Some(server) = RedisServer::start_with_clock(&clock) else { return };
    let node = Node::over(&server.url(), 1);
    let start = Instant::now();
    let mut passed = 0;
    for step in [0, 2, 0, 2, -2, 2, 0] {
        clock.set(step);
        passed += admitted(&node, "slow", "192.0.2.1");
    }
    // Five in ten minutes is one in two minutes; the clock is never more than 2 s ahead.
    let refilled = (start.elapsed().as_secs() + 2) / 120;
    assert!(passed <= LIMIT + refilled as usize, "{passed}");
}

/// A machine that was suspended has the right wall clock when it resumes.
#[test]
fn f15_a_store_that_was_suspended_counts_the_time_that_has_passed() {
    let Some(server) = RedisServer::start() else { return };
    let node = Node::over(&server.url(), 1);
    node.block_for("192.0.2.1", 2);
    node.block_for("192.0.2.2", HOUR);
    assert_eq!(admitted(&node, "slow", "192.0.2.3"), LIMIT);
    server.signal("STOP");
    pause(Duration::from_secs(3));
    server.signal("CONT");
    let woken = Instant::now();
    while node.check("local", "203.0.113.9").degraded {
        assert!(woken.elapsed() < RECOVERS, "{:?}", node.stats());
        pause(Duration::from_millis(10));
    }
    assert!(node.check("login", "192.0.2.1").allowed, "its two seconds are over");
    assert_eq!(node.check("login", "192.0.2.2").reason.as_str(), "blocked");
    assert_eq!(admitted(&node, "slow", "192.0.2.3"), 0, "what was used is used");
}

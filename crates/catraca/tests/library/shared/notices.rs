//! Notices: every node knows the blocks and releases of the others, also while the store is
//! unavailable.

use std::time::Duration;

use catraca::{App, BlockProposal, ManualClock, Span, Subject};

use super::helpers::{Remote, START, check, heartbeat, node, poll_ready, secs, stats};

const CATALOG: &str = r#"
[policy.login]
by     = ["ip"]
window = "1 per 1m"
block  = "5m"
on_failure = "open"
"#;

/// Heartbeats after which every node has read what the others published.
fn beat(clock: &ManualClock, nodes: [&App; 2]) {
    clock.advance(Span::from_millis(250));
    for node in nodes.into_iter().chain(nodes) {
        heartbeat(node);
    }
}

fn two_nodes() -> (App, App, Remote, ManualClock) {
    let clock = ManualClock::at(START);
    let store = Remote::new(&clock);
    let here = node(CATALOG, &store, &clock, 2);
    let there = node(CATALOG, &store, &clock, 2);
    beat(&clock, [&here, &there]);
    (here, there, store, clock)
}

/// Regression: a block that one node had started was unknown on the others.
#[test]
fn a_block_of_one_node_denies_on_the_other_without_the_store() {
    let (here, there, store, clock) = two_nodes();
    assert!(check(&here, "login", "192.0.2.1").allowed);
    assert!(!check(&here, "login", "192.0.2.1").allowed);
    beat(&clock, [&here, &there]);
    store.fail(true);
    let decision = check(&there, "login", "192.0.2.1");
    assert_eq!((decision.reason.as_str(), decision.degraded), ("blocked", true));
    let wait = decision.retry_after.expect("a block has an end");
    assert!(wait <= secs(300) && wait > secs(298), "{wait:?}");
    assert!(check(&there, "login", "192.0.2.2").allowed, "open");
}

#[test]
fn a_release_of_one_node_counts_on_the_other_without_the_store() {
    let (here, there, store, clock) = two_nodes();
    check(&here, "login", "192.0.2.1");
    check(&here, "login", "192.0.2.1");
    beat(&clock, [&here, &there]);
    let subject = Subject::from([("ip", "192.0.2.1")]);
    clock.advance(secs(1));
    assert!(poll_ready(here.unblock_unaudited("default", "login", &subject)).unwrap());
    beat(&clock, [&here, &there]);
    store.fail(true);
    assert!(check(&there, "login", "192.0.2.1").allowed);
    assert!(check(&here, "login", "192.0.2.1").allowed);
}

/// The block is published after the release, although it was earlier.
#[test]
fn a_notice_that_comes_late_does_not_undo_a_later_one() {
    let (here, there, store, clock) = two_nodes();
    check(&here, "login", "192.0.2.1");
    check(&here, "login", "192.0.2.1");
    clock.advance(secs(1));
    let subject = Subject::from([("ip", "192.0.2.1")]);
    assert!(poll_ready(there.unblock_unaudited("default", "login", &subject)).unwrap());
    heartbeat(&there);
    heartbeat(&here);
    heartbeat(&there);
    store.fail(true);
    assert!(check(&there, "login", "192.0.2.1").allowed, "its own release was later");
    assert!(check(&here, "login", "192.0.2.1").allowed, "the release of the other node was later");
}

#[test]
fn an_operators_block_without_the_store_denies_here_at_once_and_everywhere_afterwards() {
    let (here, there, store, clock) = two_nodes();
    store.fail(true);
    let subject = Subject::from([("ip", "192.0.2.9")]);
    let proposal = BlockProposal::by_operator(Duration::from_secs(600), Some("abuse"));
    let blocked = poll_ready(here.block_unaudited("default", "login", &subject, proposal));
    assert_eq!(blocked.unwrap().len(), 1);
    assert_eq!(check(&here, "login", "192.0.2.9").reason.as_str(), "blocked");
    assert!(poll_ready(here.unblock_unaudited("default", "login", &subject)).is_err(), "refused");
    assert_eq!(stats(&here).unsynced_blocks, 1);
    store.fail(false);
    beat(&clock, [&here, &there]);
    assert_eq!(stats(&here).unsynced_blocks, 0);
    assert_eq!(check(&there, "login", "192.0.2.9").reason.as_str(), "blocked");
}

#[test]
fn the_oldest_notices_are_dropped_beyond_the_bound() {
    let (here, there, store, clock) = two_nodes();
    check(&here, "login", "192.0.2.1");
    check(&here, "login", "192.0.2.1");
    beat(&clock, [&here, &there]);
    assert_eq!((stats(&here).notices, stats(&here).dropped_notices), (1, 0));
    store.fill_notices(100_000);
    beat(&clock, [&here, &there]);
    beat(&clock, [&here, &there]);
    let dropped = stats(&here).dropped_notices + stats(&there).dropped_notices;
    assert_eq!((stats(&here).notices, dropped), (99_000, 1), "its block is active");
}

#[test]
fn live_nodes_with_other_revisions_are_a_problem_after_ten_seconds() {
    let clock = ManualClock::at(START);
    let store = Remote::new(&clock);
    let here = node(CATALOG, &store, &clock, 2);
    let there = node(&CATALOG.replace("5m", "6m"), &store, &clock, 2);
    there.set_node_name("shop-2");
    beat(&clock, [&here, &there]);
    assert_eq!((stats(&here).nodes, stats(&here).revision_problem), (2, None));
    for _ in 0..44 {
        beat(&clock, [&here, &there]);
    }
    let problem = stats(&here).revision_problem.expect("eleven seconds have passed");
    assert!(problem.contains("shop-2"), "{problem}");
    clock.advance(secs(6));
    heartbeat(&here);
    assert_eq!((stats(&here).nodes, stats(&here).revision_problem), (1, None), "it is gone");
}

/// Regression: what a node of another version published was skipped without a word, and its blocks
/// and releases did not count here.
#[test]
fn a_notice_that_cannot_be_read_is_reported() {
    let (here, there, store, clock) = two_nodes();
    assert_eq!(stats(&there).background_error, None);
    store.fill_notices(1);
    beat(&clock, [&here, &there]);
    let reported = stats(&there).background_error.unwrap();
    assert!(reported.starts_with("1 notices of other nodes cannot be read"), "{reported}");
    assert_eq!(heartbeat(&there).error, Some(reported));
}

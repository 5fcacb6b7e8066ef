//! Two nodes with records of their own change the same rules: the newest act counts, whichever node
//! writes first, and also if the store has lost data in the meantime.

use std::sync::atomic::{AtomicU32, Ordering};

use catraca::app::ListTargetText;
use catraca::core::policy::Mode;
use catraca::records::ListName;
use catraca::{ManualClock, Subject};

use super::helpers::{Remote, START, secs};
use super::node_scope::{TestNode, beat, new_file, reason, start, two_nodes};
use super::records::{ANA, range};

const RANGE: &str = "192.0.2.0/24";

async fn add(node: &TestNode) {
    let entries = vec![(range(RANGE), None)];
    let added = node.app.add_to_list(&ANA, ListName::Block, entries, false).await.unwrap();
    assert!(added.durable);
}

async fn remove(node: &TestNode) {
    let target = ListTargetText::Range(RANGE.to_owned());
    let removed = node.app.remove_from_list(&ANA, ListName::Block, None, &target).await.unwrap();
    assert!(removed.durable);
}

async fn set_mode(node: &TestNode, mode: Option<Mode>) -> bool {
    node.app.set_mode(&ANA, "pay", mode).await.unwrap().durable
}

/// An address of the range that no test has checked.
fn new_address() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    format!("192.0.2.{}", NEXT.fetch_add(1, Ordering::Relaxed))
}

/// What both nodes decide by, and what their records show.
async fn assert_agreed(nodes: [&TestNode; 2], is_listed: bool, mode: Option<Mode>) {
    for node in nodes {
        let expected = if is_listed { "blocklisted" } else { "ok" };
        assert_eq!(reason(node, "login", "ip", &new_address()).await, expected);
        let rows = node.app.list_entries(ListName::Block, None, None, 10).await.unwrap().rows;
        assert_eq!(rows.len(), usize::from(is_listed));
        assert_eq!(node.app.engine().mode_override("pay"), mode);
    }
}

/// Regression: a node that found its own act uncertain wrote its changes of the last minute over
/// newer ones of another node.
#[tokio::test]
async fn a_node_that_writes_its_rules_again_does_not_undo_newer_acts() {
    let (here, there, store, clock) = two_nodes().await;
    add(&here).await;
    assert!(set_mode(&here, Some(Mode::Off)).await);
    beat(&clock, &here, &there).await;
    remove(&here).await;
    beat(&clock, &here, &there).await;
    clock.advance(secs(20));
    add(&there).await;
    assert!(set_mode(&there, Some(Mode::Shadow)).await);
    beat(&clock, &here, &there).await;
    // The store loses nothing, but the node must assume that it did.
    store.lose_answers(true);
    let subject = Subject::from([("ip", "198.51.100.1")]);
    here.app.reset(&ANA, "default", "login", &subject).await.unwrap_err();
    store.lose_answers(false);
    beat(&clock, &here, &there).await;
    beat(&clock, &here, &there).await;
    assert_agreed([&here, &there], true, Some(Mode::Shadow)).await;
}

/// Regression: after a failover, a node that reconnected later wrote rules again that another node
/// had removed.
#[tokio::test]
async fn a_rule_that_was_removed_after_a_loss_of_data_stays_removed() {
    let (here, there, store, clock) = two_nodes().await;
    add(&here).await;
    assert!(set_mode(&here, Some(Mode::Off)).await);
    beat(&clock, &here, &there).await;
    store.lose_everything();
    there.app.heartbeat().await;
    there.app.heartbeat().await;
    clock.advance(secs(1));
    remove(&there).await;
    assert!(set_mode(&there, None).await);
    here.app.heartbeat().await;
    beat(&clock, &here, &there).await;
    assert_agreed([&here, &there], false, None).await;
}

/// Regression: a change that waited for the store replaced a newer one of another node.
#[tokio::test]
async fn a_change_that_waited_for_the_store_does_not_replace_a_newer_one() {
    let clock = ManualClock::at(START);
    let store = Remote::new(&clock);
    let link = store.new_link();
    let here = start(&link, &clock, new_file()).await;
    let there = start(&store, &clock, new_file()).await;
    beat(&clock, &here, &there).await;
    link.cut(true);
    for _ in 0..3 {
        here.app.heartbeat().await;
    }
    assert!(!set_mode(&here, Some(Mode::Off)).await);
    clock.advance(secs(10));
    assert!(set_mode(&there, Some(Mode::Shadow)).await);
    link.cut(false);
    beat(&clock, &here, &there).await;
    beat(&clock, &here, &there).await;
    assert_agreed([&here, &there], false, Some(Mode::Shadow)).await;
    // The other way round, the change that waited is the newest.
    link.cut(true);
    assert!(set_mode(&there, None).await);
    clock.advance(secs(1));
    assert!(!set_mode(&here, Some(Mode::Enforce)).await);
    link.cut(false);
    beat(&clock, &here, &there).await;
    beat(&clock, &here, &there).await;
    assert_agreed([&here, &there], false, Some(Mode::Enforce)).await;
}

/// A removal leaves a tombstone, so what the store does not have was lost.
#[tokio::test]
async fn a_rule_that_the_store_lost_unnoticed_is_written_again() {
    let (here, there, store, clock) = two_nodes().await;
    add(&here).await;
    beat(&clock, &here, &there).await;
    store.lose_rules();
    assert!(set_mode(&there, Some(Mode::Off)).await);
    beat(&clock, &here, &there).await;
    beat(&clock, &here, &there).await;
    assert_agreed([&here, &there], true, Some(Mode::Off)).await;
    let third = start(&store, &clock, new_file()).await;
    assert_agreed([&third, &here], true, Some(Mode::Off)).await;
}

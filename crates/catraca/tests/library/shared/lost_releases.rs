//! Nodes with records of their own: a store that has lost a release gets it again, and nothing else
//! is released.

use std::time::Duration;

use catraca::core::batch::Batch;
use catraca::records::{BlockQuery, BlockRow};
use catraca::store::{SharedStore, When};
use catraca::{BlockProposal, Clock, ManualClock, Span, Subject};

use super::helpers::{Remote, START, secs};
use super::node_scope::{TestNode, beat, new_file, reason, start, two_nodes};
use super::records::ANA;

const ADDRESS: &str = "192.0.2.1";

/// Makes a node believe that the store has lost data.
async fn doubt(node: &TestNode, store: &Remote) {
    store.lose_answers(true);
    let subject = Subject::from([("ip", "198.51.100.1")]);
    node.app.reset(&ANA, "default", "login", &subject).await.unwrap_err();
    store.lose_answers(false);
}

/// Blocks the address, and releases it on the first node.
async fn block_and_release(nodes: [&TestNode; 2], clock: &ManualClock) -> BlockRow {
    let [here, there] = nodes;
    reason(here, "login", "ip", ADDRESS).await;
    reason(here, "login", "ip", ADDRESS).await;
    beat(clock, here, there).await;
    let block = here.app.blocks(BlockQuery::default()).await.unwrap().rows.remove(0).row;
    clock.advance(secs(1));
    assert!(here.app.release(&ANA, block.id, None, false).await.unwrap().durable);
    beat(clock, here, there).await;
    here.records.flush().unwrap();
    there.records.flush().unwrap();
    block
}

/// Regression: a node that released its keys again also ended a block that another node had started
/// a moment before.
#[tokio::test]
async fn a_block_that_was_started_after_a_release_is_not_ended_by_it() {
    let (here, there, store, clock) = two_nodes().await;
    block_and_release([&here, &there], &clock).await;
    clock.advance(secs(20));
    assert_eq!(reason(&there, "login", "ip", ADDRESS).await, "over_limit", "blocked again");
    // The other node has not published its block yet.
    doubt(&here, &store).await;
    here.app.heartbeat().await;
    // Longer than the answer of the store is cached.
    clock.advance(secs(2));
    assert_eq!(reason(&there, "login", "ip", ADDRESS).await, "blocked");
    beat(&clock, &here, &there).await;
    assert_eq!(reason(&here, "login", "ip", ADDRESS).await, "blocked");
}

#[tokio::test]
async fn a_release_that_the_store_has_lost_is_repeated() {
    let (here, there, store, clock) = two_nodes().await;
    let block = block_and_release([&here, &there], &clock).await;
    let proposal = BlockProposal::restore(block.block, clock.now());
    let again = Batch::Block(vec![(block.subject.key, proposal)]);
    store.apply(&again, When::Store).await.unwrap();
    store.restart();
    beat(&clock, &here, &there).await;
    clock.advance(secs(60));
    assert_eq!(reason(&there, "login", "ip", ADDRESS).await, "ok");
}

/// Regression: the answer said that the block was durable, because the store was in use again.
#[tokio::test]
async fn a_block_is_durable_if_the_store_has_applied_it() {
    let (here, there, store, clock) = two_nodes().await;
    let subject = Subject::from([("ip", ADDRESS)]);
    let proposal = || BlockProposal::by_operator(Duration::from_secs(600), None);
    store.fail(true);
    // The circuit breaker is still closed.
    let blocked = here.app.block(&ANA, "default", "login", &subject, proposal()).await.unwrap();
    assert!(!blocked.durable);
    store.fail(false);
    beat(&clock, &here, &there).await;
    store.move_keys(true);
    let moving = Subject::from([("ip", "192.0.2.9")]);
    let blocked = here.app.block(&ANA, "default", "login", &moving, proposal()).await.unwrap();
    assert!(!blocked.durable, "the store is in use and did not take it");
    store.move_keys(false);
    beat(&clock, &here, &there).await;
    assert_eq!(reason(&there, "login", "ip", "192.0.2.9").await, "blocked");
    let blocked = here.app.block(&ANA, "default", "login", &subject, proposal()).await.unwrap();
    assert!(blocked.durable);
}

/// A node that has its own connection to the store, which can be cut.
async fn two_nodes_and_the_link_of_one() -> (TestNode, TestNode, Remote, Remote, ManualClock) {
    let clock = ManualClock::at(START);
    let store = Remote::new(&clock);
    let link = store.new_link();
    let here = start(&store, &clock, new_file()).await;
    let there = start(&link, &clock, new_file()).await;
    beat(&clock, &here, &there).await;
    (here, there, store, link, clock)
}

/// The block is released while the other node is cut off. `lost` is what happens to the store, and
/// when: before the release or after it.
async fn released_while_a_node_is_cut_off(lost: fn(&Remote), is_lost_first: bool, first: usize) {
    let (here, there, store, link, clock) = two_nodes_and_the_link_of_one().await;
    reason(&here, "login", "ip", ADDRESS).await;
    reason(&here, "login", "ip", ADDRESS).await;
    beat(&clock, &here, &there).await;
    let block = here.app.blocks(BlockQuery::default()).await.unwrap().rows.remove(0).row;
    link.cut(true);
    if is_lost_first {
        lost(&store);
        here.app.heartbeat().await;
    }
    clock.advance(secs(1));
    assert!(here.app.release(&ANA, block.id, None, false).await.unwrap().durable);
    here.app.heartbeat().await;
    here.records.flush().unwrap();
    clock.advance(secs(90));
    if !is_lost_first {
        lost(&store);
    }
    link.cut(false);
    let nodes = [&here, &there];
    for turn in 0..6 {
        clock.advance(Span::from_millis(250));
        nodes[(first + turn) % 2].app.heartbeat().await;
    }
    clock.advance(secs(2));
    for node in nodes {
        assert_eq!(reason(node, "login", "ip", ADDRESS).await, "ok", "the store has no block");
        clock.advance(secs(61));
        node.records.flush().unwrap();
        let listed = node.app.blocks(BlockQuery::default()).await.unwrap().rows;
        assert!(listed.is_empty(), "{listed:?}");
    }
}

/// Regression: a node that had not read a release wrote the block to a restarted store again. The
/// records of no node had it, so no operator could release it.
#[tokio::test]
async fn a_release_that_a_node_has_missed_is_not_undone_by_it_after_a_restart() {
    released_while_a_node_is_cut_off(Remote::restart, true, 0).await;
    released_while_a_node_is_cut_off(Remote::restart, true, 1).await;
}

/// The store has lost the notice of the release too.
#[tokio::test]
async fn a_release_whose_notice_the_store_has_lost_is_published_again() {
    released_while_a_node_is_cut_off(Remote::lose_everything, false, 0).await;
    released_while_a_node_is_cut_off(Remote::lose_everything, false, 1).await;
}

/// Regression: nodes compared their blocks with those of the store once after a loss, also if that
/// failed.
#[tokio::test]
async fn blocks_are_published_again_although_the_first_attempt_fails() {
    let (here, there, store, clock) = two_nodes().await;
    reason(&here, "login", "ip", ADDRESS).await;
    reason(&here, "login", "ip", ADDRESS).await;
    beat(&clock, &here, &there).await;
    here.records.flush().unwrap();
    there.records.flush().unwrap();
    store.lose_everything();
    store.refuse_notices(true);
    beat(&clock, &here, &there).await;
    store.refuse_notices(false);
    beat(&clock, &here, &there).await;
    let third = start(&store, &clock, new_file()).await;
    assert_eq!(third.app.blocks(BlockQuery::default()).await.unwrap().rows.len(), 1);
}

/// Regression: a node that had written a released block to the store again ended the block that it
/// had of the key when it learned of the release, also if that was a newer one.
#[tokio::test]
async fn a_release_that_arrives_late_ends_only_the_block_that_was_written_again() {
    let (here, there, store, clock) = two_nodes().await;
    let third = start(&store, &clock, new_file()).await;
    reason(&here, "login", "ip", ADDRESS).await;
    reason(&here, "login", "ip", ADDRESS).await;
    beat(&clock, &here, &there).await;
    third.app.heartbeat().await;
    let block = here.app.blocks(BlockQuery::default()).await.unwrap().rows.remove(0).row;
    clock.advance(secs(1));
    // Its notice waits for a heartbeat.
    here.app.release(&ANA, block.id, None, false).await.unwrap();
    clock.advance(secs(1));
    store.restart();
    there.app.heartbeat().await;
    assert_eq!(reason(&there, "login", "ip", ADDRESS).await, "blocked", "it is written again");
    clock.advance(secs(2));
    let proposal = BlockProposal::by_operator(Duration::from_secs(900), None);
    let subject = Subject::from([("ip", ADDRESS)]);
    third.app.block(&ANA, "default", "login", &subject, proposal).await.unwrap();
    clock.advance(secs(2));
    assert_eq!(reason(&there, "login", "ip", ADDRESS).await, "blocked", "by the newer block");
    here.app.heartbeat().await;
    there.app.heartbeat().await;
    clock.advance(secs(2));
    assert_eq!(reason(&third, "login", "ip", ADDRESS).await, "blocked", "the store has it");
}

/// Regression: a node whose first call to a new primary took a second dated its notices a second
/// ahead, and a block that another node had written again outlasted the release of it.
#[tokio::test]
async fn a_release_after_a_slow_failover_ends_the_block_that_another_node_writes_again() {
    let (here, there, store, clock) = two_nodes().await;
    reason(&here, "login", "ip", ADDRESS).await;
    reason(&here, "login", "ip", ADDRESS).await;
    beat(&clock, &here, &there).await;
    here.records.flush().unwrap();
    let block = here.app.blocks(BlockQuery::default()).await.unwrap().rows.remove(0).row;
    store.restart();
    store.delay_status(secs(1));
    here.app.heartbeat().await;
    assert_eq!(here.app.shared_stats().unwrap().clock_offset, Some(0));
    store.delay_status(Span::ZERO);
    assert!(here.app.release(&ANA, block.id, None, false).await.unwrap().durable);
    there.app.heartbeat().await;
    beat(&clock, &here, &there).await;
    for node in [&here, &there] {
        clock.advance(secs(61));
        assert_eq!(reason(node, "login", "ip", ADDRESS).await, "ok");
    }
}

/// Regression: a node denied for a second more, because it had cached the block that another node
/// had written again and then ended.
#[tokio::test]
async fn a_released_block_that_is_written_again_and_ended_is_not_cached() {
    let (here, there, store, clock) = two_nodes().await;
    let block = block_and_release([&here, &there], &clock).await;
    clock.advance(secs(1));
    let key = block.subject.key;
    let proposal = BlockProposal::restore(block.block, clock.now());
    store.apply(&Batch::Block(vec![(key, proposal)]), When::Store).await.unwrap();
    for node in [&here, &there] {
        assert_eq!(reason(node, "login", "ip", ADDRESS).await, "blocked");
    }
    store.apply(&Batch::Unblock(vec![key.into()]), When::Store).await.unwrap();
    for node in [&here, &there] {
        assert_ne!(reason(node, "login", "ip", ADDRESS).await, "blocked");
        store.apply(&Batch::Unblock(vec![key.into()]), When::Store).await.unwrap();
    }
    store.fail(true);
    for node in [&here, &there] {
        assert_ne!(reason(node, "login", "ip", ADDRESS).await, "blocked", "nor known without it");
    }
}

//! Nodes with records of their own: a store that has lost a release gets it again, and nothing else
//! is released.

use std::time::Duration;

use catraca::core::batch::Batch;
use catraca::records::{BlockQuery, BlockRow};
use catraca::store::{SharedStore, When};
use catraca::{BlockProposal, Clock, ManualClock, Subject};

use super::helpers::{Remote, secs};
use super::node_scope::{TestNode, beat, reason, two_nodes};
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

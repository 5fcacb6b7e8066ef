//! A release that falls into a read of the records: the block that was read ends nevertheless.

use catraca::event::BlockEvent;
use catraca::records::{BlockQuery, Record, RecordKind};
use catraca::{App, Check, Clock};

use super::helpers::secs;
use super::records::{ANA, Nodes, nodes};

async fn reason(app: &App) -> String {
    let decision = app.check(&Check::new("login", [("ip", "192.0.2.1")])).await.unwrap();
    decision.reason.as_str().to_owned()
}

/// Blocks the address and releases it on the first node. The records then have the block, as a read
/// that began before the release has it.
async fn released_but_read() -> Nodes {
    let nodes = nodes().await;
    reason(&nodes.here).await;
    assert_eq!(reason(&nodes.here).await, "over_limit");
    for node in [&nodes.here, &nodes.there, &nodes.here, &nodes.there] {
        node.heartbeat().await;
    }
    nodes.records.flush().unwrap();
    let row = nodes.here.blocks(BlockQuery::default()).await.unwrap().rows.remove(0).row;
    nodes.clock.advance(secs(1));
    assert!(nodes.here.release(&ANA, row.id, None, false).await.unwrap().durable);
    let event =
        BlockEvent { subject: row.subject, epoch: row.since, first_of_act: None, block: row.block };
    let kind = RecordKind::Block(Box::new(event));
    let record = Record::automatic(nodes.clock.now(), kind);
    assert!(nodes.records.record(vec![record]).await.is_durable());
    nodes
}

/// Regression: a node that gave a new primary the blocks of the records brought a block back that
/// had been released while it read them, and nothing ended it.
#[tokio::test]
async fn a_block_that_was_released_while_it_was_read_is_not_written() {
    let nodes = released_but_read().await;
    nodes.here.heartbeat().await;
    nodes.there.heartbeat().await;
    nodes.store.lose_everything();
    for node in [&nodes.there, &nodes.here, &nodes.there, &nodes.here] {
        node.heartbeat().await;
    }
    nodes.clock.advance(secs(61));
    assert_eq!(reason(&nodes.here).await, "ok");
    assert_eq!(reason(&nodes.there).await, "over_limit");
}

#[tokio::test]
async fn a_node_that_wrote_such_a_block_ends_it_when_it_learns_of_the_release() {
    let nodes = released_but_read().await;
    let third = nodes.one_more(&nodes.store).await;
    assert_eq!(reason(&third).await, "blocked");
    nodes.here.heartbeat().await;
    third.heartbeat().await;
    nodes.clock.advance(secs(61));
    assert_eq!(reason(&nodes.here).await, "ok");
    assert_eq!(reason(&third).await, "over_limit");
}

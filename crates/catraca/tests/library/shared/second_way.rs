//! What one node changes while the store or the records are unavailable reaches the other node
//! through the one that works.

use std::time::Duration;

use catraca::core::policy::Mode;
use catraca::records::{BlockQuery, ListName};
use catraca::{App, BlockProposal, Check, Span, Subject};

use super::records::{ANA, nodes, range};

async fn reason(app: &App, ip: &str) -> String {
    let decision = app.check(&Check::new("login", [("ip", ip)])).await.unwrap();
    decision.reason.as_str().to_owned()
}

/// Regression: a block or the kill switch of one node was unknown on the others during an outage.
#[tokio::test]
async fn without_the_store_blocks_and_modes_arrive_through_the_records() {
    let nodes = nodes().await;
    nodes.store.fail(true);
    for _ in 0..3 {
        nodes.here.heartbeat().await;
        nodes.there.heartbeat().await;
    }
    nodes.clock.advance(Span::from_secs(1));
    let subject = Subject::from([("ip", "192.0.2.1")]);
    let proposal = BlockProposal::by_operator(Duration::from_secs(600), None);
    let blocked = nodes.here.block(&ANA, "default", "login", &subject, proposal).await.unwrap();
    assert!(blocked.durable);
    let entry = range("198.51.100.0/24");
    nodes.here.add_to_list(&ANA, ListName::Block, vec![(entry, None)], false).await.unwrap();
    nodes.there.heartbeat().await;
    assert_eq!(reason(&nodes.there, "192.0.2.1").await, "blocked");
    assert_eq!(reason(&nodes.there, "198.51.100.1").await, "blocklisted");
    nodes.clock.advance(Span::from_secs(1));
    nodes.here.set_mode(&ANA, "login", Some(Mode::Off)).await.unwrap();
    nodes.there.heartbeat().await;
    assert_eq!(nodes.there.engine().mode_override("login"), Some(Mode::Off));
}

#[tokio::test]
async fn without_the_records_the_kill_switch_arrives_through_the_store() {
    let nodes = nodes().await;
    nodes.here.heartbeat().await;
    nodes.there.heartbeat().await;
    nodes.move_records_away();
    nodes.clock.advance(Span::from_secs(1));
    let changed = nodes.here.set_mode(&ANA, "login", Some(Mode::Off)).await.unwrap();
    assert!(!changed.durable);
    nodes.here.heartbeat().await;
    nodes.there.heartbeat().await;
    assert_eq!(nodes.there.engine().mode_override("login"), Some(Mode::Off));
    nodes.clock.advance(Span::from_secs(1));
    nodes.there.set_mode(&ANA, "login", None).await.unwrap();
    nodes.there.heartbeat().await;
    nodes.here.heartbeat().await;
    assert_eq!(nodes.here.engine().mode_override("login"), None, "the later one counts");
}

/// Regression: for a minute after an operator had set a mode, its node did not follow the records.
#[tokio::test]
async fn a_mode_that_is_recorded_does_not_outlast_a_later_one_of_the_records() {
    let nodes = nodes().await;
    nodes.here.heartbeat().await;
    nodes.there.heartbeat().await;
    nodes.store.fail(true);
    for _ in 0..3 {
        nodes.here.heartbeat().await;
        nodes.there.heartbeat().await;
    }
    assert!(nodes.here.set_mode(&ANA, "login", Some(Mode::Off)).await.unwrap().durable);
    nodes.clock.advance(Span::from_secs(5));
    assert!(nodes.there.set_mode(&ANA, "login", Some(Mode::Enforce)).await.unwrap().durable);
    nodes.clock.advance(Span::from_secs(1));
    nodes.here.heartbeat().await;
    assert_eq!(nodes.here.engine().mode_override("login"), Some(Mode::Enforce));
}

/// Regression: for a minute, a mode that had arrived as a notice replaced a later one of the
/// records, also one that was set back.
#[tokio::test]
async fn a_mode_that_arrived_as_a_notice_does_not_outlast_a_later_one_of_the_records() {
    for later in [Some(Mode::Enforce), None] {
        let nodes = nodes().await;
        nodes.here.set_mode(&ANA, "login", Some(Mode::Off)).await.unwrap();
        for node in [&nodes.here, &nodes.there, &nodes.here, &nodes.there] {
            node.heartbeat().await;
        }
        assert_eq!(nodes.there.engine().mode_override("login"), Some(Mode::Off));
        nodes.store.fail(true);
        for _ in 0..3 {
            nodes.here.heartbeat().await;
            nodes.there.heartbeat().await;
        }
        nodes.clock.advance(Span::from_secs(5));
        assert!(nodes.here.set_mode(&ANA, "login", later).await.unwrap().durable);
        nodes.clock.advance(Span::from_secs(1));
        nodes.there.heartbeat().await;
        assert_eq!(nodes.there.engine().mode_override("login"), later);
    }
}

/// Regression: the notice of a mode that waited for the store set it again on the node that had set
/// it back meanwhile, for up to a minute.
#[tokio::test]
async fn a_mode_that_was_set_back_during_an_outage_stays_set_back() {
    let nodes = nodes().await;
    let both = [&nodes.here, &nodes.there];
    let next_heartbeats = async || {
        nodes.clock.advance(Span::from_millis(1_500));
        for node in both {
            node.heartbeat().await;
        }
    };
    next_heartbeats().await;
    nodes.store.fail(true);
    for _ in 0..3 {
        next_heartbeats().await;
    }
    assert!(nodes.here.set_mode(&ANA, "login", Some(Mode::Off)).await.unwrap().durable);
    next_heartbeats().await;
    assert_eq!(nodes.there.engine().mode_override("login"), Some(Mode::Off));
    assert!(nodes.there.set_mode(&ANA, "login", None).await.unwrap().durable);
    nodes.store.fail(false);
    for _ in 0..4 {
        next_heartbeats().await;
        assert_eq!(nodes.there.engine().mode_override("login"), None);
    }
    assert_eq!(nodes.here.engine().mode_override("login"), None);
}

/// Regression: blocks and modes of a node that alone was cut off from the store were unknown on the
/// others until it was back, although all could reach the records.
#[tokio::test]
async fn what_a_node_does_that_is_cut_off_alone_arrives_through_the_records() {
    let nodes = nodes().await;
    let link = nodes.store.new_link();
    let alone = nodes.one_more(&link).await;
    for node in [&alone, &nodes.here, &nodes.there] {
        node.heartbeat().await;
    }
    link.cut(true);
    for _ in 0..3 {
        alone.heartbeat().await;
    }
    let subject = Subject::from([("ip", "192.0.2.1")]);
    let proposal = BlockProposal::by_operator(Duration::from_secs(600), None);
    let blocked = alone.block(&ANA, "default", "login", &subject, proposal).await.unwrap();
    assert!(blocked.durable);
    alone.set_mode(&ANA, "login", Some(Mode::Shadow)).await.unwrap();
    alone.set_mode(&ANA, "login", Some(Mode::Enforce)).await.unwrap();
    assert_eq!(reason(&nodes.here, "192.0.2.1").await, "ok");
    nodes.clock.advance(Span::from_millis(1_500));
    nodes.here.heartbeat().await;
    assert_eq!(nodes.here.engine().mode_override("login"), Some(Mode::Enforce));
    for node in [&nodes.here, &nodes.there] {
        let call = Check::new("login", [("ip", "192.0.2.1")]);
        let decision = node.check(&call).await.unwrap();
        assert_eq!((decision.reason.as_str(), decision.degraded), ("blocked", false));
    }
    let block = nodes.here.blocks(BlockQuery::default()).await.unwrap().rows.remove(0).row;
    assert!(nodes.here.release(&ANA, block.id, None, false).await.unwrap().durable);
    for _ in 0..3 {
        nodes.clock.advance(Span::from_millis(1_500));
        nodes.here.heartbeat().await;
        nodes.there.heartbeat().await;
    }
    assert_ne!(reason(&nodes.here, "192.0.2.1").await, "blocked");
}

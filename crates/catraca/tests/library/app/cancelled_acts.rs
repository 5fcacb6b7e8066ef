//! An operator's act runs to its end even if its caller disconnects, and reaches other nodes.

use std::pin::pin;
use std::task::{Context, Waker};

use super::helpers::{ANA, IP, Nodes, check, proposal, subject};

/// Polls a future once and drops it, as a server does when the client disconnects.
fn start_and_drop(act: impl Future) {
    let mut context = Context::from_waker(Waker::noop());
    assert!(pin!(act).poll(&mut context).is_pending());
}

#[tokio::test]
async fn a_block_whose_caller_goes_away_is_applied_and_recorded() {
    let nodes = Nodes::start().await;
    nodes.store.hold(true);
    start_and_drop(nodes.here.block(&ANA, "default", "login", &subject(), proposal(Some("fraud"))));
    assert_eq!(nodes.file.audit(), [], "the store has not answered");
    nodes.store.hold(false);
    assert_eq!(wait_for_acts(&nodes, 1).await, ["block"]);
    assert_eq!(check(&nodes.there, "login").await.reason.as_str(), "blocked");
}

#[tokio::test]
async fn a_reset_whose_caller_goes_away_is_applied_recorded_and_published() {
    let nodes = Nodes::start().await;
    nodes.here.block(&ANA, "default", "login", &subject(), proposal(None)).await.unwrap();
    assert!(!check(&nodes.there, "login").await.allowed);
    assert!(check(&nodes.there, "login").await.cached);
    nodes.store.hold(true);
    start_and_drop(nodes.here.reset(&ANA, "default", "login", &subject()));
    nodes.store.hold(false);
    nodes.wait_published().await;
    assert_eq!(acts(&nodes), ["block", "reset"]);
    assert!(check(&nodes.there, "login").await.allowed);
}

#[tokio::test]
async fn a_fact_whose_caller_goes_away_is_recorded_and_published() {
    let nodes = Nodes::start().await;
    let gold = [("plan".to_owned(), "gold".to_owned())].into();
    start_and_drop(nodes.here.set_facts(&ANA, None, "ip", IP, gold));
    nodes.wait_published().await;
    assert_eq!(acts(&nodes).len(), 1);
    assert_eq!(nodes.there.facts_about(None, "ip", IP).unwrap()["plan"], "gold");
}

#[tokio::test]
async fn a_release_on_one_node_is_seen_by_the_other_after_a_heartbeat() {
    let nodes = Nodes::start().await;
    let blocked =
        nodes.here.block(&ANA, "default", "login", &subject(), proposal(None)).await.unwrap();
    assert_eq!(check(&nodes.there, "login").await.reason.as_str(), "blocked");
    assert!(check(&nodes.there, "login").await.cached);
    let released =
        nodes.here.release(&ANA, blocked.blocks[0].2.unwrap(), None, false).await.unwrap();
    assert!(released.durable && released.after.unwrap().block.until <= nodes.here.now());
    assert!(check(&nodes.there, "login").await.cached, "the release is not known here yet");
    assert!(nodes.there.heartbeat().await.unwrap().changed);
    assert!(check(&nodes.there, "login").await.allowed);
}

fn acts(nodes: &Nodes) -> Vec<String> {
    nodes.file.audit().into_iter().map(|row| row.act).collect()
}

async fn wait_for_acts(nodes: &Nodes, number: usize) -> Vec<String> {
    let found = async {
        loop {
            let acts = acts(nodes);
            if acts.len() == number {
                return acts;
            }
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), found).await.unwrap()
}

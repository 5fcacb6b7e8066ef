//! A store that moves keys from one server to another refuses calls about them for a while. That is
//! no failure of the server: its other keys stay in use.

use std::time::Duration;

use catraca::{BlockProposal, Subject};

use super::helpers::{check, heartbeat, node, pair, stats};

const CATALOG: &str = r#"
[policy.login]
by     = ["ip"]
window = "1 per 1m"
block  = "5m"
"#;

/// Regression: a block that was started locally while its key was moved degraded the server.
#[test]
fn a_block_of_a_key_on_the_move_leaves_the_store_in_use_and_is_written_afterwards() {
    let (here, store, clock) = pair(CATALOG, 1);
    assert!(heartbeat(&here).up);
    store.move_keys(true);
    assert!(check(&here, "login", "192.0.2.1").allowed);
    let denied = check(&here, "login", "192.0.2.1");
    assert!(!denied.allowed && denied.degraded);
    assert_eq!(stats(&here).unsynced_blocks, 1);
    assert!(stats(&here).up && heartbeat(&here).up, "other keys are not concerned");
    assert_eq!(stats(&here).breaker_opened, 0);
    store.move_keys(false);
    assert!(heartbeat(&here).up);
    assert_eq!(stats(&here).unsynced_blocks, 0);
    let there = node(CATALOG, &store, &clock, 1);
    assert_eq!(check(&there, "login", "192.0.2.1").reason.as_str(), "blocked");
}

/// Regression: an operator's block was refused, although an outage of the whole store accepts it.
#[cfg(feature = "records")]
#[tokio::test]
async fn an_operator_blocks_a_key_on_the_move() {
    let nodes = super::records::nodes().await;
    nodes.here.heartbeat().await;
    nodes.store.move_keys(true);
    let subject = Subject::from([("ip", "192.0.2.1")]);
    let proposal = BlockProposal::by_operator(Duration::from_secs(600), None);
    let ana = super::records::ANA;
    nodes.here.block(&ana, "default", "login", &subject, proposal).await.unwrap();
    assert_eq!(check_reason(&nodes.here).await, "blocked");
    assert!(nodes.here.heartbeat().await.unwrap().up);
    nodes.store.move_keys(false);
    nodes.here.heartbeat().await;
    assert_eq!(check_reason(&nodes.there).await, "blocked");
}

#[cfg(feature = "records")]
async fn check_reason(app: &catraca::App) -> String {
    let check = catraca::Check::new("login", [("ip", "192.0.2.1")]);
    app.check(&check).await.unwrap().reason.as_str().to_owned()
}

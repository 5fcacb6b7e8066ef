//! Blocked callers are answered without a call, until a release is noticed.

use std::time::{Duration, Instant};

use catraca::core::decision::Reason;
use catraca::{Check, FailMode};

use super::{CATALOG, builder};
use crate::test_server::TestServer;

const STALENESS: Duration = Duration::from_millis(500);

#[tokio::test]
async fn a_block_is_answered_locally_and_its_release_is_noticed() {
    let server = TestServer::with_catalog(CATALOG);
    let client = builder(&server.address).block_staleness(STALENESS).build().unwrap();
    let check = Check::new("login", [("ip", "198.51.100.7")]);
    let mut decision = client.check(&check).await.unwrap();
    while decision.reason != Reason::Blocked {
        assert!(!decision.cached);
        decision = client.check(&check).await.unwrap();
    }
    let asked_at = Instant::now();
    assert!(!decision.cached && decision.blocked_until.is_some());
    let cached = client.check(&check).await.unwrap();
    assert!(cached.cached && !cached.allowed, "{:?}", asked_at.elapsed());
    assert_eq!(cached.blocked_until, decision.blocked_until);
    let other = client.check(&Check::new("login", [("ip", "198.51.100.8")])).await.unwrap();
    assert!(other.allowed && !other.cached);

    let blocks = server.request("GET /v1/blocks", &[]).json();
    let id = blocks["blocks"][0]["id"].as_str().unwrap().to_owned();
    let released = server.request(&format!("DELETE /v1/blocks/{id}"), &[]);
    assert_eq!(released.status, 200, "{released:?}");
    let released_at = Instant::now();
    loop {
        let decision = client.check(&check).await.unwrap();
        if decision.reason != Reason::Blocked {
            assert!(!decision.cached);
            break;
        }
        let limit = STALENESS + Duration::from_secs(2);
        assert!(released_at.elapsed() < limit, "still blocked: {decision:?}");
    }
}

#[tokio::test]
async fn a_block_is_remembered_while_the_server_is_gone() {
    let server = TestServer::with_catalog(CATALOG);
    let client = builder(&server.address).fail(FailMode::Open).build().unwrap();
    let check = Check::new("login", [("ip", "198.51.100.7")]);
    while client.check(&check).await.unwrap().reason != Reason::Blocked {}
    drop(server);
    let cached = client.check(&check).await.unwrap();
    assert!(cached.cached && !cached.allowed);
}

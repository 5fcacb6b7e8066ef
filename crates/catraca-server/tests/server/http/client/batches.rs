//! Checks that wait for a connection together go as one request.

use std::sync::Arc;

use catraca::{Check, ClientError};
use tokio::task::JoinSet;

use super::{CATALOG, builder, used};
use crate::test_server::TestServer;

/// Stops the server; returns how many requests it has answered.
fn stop_and_count(server: TestServer) -> u64 {
    server.signal("TERM");
    let (_, stderr) = server.wait_for_exit();
    let responses = stderr.split("stopped: ").nth(1).and_then(|rest| rest.split(' ').next());
    responses.and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("{stderr}"))
}

#[tokio::test]
async fn many_checks_share_a_connection_and_each_has_its_own_answer() {
    let server = TestServer::with_catalog(CATALOG);
    let client = Arc::new(builder(&server.address).connections(1).build().unwrap());
    let mut calls = JoinSet::new();
    for number in 0..250 {
        let client = Arc::clone(&client);
        calls.spawn(async move {
            let ip = if number % 2 == 0 { "198.51.100.7" } else { "198.51.100.8" };
            let gate = if number % 50 == 49 { "unknown" } else { "free" };
            (gate, client.check(&Check::new(gate, [("ip", ip)])).await)
        });
    }
    let mut decided = 0;
    while let Some(done) = calls.join_next().await {
        match done.unwrap() {
            ("free", Ok(decision)) => decided += u32::from(decision.allowed),
            ("unknown", Err(ClientError::Refused { status: 404, .. })) => {}
            (gate, other) => panic!("{gate}: {other:?}"),
        }
    }
    assert_eq!(decided, 245);
    assert_eq!(used(&server, "198.51.100.7").await, 125);
    assert_eq!(used(&server, "198.51.100.8").await, 120);
    // 250 checks and two peeks; the first checks go alone, the others in batches of up to 100.
    let answered = stop_and_count(server);
    assert!((5..50).contains(&answered), "{answered}");
}

#[tokio::test]
async fn a_caller_that_gives_up_takes_no_answer_from_others() {
    let server = TestServer::with_catalog(CATALOG);
    let client = Arc::new(builder(&server.address).connections(1).build().unwrap());
    let mut calls = JoinSet::new();
    for _ in 0..100 {
        let client = Arc::clone(&client);
        calls.spawn(async move { client.check(&Check::new("free", [("ip", "::1")])).await });
    }
    let mut abandoned = JoinSet::new();
    for _ in 0..50 {
        let client = Arc::clone(&client);
        abandoned.spawn(async move { client.check(&Check::new("free", [("ip", "::2")])).await });
    }
    tokio::task::yield_now().await;
    abandoned.abort_all();
    while let Some(done) = calls.join_next().await {
        assert!(done.unwrap().unwrap().allowed);
    }
    assert_eq!(used(&server, "::1").await, 100);
}

#[tokio::test]
async fn a_lone_check_is_not_a_batch() {
    let server = TestServer::with_catalog(CATALOG);
    let client = builder(&server.address).connections(1).build().unwrap();
    for _ in 0..5 {
        client.check(&Check::new("free", [("ip", "::1")])).await.unwrap();
    }
    assert_eq!(stop_and_count(server), 5);
}

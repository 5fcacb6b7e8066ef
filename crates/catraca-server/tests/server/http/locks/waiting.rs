//! Waiting for a lock over HTTP: the handover, the deadline, and waiters that disconnect.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::{CATALOG, acquire, lock_server, post, release, status_and_code};
use crate::test_server::TestServer;

/// Waits until the server reports this many waiters.
fn wait_for_waiters(server: &TestServer, count: u64) {
    let deadline = Instant::now() + Duration::from_secs(10);
    while server.request("GET /v1/stats/locks", &[]).json()["waiters"] != count {
        assert!(Instant::now() < deadline, "not {count} waiters");
    }
}

/// L02.
#[test]
fn a_hundred_waiters_are_served_one_after_the_other() {
    let server = lock_server(CATALOG);
    let fences: Vec<i64> = thread::scope(|scope| {
        let callers: Vec<_> = (0..100)
            .map(|_| {
                let server = &server;
                scope.spawn(move || {
                    let lease = acquire(server, &json!({ "key": "p", "wait_ms": 20_000 }));
                    assert_eq!(release(server, &lease), "released");
                    lease["fence"].as_i64().unwrap()
                })
            })
            .collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).collect()
    });
    let mut unique = fences.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), 100);
    let stats = server.request("GET /v1/stats/locks", &[]).json();
    assert_eq!((&stats["success"], &stats["released"]), (&100.into(), &100.into()), "{stats}");
}

/// L16.
#[test]
fn whoever_hangs_up_loses_its_place() {
    let server = lock_server(CATALOG);
    let held = acquire(&server, &json!({ "key": "p", "ttl_ms": 60_000 }));
    let mut first = server.connect();
    first.post("/v1/locks/acquire", r#"{"key":"p","wait_ms":30000}"#);
    wait_for_waiters(&server, 1);
    let mut next = server.connect();
    next.post("/v1/locks/acquire", r#"{"key":"p","wait_ms":30000}"#);
    wait_for_waiters(&server, 2);
    drop(first);
    wait_for_waiters(&server, 1);
    let begun = Instant::now();
    assert_eq!(release(&server, &held), "released");
    assert_eq!(next.read_response().status, 200);
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
}

/// L18, and a wait that is longer than the timeouts of a request.
/// covers: B-75
#[test]
fn a_deadline_ends_the_wait_and_a_long_wait_is_nobodys_impatience() {
    let catalog = format!("{CATALOG}[server]\nbody_timeout = '200ms'\nanswer_timeout = '200ms'\n");
    let server = lock_server(&catalog);
    let held = acquire(&server, &json!({ "key": "p", "ttl_ms": 60_000 }));
    let begun = Instant::now();
    let missed = post(&server, "/v1/locks/acquire", &json!({ "key": "p", "wait_ms": 1_000 }));
    assert_eq!(missed.status, 409);
    assert!(begun.elapsed() >= Duration::from_millis(1_000));
    assert!(missed.header("retry-after").is_some_and(|wait| wait.parse::<u64>().unwrap() > 50));
    assert_eq!(server.request("GET /v1/stats/locks", &[]).json()["waiters"], 0);
    release(&server, &held);
    let stats = server.request("GET /v1/stats/locks", &[]).json();
    assert_eq!((&stats["active"], &stats["conflicts"]), (&0.into(), &1.into()), "{stats}");
}

/// L17. The holder never releases, so the waiter is granted the lock by the expiry alone.
#[test]
fn a_waiter_needs_nobody_to_tell_it_that_the_holders_time_is_over() {
    let server = lock_server(CATALOG);
    let before = Instant::now();
    let held = acquire(&server, &json!({ "key": "p", "kind": "quick" }));
    let acquired = Instant::now();
    let next = acquire(&server, &json!({ "key": "p", "kind": "quick", "wait_ms": 20_000 }));
    assert!(before.elapsed() >= Duration::from_millis(400), "{held}");
    assert!(acquired.elapsed() < Duration::from_millis(1_400), "{:?}", acquired.elapsed());
    assert!(next["fence"].as_i64() > held["fence"].as_i64());
}

/// A server that stops answers all waiting requests at once.
#[test]
fn a_stop_answers_whoever_waits_at_once() {
    let server = TestServer::with_catalog(CATALOG);
    acquire(&server, &json!({ "key": "p", "ttl_ms": 60_000 }));
    let mut waiter = server.connect();
    waiter.post("/v1/locks/acquire", r#"{"key":"p","wait_ms":30000}"#);
    wait_for_waiters(&server, 1);
    let begun = Instant::now();
    server.signal("TERM");
    assert_eq!(status_and_code(&waiter.read_response()), (503, "locks-stopping".to_owned()));
    let (status, stderr) = server.wait_for_exit();
    assert!(status.success(), "{stderr}");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

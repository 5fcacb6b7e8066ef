//! Locks across an orderly stop and a crash, and how the wait after an unclean start is reported.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::workload::{assert_valid, record_history};
use super::{CATALOG, acquire, post, release, status_and_code};
use crate::raw_connection::HttpResponse;
use crate::test_server::{TestServer, catalog_file};

/// Stops the server in order.
fn stop(server: TestServer) {
    server.signal("TERM");
    let (status, stderr) = server.wait_for_exit();
    assert!(status.success(), "{stderr}");
}

fn renew(server: &TestServer, lease: &Value) -> HttpResponse {
    let body = json!({ "lease_id": lease["lease_id"], "ttl_ms": 60_000 });
    post(server, "/v1/locks/renew", &body)
}

fn gauge(server: &TestServer) -> String {
    let text = server.request("GET /metrics", &[]).body;
    let line = text.lines().find(|line| line.starts_with("catraca_locks_starting "));
    line.unwrap().to_owned()
}

/// covers: B-72
#[test]
fn a_server_that_is_told_to_stop_forgets_no_lease_and_refuses_nobody_after_it() {
    let file = catalog_file(CATALOG);
    let server = TestServer::from_file(&file);
    let long = acquire(&server, &json!({ "key": "long", "ttl_ms": 60_000, "owner_label": "ana" }));
    let short = acquire(&server, &json!({ "key": "short", "ttl_ms": 60_000 }));
    stop(server);
    let server = TestServer::from_file(&file);
    assert_eq!(gauge(&server), "catraca_locks_starting 0");
    let taken = post(&server, "/v1/locks/acquire", &json!({ "key": "long" }));
    assert_eq!(status_and_code(&taken).0, 409, "{taken:?}");
    let conflict = taken.json();
    assert_eq!(conflict["holder"]["owner_label"], "ana", "{conflict}");
    let left = conflict["retry_after_ms"].as_i64();
    assert!(left.is_some_and(|left| (40_000..=60_000).contains(&left)), "{conflict}");
    let renewed = renew(&server, &long);
    assert_eq!((renewed.status, &renewed.json()["fence"]), (200, &long["fence"]), "{renewed:?}");
    let fresh = acquire(&server, &json!({ "key": "fresh", "ttl_ms": 3_000 }));
    assert!(fresh["fence"].as_i64() > short["fence"].as_i64());
    assert_eq!(release(&server, &short), "released");
    let all = server.request("GET /v1/stats/locks", &[]).json();
    let count = |name: &str| all[name].as_u64().unwrap();
    assert_eq!(count("success"), count("active") + count("released"), "{all}");
    assert_eq!(count("total"), count("success") + count("conflicts"), "{all}");
    // A start after a crash waits again: leases may have been granted after the last stop.
    server.signal("KILL");
    drop(server);
    let server = TestServer::from_file(&file);
    for key in ["short", "long", "new"] {
        let refused = post(&server, "/v1/locks/acquire", &json!({ "key": key }));
        assert_eq!(status_and_code(&refused), (503, "locks-starting".to_owned()));
    }
    assert_eq!(status_and_code(&renew(&server, &short)), (409, "not-holder".to_owned()));
    // A stop during the wait does not end it: the next start waits as well.
    stop(server);
    let server = TestServer::from_file(&file);
    let refused = post(&server, "/v1/locks/acquire", &json!({ "key": "new" }));
    assert_eq!(status_and_code(&refused), (503, "locks-starting".to_owned()));
}

#[test]
fn a_server_that_was_told_to_stop_gives_nothing_to_two() {
    for (durability, seed) in [("memory", 41), ("fsync", 51)] {
        let file = catalog_file(&format!("{CATALOG}[locks]\ndurability = '{durability}'\n"));
        let again = file.clone();
        let history = record_history(&file, seed, move |server| {
            stop(server);
            TestServer::from_file(&again)
        });
        assert_valid(&history, 0);
    }
}

#[test]
fn a_careful_start_is_told_to_operators_while_it_lasts() {
    let file = catalog_file(CATALOG);
    let server = TestServer::from_file(&file);
    assert_eq!(gauge(&server), "catraca_locks_starting 0");
    acquire(&server, &json!({ "key": "p", "ttl_ms": 4_000 }));
    server.signal("KILL");
    drop(server);
    let killed = Instant::now();
    let server = TestServer::from_file(&file);
    let ready = server.request("GET /readyz", &[]).json();
    let problem = &ready["problems"][0];
    assert_eq!((&ready["ready"], &problem["what"]), (&true.into(), &"locks".into()), "{ready}");
    assert!(problem["why"].as_str().unwrap().contains(" s more"), "{ready}");
    assert_eq!(gauge(&server), "catraca_locks_starting 1");
    while gauge(&server) == "catraca_locks_starting 1" {
        assert!(killed.elapsed() < Duration::from_secs(20), "the wait does not end");
        thread::park_timeout(Duration::from_millis(50));
    }
    assert!(killed.elapsed() >= Duration::from_millis(3_900), "{:?}", killed.elapsed());
    assert_eq!(server.request("GET /readyz", &[]).json()["problems"], json!([]));
    acquire(&server, &json!({ "key": "p" }));
    server.signal("TERM");
    let stderr = server.wait_for_exit().1;
    assert_eq!(stderr.matches("no locks granted yet").count(), 1, "{stderr}");
}

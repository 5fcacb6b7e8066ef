//! Locks in PostgreSQL behind a pooler that passes no notifications on.

use std::time::{Duration, Instant};

use catraca_testkit::postgres::PgBouncer;
use serde_json::json;

use super::super::{CATALOG, acquire, catalog_with_secret, release, store_section};
use super::Postgres;
use crate::test_server::TestServer;

/// Longer than the server needs to notice: a test that waits this long has failed.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Regression: behind PgBouncer in transaction mode, `/readyz` had a problem for ever.
#[test]
fn behind_a_pooler_waiting_for_a_lock_is_a_note_of_readyz_and_no_problem() {
    let store = Postgres::start();
    let Some(pooler) = PgBouncer::start(&store.postgres, 2) else { return };
    let database = store.url.rsplit('/').next().unwrap();
    let section = store_section(&pooler.url(database), "5s");
    let server = TestServer::from_file(&catalog_with_secret(&format!("{CATALOG}{section}")));
    let held = acquire(&server, &json!({ "key": "p", "ttl_ms": 60_000 }));
    let mut waiter = server.connect();
    waiter.post("/v1/locks/acquire", r#"{"key":"p","wait_ms":30000}"#);
    let deadline = Instant::now() + TIMEOUT;
    let found = loop {
        let found = server.request("GET /readyz", &[]).json();
        if found["notes"].is_array() {
            break found;
        }
        assert!(Instant::now() < deadline, "{found}");
    };
    assert_eq!((&found["ready"], &found["problems"]), (&true.into(), &json!([])), "{found}");
    let why = found["notes"][0]["why"].as_str().unwrap();
    assert_eq!(found["notes"][0]["what"], "locks", "{found}");
    assert!(why.contains("PgBouncer") && why.contains("250ms"), "{why}");
    assert_eq!(release(&server, &held), "released");
    assert_eq!(waiter.read_response().status, 200);
    server.signal("TERM");
    let (status, log) = server.wait_for_exit();
    assert!(status.success(), "{log}");
    assert_eq!(log.matches("callers that wait for a lock poll").count(), 1, "{log}");
}

//! The limits of a booking site are counted once by two nodes on Redis alone.

use std::fs;

use catraca_testkit::redis::RedisServer;
use serde_json::Value;

use crate::test_server::{TestServer, catalog_file};

const PRESET: &str = include_str!("../../../../../presets/booking/catalog.toml");
/// Windows of an hour, so that a slow machine does not leave them; fewer than the bursts allow.
const VARIABLES: [(&str, &str); 4] = [
    ("RATE_LIMIT_GLOBAL_REQUESTS", "6"),
    ("RATE_LIMIT_GLOBAL_WINDOW", "3600000"),
    ("RATE_LIMIT_PUBLIC_REQUESTS", "4"),
    ("RATE_LIMIT_PUBLIC_WINDOW", "3600000"),
];

fn node(redis: &RedisServer) -> TestServer {
    let path = catalog_file(PRESET);
    fs::write(path.with_file_name("catraca.secret"), "07".repeat(32)).unwrap();
    let url = redis.url();
    let variables = VARIABLES.into_iter().chain([("REDIS_URL", url.as_str())]);
    TestServer::with_env(&path, &variables.collect::<Vec<_>>())
}

fn open_page(server: &TestServer, tenant: &str) -> Value {
    let subject = format!(r#"{{"ip":"198.51.100.7","tenant":"{tenant}"}}"#);
    let body = format!(r#"{{"gate":"pages","subject":{subject}}}"#);
    server.json("/v1/check", &body).1
}

/// covers: 004-01, 004-02
#[test]
fn two_nodes_count_the_limits_of_a_booking_site_once() {
    let Some(redis) = RedisServer::start() else { return };
    let nodes = [node(&redis), node(&redis)];
    let visits: Vec<Value> = (0..5).map(|number| open_page(&nodes[number % 2], "a")).collect();
    let remaining: Vec<_> = visits[..4].iter().map(|visit| visit["remaining"].as_i64()).collect();
    assert_eq!(remaining, [3, 2, 1, 0].map(Some), "{visits:?}");
    assert_eq!(
        (&visits[4]["reason"], &visits[4]["policy"]),
        (&"over_limit".into(), &"public".into())
    );
    assert!(nodes.iter().all(|node| open_page(node, "a")["allowed"] == false));
    // The denied ones took nothing of the address's six; another tenant's two do.
    let others = [0, 1, 0].map(|at: usize| open_page(&nodes[at], "b"));
    let allowed = others.each_ref().map(|visit| visit["allowed"].as_bool());
    assert_eq!(allowed, [Some(true), Some(true), Some(false)], "{others:?}");
    assert_eq!(others[2]["policy"], "global");
    assert!(others.iter().chain(&visits).all(|visit| visit["degraded"] == false), "{visits:?}");
}

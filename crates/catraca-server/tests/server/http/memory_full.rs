//! A server whose memory store is full: decisions for new callers, and what operators see.

use serde_json::Value;

use crate::http::observe::{scrape, value};
use crate::test_server::TestServer;

const CATALOG: &str = "[policy.strict]\nby = ['ip']\nwindow = '1 per 1h'\nblock = '1h'\n\
    [policy.flood]\nby = ['user']\nwindow = '1 per 1h'\n\
    [policy.spend]\nby = ['ip']\nbucket = { size = 2, refill = '1 per 1h' }\n\
    cost = 'reported'\nblock = '1h'\n\
    [store]\ncounter_mib = 1\nreference_mib = 1\n";

/// Sends one check for each number, many in one call; returns the decisions in order.
fn checks(
    server: &TestServer,
    numbers: std::ops::Range<u32>,
    of: impl Fn(u32) -> String,
) -> Vec<Value> {
    let numbers: Vec<u32> = numbers.collect();
    let ask = |some: &[u32]| {
        let list: Vec<String> = some.iter().map(|number| of(*number)).collect();
        let answer = server.post("/v1/check/batch", &format!("[{}]", list.join(",")));
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.json().as_array().expect("a list of answers").clone()
    };
    numbers.chunks(100).flat_map(ask).collect()
}

fn problems(server: &TestServer) -> Vec<(String, String)> {
    let ready = server.request("GET /readyz", &[]);
    assert_eq!(ready.status, 200);
    assert_eq!(ready.json()["ready"], true);
    let text = |problem: &Value, field: &str| problem[field].as_str().unwrap().to_owned();
    let problems = ready.json()["problems"].as_array().unwrap().clone();
    problems.iter().map(|problem| (text(problem, "what"), text(problem, "why"))).collect()
}

fn fill_counters(server: &TestServer) {
    let invented = |n| format!(r#"{{"gate":"flood","subject":{{"user":"u{n}"}}}}"#);
    checks(server, 0..20_000, invented);
    assert!(value(&scrape(server), "catraca_store_overflow_total") > 0.0, "the store never filled");
}

/// Regression: all but the first few of a hundred callers were blocked for an hour at their first
/// request.
#[test]
fn new_addresses_are_not_blocked_when_counters_are_full_and_readyz_names_the_pool() {
    let server = TestServer::with_catalog(CATALOG);
    assert_eq!(problems(&server), []);
    assert_eq!(value(&scrape(&server), r#"catraca_store_full{pool="counters"}"#), 0.0);
    fill_counters(&server);
    let new = |n| format!(r#"{{"gate":"strict","subject":{{"ip":"198.51.100.{n}"}}}}"#);
    for _ in 0..2 {
        let answers = checks(&server, 0..100, new);
        assert_eq!(answers.len(), 100);
        assert!(answers.iter().any(|answer| answer["reason"] == "over_limit"), "{answers:?}");
        let blocked = |answer: &&Value| !answer["blocked_until"].is_null();
        assert_eq!(answers.iter().filter(blocked).count(), 0);
        assert!(answers.iter().all(|answer| answer["reason"] != "blocked"));
    }
    assert_eq!(server.request("GET /v1/blocks", &[]).json()["blocks"], serde_json::json!([]));
    let found = problems(&server);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].0, "counters");
    assert!(found[0].1.contains("`[store] counter_mib`"), "{found:?}");
    let text = scrape(&server);
    assert_eq!(value(&text, r#"catraca_store_full{pool="counters"}"#), 1.0);
    assert_eq!(value(&text, r#"catraca_store_full{pool="blocks"}"#), 0.0);
    assert_eq!(value(&text, "catraca_blocks"), 0.0);
}

#[test]
fn a_settle_in_a_full_memory_blocks_no_new_address() {
    let server = TestServer::with_catalog(CATALOG);
    fill_counters(&server);
    let mut settled = 0;
    for n in 0..100 {
        let check = format!(r#"{{"gate":"spend","subject":{{"ip":"198.51.100.{n}"}}}}"#);
        let ticket = server.json("/v1/check", &check).1["ticket"].clone();
        if ticket.is_null() {
            continue;
        }
        let settle = format!(r#"{{"ticket":{ticket},"outcome":{{"status":200,"cost":2}}}}"#);
        assert_eq!(server.post("/v1/settle", &settle).status, 200);
        settled += 1;
    }
    assert!(settled > 0, "no ticket");
    assert_eq!(value(&scrape(&server), "catraca_blocks"), 0.0);
}

#[test]
fn references_that_are_dropped_are_a_problem_of_readyz() {
    let server = TestServer::with_catalog(CATALOG);
    let named = |n| {
        format!(
            r#"{{"gate":"spend","ref":"order-{n}","subject":{{"ip":"10.0.{}.{}"}}}}"#,
            n / 250,
            n % 250
        )
    };
    checks(&server, 0..6_000, named);
    let found = problems(&server);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].0, "references");
    assert!(found[0].1.contains("`[store] reference_mib`"), "{found:?}");
}

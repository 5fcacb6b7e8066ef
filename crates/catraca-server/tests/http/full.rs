//! A server whose memory is full: what new callers get, and what operators see.

use serde_json::Value;

use crate::observe::{scrape, value};
use crate::served::Served;

const CATALOG: &str = "[policy.strict]\nby = ['ip']\nwindow = '1 per 1h'\nblock = '1h'\n\
    [policy.flood]\nby = ['user']\nwindow = '1 per 1h'\n\
    [policy.spend]\nby = ['ip']\nbucket = { size = 2, refill = '1 per 1h' }\n\
    cost = 'reported'\nblock = '1h'\n\
    [store]\ncounter_mib = 1\nreference_mib = 1\n";

/// Sends one check for each number, many in a call; the answers in order.
fn checks(
    served: &Served,
    numbers: std::ops::Range<u32>,
    of: impl Fn(u32) -> String,
) -> Vec<Value> {
    let numbers: Vec<u32> = numbers.collect();
    let ask = |some: &[u32]| {
        let list: Vec<String> = some.iter().map(|number| of(*number)).collect();
        let answer = served.post("/v1/check", &format!("[{}]", list.join(",")));
        assert_eq!(answer.status, 200, "{}", answer.body);
        answer.json().as_array().expect("a list of answers").clone()
    };
    numbers.chunks(100).flat_map(ask).collect()
}

fn problems(served: &Served) -> Vec<(String, String)> {
    let ready = served.ask("GET /readyz", &[]);
    assert_eq!(ready.status, 200);
    assert_eq!(ready.json()["ready"], true);
    let text = |problem: &Value, field: &str| problem[field].as_str().unwrap().to_owned();
    let problems = ready.json()["problems"].as_array().unwrap().clone();
    problems.iter().map(|problem| (text(problem, "what"), text(problem, "why"))).collect()
}

fn fill_counters(served: &Served) {
    let invented = |n| format!(r#"{{"gate":"flood","subject":{{"user":"u{n}"}}}}"#);
    checks(served, 0..20_000, invented);
    assert!(value(&scrape(served), "catraca_store_overflow_total") > 0.0, "never full");
}

/// Every one of the hundred but the first few was blocked for an hour at its first request.
#[test]
fn new_addresses_are_not_blocked_when_counters_are_full_and_readyz_names_the_pool() {
    let served = Served::with(CATALOG);
    assert_eq!(problems(&served), []);
    assert_eq!(value(&scrape(&served), r#"catraca_store_full{pool="counters"}"#), 0.0);
    fill_counters(&served);
    let new = |n| format!(r#"{{"gate":"strict","subject":{{"ip":"198.51.100.{n}"}}}}"#);
    for _ in 0..2 {
        let answers = checks(&served, 0..100, new);
        assert_eq!(answers.len(), 100);
        assert!(answers.iter().any(|answer| answer["reason"] == "over_limit"), "{answers:?}");
        let blocked = |answer: &&Value| !answer["blocked_until"].is_null();
        assert_eq!(answers.iter().filter(blocked).count(), 0);
        assert!(answers.iter().all(|answer| answer["reason"] != "blocked"));
    }
    assert_eq!(served.ask("GET /v1/blocks", &[]).json()["blocks"], serde_json::json!([]));
    let found = problems(&served);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].0, "counters");
    assert!(found[0].1.contains("`[store] counter_mib`"), "{found:?}");
    let text = scrape(&served);
    assert_eq!(value(&text, r#"catraca_store_full{pool="counters"}"#), 1.0);
    assert_eq!(value(&text, r#"catraca_store_full{pool="blocks"}"#), 0.0);
    assert_eq!(value(&text, "catraca_blocks"), 0.0);
}

#[test]
fn a_settle_in_a_full_memory_blocks_no_new_address() {
    let served = Served::with(CATALOG);
    fill_counters(&served);
    let mut settled = 0;
    for n in 0..100 {
        let check = format!(r#"{{"gate":"spend","subject":{{"ip":"198.51.100.{n}"}}}}"#);
        let ticket = served.json("/v1/check", &check).1["ticket"].clone();
        if ticket.is_null() {
            continue;
        }
        let settle = format!(r#"{{"ticket":{ticket},"outcome":{{"status":200,"cost":2}}}}"#);
        assert_eq!(served.post("/v1/settle", &settle).status, 200);
        settled += 1;
    }
    assert!(settled > 0, "no ticket");
    assert_eq!(value(&scrape(&served), "catraca_blocks"), 0.0);
}

#[test]
fn references_that_are_dropped_are_a_problem_of_readyz() {
    let served = Served::with(CATALOG);
    let named = |n| {
        format!(
            r#"{{"gate":"spend","ref":"order-{n}","subject":{{"ip":"10.0.{}.{}"}}}}"#,
            n / 250,
            n % 250
        )
    };
    checks(&served, 0..6_000, named);
    let found = problems(&served);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(found[0].0, "references");
    assert!(found[0].1.contains("`[store] reference_mib`"), "{found:?}");
}

//! The headers of the layer for decisions of all kinds. The file `sdk/testdata/headers.json` has
//! the decisions, as the server sends them, and the headers: the tests of the other clients read
//! it, so all guards write what the server writes for the same decision.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use catraca::http_response::{ratelimit_headers, response_status};
use catraca::json::{AsJson, DecisionBody};
use catraca::{Check, Decision, Engine, Outcome, Reason, Settle, Span};
use http::HeaderMap;
use serde_json::{Value, json};

use crate::helpers::engine;

const FILE: &str = "../../sdk/testdata/headers.json";

const CATALOG: &str = r#"
    [policy.login]
    by     = ["ip"]
    window = "2 per 1m"
    block  = "15m"

    [policy.burst]
    by     = ["ip"]
    window = "100 per 250ms"

    [policy.long]
    by     = ["ip"]
    window = "5 per 90500ms"

    [policy.day]
    by    = ["ip"]
    fixed = "1 per 1d"

    [policy.tokens]
    by     = ["ip"]
    bucket = { size = 3, refill = "1 per 7s" }

    [policy.vast]
    by     = ["ip"]
    bucket = { size = 4503599627370496, refill = "1 per 1us" }

    [policy.global]
    by     = ["ip"]
    window = ["600 per 1m", "15 per 1500ms", "3 per 1h"]

    [policy.pay]
    each   = ["ip", "customer"]
    window = "5 per 1m"
    ban    = [{ when = "status == 402", for = "10m", reason = "r", status = 409 }]

    [policy.abuse]
    by  = ["ip"]
    ban = [{ when = "status == 402", for = "10m", reason = "r", status = 418 }]

    [policy.uploads]
    by       = ["ip"]
    inflight = 2

    [policy.observed]
    by     = ["ip"]
    window = "1 per 1m"
    mode   = "shadow"

    [policy.strict]
    by         = ["tenant"]
    window     = "1 per 1m"
    on_missing = "deny"

    [gate.all]
    policies = ["login", "global", "tokens", "observed"]

    [gate.abuse_pay]
    policies = ["abuse", "pay"]

    [[blocklist]]
    range = "203.0.113.0/24"

    [[allowlist]]
    range = "192.0.2.0/24"
"#;

/// The gates, and how many times each is checked. The cases are the checks in this order.
const CHECKS: [(&str, usize); 11] = [
    ("login", 4),
    ("burst", 1),
    ("long", 1),
    ("day", 2),
    ("tokens", 4),
    ("vast", 1),
    ("global", 4),
    ("pay", 2),
    ("uploads", 3),
    ("observed", 2),
    ("all", 1),
];

fn check<'a>(gate: &'a str, ip: &'a str) -> Check<'a> {
    Check::new(gate, [("ip", ip), ("customer", "ana")])
}

fn decisions(engine: &Engine) -> Vec<(String, Decision)> {
    let mut cases = Vec::new();
    for (index, (gate, count)) in CHECKS.iter().enumerate() {
        // Each gate has an address of its own.
        let ip = format!("198.51.100.{index}");
        for number in 1..=*count {
            let decision = engine.check(&check(gate, &ip)).unwrap();
            cases.push((format!("{gate}, check {number}"), decision));
        }
    }
    for (gate, ip) in [("login", "203.0.113.1"), ("login", "192.0.2.1"), ("strict", "::1")] {
        let decision = engine.check(&check(gate, ip)).unwrap();
        cases.push((decision.reason.as_str().to_owned(), decision));
    }
    let banned = check("abuse_pay", "198.51.100.99");
    let ticket = engine.check(&banned).unwrap().ticket.unwrap();
    engine.settle(&Settle::ticket(&ticket, &Outcome::status(402))).unwrap();
    cases.push(("banned without a limit".to_owned(), engine.check(&banned).unwrap()));
    let allowed = engine.check(&check("day", "198.51.100.98")).unwrap();
    let mut degraded = allowed;
    degraded.degraded = true;
    cases.push(("degraded".to_owned(), degraded.clone()));
    let mut unavailable = degraded;
    unavailable.allowed = false;
    unavailable.reason = Reason::Unavailable;
    cases.push(("closed".to_owned(), unavailable));
    cases
}

fn headers(decision: &Decision) -> BTreeMap<String, String> {
    let mut headers = HeaderMap::new();
    ratelimit_headers::write(decision, false, &mut headers);
    let text = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        (name.to_string(), value.to_str().unwrap().to_owned())
    };
    headers.iter().map(text).collect()
}

fn case(name: &str, decision: &Decision) -> Value {
    // A ticket is random.
    let mut decision = decision.clone();
    decision.ticket = None;
    let decision = &decision;
    let body = serde_json::to_string(&AsJson(decision)).unwrap();
    let read: DecisionBody<'_> = serde_json::from_str(&body).unwrap();
    let read = read.into_decision(decision.at);
    assert_eq!(headers(&read), headers(decision), "{name}: as the Rust client reads it");
    json!({
        "name": name,
        "decision": serde_json::from_str::<Value>(&body).unwrap(),
        "status": response_status(decision).as_u16(),
        "headers": headers(decision),
    })
}

#[test]
fn the_file_for_the_other_clients_has_the_headers_of_every_kind_of_decision() {
    let (engine, clock) = engine(CATALOG);
    clock.advance(Span::from_secs(1_800_000_000));
    let cases = decisions(&engine);
    let cases: Vec<Value> = cases.iter().map(|(name, decision)| case(name, decision)).collect();
    let lines: Vec<String> = cases.iter().map(Value::to_string).collect();
    let text = format!("[\n{}\n]\n", lines.join(",\n"));
    let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join("headers.json");
    fs::write(&made, &text).unwrap();
    let known = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
    let is_same = fs::read_to_string(&known).is_ok_and(|known| known == text);
    assert!(is_same, "copy {} to {}", made.display(), known.display());
}

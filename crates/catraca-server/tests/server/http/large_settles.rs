//! Settles with large bodies: ban rules see them, and other callers are not delayed.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::test_server::TestServer;

/// Concurrent settlers, and the settles of each.
const SETTLERS: usize = 8;
const ROUNDS: usize = 2;

const CHECK: &str = r#"{"gate":"login","subject":{"ip":"198.51.100.7"}}"#;
const CHECK_API: &str = r#"{"gate":"api","subject":{"a":"1","b":"2","c":"3","d":"4"}}"#;

/// Sixteen rules: four patterns, four loops, four searches and four fields.
fn rule(at: usize) -> String {
    let when = match at % 4 {
        0 => format!("body.text.matches('^[a-w ]*{at}[xyz]+$')"),
        1 => format!("body.items.exists(x, x.code == {at} && x.kind == 'n')"),
        2 => format!("body.text.contains('needle {at}')"),
        _ => format!("body.reject_id == {at}"),
    };
    format!("{{ when = \"{when}\", for = \"10m\" }}")
}

fn start_server(settings: &str) -> TestServer {
    let rules: Vec<String> = (0..16).map(rule).collect();
    TestServer::with_catalog(&format!(
        "[policy.login]\nby = ['ip']\nwindow = '10000 per 1s'\n\
         [policy.api]\neach = ['a', 'b', 'c', 'd']\nban = [{}]\n{settings}\n",
        rules.join(", ")
    ))
}

/// A body of about this many bytes: at most a thousand items, and text.
fn body(bytes: usize, reject_id: usize) -> Value {
    let items = (bytes / 64).min(1_000);
    let items: Vec<Value> =
        (0..items).map(|at| json!({"code": 1_000_000 + at, "kind": "rejected"})).collect();
    let text = "lorem ipsum dolor ".repeat((bytes - items.len() * 36) / 18);
    json!({"items": items, "text": text, "reject_id": reject_id})
}

fn ticket(server: &TestServer) -> String {
    let (status, decision) = server.json("/v1/check", CHECK_API);
    assert_eq!((status, &decision["allowed"]), (200, &json!(true)), "{decision}");
    decision["ticket"].as_str().unwrap().to_owned()
}

fn request(server: &TestServer, body: &Value) -> String {
    json!({"ticket": ticket(server), "outcome": {"status": 200, "body": body}}).to_string()
}

#[test]
fn a_body_over_the_maximum_is_told_counted_and_not_read() {
    let server = start_server("");
    let (status, settled) = server.json("/v1/settle", &request(&server, &body(100_000, 7)));
    assert_eq!((status, &settled["body_truncated"]), (200, &json!(true)), "{settled}");
    assert_eq!(settled["state"], "settled");
    assert_eq!(settled["policies"][0]["blocked_by"], json!(null));
    let metrics = server.request("GET /metrics", &[]).body;
    assert!(metrics.contains("catraca_settle_bodies_truncated_total 1"), "{metrics}");
    // Each rule is evaluated once, for any number of identities.
    assert!(metrics.contains("catraca_condition_errors_total{policy=\"api\"} 16"), "{metrics}");
    let (status, settled) = server.json("/v1/settle", &request(&server, &body(60_000, 7)));
    assert_eq!((status, &settled["body_truncated"]), (200, &Value::Null), "{settled}");
    assert_eq!(settled["policies"][0]["blocked_by"], "ban", "{settled}");
}

/// Regression: such a body made the settle fail with 400, so that the ban rule never saw it.
#[test]
fn a_body_that_is_not_readable_is_an_outcome_that_rules_see() {
    let ban = "[policy.pay]\nby = ['ip']\n[[policy.pay.ban]]\nfor = '1h'\nreason = 'unreadable'\n\
               when = 'body_invalid || (!body_truncated && body.reject_id == 5)'\n";
    for (outcome, blocks) in [
        (r#""body":{"reject_id":5,"reject_id":4}"#, true),
        (r#""body":{"reject_id":1e400}"#, true),
        (r#""body":{"reject_id":"\ud800"}"#, true),
        (r#""body_text":"<html>""#, true),
        (r#""body_text":"{\"reject_id\":5}""#, true),
        (r#""body_text":"{\"reject_id\":4}""#, false),
    ] {
        let server = TestServer::with_catalog(ban);
        let check = r#"{"gate":"pay","subject":{"ip":"192.0.2.1"}}"#;
        let (_, decision) = server.json("/v1/check", check);
        let ticket = decision["ticket"].as_str().unwrap();
        let request = format!("{{\"ticket\":\"{ticket}\",\"outcome\":{{{outcome}}}}}");
        let (status, settled) = server.json("/v1/settle", &request);
        assert_eq!(status, 200, "{outcome}: {settled}");
        let blocked_by = if blocks { json!("ban") } else { Value::Null };
        assert_eq!(settled["policies"][0]["blocked_by"], blocked_by, "{outcome}: {settled}");
        let invalid = !outcome.contains("body_text") || outcome.contains("html");
        let expected = if invalid { json!(true) } else { Value::Null };
        assert_eq!(settled["body_invalid"], expected, "{outcome}: {settled}");
    }
}

#[test]
fn an_outcome_has_one_body() {
    let server = start_server("");
    let ticket = ticket(&server);
    for outcome in [r#""body":{},"body_text":"{}""#, r#""body_text":{}"#] {
        let request = format!("{{\"ticket\":\"{ticket}\",\"outcome\":{{{outcome}}}}}");
        assert_eq!(server.json("/v1/settle", &request).0, 400, "{outcome}");
    }
}

#[test]
fn checks_do_not_wait_for_settles_with_large_bodies() {
    let server = start_server("[settle]\nbody_bytes_max = 1048576");
    let requests: Vec<Vec<String>> = (0..SETTLERS)
        .map(|_| (0..ROUNDS).map(|_| request(&server, &body(1_000_000, 0))).collect())
        .collect();
    let quiet = times(&server, |count| count < 1_000);
    let (busy, settles) = with_settles(&server, &requests);
    let [quiet, settles] = [quiet, settles].map(|times| percentiles(&times));
    let (_, p99, _) = percentiles(&busy);
    println!("checks, quiet:                p50, p99, max {quiet:?}");
    println!("checks, {SETTLERS} settles of 1 MB:   p50, p99, max {:?}", percentiles(&busy));
    println!("settles of 1 MB:              p50, p99, max {settles:?}");
    println!("checks while they ran: {}", busy.len());
    // Below 5 ms on an idle machine; about a second if checks waited for settles.
    assert!(p99 < Duration::from_millis(250), "{p99:?}");
}

/// The durations of checks while all settles run, and of the settles.
fn with_settles(server: &TestServer, requests: &[Vec<String>]) -> (Vec<Duration>, Vec<Duration>) {
    let running = AtomicUsize::new(requests.len());
    let settle = |requests: &[String]| {
        let took: Vec<Duration> = settle_all(server, requests);
        running.fetch_sub(1, Ordering::Relaxed);
        took
    };
    std::thread::scope(|scope| {
        let settlers: Vec<_> =
            requests.iter().map(|requests| scope.spawn(|| settle(requests))).collect();
        let checks = times(server, |_| running.load(Ordering::Relaxed) > 0);
        let settles = settlers.into_iter().flat_map(|settler| settler.join().unwrap());
        (checks, settles.collect())
    })
}

fn settle_all(server: &TestServer, requests: &[String]) -> Vec<Duration> {
    let mut connection = server.connect();
    connection.set_read_timeout(Duration::from_secs(60));
    let mut times = Vec::new();
    for request in requests {
        let start = Instant::now();
        connection.post("/v1/settle", request);
        let answer = connection.read_response();
        times.push(start.elapsed());
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.json()["body_truncated"], Value::Null);
    }
    times
}

/// The durations of checks on one connection, while `wanted` returns true.
fn times(server: &TestServer, wanted: impl Fn(usize) -> bool) -> Vec<Duration> {
    let mut connection = server.connect();
    let mut times = Vec::new();
    while wanted(times.len()) {
        let start = Instant::now();
        connection.post("/v1/check", CHECK);
        assert_eq!(connection.read_response().status, 200);
        times.push(start.elapsed());
    }
    times
}

/// The median, the 99th percentile and the longest.
fn percentiles(times: &[Duration]) -> (Duration, Duration, Duration) {
    let mut sorted = times.to_vec();
    sorted.sort_unstable();
    let at = |percent: usize| sorted[(sorted.len() - 1) * percent / 100];
    (at(50), at(99), at(100))
}

//! The calls of callers with JSON bodies: check, settle, credit, peek and bucket states.

use serde_json::{Value, json};

use crate::raw_connection::JSON;
use crate::test_server::TestServer;

const DICT: &str = r#"
[policy.lookup]
by     = ["payer"]
bucket = { size = 100, refill = "2 per 1m" }
cost   = { "200" = 1, "404" = 20, default = 0 }
credit = { payment = { amount = 1, on = ["200"] } }
debt   = true

[policy.login]
by     = ["ip"]
window = "3 per 1m"

[policy.pay]
each = ["customer"]
ban  = [ { when = "body.reject_id == 5", for = "10m", reason = "reject 5", status = 400 } ]

[[blocklist]]
range = "203.0.113.0/24"
"#;

/// covers: X-13, X-14
#[test]
fn a_decision_is_always_200_and_has_one_shape() {
    let server = TestServer::with_catalog(DICT);
    let ask = r#"{"gate":"login","subject":{"ip":"198.51.100.7"}}"#;
    let mut last = Value::Null;
    for number in 0..4 {
        let (status, decision) = server.json("/v1/check", ask);
        assert_eq!((status, &decision["allowed"]), (200, &(number < 3).into()), "{decision}");
        last = decision;
    }
    assert_eq!((&last["reason"], &last["limit"]), (&"over_limit".into(), &3.into()));
    assert!(last["retry_after_ms"].as_i64().is_some_and(|wait| (1..=60_000).contains(&wait)));
    for field in ["policy", "remaining", "reset_after_ms", "blocked_until", "mode", "degraded"] {
        assert!(last.get(field).is_some(), "{field}: {last}");
    }
    let listed = r#"{"gate":"login","subject":{"ip":"203.0.113.9"}}"#;
    assert_eq!(server.json("/v1/check", listed).1["reason"], "blocklisted");
    let unlisted = r#"{"gate":"login","subject":{"ip":"203.0.113.9"},"lists":false}"#;
    assert_eq!(server.json("/v1/check", unlisted).1["reason"], "ok");
}

#[test]
fn peek_charges_nothing() {
    let server = TestServer::with_catalog(DICT);
    let ask = r#"{"gate":"login","subject":{"ip":"198.51.100.7"},"cost":2}"#;
    for _ in 0..5 {
        let (status, peeked) = server.json("/v1/peek", ask);
        assert_eq!((status, &peeked["remaining"]), (200, &3.into()));
        assert_eq!((&peeked["policies"][0]["charged"], &peeked["ticket"]), (&0.into(), &().into()));
    }
}

#[test]
fn a_list_is_answered_one_by_one_in_order_and_is_bounded() {
    let server = TestServer::with_catalog(DICT);
    let one = json!({"gate": "login", "subject": {"ip": "198.51.100.7"}});
    let list = json!([one, {"gate": "missing"}, one, {"gate": "login", "subject": {}}, one, one]);
    let (status, answers) = server.json("/v1/check/batch", &list.to_string());
    assert_eq!(status, 200);
    let outcome = |at: usize| (&answers[at]["allowed"], answers[at]["code"].as_str());
    assert_eq!(outcome(0), (&true.into(), None));
    assert_eq!(outcome(1), (&().into(), Some("unknown-gate")));
    assert_eq!(answers[1]["status"], 404);
    assert_eq!(outcome(3), (&().into(), Some("missing-attribute")));
    assert_eq!((outcome(4).0, outcome(5).0), (&true.into(), &false.into()));
    assert_eq!(server.json("/v1/check/batch", "[]").1, json!([]));
    for (path, hint) in [("/v1/check", "/v1/check/batch"), ("/v1/peek", "one check at a time")] {
        let refused = server.post(path, "[]");
        assert_eq!(refused.problem_code(), "bad-field");
        assert!(refused.body.contains(hint), "{}", refused.body);
    }
    let long = Value::Array(vec![one.clone(); 101]).to_string();
    assert_eq!(server.post("/v1/check/batch", &long).problem_code(), "list-too-long");
    let full = Value::Array(vec![one; 100]).to_string();
    assert_eq!(server.json("/v1/check/batch", &full).1.as_array().map(Vec::len), Some(100));
}

#[test]
fn a_settle_by_ticket_charges_the_outcome_once() {
    let server = TestServer::with_catalog(DICT);
    let (_, decision) =
        server.json("/v1/check", r#"{"gate":"lookup","subject":{"payer":"11144477735"}}"#);
    let settle = json!({"ticket": decision["ticket"], "outcome": {"status": 404}}).to_string();
    let (status, settled) = server.json("/v1/settle", &settle);
    assert_eq!((status, &settled["state"]), (200, &"settled".into()));
    assert_eq!(settled["policies"][0]["charged"], 20);
    assert_eq!(server.json("/v1/settle", &settle).1["state"], "again");
}

#[test]
fn a_settle_may_ban_by_what_the_answer_says() {
    let server = TestServer::with_catalog(DICT);
    let ask = r#"{"gate":"pay","subject":{"customer":"ana"}}"#;
    let (_, decision) = server.json("/v1/check", ask);
    let outcome = json!({"status": 200, "body": {"reject_id": 5}, "headers": {"X-A": "b"}});
    let settle = json!({"ticket": decision["ticket"], "outcome": outcome}).to_string();
    let (_, settled) = server.json("/v1/settle", &settle);
    assert_eq!(settled["policies"][0]["blocked_by"], "ban");
    assert_eq!(settled["policies"][0]["status"], 400);
    assert_eq!(server.json("/v1/check", ask).1["reason"], "blocked");
}

#[test]
fn a_late_event_gives_back_by_its_reference() {
    let server = TestServer::with_catalog(DICT);
    let subject = json!({"payer": "11144477735"});
    let check = json!({"gate": "lookup", "subject": subject, "ref": "E1"}).to_string();
    server.json("/v1/check", &check);
    let credit = json!({"ref": "E1", "event": "payment", "subject": subject}).to_string();
    assert_eq!(server.json("/v1/credit", &credit).1["reason"], "not_settled");
    let settle = json!({"ref": "E1", "subject": subject, "outcome": {"status": 200}}).to_string();
    assert_eq!(server.json("/v1/settle", &settle).1["state"], "settled");
    let (status, credited) = server.json("/v1/credit", &credit);
    assert_eq!((status, &credited["applied"]), (200, &true.into()));
    let (_, again) = server.json("/v1/credit", &credit);
    assert_eq!((&again["applied"], &again["reason"]), (&false.into(), &"duplicate".into()));
}

#[test]
fn bucket_states_are_told_for_all_and_for_one() {
    let server = TestServer::with_catalog(DICT);
    let who = r#"{"subject":{"payer":"11144477735"}}"#;
    let (status, states) = server.json("/v1/buckets", who);
    assert_eq!((status, states["buckets"].as_array().map(Vec::len)), (200, Some(1)));
    let full = &states["buckets"][0];
    let refill = ["refill", "refill_tokens", "refill_period_us"].map(|field| full[field].clone());
    assert_eq!(refill, ["2 per 1m".into(), Value::from(2), Value::from(60_000_000)]);
    assert_eq!((&full["policy"], &full["balance"]), (&"lookup".into(), &100.into()));
    server.json("/v1/check", r#"{"gate":"lookup","subject":{"payer":"11144477735"}}"#);
    let (status, one) = server.json("/v1/buckets/lookup", who);
    assert_eq!((status, &one["balance"]), (200, &99.into()));
    assert_eq!(server.post("/v1/buckets/missing", who).problem_code(), "unknown-policy");
    let login = r#"{"subject":{"ip":"198.51.100.7"}}"#;
    assert_eq!(server.post("/v1/buckets/login", login).problem_code(), "not-a-bucket");
}

#[test]
fn health_is_told_to_get_and_head() {
    let server = TestServer::demo();
    let answer = server.request("GET /healthz", &[]);
    assert_eq!((answer.status, answer.body.as_str()), (200, "ok\n"));
    let mut connection = server.connect();
    connection.send_bytes(b"HEAD /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let text = connection.read_to_end();
    assert!(text.starts_with("HTTP/1.1 200") && text.ends_with("\r\n\r\n"), "{text:?}");
}

#[test]
fn a_connection_is_kept_for_the_next_request() {
    let server = TestServer::with_catalog(DICT);
    let mut connection = server.connect();
    for left in (0..3).rev() {
        connection.send(
            "POST /v1/check",
            &[JSON],
            br#"{"gate":"login","subject":{"ip":"198.51.100.7"}}"#,
        );
        assert_eq!(connection.read_response().json()["remaining"], left);
    }
    connection.send("GET /v1/nothing", &[], b"");
    assert_eq!(connection.read_response().status, 404);
    connection.send("GET /healthz", &[], b"");
    assert_eq!(connection.read_response().status, 200);
}

//! Every call that is answered with JSON.

use serde_json::{Value, json};

use crate::served::Served;
use crate::talk::JSON;

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
    let served = Served::with(DICT);
    let ask = r#"{"gate":"login","subject":{"ip":"198.51.100.7"}}"#;
    let mut last = Value::Null;
    for place in 0..4 {
        let (status, decision) = served.json("/v1/check", ask);
        assert_eq!((status, &decision["allowed"]), (200, &(place < 3).into()), "{decision}");
        last = decision;
    }
    assert_eq!((&last["reason"], &last["limit"]), (&"over_limit".into(), &3.into()));
    assert!(last["retry_after_ms"].as_i64().is_some_and(|wait| (1..=60_000).contains(&wait)));
    for field in ["policy", "remaining", "reset_after_ms", "blocked_until", "mode", "degraded"] {
        assert!(last.get(field).is_some(), "{field}: {last}");
    }
    let listed = r#"{"gate":"login","subject":{"ip":"203.0.113.9"}}"#;
    assert_eq!(served.json("/v1/check", listed).1["reason"], "blocklisted");
    let unlisted = r#"{"gate":"login","subject":{"ip":"203.0.113.9"},"lists":false}"#;
    assert_eq!(served.json("/v1/check", unlisted).1["reason"], "ok");
}

#[test]
fn peek_charges_nothing() {
    let served = Served::with(DICT);
    let ask = r#"{"gate":"login","subject":{"ip":"198.51.100.7"},"cost":2}"#;
    for _ in 0..5 {
        let (status, peeked) = served.json("/v1/peek", ask);
        assert_eq!((status, &peeked["remaining"]), (200, &3.into()));
        assert_eq!((&peeked["policies"][0]["charged"], &peeked["ticket"]), (&0.into(), &().into()));
    }
}

#[test]
fn a_list_is_answered_one_by_one_in_order_and_is_bounded() {
    let served = Served::with(DICT);
    let one = json!({"gate": "login", "subject": {"ip": "198.51.100.7"}});
    let list = json!([one, {"gate": "nobody"}, one, {"gate": "login", "subject": {}}, one, one]);
    let (status, answers) = served.json("/v1/check", &list.to_string());
    assert_eq!(status, 200);
    let told = |at: usize| (&answers[at]["allowed"], answers[at]["code"].as_str());
    assert_eq!(told(0), (&true.into(), None));
    assert_eq!(told(1), (&().into(), Some("unknown-gate")));
    assert_eq!(answers[1]["status"], 404);
    assert_eq!(told(3), (&().into(), Some("missing-attribute")));
    assert_eq!((told(4).0, told(5).0), (&true.into(), &false.into()));
    assert_eq!(served.json("/v1/peek", "[]").1, json!([]));
    let long = Value::Array(vec![one.clone(); 101]).to_string();
    assert_eq!(served.post("/v1/check", &long).problem(), "list-too-long");
    let full = Value::Array(vec![one; 100]).to_string();
    assert_eq!(served.json("/v1/check", &full).1.as_array().map(Vec::len), Some(100));
}

#[test]
fn a_settle_by_ticket_charges_the_outcome_once() {
    let served = Served::with(DICT);
    let (_, decision) =
        served.json("/v1/check", r#"{"gate":"lookup","subject":{"payer":"11144477735"}}"#);
    let settle = json!({"ticket": decision["ticket"], "outcome": {"status": 404}}).to_string();
    let (status, settled) = served.json("/v1/settle", &settle);
    assert_eq!((status, &settled["state"]), (200, &"settled".into()));
    assert_eq!(settled["policies"][0]["charged"], 20);
    assert_eq!(served.json("/v1/settle", &settle).1["state"], "again");
}

#[test]
fn a_settle_may_ban_by_what_the_answer_says() {
    let served = Served::with(DICT);
    let ask = r#"{"gate":"pay","subject":{"customer":"ana"}}"#;
    let (_, decision) = served.json("/v1/check", ask);
    let outcome = json!({"status": 200, "body": {"reject_id": 5}, "headers": {"X-A": "b"}});
    let settle = json!({"ticket": decision["ticket"], "outcome": outcome}).to_string();
    let (_, settled) = served.json("/v1/settle", &settle);
    assert_eq!(settled["policies"][0]["blocked_by"], "ban");
    assert_eq!(settled["policies"][0]["status"], 400);
    assert_eq!(served.json("/v1/check", ask).1["reason"], "blocked");
}

#[test]
fn a_late_event_gives_back_by_its_reference() {
    let served = Served::with(DICT);
    let subject = json!({"payer": "11144477735"});
    let check = json!({"gate": "lookup", "subject": subject, "ref": "E1"}).to_string();
    served.json("/v1/check", &check);
    let credit = json!({"ref": "E1", "event": "payment", "subject": subject}).to_string();
    assert_eq!(served.json("/v1/credit", &credit).1["reason"], "not_settled");
    let settle = json!({"ref": "E1", "subject": subject, "outcome": {"status": 200}}).to_string();
    assert_eq!(served.json("/v1/settle", &settle).1["state"], "settled");
    let (status, credited) = served.json("/v1/credit", &credit);
    assert_eq!((status, &credited["applied"]), (200, &true.into()));
    let (_, again) = served.json("/v1/credit", &credit);
    assert_eq!((&again["applied"], &again["reason"]), (&false.into(), &"duplicate".into()));
}

#[test]
fn bucket_states_are_told_for_all_and_for_one() {
    let served = Served::with(DICT);
    let who = r#"{"subject":{"payer":"11144477735"}}"#;
    let (status, states) = served.json("/v1/buckets", who);
    assert_eq!((status, states["buckets"].as_array().map(Vec::len)), (200, Some(1)));
    let full = &states["buckets"][0];
    assert_eq!((&full["policy"], &full["balance"]), (&"lookup".into(), &100.into()));
    served.json("/v1/check", r#"{"gate":"lookup","subject":{"payer":"11144477735"}}"#);
    let (status, one) = served.json("/v1/buckets/lookup", who);
    assert_eq!((status, &one["balance"]), (200, &99.into()));
    assert_eq!(served.post("/v1/buckets/nobody", who).problem(), "unknown-policy");
    let login = r#"{"subject":{"ip":"198.51.100.7"}}"#;
    assert_eq!(served.post("/v1/buckets/login", login).problem(), "not-a-bucket");
}

#[test]
fn health_is_told_to_get_and_head() {
    let served = Served::demo();
    let answer = served.ask("GET /healthz", &[]);
    assert_eq!((answer.status, answer.body.as_str()), (200, "ok\n"));
    let mut talk = served.connect();
    talk.raw(b"HEAD /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    let text = talk.rest();
    assert!(text.starts_with("HTTP/1.1 200") && text.ends_with("\r\n\r\n"), "{text:?}");
}

#[test]
fn a_connection_is_kept_for_the_next_request() {
    let served = Served::with(DICT);
    let mut talk = served.connect();
    for left in (0..3).rev() {
        talk.send(
            "POST /v1/check",
            &[JSON],
            br#"{"gate":"login","subject":{"ip":"198.51.100.7"}}"#,
        );
        assert_eq!(talk.answer().json()["remaining"], left);
    }
    talk.send("GET /v1/nothing", &[], b"");
    assert_eq!(talk.answer().status, 404);
    talk.send("GET /healthz", &[], b"");
    assert_eq!(talk.answer().status, 200);
}

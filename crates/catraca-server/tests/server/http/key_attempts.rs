//! `[records] keys_per_minute`: the attempts of single callers over HTTP.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::raw_connection::JSON;
use crate::test_server::TestServer;

const CATALOG: &str = "\
[policy.login]
by     = ['ip']
window = '2 per 1h'
block  = '1h'
[policy.pay]
by     = ['customer']
window = '9 per 1h'
[attribute.customer]
private = true
";
const INSPECT: &str = r#"{"subject":{"ip":"198.51.100.7","customer":"ana"}}"#;

fn send(server: &TestServer, call: &str, body: &str) -> Value {
    let mut connection = server.connect();
    let headers = if body.is_empty() { &[][..] } else { &[JSON] };
    connection.send(call, headers, body.as_bytes());
    let answer = connection.read_response();
    assert_eq!(answer.status, 200, "{call} {body}: {}", answer.body);
    answer.json()
}

/// Three logins and one payment.
fn attempt(server: &TestServer) {
    for _ in 0..3 {
        send(server, "POST /v1/check", r#"{"gate":"login","subject":{"ip":"198.51.100.7"}}"#);
    }
    send(server, "POST /v1/check", r#"{"gate":"pay","subject":{"customer":"ana"}}"#);
}

/// The policies of an inspection, when the counts of the last second are written.
fn inspect(server: &TestServer) -> Value {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let policies = send(server, "POST /v1/inspect", INSPECT)["policies"].take();
        // They may be written between the reads of two policies.
        let is_written =
            policies[0]["attempts"]["attempts"] == 3 && policies[1]["attempts"]["attempts"] == 1;
        if is_written || Instant::now() > deadline {
            return policies;
        }
        std::thread::yield_now();
    }
}

/// covers: 003-43
#[test]
fn the_attempts_of_a_caller_are_part_of_its_inspection() {
    let server = TestServer::with_catalog(&format!("{CATALOG}[records]\nkeys_per_minute = 100\n"));
    attempt(&server);
    let policies = inspect(&server);
    let login = &policies[0];
    assert_eq!((&login["policy"], &login["attempts"]["attempts"]), (&"login".into(), &3.into()));
    let instant = |field: &str| login["attempts"][field].as_str().unwrap().to_owned();
    assert!(instant("first_attempt_at") <= instant("last_attempt_at"), "{login}");
    assert!(login["blocked_until"].is_string(), "{login}");
    assert_eq!(policies[1]["attempts"]["attempts"], 1, "{policies}");
    let export = json!({ "attribute": "customer", "value": "ana", "why": "a test" }).to_string();
    let found = send(&server, "POST /v1/privacy/export", &export);
    assert_eq!(found["attempts"][0]["policy"], "pay", "{found}");
    assert_eq!(found["attempts"][0]["attempts"], 1, "{found}");
    send(&server, "POST /v1/privacy/erase", &export);
    let found = send(&server, "POST /v1/privacy/export", &export);
    assert_eq!(found["attempts"], json!([]), "{found}");
}

#[test]
fn without_the_setting_nobody_is_counted_alone() {
    let server = TestServer::with_catalog(CATALOG);
    attempt(&server);
    let policies = send(&server, "POST /v1/inspect", INSPECT)["policies"].take();
    assert_eq!(policies[0]["attempts"], Value::Null, "{policies}");
    let top = send(&server, "GET /v1/stats/top-blocked", "");
    assert_eq!(top["subjects"][0]["blocks"], 1, "blocks are counted all the same: {top}");
}

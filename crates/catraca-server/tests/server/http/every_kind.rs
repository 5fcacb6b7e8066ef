//! One catalog with a policy of each kind, all in force in one process.

use serde_json::{Value, json};

use crate::test_server::TestServer;

/// Spans of hours, so that a slow machine refills nothing.
const CATALOG: &str = "[policy.login]\nby = ['ip']\nwindow = '2 per 1h'\nblock = '2h'\n\
    [policy.lookup]\nby = ['payer']\nbucket = { size = 100, refill = '1 per 24h' }\n\
    cost = { '200' = 1, '404' = 20, default = 0 }\n\
    credit = { payment = { amount = 1, on = ['404'] } }\ndebt = true\n\
    [policy.site]\nby = ['ip']\nwindow = ['600 per 24h', '3 per 1h']\n\
    [policy.counter]\nby = ['ip']\nfixed = '2 per 24h'\n\
    [policy.upload]\nby = ['user']\ninflight = 1\nhold = '1h'\n\
    [policy.payment]\neach = ['customer', 'session']\n\
    ban = [{ when = 'body.reject_id == 5', for = '10m' }]\n\
    [[blocklist]]\nrange = '203.0.113.0/24'\n";

fn check(server: &TestServer, gate: &str, subject: &Value) -> Value {
    let body = json!({ "gate": gate, "subject": subject, "ref": gate });
    let (status, decision) = server.json("/v1/check", &body.to_string());
    assert_eq!(status, 200, "{decision}");
    decision
}

fn reasons<const N: usize>(server: &TestServer, gate: &str, subject: &Value) -> [String; N] {
    [(); N].map(|()| check(server, gate, subject)["reason"].as_str().unwrap().to_owned())
}

fn settle(server: &TestServer, decision: &Value, outcome: &Value) {
    let body = json!({ "ticket": decision["ticket"], "outcome": outcome });
    assert_eq!(server.post("/v1/settle", &body.to_string()).status, 200, "{body}");
}

fn balance(server: &TestServer, subject: &Value) -> i64 {
    let body = json!({ "subject": subject }).to_string();
    server.json("/v1/buckets/lookup", &body).1["balance"].as_i64().unwrap()
}

/// covers: X-01
#[test]
fn a_policy_of_each_kind_is_in_force_in_one_process() {
    let server = TestServer::with_catalog(CATALOG);
    let ip = json!({ "ip": "198.51.100.7" });
    assert_eq!(reasons(&server, "login", &ip), ["ok", "ok", "over_limit", "blocked"]);
    // The burst is in force long before the 600 of a day are used up.
    assert_eq!(reasons(&server, "site", &ip), ["ok", "ok", "ok", "over_limit"]);
    assert_eq!(reasons(&server, "counter", &ip), ["ok", "ok", "over_limit"]);
    assert_eq!(reasons(&server, "upload", &json!({ "user": "ana" })), ["ok", "over_limit"]);
    let listed = json!({ "ip": "203.0.113.9" });
    assert_eq!(reasons(&server, "site", &listed), ["blocklisted"]);

    let payer = json!({ "payer": "p" });
    let lookup = check(&server, "lookup", &payer);
    settle(&server, &lookup, &json!({ "status": 404 }));
    assert_eq!(balance(&server, &payer), 80, "the answer is the price");
    let credit = json!({ "ref": "lookup", "event": "payment", "subject": payer }).to_string();
    assert_eq!(server.post("/v1/credit", &credit).status, 200);
    assert_eq!(balance(&server, &payer), 81);

    let customer = json!({ "customer": "c", "session": "s" });
    let payment = check(&server, "payment", &customer);
    settle(&server, &payment, &json!({ "status": 200, "body": { "reject_id": 5 } }));
    assert_eq!(reasons(&server, "payment", &json!({ "customer": "c" })), ["blocked"]);

    let lock = r#"{"kind":"appointment","key":"10:00"}"#;
    let statuses = [(); 2].map(|()| server.post("/v1/locks/acquire", lock).status);
    assert_eq!(statuses, [200, 409]);
}

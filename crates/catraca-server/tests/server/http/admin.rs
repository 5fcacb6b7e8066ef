//! The admin API over HTTP: operations, queries, refusals, and what survives a kill.

mod bound_operators;
mod durability;
mod namespaced_lists;
mod namespaces;
mod operations;
mod reads;
mod refusals;

use serde_json::Value;

use crate::raw_connection::JSON;
use crate::test_server::TestServer;

pub const CATALOG: &str = r#"
[policy.login]
by     = ["ip"]
window = "2 per 1h"
block  = "2h"

[policy.lookup]
by     = ["payer"]
bucket = { size = 10, refill = "1 per 1h" }

[policy.api]
by     = ["customer"]
window = "1 per 1h"
tier   = [ { when = { plan = "gold" }, window = "3 per 1h" } ]

[attribute.payer]
kind    = "cpf_cnpj"
private = true

[attribute.customer]
private = true

[facts.customer.known]
plan = "silver"
"#;

pub const PAYER: &str = "52998224725";
pub const CUSTOMER: &str = "customer-4711";

/// Sends one call, with a body unless it is empty; returns the status and the JSON body.
pub fn call(server: &TestServer, request: &str, body: &str) -> (u16, Value) {
    let mut connection = server.connect();
    let headers: &[(&str, &str)] = if body.is_empty() { &[] } else { &[JSON] };
    connection.send(request, headers, body.as_bytes());
    let answer = connection.read_response();
    (answer.status, answer.json())
}

/// The same as `call`; asserts status 200.
pub fn expect_ok(server: &TestServer, request: &str, body: &str) -> Value {
    let (status, value) = call(server, request, body);
    assert_eq!(status, 200, "{request} {body}: {value}");
    value
}

/// The same as `call`; asserts status 200 and `durable: true`.
pub fn expect_durable(server: &TestServer, request: &str, body: &str) -> Value {
    let value = expect_ok(server, request, body);
    assert_eq!(value["durable"], true, "{request} {body}: {value}");
    value
}

/// The reason of a check's decision.
pub fn reason(server: &TestServer, gate: &str, subject: &str) -> String {
    let body = format!(r#"{{"gate":"{gate}","subject":{subject}}}"#);
    let decision = expect_ok(server, "POST /v1/check", &body);
    decision["reason"].as_str().unwrap().to_owned()
}

pub fn payer() -> String {
    format!(r#"{{"payer":"{PAYER}"}}"#)
}

pub fn customer() -> String {
    format!(r#"{{"customer":"{CUSTOMER}"}}"#)
}

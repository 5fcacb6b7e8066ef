//! Calls of the admin API that are refused with a code and change nothing.

use super::{CATALOG, call, expect_ok};
use crate::test_server::TestServer;

/// A request, its body, and the status and code it must get.
type Case = (&'static str, String, u16, &'static str);

fn each_is_refused_and_changes_nothing(cases: impl IntoIterator<Item = Case>) {
    let server = TestServer::with_catalog(CATALOG);
    for (request, body, status, code) in cases {
        let (got, problem) = call(&server, request, &body);
        assert_eq!((got, problem["code"].as_str()), (status, Some(code)), "{request} {body}");
    }
    let acts = expect_ok(&server, "GET /v1/audit?by=local", "");
    assert_eq!(acts["acts"], serde_json::json!([]), "a refused call changes nothing");
}

#[test]
fn bad_calls_about_blocks_are_named() {
    let long = "x".repeat(501);
    let ip = r#"{"ip":"198.51.100.7"}"#;
    let block = |rest: &str| format!(r#"{{"policy":"login","subject":{ip},{rest}}}"#);
    each_is_refused_and_changes_nothing([
        ("POST /v1/blocks", block(r#""for":"soon""#), 400, "bad-duration"),
        ("POST /v1/blocks", block(r#""for":"0s""#), 400, "duration-required"),
        ("POST /v1/blocks", block(r#""for":"1h","until":"x""#), 400, "bad-field"),
        ("POST /v1/blocks", block(&format!(r#""for":"1h","why":"{long}""#)), 400, "text-too-long"),
        (
            "POST /v1/blocks",
            r#"{"policy":"no","subject":{},"for":"1h"}"#.into(),
            404,
            "unknown-policy",
        ),
        (
            "POST /v1/blocks",
            r#"{"policy":"login","subject":{},"for":"1h"}"#.into(),
            400,
            "missing-attribute",
        ),
        ("GET /v1/blocks?color=red", String::new(), 400, "bad-query"),
        ("GET /v1/blocks?attribute=ip", String::new(), 400, "bad-query"),
        ("GET /v1/blocks?limit=many", String::new(), 400, "bad-query"),
        ("GET /v1/blocks?limit=0", String::new(), 400, "bad-query"),
        ("GET /v1/blocks?limit=1001", String::new(), 400, "bad-query"),
        ("GET /v1/blocks?attribute=customr&value=a", String::new(), 400, "bad-attribute"),
        ("POST /v1/blocks", block(r#""for":"99999d""#), 400, "bad-duration"),
        ("GET /v1/blocks?after=x", String::new(), 400, "bad-query"),
        ("GET /v1/blocks?limit=1&limit=2", String::new(), 400, "bad-query"),
        ("GET /v1/blocks?state=old", String::new(), 400, "bad-query"),
        ("GET /v1/blocks/99", String::new(), 404, "unknown-block"),
        ("GET /v1/blocks/x", String::new(), 404, "unknown-block"),
        ("DELETE /v1/blocks/99", String::new(), 404, "unknown-block"),
        ("DELETE /v1/blocks/6495e3a5b8000a3f09c2d4b17", String::new(), 404, "unknown-block"),
    ]);
}

#[test]
fn bad_reconciliations_are_named() {
    let body = |observed_at: &str, states: &str| {
        format!(r#"{{"subject":{{}},"observed_at":"{observed_at}","states":[{states}]}}"#)
    };
    let call = "POST /v1/buckets/reconcile";
    let past = "2026-01-01T00:00:00Z";
    let one = r#"{"policy":"lookup","available":1}"#;
    let too_low = r#"{"policy":"lookup","available":-1099511627777}"#;
    each_is_refused_and_changes_nothing([
        (call, body(past, ""), 400, "bad-states"),
        (call, body(past, &[one; 101].join(",")), 400, "bad-states"),
        (call, body(past, too_low), 400, "bad-states"),
        (call, body("x", one), 400, "bad-instant"),
        (call, body("2126-01-01T00:00:00Z", one), 400, "bad-instant"),
    ]);
}

#[test]
fn bad_calls_about_all_else_are_named() {
    each_is_refused_and_changes_nothing([
        ("POST /v1/blocklist", r#"{"range":"203.0.113.9/24"}"#.into(), 400, "bad-range"),
        ("POST /v1/blocklist", r#"{"range":"203.0.113.9","value":"x"}"#.into(), 400, "bad-entry"),
        ("POST /v1/blocklist", r#"{"attribute":"ip","value":"::1"}"#.into(), 400, "bad-entry"),
        (
            "POST /v1/blocklist",
            r#"{"attribute":"customer","value":"blake3:9d6b"}"#.into(),
            400,
            "bad-entry",
        ),
        (
            "POST /v1/blocklist",
            r#"{"range":"::1","until":"2020-01-01T00:00:00Z"}"#.into(),
            400,
            "bad-entry",
        ),
        ("POST /v1/blocklist", r#"{"range":"::1","until":"later"}"#.into(), 400, "bad-instant"),
        ("DELETE /v1/allowlist", r#"{"range":"::1"}"#.into(), 404, "unknown-entry"),
        ("POST /v1/blocklist", r#"{"range":"::1","for":"99999d"}"#.into(), 400, "bad-duration"),
        ("POST /v1/blocklist", r#"{"attribute":"customr","value":"a"}"#.into(), 400, "bad-entry"),
        ("POST /v1/allowlist", r#"{"attribute":"plan","value":"a"}"#.into(), 400, "bad-entry"),
        (
            "POST /v1/privacy/erase",
            r#"{"attribute":"pa","value":"1"}"#.into(),
            400,
            "bad-attribute",
        ),
        ("GET /v1/blocklist?limit=0", String::new(), 400, "bad-query"),
        ("GET /v1/blocks?namespace=zz", String::new(), 400, "unknown-namespace"),
        ("GET /v1/audit?namespace=zz", String::new(), 400, "unknown-namespace"),
        ("GET /v1/allowlist?namespace=zz", String::new(), 400, "unknown-namespace"),
        ("GET /v1/facts?namespace=zz", String::new(), 400, "unknown-namespace"),
        ("GET /v1/blocks?policy=logn", String::new(), 400, "bad-query"),
        ("GET /v1/audit?act=relase", String::new(), 400, "bad-query"),
        ("GET /v1/facts?limit=0", String::new(), 400, "bad-query"),
        ("GET /v1/audit?limit=0", String::new(), 400, "bad-query"),
        ("GET /v1/stats/top-blocked?limit=0", String::new(), 400, "bad-query"),
        ("GET /v1/locks?limit=0", String::new(), 400, "bad-query"),
        ("GET /v1/events?since=now", String::new(), 400, "bad-query"),
        ("GET /v1/facts/customer/unknown", String::new(), 404, "unknown-value"),
        ("DELETE /v1/facts/customer/known", String::new(), 404, "unknown-value"),
        ("PUT /v1/facts/customer/a", r#"{"facts":{}}"#.into(), 400, "bad-facts"),
        ("PUT /v1/facts/customer/a", r#"{"facts":{"ip":"x"}}"#.into(), 400, "bad-attribute"),
        ("PUT /v1/facts/customer/a", r#"{"facts":{"payer":"x"}}"#.into(), 400, "bad-attribute"),
        ("PUT /v1/facts/custmer/a", r#"{"facts":{"plan":"x"}}"#.into(), 400, "bad-facts"),
        ("PUT /v1/facts/ip/::1", r#"{"facts":{"plan":"x"}}"#.into(), 400, "bad-attribute"),
        ("GET /v1/policies/no", String::new(), 404, "unknown-policy"),
        ("PUT /v1/policies/login/mode", r#"{"mode":"loud"}"#.into(), 400, "bad-mode"),
        ("PUT /v1/policies/login/mode", "{}".into(), 400, "bad-field"),
        (
            "POST /v1/reset",
            r#"{"policy":"login","confirm":"login"}"#.into(),
            400,
            "confirm-required",
        ),
        (
            "GET /v1/stats?from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z",
            String::new(),
            400,
            "bad-query",
        ),
        (
            "POST /v1/privacy/erase",
            r#"{"attribute":"payer","value":"1"}"#.into(),
            400,
            "bad-attribute",
        ),
    ]);
}

#[test]
fn a_server_without_records_says_what_it_lacks() {
    let server = TestServer::demo();
    for request in ["GET /v1/blocks", "GET /v1/audit", "GET /v1/stats", "GET /v1/allowlist"] {
        let (status, problem) = call(&server, request, "");
        assert_eq!((status, problem["code"].as_str()), (409, Some("no-records")), "{request}");
    }
    assert_eq!(call(&server, "GET /v1/policies", "").0, 200);
}

#[test]
fn an_entry_about_what_no_subject_can_have_is_refused() {
    let long = "x".repeat(100_000);
    let entry = |attribute: &str, value: &str| {
        serde_json::json!({ "attribute": attribute, "value": value }).to_string()
    };
    let wrong = [("", "x"), (&*long, "x"), ("na me", "x"), ("user", ""), ("user", &long[..257])];
    each_is_refused_and_changes_nothing(
        ["POST /v1/allowlist", "POST /v1/blocklist"].iter().flat_map(|request| {
            wrong.map(|(name, value)| (*request, entry(name, value), 400, "bad-entry"))
        }),
    );
    let server = TestServer::with_catalog(&format!("{CATALOG}\n[attribute.user]\n"));
    let listed = expect_ok(&server, "POST /v1/allowlist", &entry("user", &long[..256]));
    assert_eq!(listed["entries"][0]["value"], long[..256]);
    assert_eq!(call(&server, "DELETE /v1/allowlist", &entry("", "x")).0, 404, "nothing to remove");
}

/// A reason has at most 500 characters of any size in bytes.
#[test]
fn the_length_of_a_reason_is_counted_in_characters() {
    let server = TestServer::with_catalog(CATALOG);
    let order = |characters: usize| {
        let reason = "é".repeat(characters);
        let subject = serde_json::json!({ "ip": "198.51.100.7" });
        serde_json::json!({ "policy": "login", "subject": subject, "for": "1h", "reason": reason })
            .to_string()
    };
    let (status, problem) = call(&server, "POST /v1/blocks", &order(501));
    assert_eq!((status, problem["code"].as_str()), (400, Some("text-too-long")), "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains("500 characters"), "{problem}");
    expect_ok(&server, "POST /v1/blocks", &order(500));
}

//! Texts with U+0000, which PostgreSQL cannot store: every call that would store one refuses it,
//! with every kind of records, so that no acknowledged entry is lost.

use serde_json::json;

use crate::http::admin::{CATALOG, call, expect_ok};
use crate::http::postgres_records::nodes;
use crate::test_server::TestServer;
use catraca_testkit::postgres::PostgresServer;

const CHECK: &str = "POST /v1/check";
const LOCK: &str = "POST /v1/locks/acquire";

/// Each request, its body, the expected code, and a part of the problem's detail.
const CASES: [(&str, &str, &str, &str); 30] = [
    (
        "POST /v1/blocklist",
        r#"{"attribute":"customer","value":"a\u0000b"}"#,
        "bad-attribute",
        "`customer`",
    ),
    (
        "POST /v1/allowlist",
        r#"{"attribute":"customer","value":"a\u0000b"}"#,
        "bad-attribute",
        "`customer`",
    ),
    (
        "POST /v1/blocklist",
        r#"[{"range":"::1"},{"attribute":"customer","value":"\u0000"}]"#,
        "bad-attribute",
        "entry 2",
    ),
    ("POST /v1/blocklist", r#"{"attribute":"cust\u0000omer","value":"a"}"#, "bad-entry", "name"),
    ("POST /v1/blocklist", r#"{"range":"::1","reason":"\u0000"}"#, "bad-text", "`reason`"),
    ("POST /v1/blocklist", r#"{"range":"::1","why":"\u0000"}"#, "bad-text", "`why`"),
    (
        "DELETE /v1/blocklist",
        r#"{"attribute":"cust\u0000","value":"a"}"#,
        "bad-text",
        "attribute's name",
    ),
    ("PUT /v1/facts/customer/a%00b", r#"{"facts":{"plan":"gold"}}"#, "bad-attribute", "`customer`"),
    ("PUT /v1/facts/cust%00omer/a", r#"{"facts":{"plan":"gold"}}"#, "bad-text", "attribute's name"),
    ("PUT /v1/facts/customer/a", r#"{"facts":{"plan":"go\u0000ld"}}"#, "bad-text", "`plan`"),
    (
        "PUT /v1/facts/customer/a",
        r#"{"facts":{"pl\u0000an":"gold"}}"#,
        "bad-text",
        "name of a fact",
    ),
    (
        "PUT /v1/facts/customer/a",
        r#"{"facts":{"plan":"gold"},"why":"\u0000"}"#,
        "bad-text",
        "`why`",
    ),
    (
        "POST /v1/blocks",
        r#"{"policy":"api","subject":{"customer":"a\u0000"},"for":"1h"}"#,
        "bad-attribute",
        "`customer`",
    ),
    (
        "POST /v1/blocks",
        r#"{"policy":"api","subject":{"customer":"a"},"for":"1h","reason":"\u0000"}"#,
        "bad-text",
        "`reason`",
    ),
    (
        "POST /v1/blocks",
        r#"{"policy":"api","subject":{"customer":"a"},"for":"1h","why":"\u0000"}"#,
        "bad-text",
        "`why`",
    ),
    (
        "POST /v1/reset",
        r#"{"policy":"api","subject":{"customer":"a\u0000"}}"#,
        "bad-attribute",
        "`customer`",
    ),
    ("PUT /v1/policies/api/mode", r#"{"mode":"off","why":"\u0000"}"#, "bad-text", "`why`"),
    (
        "POST /v1/privacy/erase",
        r#"{"attribute":"customer","value":"\u0000"}"#,
        "bad-attribute",
        "`customer`",
    ),
    ("GET /v1/blocks?namespace=%00", "", "bad-text", "`namespace`"),
    (CHECK, r#"{"gate":"api","subject":{"customer":"a\u0000"}}"#, "bad-attribute", "`customer`"),
    (CHECK, r#"{"gate":"api\u0000","subject":{"customer":"a"}}"#, "bad-text", "the gate"),
    (
        CHECK,
        r#"{"gate":"api","ref":"\u0000","subject":{"customer":"a"}}"#,
        "bad-text",
        "the reference",
    ),
    (
        "POST /v1/credit",
        r#"{"ref":"a","event":"\u0000","subject":{"customer":"a"}}"#,
        "bad-text",
        "the event",
    ),
    (LOCK, r#"{"kind":"k","key":"\u0000"}"#, "bad-lock", "`keys`"),
    (LOCK, r#"{"kind":"k","key":"a","tenant":"\u0000"}"#, "bad-lock", "`tenant`"),
    (LOCK, r#"{"kind":"\u0000","key":"a"}"#, "bad-lock", "`kind`"),
    (LOCK, r#"{"kind":"k","key":"a","meta":"\u0000"}"#, "bad-lock", "`meta`"),
    (LOCK, r#"{"kind":"k","key":"a","owner_label":"\u0000"}"#, "bad-lock", "`owner_label`"),
    ("GET /v1/locks?prefix=%00", "", "bad-text", "`prefix`"),
    ("DELETE /v1/locks?tenant=t1", r#"{"reason":"\u0000"}"#, "bad-text", "`reason`"),
];

fn assert_all_refused(server: &TestServer) {
    for (request, body, code, says) in CASES {
        let (status, problem) = call(server, request, body);
        assert_eq!((status, problem["code"].as_str()), (400, Some(code)), "{request} {body}");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(says), "{request} {body}: {detail}");
    }
    let acts = expect_ok(server, "GET /v1/audit?by=local", "");
    assert_eq!(acts["acts"], json!([]), "a refused call changes nothing");
    assert_eq!(expect_ok(server, "GET /v1/blocklist", "")["entries"], json!([]));
    assert_eq!(expect_ok(server, "GET /v1/facts", "")["facts"], json!([]));
}

#[test]
fn texts_with_u0000_are_refused_with_sqlite_records() {
    assert_all_refused(&TestServer::with_catalog(CATALOG));
}

/// Regression: such entries were answered `durable: true` and matched no caller after a restart.
#[test]
fn texts_with_u0000_are_refused_with_postgresql_records() {
    let postgres = PostgresServer::start();
    let [file, _] = nodes(&postgres);
    assert_all_refused(&TestServer::from_file(&file));
}

//! Operations: blocks, lists, facts, modes, resets and reconciled buckets.

use super::{CATALOG, CUSTOMER, PAYER, call, customer, expect_durable, expect_ok, payer, reason};
use crate::test_server::TestServer;

/// covers: X-29, X-21
#[test]
fn a_block_is_made_found_explained_and_released() {
    let server = TestServer::with_catalog(CATALOG);
    let order = format!(
        r#"{{"policy":"lookup","subject":{},"for":"1h","reason":"fraud","why":"case 7"}}"#,
        payer()
    );
    let created = expect_durable(&server, "POST /v1/blocks", &order);
    let id = created["blocks"][0]["id"].as_str().unwrap();
    assert_eq!(created["blocks"][0]["changed"], true);
    assert_eq!(reason(&server, "lookup", &payer()), "blocked");
    let found = format!("GET /v1/blocks?policy=lookup&attribute=payer&value={PAYER}");
    let found = expect_ok(&server, &found, "");
    assert_eq!((&found["blocks"][0]["id"], &found["next"]), (&id.into(), &().into()));
    assert!(!found.to_string().contains(PAYER), "{found}");
    let one = expect_ok(&server, &format!("GET /v1/blocks/{id}"), "");
    assert_eq!(
        (&one["standing"], &one["reason"], &one["by"]),
        (&true.into(), &"fraud".into(), &"local".into())
    );
    assert_eq!(one["history"][0]["act"], "started");
    let release = format!("DELETE /v1/blocks/{id}");
    assert_eq!(expect_durable(&server, &release, r#"{"why":"called in"}"#)["released"], true);
    assert_eq!(reason(&server, "lookup", &payer()), "ok");
    let one = expect_ok(&server, &format!("GET /v1/blocks/{id}"), "");
    assert_eq!((&one["standing"], &one["history"][1]["act"]), (&false.into(), &"released".into()));
    let acts = expect_ok(&server, "GET /v1/audit", "");
    let audit_line = |index: usize| {
        let act = &acts["acts"][index];
        [&act["by"], &act["act"], &act["why"]].map(|text| text.as_str().unwrap_or("").to_owned())
    };
    assert_eq!(audit_line(0), ["local", "release", "called in"]);
    assert_eq!(audit_line(1), ["local", "block", "case 7"]);
    assert!(acts["acts"][0]["before"].is_object(), "{acts}");
}

/// covers: X-20, X-19
#[test]
fn lists_decide_at_once_and_end_by_themselves_or_by_hand() {
    let server = TestServer::with_catalog(CATALOG);
    let near = r#"{"ip":"203.0.113.9"}"#;
    let entries = r#"[{"range":"203.0.113.0/24","reason":"scan","for":"1h"},
        {"range":"2001:db8::/32"}]"#;
    let created = expect_durable(&server, "POST /v1/blocklist", entries);
    assert_eq!(
        (&created["list"], &created["entries"][0]["before"]),
        (&"blocklist".into(), &().into())
    );
    assert!(created["entries"][0]["until"].is_string() && created["entries"][1]["until"].is_null());
    assert_eq!(reason(&server, "login", near), "blocklisted");
    assert_eq!(reason(&server, "login", r#"{"ip":"203.0.114.9"}"#), "ok");
    expect_durable(&server, "POST /v1/allowlist", r#"{"range":"203.0.113.9"}"#);
    assert_eq!(reason(&server, "login", near), "allowlisted");
    expect_durable(&server, "DELETE /v1/allowlist", r#"{"range":"203.0.113.9","why":"moved"}"#);
    assert_eq!(reason(&server, "login", near), "blocklisted");
    let first = expect_ok(&server, "GET /v1/blocklist?limit=1", "");
    assert_eq!(first["entries"][0]["range"], "2001:db8::/32");
    let next = format!("GET /v1/blocklist?after={}", first["next"].as_str().unwrap());
    let second = expect_ok(&server, &next, "");
    assert_eq!(second["entries"][0]["reason"], "scan");
    assert_eq!((second["entries"].as_array().unwrap().len(), &second["next"]), (1, &().into()));
    let hidden = format!(r#"{{"attribute":"customer","value":"{CUSTOMER}"}}"#);
    let created = expect_durable(&server, "POST /v1/blocklist", &hidden);
    assert!(!created.to_string().contains(CUSTOMER), "{created}");
    assert_eq!(reason(&server, "api", &customer()), "blocklisted");
    expect_durable(&server, "DELETE /v1/blocklist", &hidden);
    assert_eq!(reason(&server, "api", &customer()), "ok");
}

#[test]
fn facts_choose_the_tier_until_they_are_forgotten() {
    let server = TestServer::with_catalog(CATALOG);
    let about = |verb: &str| format!("{verb} /v1/facts/customer/{CUSTOMER}");
    let stated =
        expect_durable(&server, &about("PUT"), r#"{"facts":{"plan":"gold"},"why":"paid"}"#);
    assert_eq!(
        (&stated["before"], &stated["after"]["plan"]),
        (&serde_json::json!({}), &"gold".into())
    );
    assert_eq!(expect_ok(&server, &about("GET"), "")["facts"]["plan"], "gold");
    assert_eq!(
        [0; 4].map(|_| reason(&server, "api", &customer())),
        ["ok", "ok", "ok", "over_limit"]
    );
    let removed = expect_durable(&server, &about("DELETE"), "");
    assert_eq!(removed["before"]["plan"], "gold");
    // A fact's name is reserved while any fact has it; afterwards callers may send it again.
    expect_durable(&server, &about("PUT"), r#"{"facts":{"colour":"red"}}"#);
    let sent = r#"{"customer":"another","colour":"blue"}"#;
    let body = format!(r#"{{"gate":"api","subject":{sent}}}"#);
    assert_eq!(server.json("/v1/check", &body).1["code"], "reserved-attribute");
    expect_durable(&server, &about("DELETE"), "");
    assert_eq!(reason(&server, "api", sent), "ok");
    let facts = expect_ok(&server, "GET /v1/facts/customer/known", "");
    assert_eq!(facts["facts"]["plan"], "silver");
}

#[test]
fn a_mode_is_overridden_at_once_and_given_back() {
    let server = TestServer::with_catalog(CATALOG);
    let ip = r#"{"ip":"198.51.100.7"}"#;
    let off =
        expect_durable(&server, "PUT /v1/policies/login/mode", r#"{"mode":"off","why":"outage"}"#);
    assert_eq!((&off["before"], &off["after"]), (&"enforce".into(), &"off".into()));
    assert_eq!([0; 4].map(|_| reason(&server, "login", ip)), ["ok"; 4]);
    let policy = expect_ok(&server, "GET /v1/policies/login", "");
    assert_eq!((&policy["mode"], &policy["overridden"]), (&"off".into(), &true.into()));
    let back = expect_durable(&server, "PUT /v1/policies/login/mode", r#"{"mode":null}"#);
    assert_eq!((&back["after"], &back["overridden"]), (&"enforce".into(), &false.into()));
    assert_eq!([0; 3].map(|_| reason(&server, "login", ip)), ["ok", "ok", "over_limit"]);
    let reset = format!(r#"{{"policy":"login","subject":{ip}}}"#);
    expect_durable(&server, "POST /v1/reset", &reset);
    assert_eq!(reason(&server, "login", ip), "ok");
}

#[test]
fn a_policy_is_reset_for_everybody_only_when_that_is_confirmed() {
    let server = TestServer::with_catalog(CATALOG);
    let ips = [r#"{"ip":"198.51.100.7"}"#, r#"{"ip":"198.51.100.8"}"#];
    for ip in ips {
        assert_eq!([0; 3].map(|_| reason(&server, "login", ip)), ["ok", "ok", "over_limit"]);
    }
    let unclear = [
        (r#"{"policy":"login"}"#, "confirm"),
        (r#"{"policy":"login","confirm":"login"}"#, "why"),
        (r#"{"policy":"login","confirm":"Login","why":"x"}"#, "equal to"),
        (r#"{"policy":"login","confirm":"login","subject":{"ip":"::1"},"why":"x"}"#, "send one"),
    ];
    for (body, word) in unclear {
        let (status, problem) = call(&server, "POST /v1/reset", body);
        assert_eq!((status, &problem["code"]), (400, &"confirm-required".into()), "{body}");
        assert!(problem["detail"].as_str().unwrap().contains(word), "{problem}");
    }
    assert_eq!(ips.map(|ip| reason(&server, "login", ip)), ["blocked"; 2]);
    let whole = r#"{"policy":"login","confirm":"login","why":"the limit was wrong"}"#;
    assert_eq!(expect_durable(&server, "POST /v1/reset", whole)["blocks"], 2);
    assert_eq!(expect_ok(&server, "GET /v1/blocks", "")["blocks"], serde_json::json!([]));
    for ip in ips {
        assert_eq!([0; 3].map(|_| reason(&server, "login", ip)), ["ok", "ok", "over_limit"]);
    }
    let act = &expect_ok(&server, "GET /v1/audit?limit=1", "")["acts"][0];
    let line = [&act["act"], &act["target"], &act["why"], &act["by"]];
    assert_eq!(line, ["reset", "login", "the limit was wrong", "local"]);
    let (status, problem) =
        call(&server, "POST /v1/reset", r#"{"policy":"nothing","confirm":"nothing","why":"x"}"#);
    assert_eq!((status, &problem["code"]), (404, &"unknown-policy".into()));
}

#[test]
fn an_upstreams_lower_view_of_a_bucket_wins() {
    let server = TestServer::with_catalog(CATALOG);
    let view = format!(
        r#"{{"subject":{},"observed_at":"2026-01-01T00:00:00Z",
            "states":[{{"policy":"lookup","available":4}}]}}"#,
        payer()
    );
    let taken = expect_ok(&server, "POST /v1/buckets/reconcile", &view);
    assert_eq!(taken["buckets"][0]["before"], 10, "{taken}");
    let state =
        expect_ok(&server, "POST /v1/buckets/lookup", &format!(r#"{{"subject":{}}}"#, payer()));
    assert_eq!(state["balance"], taken["buckets"][0]["after"]);
}

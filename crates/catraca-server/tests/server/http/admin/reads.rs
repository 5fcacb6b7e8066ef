//! Queries: statistics, the catalog, privacy exports and the live feed.

use super::{CATALOG, CUSTOMER, call, customer, expect_durable, expect_ok, reason};
use crate::raw_connection::head;
use crate::test_server::TestServer;

/// covers: 004-11
#[test]
fn totals_add_up_and_name_who_is_blocked_most() {
    let server = TestServer::with_catalog(CATALOG);
    let ip = r#"{"ip":"198.51.100.7"}"#;
    assert_eq!([0; 4].map(|_| reason(&server, "login", ip)), ["ok", "ok", "over_limit", "blocked"]);
    for (path, name) in [("/v1/stats", "policies"), ("/v1/stats/actions", "actions")] {
        let stats = expect_ok(&server, &format!("GET {path}"), "");
        let parts = ["allowed", "denied", "blocked"].map(|part| stats[part].as_u64().unwrap());
        assert_eq!((parts, &stats["total"]), ([2, 1, 1], &4.into()), "{stats}");
        assert_eq!(stats[name][0]["total"], 4);
    }
    let top = expect_ok(&server, "GET /v1/stats/top-blocked?limit=5", "");
    assert_eq!(top["subjects"][0]["subject"]["ip"], "198.51.100.7", "{top}");
    assert_eq!(top["subjects"][0]["blocks"], 1);
    let blocks = expect_ok(&server, "GET /v1/blocks?origin=excess", "");
    assert_eq!(blocks["blocks"].as_array().unwrap().len(), 1);
    assert_eq!(
        expect_ok(&server, "GET /v1/blocks?origin=ban", "")["blocks"],
        serde_json::json!([])
    );
}

/// Regression: a check of three policies was counted three times.
#[test]
fn totals_count_requests_and_rows_count_verdicts() {
    let server = TestServer::with_catalog(
        "[policy.a]\nby = ['user']\nwindow = '2 per 1h'\n\
         [policy.b]\nby = ['user']\nwindow = '100 per 1h'\n\
         [policy.c]\nby = ['user']\nwindow = '100 per 1h'\n\
         [gate.all]\npolicies = ['a', 'b', 'c']\n\
         [[blocklist]]\nattribute = 'user'\nvalue = 'eve'\n",
    );
    let check =
        |gate: &str, user: &str| format!(r#"{{"gate":"{gate}","subject":{{"user":"{user}"}}}}"#);
    for _ in 0..3 {
        expect_ok(&server, "POST /v1/check", &check("all", "ana"));
        expect_ok(&server, "POST /v1/peek", &check("all", "ana"));
    }
    let list = [check("all", "bob"), check("b", "bob"), check("all", "eve")].join(",");
    expect_ok(&server, "POST /v1/check/batch", &format!("[{list}]"));
    let stats = expect_ok(&server, "GET /v1/stats", "");
    let counted = |row: &serde_json::Value| {
        ["total", "allowed", "denied", "blocked"].map(|field| row[field].as_u64().unwrap())
    };
    assert_eq!(counted(&stats), [6, 4, 1, 1], "{stats}");
    let rows: Vec<_> = stats["policies"].as_array().unwrap().iter().map(counted).collect();
    assert_eq!(rows, [[4, 3, 1, 0], [5, 5, 0, 0], [4, 4, 0, 0]], "{stats}");
    let actions = expect_ok(&server, "GET /v1/stats/actions", "");
    assert_eq!(counted(&actions), counted(&stats));
}

/// covers: B-57
#[test]
fn waits_are_seconds_and_the_policy_and_the_action_keep_their_own_names() {
    let server = TestServer::with_catalog(
        "[policy.payments]\nby = ['ip']\nwindow = '1 per 1h'\n\
         [gate.webhook_stripe]\npolicies = ['payments']\n[server]\ndenial = 'error'\n",
    );
    let ask = || server.request("GET /v1/gates/webhook_stripe/authorize", &[]);
    assert_eq!(ask().status, 200);
    let denied = ask();
    let seconds: i64 = denied.header("retry-after").unwrap().parse().unwrap();
    assert!((3_590..=3_600).contains(&seconds), "{seconds}");
    assert_eq!(denied.json()["retryAfter"], seconds);
    let policies = expect_ok(&server, "GET /v1/stats", "");
    let actions = expect_ok(&server, "GET /v1/stats/actions", "");
    let names = (&policies["policies"][0]["policy"], &actions["actions"][0]["action"]);
    assert_eq!(names, (&"payments".into(), &"webhook_stripe".into()));
    let all = format!("{policies}{actions}{}", denied.body);
    assert!(!all.contains("buyer"), "{all}");
}

/// One document has all limits: the server shows it, and no call changes it.
///
/// covers: 003-01
#[test]
fn the_catalog_is_shown_with_its_revision_and_no_call_changes_it() {
    let server = TestServer::with_catalog(CATALOG);
    let config = expect_ok(&server, "GET /v1/config", "");
    assert_eq!((&config["policies"], &config["default"]), (&3.into(), &().into()));
    let policies = expect_ok(&server, "GET /v1/policies", "");
    assert_eq!(policies["revision"], config["revision"]);
    let login = &policies["policies"][0];
    assert_eq!(
        (&login["policy"], &login["limit"], &login["block"]),
        (&"login".into(), &"window 2 per 1h".into(), &"2h".into())
    );
    let decision =
        expect_ok(&server, "POST /v1/check", r#"{"gate":"login","subject":{"ip":"::1"}}"#);
    assert_eq!(decision["revision"], config["revision"], "{decision}");
    let login = r#"{"window":"9 per 1h"}"#;
    for line in ["PUT /v1/policies/login", "PATCH /v1/config", "DELETE /v1/policies/login"] {
        assert_eq!(call(&server, line, login).0, 405, "{line}");
    }
    let after = expect_ok(&server, "GET /v1/policies", "");
    assert_eq!(after["policies"], policies["policies"]);
    let me = expect_ok(&server, "GET /v1/whoami", "");
    assert_eq!((&me["address"], &me["operator"]), (&"127.0.0.1".into(), &"local".into()));
    assert!(me["why"].as_str().unwrap().contains("not from a trusted proxy"));
}

/// covers: X-28
#[test]
fn a_person_is_exported_and_erased_and_what_stands_is_reported() {
    let server = TestServer::with_catalog(CATALOG);
    let order = format!(r#"{{"policy":"api","subject":{},"for":"1h"}}"#, customer());
    expect_durable(&server, "POST /v1/blocks", &order);
    expect_durable(
        &server,
        &format!("PUT /v1/facts/customer/{CUSTOMER}"),
        r#"{"facts":{"plan":"gold"}}"#,
    );
    let person = format!(r#"{{"attribute":"customer","value":"{CUSTOMER}","why":"request"}}"#);
    let found = expect_durable(&server, "POST /v1/privacy/export", &person);
    assert_eq!(
        (&found["facts"]["plan"], &found["blocks"][0]["history"][0]["act"]),
        (&"gold".into(), &"started".into())
    );
    assert!(found["counters"].as_str().unwrap().contains("lapses"));
    let erased = expect_durable(&server, "POST /v1/privacy/erase", &person);
    assert_eq!((&erased["erased"]["facts"], &erased["retained"]["blocks"]), (&1.into(), &1.into()));
    let (status, _) = call(&server, &format!("GET /v1/facts/customer/{CUSTOMER}"), "");
    assert_eq!(status, 404);
    assert_eq!(reason(&server, "api", &customer()), "blocked");
}

/// Regression: the reason was checked after the erasure.
#[test]
fn an_erasure_that_is_refused_erases_nothing() {
    let server = TestServer::with_catalog(CATALOG);
    let path = format!("/v1/facts/customer/{CUSTOMER}");
    expect_durable(&server, &format!("PUT {path}"), r#"{"facts":{"plan":"gold"}}"#);
    let why = "x".repeat(501);
    let person = format!(r#"{{"attribute":"customer","value":"{CUSTOMER}","why":"{why}"}}"#);
    let (status, problem) = call(&server, "POST /v1/privacy/erase", &person);
    assert_eq!((status, &problem["code"]), (400, &"text-too-long".into()));
    assert_eq!(expect_ok(&server, &format!("GET {path}"), "")["facts"]["plan"], "gold");
}

#[test]
fn whoever_listens_hears_a_block_and_does_not_keep_the_process() {
    let server = TestServer::with_catalog(CATALOG);
    let mut connection = server.connect();
    connection.send_bytes(&head("GET /v1/events", &[], None));
    let events = connection.read_until("listening");
    assert!(events.contains("text/event-stream"), "{events}");
    let order = format!(r#"{{"policy":"api","subject":{},"for":"1h"}}"#, customer());
    expect_durable(&server, "POST /v1/blocks", &order);
    let events = connection.read_until("\"policy\":\"api\"");
    assert!(events.contains("event: blocked") && !events.contains(CUSTOMER), "{events}");
    assert_eq!(reason(&server, "api", &customer()), "blocked");
    assert!(connection.read_until("\"reason\":\"blocked\"").contains("event: denied"));
    server.signal("TERM");
    let (status, stderr) = server.wait_for_exit();
    assert!(status.success(), "{stderr}");
}

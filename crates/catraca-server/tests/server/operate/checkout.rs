//! The tables of a checkout, taken over by a server, and the report of who uses its policies.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::operate::helpers::{json, run, run_ok};
use crate::raw_connection::JSON;
use crate::test_server::TestServer;

const CATALOG: &str = include_str!("../../../../../presets/checkout/catalog.toml");

fn start_server() -> TestServer {
    TestServer::with_catalog(&CATALOG.replace("${PROXY_LISTEN:127.0.0.1:7880}", "127.0.0.1:0"))
}

/// A file of one test.
struct TableFile(PathBuf);

impl TableFile {
    fn new(name: &str, text: &str) -> Self {
        let name = format!("{}-{name}", std::process::id());
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::write(&path, text).unwrap();
        Self(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().unwrap()
    }
}

impl Drop for TableFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// covers: 003-43
#[test]
fn blocks_of_its_table_that_have_not_ended_are_in_force() {
    let server = start_server();
    let row = |id: u8, ip: &str, attempts: u8, until: &str| {
        let first = "2026-01-20 12:00:00+00";
        let last = "2026-01-20 12:00:40+00";
        format!("{id},198.51.100.{ip},create_order,{attempts},{first},{last},{until},{first}\n")
    };
    let rows = [
        "id,identifier,action,attempts,first_attempt_at,last_attempt_at,blocked_until,created_at\n",
        &row(1, "7", 61, "2100-01-01 00:00:00+00"),
        &row(2, "7", 1, "2090-06-01 00:00:00-03"),
        &row(3, "8", 61, "2026-01-20 12:02:40+00"),
        &row(4, "9", 3, ""),
    ]
    .concat();
    let table = TableFile::new("rates.csv", &rows);
    let printed = run_ok(&server, &["import", "buyer-rate-limits", table.path()]);
    assert!(printed.starts_with("1 block added from 4 rows."), "{printed}");
    assert!(printed.contains("slide instead of starting with the first attempt"), "{printed}");
    for (ip, code) in [("7", 1), ("8", 0), ("9", 0)] {
        let ip = format!("ip=198.51.100.{ip}");
        assert_eq!(run(&server, &["check", "create_order", &ip]).code, Some(code), "{ip}");
        assert_eq!(run(&server, &["check", "create_pix", &ip]).code, Some(0), "{ip}");
    }
    let blocks = json(&server, &["blocks", "list"])["blocks"].clone();
    assert_eq!(blocks.as_array().unwrap().len(), 1);
    assert!(blocks[0]["until"].as_str().unwrap().starts_with("2100-01-01T00:00"), "{blocks}");
    let wrong = rows.replace("create_order,61", "create_ordr,61").replace("2090-06-01 ", "soon ");
    let table = TableFile::new("wrong.csv", &wrong);
    run(&server, &["import", "buyer-rate-limits", table.path()]).assert_exit(2, &["wrong.csv:3:"]);
    let unknown = TableFile::new("unknown.csv", &rows.replace("create_order,1", "create_ordr,1"));
    let unknown = run(&server, &["import", "buyer-rate-limits", unknown.path()]);
    unknown.assert_exit(2, &["nothing was sent", "unknown.csv:3: the catalog has no policy"]);
}

#[test]
fn its_blocklist_is_taken_over_with_reasons_and_expiries() {
    let server = start_server();
    let rows = "id,ip_address,reason,blocked_at,expires_at\n\
        1,203.0.113.7,\"carding, twice\",2026-01-20 12:00:00+00,\n\
        2,203.0.113.8,,2026-01-20 12:00:00+00,2200-01-01 00:00:00+00\n\
        3,203.0.113.9,,2026-01-20 12:00:00+00,2026-01-21 00:00:00+00\n";
    let table = TableFile::new("list.csv", rows);
    let printed = run_ok(&server, &["import", "ip-blocklist", table.path()]);
    assert_eq!(printed, "2 entries added to the blocklist: 2 new, 0 renewed\n");
    for (ip, code) in [("7", 1), ("8", 1), ("9", 0)] {
        let ip = format!("ip=203.0.113.{ip}");
        assert_eq!(run(&server, &["check", "create_order", &ip]).code, Some(code), "{ip}");
    }
    let entries = json(&server, &["blocklist", "list"])["entries"].clone();
    assert_eq!(entries[1]["reason"], "carding, twice");
    assert_eq!(
        (&entries[1]["until"], &entries[0]["until"]),
        (&Value::Null, &"2200-01-01T00:00:00Z".into())
    );
    let wrong = TableFile::new("bad-list.csv", &rows.replace("203.0.113.7", "300.1.1.1"));
    let wrong = run(&server, &["import", "ip-blocklist", wrong.path()]);
    wrong.assert_exit(2, &["nothing was added", "bad-list.csv:2:"]);
}

/// covers: 003-02
#[test]
fn the_report_counts_policies_inline_ones_and_the_callers_of_each() {
    let server = start_server();
    let send = |caller: &str, gate: &str| {
        let body = format!(r#"{{"gate":"{gate}","subject":{{"ip":"198.51.100.7"}}}}"#);
        let mut connection = server.connect();
        connection.send("POST /v1/check", &[("Catraca-Caller", caller), JSON], body.as_bytes());
        assert_eq!(connection.read_response().status, 200);
    };
    for (caller, gate) in [
        ("orders", "create_order"),
        ("orders", "create_order"),
        ("stripe", "create_order"),
        ("stripe", "create_pix"),
    ] {
        send(caller, gate);
    }
    let report = run_ok(&server, &["conformance"]);
    for line in [
        "policies            21",
        "inline policies      0",
        "callers              2",
        "unlisted gates       0",
        "conformance       100%",
    ] {
        assert!(report.lines().any(|own| own == line), "{line}: {report}");
    }
    let report = json(&server, &["conformance"]);
    let gates = report["gates"].as_array().unwrap();
    assert_eq!(gates.len(), 21, "{report}");
    let order = gates.iter().find(|row| row["gate"] == "create_order").unwrap();
    assert_eq!((&order["callers"], &order["checks"]), (&2.into(), &3.into()), "{order}");
    assert_eq!(order["names"].to_string(), r#"["orders","stripe"]"#);
    // An action without a policy is counted by the default, and does not conform.
    send("orders", "export_report");
    let report = run(&server, &["conformance", "-o", "json"]);
    assert_eq!(report.code, Some(1), "{report:?}");
    let report: Value = serde_json::from_str(&report.out).unwrap();
    assert_eq!((&report["conformance_percent"], &report["policies"]), (&75.into(), &21.into()));
    assert_eq!(report["unlisted_gates"].to_string(), r#"["export_report"]"#);
    // A check cannot bring limits of its own.
    let inline = r#"{"gate":"create_order","subject":{"ip":"198.51.100.7"},"maxAttempts":5}"#;
    let mut connection = server.connect();
    connection.send("POST /v1/check", &[JSON], inline.as_bytes());
    assert_eq!(connection.read_response().status, 400);
}

/// covers: 003-09
#[test]
fn policies_are_listed_and_counted_by_their_group() {
    let server = start_server();
    let listed = server.request("GET /v1/policies?group=webhooks", &[]).json();
    let names: Vec<&Value> =
        listed["policies"].as_array().unwrap().iter().map(|row| &row["policy"]).collect();
    assert_eq!(names, ["webhook", "webhook_test"]);
    let all = server.request("GET /v1/policies", &[]).json();
    assert_eq!(all["policies"].as_array().unwrap().len(), 21);
    let misspelt = server.request("GET /v1/policies?group=webhook", &[]);
    assert_eq!(
        (misspelt.status, misspelt.json()["type"].as_str()),
        (400, Some("/docs/errors/bad-query"))
    );

    let none = run_ok(&server, &["stats", "groups"]);
    assert!(none.contains("There were no decisions of policies with a group."), "{none}");
    for (gate, times) in [("create_order", 2), ("create_pix", 1), ("gdpr_forget", 6)] {
        for _ in 0..times {
            run(&server, &["check", gate, "ip=198.51.100.7"]);
        }
    }
    let stats = json(&server, &["stats", "groups"]);
    let groups = stats["groups"].as_array().unwrap();
    let counts = |at: usize| {
        let group = &groups[at];
        ["total", "allowed", "denied"].map(|name| group[name].as_u64().unwrap())
    };
    assert_eq!((&groups[0]["group"], counts(0)), (&"payments".into(), [3, 3, 0]), "{stats}");
    assert_eq!((&groups[1]["group"], counts(1)), (&"privacy".into(), [6, 5, 1]), "{stats}");
    assert_eq!(groups.len(), 2, "{stats}");
    let table = run_ok(&server, &["stats", "groups"]);
    assert!(table.lines().any(|line| line.trim_start().starts_with("payments")), "{table}");
}

//! Operations answered `durable: true` survive a kill, and no private value is on disk.

use std::fs;

use super::{CATALOG, CUSTOMER, PAYER, customer, expect_durable, expect_ok, payer, reason};
use crate::test_server::{TestServer, catalog_file};

/// covers: X-24, X-26, 000-11, 003-46
#[test]
fn every_act_survives_a_kill() {
    let file = catalog_file(CATALOG);
    let server = TestServer::from_file(&file);
    let order = |subject: &str| {
        format!(r#"{{"policy":"lookup","subject":{subject},"for":"1h","reason":"fraud"}}"#)
    };
    expect_durable(&server, "POST /v1/blocks", &order(&payer()));
    let freed = r#"{"payer":"11144477735"}"#;
    let created = expect_durable(&server, "POST /v1/blocks", &order(freed));
    let id = created["blocks"][0]["id"].as_str().unwrap();
    expect_durable(&server, &format!("DELETE /v1/blocks/{id}"), "");
    expect_durable(&server, "POST /v1/blocklist", r#"{"range":"203.0.113.0/24"}"#);
    expect_durable(&server, "POST /v1/allowlist", r#"{"range":"203.0.113.9"}"#);
    expect_durable(
        &server,
        &format!("PUT /v1/facts/customer/{CUSTOMER}"),
        r#"{"facts":{"plan":"gold"}}"#,
    );
    expect_durable(&server, "PUT /v1/policies/login/mode", r#"{"mode":"shadow"}"#);
    server.signal("KILL");
    drop(server);

    let server = TestServer::from_file(&file);
    assert_eq!(reason(&server, "lookup", &payer()), "blocked");
    assert_eq!(reason(&server, "lookup", freed), "ok");
    assert_eq!(reason(&server, "login", r#"{"ip":"203.0.113.7"}"#), "blocklisted");
    assert_eq!(reason(&server, "login", r#"{"ip":"203.0.113.9"}"#), "allowlisted");
    assert_eq!(
        [0; 4].map(|_| reason(&server, "api", &customer())),
        ["ok", "ok", "ok", "over_limit"]
    );
    assert_eq!(expect_ok(&server, "GET /v1/policies/login", "")["mode"], "shadow");
    let blocks = expect_ok(&server, "GET /v1/blocks", "");
    assert_eq!(blocks["blocks"][0]["reason"], "fraud");
    // An entry from before the restart can be changed and removed.
    let again =
        expect_durable(&server, "POST /v1/blocklist", r#"{"range":"203.0.113.0/24","for":"1h"}"#);
    assert!(again["entries"][0]["before"].is_object(), "{again}");
    expect_durable(&server, "DELETE /v1/blocklist", r#"{"range":"203.0.113.0/24"}"#);
    assert_eq!(reason(&server, "login", r#"{"ip":"203.0.113.7"}"#), "ok");
    expect_durable(&server, &format!("DELETE /v1/facts/customer/{CUSTOMER}"), "");

    let mut looked_at = 0;
    for entry in fs::read_dir(file.parent().unwrap()).unwrap() {
        let bytes = fs::read(entry.unwrap().path()).unwrap();
        for planted in [PAYER, CUSTOMER, "11144477735"] {
            let holds = bytes.windows(planted.len()).any(|at| at == planted.as_bytes());
            assert!(!holds, "{planted} is on disk in clear");
        }
        looked_at += 1;
    }
    assert!(looked_at >= 4, "{looked_at}");
}

/// The counters and the block are in a snapshot that is older than the reset.
#[test]
fn a_reset_for_everybody_survives_a_kill() {
    let file = catalog_file(CATALOG);
    let counted = r#"{"ip":"198.51.100.7"}"#;
    let blocked = r#"{"ip":"198.51.100.8"}"#;
    let server = TestServer::from_file(&file);
    assert_eq!([0; 2].map(|_| reason(&server, "login", counted)), ["ok"; 2]);
    assert_eq!([0; 3].map(|_| reason(&server, "login", blocked)), ["ok", "ok", "over_limit"]);
    server.signal("TERM");
    server.wait_for_exit();
    let server = TestServer::from_file(&file);
    assert_eq!(reason(&server, "login", blocked), "blocked");
    let whole = r#"{"policy":"login","confirm":"login","why":"the limit was wrong"}"#;
    assert_eq!(expect_durable(&server, "POST /v1/reset", whole)["blocks"], 1);
    server.signal("KILL");
    drop(server);

    let server = TestServer::from_file(&file);
    for ip in [counted, blocked] {
        assert_eq!([0; 3].map(|_| reason(&server, "login", ip)), ["ok", "ok", "over_limit"]);
    }
}

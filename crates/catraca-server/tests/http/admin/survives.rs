//! What was answered `durable: true` survives a kill, without a private value on disk.

use std::fs;

use super::{CATALOG, CUSTOMER, PAYER, customer, done, durable, payer, reason};
use crate::served::{Served, file};

/// covers: X-24, X-26, 000-11, 003-46
#[test]
fn every_act_survives_a_kill() {
    let file = file(CATALOG);
    let served = Served::of(&file);
    let order = |subject: &str| {
        format!(r#"{{"policy":"lookup","subject":{subject},"for":"1h","reason":"fraud"}}"#)
    };
    durable(&served, "POST /v1/blocks", &order(&payer()));
    let freed = r#"{"payer":"11144477735"}"#;
    let made = durable(&served, "POST /v1/blocks", &order(freed));
    let id = &made["blocks"][0]["id"];
    durable(&served, &format!("DELETE /v1/blocks/{id}"), "");
    durable(&served, "POST /v1/blocklist", r#"{"range":"203.0.113.0/24"}"#);
    durable(&served, "POST /v1/allowlist", r#"{"range":"203.0.113.9"}"#);
    durable(&served, &format!("PUT /v1/facts/customer/{CUSTOMER}"), r#"{"facts":{"plan":"gold"}}"#);
    durable(&served, "PUT /v1/policies/login/mode", r#"{"mode":"shadow"}"#);
    served.signal("KILL");
    drop(served);

    let served = Served::of(&file);
    assert_eq!(reason(&served, "lookup", &payer()), "blocked");
    assert_eq!(reason(&served, "lookup", freed), "ok");
    assert_eq!(reason(&served, "login", r#"{"ip":"203.0.113.7"}"#), "blocklisted");
    assert_eq!(reason(&served, "login", r#"{"ip":"203.0.113.9"}"#), "allowlisted");
    assert_eq!(
        [0; 4].map(|_| reason(&served, "api", &customer())),
        ["ok", "ok", "ok", "over_limit"]
    );
    assert_eq!(done(&served, "GET /v1/policies/login", "")["mode"], "shadow");
    let blocks = done(&served, "GET /v1/blocks", "");
    assert_eq!(blocks["blocks"][0]["reason"], "fraud");
    // An entry from before the restart is still an entry: it can be changed and taken away.
    let again = durable(&served, "POST /v1/blocklist", r#"{"range":"203.0.113.0/24","for":"1h"}"#);
    assert!(again["entries"][0]["before"].is_object(), "{again}");
    durable(&served, "DELETE /v1/blocklist", r#"{"range":"203.0.113.0/24"}"#);
    assert_eq!(reason(&served, "login", r#"{"ip":"203.0.113.7"}"#), "ok");
    durable(&served, &format!("DELETE /v1/facts/customer/{CUSTOMER}"), "");

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
    let file = file(CATALOG);
    let (counted, blocked) = (r#"{"ip":"198.51.100.7"}"#, r#"{"ip":"198.51.100.8"}"#);
    let served = Served::of(&file);
    assert_eq!([0; 2].map(|_| reason(&served, "login", counted)), ["ok"; 2]);
    assert_eq!([0; 3].map(|_| reason(&served, "login", blocked)), ["ok", "ok", "over_limit"]);
    served.signal("TERM");
    served.ended();
    let served = Served::of(&file);
    assert_eq!(reason(&served, "login", blocked), "blocked");
    let whole = r#"{"policy":"login","confirm":"login","why":"the limit was wrong"}"#;
    assert_eq!(durable(&served, "POST /v1/reset", whole)["blocks"], 1);
    served.signal("KILL");
    drop(served);

    let served = Served::of(&file);
    for ip in [counted, blocked] {
        assert_eq!([0; 3].map(|_| reason(&served, "login", ip)), ["ok", "ok", "over_limit"]);
    }
}

//! What operators do.

use super::{CATALOG, CUSTOMER, PAYER, call, customer, done, durable, payer, reason};
use crate::served::Served;

/// covers: X-29, X-21
#[test]
fn a_block_is_made_found_explained_and_released() {
    let served = Served::with(CATALOG);
    let order = format!(
        r#"{{"policy":"lookup","subject":{},"for":"1h","reason":"fraud","why":"case 7"}}"#,
        payer()
    );
    let made = durable(&served, "POST /v1/blocks", &order);
    let id = made["blocks"][0]["id"].as_i64().unwrap();
    assert_eq!(made["blocks"][0]["changed"], true);
    assert_eq!(reason(&served, "lookup", &payer()), "blocked");
    let found = format!("GET /v1/blocks?policy=lookup&attribute=payer&value={PAYER}");
    let found = done(&served, &found, "");
    assert_eq!((&found["blocks"][0]["id"], &found["next"]), (&id.into(), &().into()));
    assert!(!found.to_string().contains(PAYER), "{found}");
    let one = done(&served, &format!("GET /v1/blocks/{id}"), "");
    assert_eq!(
        (&one["standing"], &one["reason"], &one["by"]),
        (&true.into(), &"fraud".into(), &"local".into())
    );
    assert_eq!(one["history"][0]["act"], "started");
    let release = format!("DELETE /v1/blocks/{id}");
    assert_eq!(durable(&served, &release, r#"{"why":"called in"}"#)["released"], true);
    assert_eq!(reason(&served, "lookup", &payer()), "ok");
    let one = done(&served, &format!("GET /v1/blocks/{id}"), "");
    assert_eq!((&one["standing"], &one["history"][1]["act"]), (&false.into(), &"released".into()));
    let acts = done(&served, "GET /v1/audit", "");
    let told = |place: usize| {
        let act = &acts["acts"][place];
        [&act["by"], &act["act"], &act["why"]].map(|text| text.as_str().unwrap_or("").to_owned())
    };
    assert_eq!(told(0), ["local", "release", "called in"]);
    assert_eq!(told(1), ["local", "block", "case 7"]);
    assert!(acts["acts"][0]["before"].is_object(), "{acts}");
}

/// covers: X-20, X-19
#[test]
fn lists_decide_at_once_and_end_by_themselves_or_by_hand() {
    let served = Served::with(CATALOG);
    let near = r#"{"ip":"203.0.113.9"}"#;
    let entries = r#"[{"range":"203.0.113.0/24","reason":"scan","for":"1h"},
        {"range":"2001:db8::/32"}]"#;
    let made = durable(&served, "POST /v1/blocklist", entries);
    assert_eq!((&made["list"], &made["entries"][0]["before"]), (&"blocklist".into(), &().into()));
    assert!(made["entries"][0]["until"].is_string() && made["entries"][1]["until"].is_null());
    assert_eq!(reason(&served, "login", near), "blocklisted");
    assert_eq!(reason(&served, "login", r#"{"ip":"203.0.114.9"}"#), "ok");
    durable(&served, "POST /v1/allowlist", r#"{"range":"203.0.113.9"}"#);
    assert_eq!(reason(&served, "login", near), "allowlisted");
    durable(&served, "DELETE /v1/allowlist", r#"{"range":"203.0.113.9","why":"moved"}"#);
    assert_eq!(reason(&served, "login", near), "blocklisted");
    let first = done(&served, "GET /v1/blocklist?limit=1", "");
    assert_eq!(first["entries"][0]["range"], "2001:db8::/32");
    let next = format!("GET /v1/blocklist?after={}", first["next"].as_str().unwrap());
    let second = done(&served, &next, "");
    assert_eq!(second["entries"][0]["reason"], "scan");
    assert_eq!((second["entries"].as_array().unwrap().len(), &second["next"]), (1, &().into()));
    let hidden = format!(r#"{{"attribute":"customer","value":"{CUSTOMER}"}}"#);
    let made = durable(&served, "POST /v1/blocklist", &hidden);
    assert!(!made.to_string().contains(CUSTOMER), "{made}");
    assert_eq!(reason(&served, "api", &customer()), "blocklisted");
    durable(&served, "DELETE /v1/blocklist", &hidden);
    assert_eq!(reason(&served, "api", &customer()), "ok");
}

#[test]
fn facts_choose_the_tier_until_they_are_forgotten() {
    let served = Served::with(CATALOG);
    let about = |verb: &str| format!("{verb} /v1/facts/customer/{CUSTOMER}");
    let stated = durable(&served, &about("PUT"), r#"{"facts":{"plan":"gold"},"why":"paid"}"#);
    assert_eq!(
        (&stated["before"], &stated["after"]["plan"]),
        (&serde_json::json!({}), &"gold".into())
    );
    assert_eq!(done(&served, &about("GET"), "")["facts"]["plan"], "gold");
    assert_eq!(
        [0; 4].map(|_| reason(&served, "api", &customer())),
        ["ok", "ok", "ok", "over_limit"]
    );
    let gone = durable(&served, &about("DELETE"), "");
    assert_eq!(gone["before"]["plan"], "gold");
    // A name that nothing is known by any more is the callers' again.
    durable(&served, &about("PUT"), r#"{"facts":{"colour":"red"}}"#);
    let sent = r#"{"customer":"another","colour":"blue"}"#;
    let body = format!(r#"{{"gate":"api","subject":{sent}}}"#);
    assert_eq!(served.json("/v1/check", &body).1["code"], "reserved-attribute");
    durable(&served, &about("DELETE"), "");
    assert_eq!(reason(&served, "api", sent), "ok");
    let known = done(&served, "GET /v1/facts/customer/known", "");
    assert_eq!(known["facts"]["plan"], "silver");
}

#[test]
fn a_mode_is_overridden_at_once_and_given_back() {
    let served = Served::with(CATALOG);
    let ip = r#"{"ip":"198.51.100.7"}"#;
    let off = durable(&served, "PUT /v1/policies/login/mode", r#"{"mode":"off","why":"outage"}"#);
    assert_eq!((&off["before"], &off["after"]), (&"enforce".into(), &"off".into()));
    assert_eq!([0; 4].map(|_| reason(&served, "login", ip)), ["ok"; 4]);
    let shown = done(&served, "GET /v1/policies/login", "");
    assert_eq!((&shown["mode"], &shown["overridden"]), (&"off".into(), &true.into()));
    let back = durable(&served, "PUT /v1/policies/login/mode", r#"{"mode":null}"#);
    assert_eq!((&back["after"], &back["overridden"]), (&"enforce".into(), &false.into()));
    assert_eq!([0; 3].map(|_| reason(&served, "login", ip)), ["ok", "ok", "over_limit"]);
    let reset = format!(r#"{{"policy":"login","subject":{ip}}}"#);
    durable(&served, "POST /v1/reset", &reset);
    assert_eq!(reason(&served, "login", ip), "ok");
}

#[test]
fn a_policy_is_reset_for_everybody_only_when_that_is_confirmed() {
    let served = Served::with(CATALOG);
    let ips = [r#"{"ip":"198.51.100.7"}"#, r#"{"ip":"198.51.100.8"}"#];
    for ip in ips {
        assert_eq!([0; 3].map(|_| reason(&served, "login", ip)), ["ok", "ok", "over_limit"]);
    }
    let unclear = [
        (r#"{"policy":"login"}"#, "confirm"),
        (r#"{"policy":"login","confirm":"login"}"#, "why"),
        (r#"{"policy":"login","confirm":"Login","why":"x"}"#, "letter by letter"),
        (r#"{"policy":"login","confirm":"login","subject":{"ip":"::1"},"why":"x"}"#, "give one"),
    ];
    for (body, word) in unclear {
        let (status, problem) = call(&served, "POST /v1/reset", body);
        assert_eq!((status, &problem["code"]), (400, &"confirm-required".into()), "{body}");
        assert!(problem["detail"].as_str().unwrap().contains(word), "{problem}");
    }
    assert_eq!(ips.map(|ip| reason(&served, "login", ip)), ["blocked"; 2]);
    let whole = r#"{"policy":"login","confirm":"login","why":"the limit was wrong"}"#;
    assert_eq!(durable(&served, "POST /v1/reset", whole)["blocks"], 2);
    assert_eq!(done(&served, "GET /v1/blocks", "")["blocks"], serde_json::json!([]));
    for ip in ips {
        assert_eq!([0; 3].map(|_| reason(&served, "login", ip)), ["ok", "ok", "over_limit"]);
    }
    let act = &done(&served, "GET /v1/audit?limit=1", "")["acts"][0];
    let told = [&act["act"], &act["target"], &act["why"], &act["by"]];
    assert_eq!(told, ["reset", "login", "the limit was wrong", "local"]);
    let (status, problem) =
        call(&served, "POST /v1/reset", r#"{"policy":"nothing","confirm":"nothing","why":"x"}"#);
    assert_eq!((status, &problem["code"]), (404, &"unknown-policy".into()));
}

#[test]
fn an_upstreams_lower_view_of_a_bucket_wins() {
    let served = Served::with(CATALOG);
    let view = format!(
        r#"{{"subject":{},"observed_at":"2026-01-01T00:00:00Z",
            "states":[{{"policy":"lookup","available":4}}]}}"#,
        payer()
    );
    let taken = done(&served, "POST /v1/buckets/reconcile", &view);
    assert_eq!(taken["buckets"][0]["before"], 10, "{taken}");
    let state = done(&served, "POST /v1/buckets/lookup", &format!(r#"{{"subject":{}}}"#, payer()));
    assert_eq!(state["balance"], taken["buckets"][0]["after"]);
}

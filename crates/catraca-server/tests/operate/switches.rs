//! Facts, modes and resets: what changes how a caller is judged.

use serde_json::Value;

use crate::desk::{CUSTOMER, IP, done, json, run, served};

#[test]
fn facts_are_stated_shown_and_forgotten() {
    let served = served();
    run(&served, &["facts", "get", CUSTOMER]).says(1, &["unknown-value"]);
    let said = done(&served, &["facts", "set", CUSTOMER, "plan=gold", "seats=5", "--why", "paid"]);
    assert_eq!(said, "before: -\nafter:  plan=gold seats=5\n");
    assert_eq!(done(&served, &["facts", "get", CUSTOMER]), "plan=gold seats=5\n");
    for code in [0, 0, 0, 1] {
        assert_eq!(run(&served, &["check", "api", CUSTOMER]).code, Some(code));
    }
    assert_eq!(json(&served, &["facts", "remove", CUSTOMER])["after"], serde_json::json!({}));
    run(&served, &["facts", "remove", CUSTOMER]).says(1, &["unknown-value"]);
    run(&served, &["facts", "set", CUSTOMER]).says(2, &["NAME=FACT"]);
}

#[test]
fn all_that_was_stated_is_listed_in_pages_and_private_values_are_not_shown() {
    let served = served();
    assert_eq!(done(&served, &["facts", "list"]), "No fact was stated at run time.\n");
    done(&served, &["facts", "set", CUSTOMER, "plan=gold", "seats=5"]);
    for shop in 0..3 {
        done(&served, &["facts", "set", &format!("shop=s{shop}"), "open=yes"]);
    }
    let all = json(&served, &["facts", "list"]);
    let rows = all["facts"].as_array().unwrap();
    assert_eq!((rows.len(), &all["next"]), (5, &().into()), "{all}");
    let fact = |row: &Value| ["attribute", "name", "fact", "by"].map(|name| row[name].clone());
    assert_eq!(fact(&rows[0]), ["customer", "plan", "gold", "local"].map(Value::from));
    assert_eq!(fact(&rows[4]), ["shop", "open", "yes", "local"].map(Value::from));
    assert!(rows[0]["value"].as_str().unwrap().starts_with('~') && rows[4]["value"] == "s2");
    let paged = json(&served, &["facts", "list", "--limit", "2", "--all"]);
    assert_eq!(paged["facts"], all["facts"]);
    let first = json(&served, &["facts", "list", "--limit", "2"]);
    let after = first["next"].as_str().unwrap();
    let second = json(&served, &["facts", "list", "--limit", "2", "--after", after]);
    assert_eq!(second["facts"].as_array().unwrap()[..], rows[2..4]);
    let shown = done(&served, &["facts", "list"]);
    assert!(shown.contains("s1") && !shown.contains("c-4711"), "{shown}");
    run(&served, &["facts", "list", "--after", "x"]).says(2, &["bad-query", "`next`"]);
}

/// A value is one piece of the path, whatever it holds.
#[test]
fn a_value_may_hold_any_sign() {
    let served = served();
    let odd = "customer=a b/c?d#e%2F+ç=1";
    done(&served, &["facts", "set", odd, "plan=gold"]);
    assert_eq!(done(&served, &["facts", "get", odd]), "plan=gold\n");
    let body = ["check", "api", odd, "-o", "json"];
    assert_eq!([0; 4].map(|_| run(&served, &body).code), [Some(0), Some(0), Some(0), Some(1)]);
}

#[test]
fn the_kill_switch_works_at_once_and_is_given_back() {
    let served = served();
    let said = done(&served, &["config", "mode", "login", "off", "--why", "outage"]);
    assert_eq!(said, "login: enforce before, off now, overridden\n");
    assert!(done(&served, &["config", "show"]).contains("off (overridden)"));
    assert_eq!([0; 4].map(|_| run(&served, &["check", "login", IP]).code), [Some(0); 4]);
    let said = done(&served, &["config", "mode", "login", "catalog"]);
    assert_eq!(said, "login: off before, enforce now, as the catalog says\n");
    assert_eq!([0; 3].map(|_| run(&served, &["check", "login", IP]).code), [0, 0, 1].map(Some));
    run(&served, &["config", "mode", "login", "loud"]).says(2, &["loud"]);
    run(&served, &["config", "mode", "nothing", "off"]).says(2, &["unknown-policy"]);
    let acts = json(&served, &["audit", "--by", "local"]);
    assert_eq!(acts["acts"].as_array().unwrap().len(), 2, "{acts}");
}

#[test]
fn a_reset_begins_anew_for_one_caller() {
    let served = served();
    let other = "ip=203.0.113.9";
    for ip in [IP, other] {
        assert_eq!([0; 3].map(|_| run(&served, &["check", "login", ip]).code), [0, 0, 1].map(Some));
    }
    let said = done(&served, &["reset", "login", IP, "--why", "a test"]);
    assert_eq!(said, "login begins anew for this caller\n");
    assert_eq!(run(&served, &["check", "login", IP]).code, Some(0));
    assert_eq!(run(&served, &["check", "login", other]).code, Some(1));
    run(&served, &["reset", "login"]).says(2, &["ATTRIBUTE=VALUE"]);
}

#[test]
fn a_reset_begins_anew_for_everybody_when_it_is_confirmed() {
    let served = served();
    let other = "ip=203.0.113.9";
    for ip in [IP, other] {
        assert_eq!([0; 3].map(|_| run(&served, &["check", "login", ip]).code), [0, 0, 1].map(Some));
    }
    run(&served, &["reset", "login", "--confirm", "login"]).says(2, &["--why"]);
    run(&served, &["reset", "login", IP, "--confirm", "login", "--why", "x"])
        .says(2, &["--confirm"]);
    let wrong = ["reset", "login", "--confirm", "search", "--why", "x"];
    run(&served, &wrong).says(2, &["confirm-required"]);
    assert_eq!(run(&served, &["check", "login", IP]).code, Some(1));
    let said = done(&served, &["reset", "login", "--confirm", "login", "--why", "a test"]);
    assert!(said.starts_with("login begins anew for everybody; "), "{said}");
    for ip in [IP, other] {
        assert_eq!(run(&served, &["check", "login", ip]).code, Some(0));
    }
}

/// covers: 004-67
#[test]
fn a_server_tries_itself_and_touches_nothing_of_others() {
    let served = served();
    assert_eq!(run(&served, &["check", "login", IP]).code, Some(0));
    let said = done(&served, &["selftest"]);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 5, "{said}");
    assert!(lines.iter().all(|line| line.starts_with("ok ")), "{said}");
    assert!(lines[0].contains("test_rate_limit") && lines[0].contains("limited 1"), "{said}");
    assert!(lines[2].contains("winners 1"), "{said}");
    let json = done(&served, &["selftest", "-o", "json"]);
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap()[1]["ok"], true);
    assert_eq!([0; 2].map(|_| run(&served, &["check", "login", IP]).code), [0, 1].map(Some));
    let audit = done(&served, &["audit"]);
    assert_eq!(audit.matches("selftest").count(), 10, "{audit}");
}

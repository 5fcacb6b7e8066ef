//! `catraca facts`, `config mode`, `reset` and `selftest`.

use serde_json::Value;

use crate::operate::helpers::{CUSTOMER, IP, json, run, run_ok, start_server};

#[test]
fn facts_are_stated_shown_and_forgotten() {
    let server = start_server();
    run(&server, &["facts", "get", CUSTOMER]).assert_exit(1, &["unknown-value"]);
    let stdout =
        run_ok(&server, &["facts", "set", CUSTOMER, "plan=gold", "seats=5", "--why", "paid"]);
    let warning = "warning: nothing in the catalog reads the fact seats; is it misspelt?";
    assert_eq!(stdout, format!("before: -\nafter:  plan=gold seats=5\n{warning}\n"));
    assert_eq!(run_ok(&server, &["facts", "get", CUSTOMER]), "plan=gold seats=5\n");
    for code in [0, 0, 0, 1] {
        assert_eq!(run(&server, &["check", "api", CUSTOMER]).code, Some(code));
    }
    assert_eq!(json(&server, &["facts", "remove", CUSTOMER])["after"], serde_json::json!({}));
    run(&server, &["facts", "remove", CUSTOMER]).assert_exit(1, &["unknown-value"]);
    run(&server, &["facts", "set", CUSTOMER]).assert_exit(2, &["NAME=FACT"]);
}

#[test]
fn all_that_was_stated_is_listed_in_pages_and_private_values_are_not_shown() {
    let server = start_server();
    assert_eq!(run_ok(&server, &["facts", "list"]), "No fact was set at run time.\n");
    run_ok(&server, &["facts", "set", CUSTOMER, "plan=gold", "seats=5"]);
    for shop in 0..3 {
        run_ok(&server, &["facts", "set", &format!("shop=s{shop}"), "open=yes"]);
    }
    let all = json(&server, &["facts", "list"]);
    let rows = all["facts"].as_array().unwrap();
    assert_eq!((rows.len(), &all["next"]), (5, &().into()), "{all}");
    let fact = |row: &Value| ["attribute", "name", "fact", "by"].map(|name| row[name].clone());
    assert_eq!(fact(&rows[0]), ["customer", "plan", "gold", "local"].map(Value::from));
    assert_eq!(fact(&rows[4]), ["shop", "open", "yes", "local"].map(Value::from));
    assert!(rows[0]["value"].as_str().unwrap().starts_with('~') && rows[4]["value"] == "s2");
    let paged = json(&server, &["facts", "list", "--limit", "2", "--all"]);
    assert_eq!(paged["facts"], all["facts"]);
    let first = json(&server, &["facts", "list", "--limit", "2"]);
    let after = first["next"].as_str().unwrap();
    let second = json(&server, &["facts", "list", "--limit", "2", "--after", after]);
    assert_eq!(second["facts"].as_array().unwrap()[..], rows[2..4]);
    let stdout = run_ok(&server, &["facts", "list"]);
    assert!(stdout.contains("s1") && !stdout.contains("c-4711"), "{stdout}");
    run(&server, &["facts", "list", "--after", "x"]).assert_exit(2, &["bad-query", "`next`"]);
}

/// A value is one segment of the path, for all characters it may contain.
#[test]
fn a_value_may_hold_any_sign() {
    let server = start_server();
    let value = "customer=a b/c?d#e%2F+ç=1";
    run_ok(&server, &["facts", "set", value, "plan=gold"]);
    assert_eq!(run_ok(&server, &["facts", "get", value]), "plan=gold\n");
    let body = ["check", "api", value, "-o", "json"];
    assert_eq!([0; 4].map(|_| run(&server, &body).code), [Some(0), Some(0), Some(0), Some(1)]);
}

#[test]
fn the_kill_switch_works_at_once_and_is_given_back() {
    let server = start_server();
    let stdout = run_ok(&server, &["config", "mode", "login", "off", "--why", "outage"]);
    assert_eq!(stdout, "login: enforce before, off now, overridden\n");
    assert!(run_ok(&server, &["config", "show"]).contains("off (overridden)"));
    assert_eq!([0; 4].map(|_| run(&server, &["check", "login", IP]).code), [Some(0); 4]);
    let stdout = run_ok(&server, &["config", "mode", "login", "catalog"]);
    assert_eq!(stdout, "login: off before, enforce now, as in the catalog\n");
    assert_eq!([0; 3].map(|_| run(&server, &["check", "login", IP]).code), [0, 0, 1].map(Some));
    run(&server, &["config", "mode", "login", "loud"]).assert_exit(2, &["loud"]);
    run(&server, &["config", "mode", "nothing", "off"]).assert_exit(2, &["unknown-policy"]);
    let acts = json(&server, &["audit", "--by", "local"]);
    assert_eq!(acts["acts"].as_array().unwrap().len(), 2, "{acts}");
}

#[test]
fn a_reset_begins_anew_for_one_caller() {
    let server = start_server();
    let other = "ip=203.0.113.9";
    for ip in [IP, other] {
        assert_eq!([0; 3].map(|_| run(&server, &["check", "login", ip]).code), [0, 0, 1].map(Some));
    }
    let stdout = run_ok(&server, &["reset", "login", IP, "--why", "a test"]);
    assert_eq!(stdout, "login is reset for this caller\n");
    assert_eq!(run(&server, &["check", "login", IP]).code, Some(0));
    assert_eq!(run(&server, &["check", "login", other]).code, Some(1));
    run(&server, &["reset", "login"]).assert_exit(2, &["ATTRIBUTE=VALUE"]);
    run(&server, &["reset", "login", "--all"]).assert_exit(2, &["--why"]);
    run(&server, &["reset", "login", "--all", "--why", "x"])
        .assert_exit(2, &["without a terminal", "--confirm login"]);
}

#[test]
fn a_reset_begins_anew_for_everybody_when_it_is_confirmed() {
    let server = start_server();
    let other = "ip=203.0.113.9";
    for ip in [IP, other] {
        assert_eq!([0; 3].map(|_| run(&server, &["check", "login", ip]).code), [0, 0, 1].map(Some));
    }
    run(&server, &["reset", "login", "--confirm", "login"]).assert_exit(2, &["--why"]);
    run(&server, &["reset", "login", IP, "--confirm", "login", "--why", "x"])
        .assert_exit(2, &["--confirm"]);
    let wrong = ["reset", "login", "--confirm", "search", "--why", "x"];
    run(&server, &wrong).assert_exit(2, &["confirm-required"]);
    assert_eq!(run(&server, &["check", "login", IP]).code, Some(1));
    let stdout = run_ok(&server, &["reset", "login", "--confirm", "login", "--why", "a test"]);
    assert!(stdout.starts_with("login is reset for all keys; "), "{stdout}");
    for ip in [IP, other] {
        assert_eq!(run(&server, &["check", "login", ip]).code, Some(0));
    }
}

/// covers: 004-67
#[test]
fn a_server_tries_itself_and_touches_nothing_of_others() {
    let server = start_server();
    assert_eq!(run(&server, &["check", "login", IP]).code, Some(0));
    let stdout = run_ok(&server, &["selftest"]);
    let lines: Vec<&str> = stdout.lines().collect();
    assert_eq!(lines.len(), 5, "{stdout}");
    assert!(lines.iter().all(|line| line.starts_with("ok ")), "{stdout}");
    assert!(lines[0].contains("test_rate_limit") && lines[0].contains("limited 1"), "{stdout}");
    assert!(lines[2].contains("winners 1"), "{stdout}");
    let json = run_ok(&server, &["selftest", "-o", "json"]);
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap()[1]["ok"], true);
    assert_eq!([0; 2].map(|_| run(&server, &["check", "login", IP]).code), [0, 1].map(Some));
    let audit = run_ok(&server, &["audit"]);
    assert_eq!(audit.matches("selftest").count(), 10, "{audit}");
}

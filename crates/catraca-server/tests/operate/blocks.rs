//! Who is blocked, and letting them go.

use crate::desk::{CUSTOMER, IP, done, json, run, served};
use crate::served::Served;

/// covers: 000-50
#[test]
fn a_block_is_made_found_told_and_released() {
    let served = served();
    assert_eq!(done(&served, &["blocks", "list"]).trim(), "Nobody is blocked.");
    let add = ["blocks", "add", "api", CUSTOMER, "--for", "1h", "--reason", "fraud"];
    let said = done(&served, &add);
    assert!(said.contains("yes") && !said.contains("c-4711"), "{said}");
    let longer = done(&served, &["blocks", "add", "api", CUSTOMER, "--for", "1m"]);
    assert!(longer.contains("no: it ends later already"), "{longer}");
    assert_eq!(run(&served, &["check", "api", CUSTOMER]).code, Some(1));

    let found = done(&served, &["blocks", "list", CUSTOMER]);
    assert!(found.contains("operator") && found.contains("fraud"), "{found}");
    assert!(!found.contains("c-4711"), "{found}");
    let none = done(&served, &["blocks", "list", "customer=c-4712"]);
    assert_eq!(none.trim(), "Nobody is blocked.");
    for narrow in [["--policy", "login"], ["--origin", "ban"], ["--namespace", "other"]] {
        let args = [&["blocks", "list"], &narrow[..]].concat();
        assert_eq!(done(&served, &args).trim(), "Nobody is blocked.", "{args:?}");
    }

    let id = json(&served, &["blocks", "list"])["blocks"][0]["id"].to_string();
    let told = done(&served, &["blocks", "history", &id]);
    assert!(told.contains("stands until") && told.contains("started"), "{told}");
    let said = done(&served, &["blocks", "release", &id, "--why", "the customer called"]);
    assert!(said.starts_with("released customer="), "{said}");
    assert_eq!(run(&served, &["check", "api", CUSTOMER]).code, Some(0));
    let told = done(&served, &["blocks", "history", &id]);
    assert!(told.contains("ended at") && told.contains("released"), "{told}");
    let audit = done(&served, &["audit"]);
    assert!(audit.contains("the customer called") && audit.contains("fraud"), "{audit}");

    run(&served, &["blocks", "release", &id]).says(1, &["not-blocked", "has ended already"]);
    run(&served, &["blocks", "release", "99"]).says(1, &["unknown-block"]);
    run(&served, &["blocks", "history", "99"]).says(1, &["unknown-block"]);
}

#[test]
fn a_caller_is_released_from_every_block_at_once() {
    let served = served();
    for policy in ["login", "api"] {
        done(&served, &["blocks", "add", policy, IP, CUSTOMER, "--for", "forever"]);
    }
    let other = "ip=203.0.113.9";
    done(&served, &["blocks", "add", "login", other, "--for", "10m"]);
    run(&served, &["blocks", "release", IP, "ip=192.0.2.1"]).says(2, &["ip is given twice"]);
    let ran = run(&served, &["blocks", "release", IP, CUSTOMER, "-o", "json"]);
    assert_eq!((ran.code, ran.out.lines().count()), (Some(0), 2), "{}", ran.err);
    let ran = run(&served, &["blocks", "release", "ip=192.0.2.1", CUSTOMER]);
    assert_eq!((ran.code, &*ran.out), (Some(1), ""), "{}", ran.err);
    assert!(ran.err.contains("nobody with this ip and customer is blocked"), "{}", ran.err);
    assert!(!ran.err.contains("192.0.2.1"), "a value may be private: {}", ran.err);
    let left = json(&served, &["blocks", "list"]);
    assert_eq!(left["blocks"].as_array().unwrap().len(), 1, "{left}");
    let ran = run(&served, &["blocks", "release", other, "--policy", "api"]);
    assert_eq!(ran.code, Some(1));
    done(&served, &["blocks", "release", other, "--policy", "login"]);
    run(&served, &["blocks", "release", "7", "--policy", "login"]).says(2, &["--policy"]);
    run(&served, &["blocks", "release", "somebody"]).says(2, &["ATTRIBUTE=VALUE"]);
}

#[test]
fn somebody_else_behind_the_same_address_stays_blocked() {
    let served = Served::with("[policy.pair]\nby = ['ip', 'user']\nwindow = '5 per 1h'\n");
    for user in ["user=ana", "user=bob"] {
        done(&served, &["blocks", "add", "pair", IP, user, "--for", "1h"]);
    }
    let said = done(&served, &["blocks", "release", IP, "user=bob"]);
    assert_eq!((said.lines().count(), said.contains("bob")), (1, true), "{said}");
    let left = json(&served, &["blocks", "list"]);
    assert_eq!(left["blocks"][0]["subject"]["user"], "ana", "{left}");
    done(&served, &["blocks", "release", IP]);
    assert_eq!(done(&served, &["blocks", "list"]).trim(), "Nobody is blocked.");
}

#[test]
fn a_release_says_that_the_window_is_still_full() {
    let served = served();
    while run(&served, &["check", "login", IP]).code == Some(0) {}
    let said = done(&served, &["blocks", "release", IP]);
    assert!(said.contains("`catraca reset` forgets that too"), "{said}");
    assert_eq!(run(&served, &["check", "login", IP]).code, Some(1));
    done(&served, &["reset", "login", IP]);
    assert_eq!(run(&served, &["check", "login", IP]).code, Some(0));
}

#[test]
fn long_lists_come_in_pages_or_whole() {
    let served = served();
    for last in 1..=5 {
        let ip = format!("ip=198.51.100.{last}");
        done(&served, &["blocks", "add", "login", &ip, "--for", "1h"]);
    }
    let page = done(&served, &["blocks", "list", "--limit", "2"]);
    let next = page.split("--after ").nth(1).and_then(|rest| rest.split(',').next()).unwrap();
    let second = json(&served, &["blocks", "list", "--limit", "2", "--after", next]);
    assert_eq!(second["blocks"][0]["subject"]["ip"], "198.51.100.3", "{second}");
    let all = json(&served, &["blocks", "list", "--limit", "2", "--all"]);
    assert_eq!(all["blocks"].as_array().unwrap().len(), 5, "{all}");
    assert!(all["next"].is_null(), "{all}");
    let acts = json(&served, &["audit", "--by", "local", "--limit", "2", "--all"]);
    assert_eq!(acts["acts"].as_array().unwrap().len(), 5, "{acts}");
}

#[test]
fn bad_orders_are_named_and_change_nothing() {
    let served = served();
    run(&served, &["blocks", "add", "login", IP]).says(2, &["--for"]);
    run(&served, &["blocks", "add", "login", IP, "--for", "soon"]).says(2, &["bad-duration"]);
    run(&served, &["blocks", "add", "nothing", IP, "--for", "1h"])
        .says(2, &["unknown-policy", "where: POST http://127.0.0.1", "fix: "]);
    run(&served, &["blocks", "list", "--origin", "luck"]).says(2, &["bad-query", "excess"]);
    run(&served, &["blocks", "list", "--after", "x"]).says(2, &["bad-query"]);
    assert_eq!(done(&served, &["audit", "--by", "local"]).trim(), "No operator did anything.");
}

//! `catraca blocks`: list, history, add and release.

use std::fs::File;
use std::io::Write;
use std::process::Stdio;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::operate::helpers::{
    CUSTOMER, CliOutput, IP, command, json, run, run_ok, start_server, url,
};
use crate::test_server::TestServer;

fn only_id(server: &TestServer) -> String {
    let page = json(server, &["blocks", "list"]);
    assert_eq!(page["blocks"].as_array().unwrap().len(), 1, "{page}");
    page["blocks"][0]["id"].as_str().unwrap().to_owned()
}

/// covers: 000-50
#[test]
fn a_block_is_made_found_told_and_released() {
    let server = start_server();
    assert_eq!(run_ok(&server, &["blocks", "list"]).trim(), "There are no active blocks.");
    let add = ["blocks", "add", "api", CUSTOMER, "--for", "1h", "--reason", "fraud"];
    let stdout = run_ok(&server, &add);
    assert!(stdout.contains("yes") && !stdout.contains("c-4711"), "{stdout}");
    let longer = run_ok(&server, &["blocks", "add", "api", CUSTOMER, "--for", "1m"]);
    assert!(longer.contains("no: an existing block ends later"), "{longer}");
    assert_eq!(run(&server, &["check", "api", CUSTOMER]).code, Some(1));

    let found = run_ok(&server, &["blocks", "list", CUSTOMER]);
    assert!(found.contains("operator") && found.contains("fraud"), "{found}");
    assert!(!found.contains("c-4711"), "{found}");
    let none = run_ok(&server, &["blocks", "list", "customer=c-4712"]);
    // A caller can be denied without a block.
    assert!(none.starts_with("There are no active blocks. `catraca inspect` shows"), "{none}");
    let by_reason = run_ok(&server, &["blocks", "list", "--reason", "fraud"]);
    assert!(by_reason.contains("operator") && by_reason.contains("fraud"), "{by_reason}");
    for narrow in [["--policy", "login"], ["--origin", "ban"], ["--reason", "frau"]] {
        let args = [&["blocks", "list"], &narrow[..]].concat();
        assert_eq!(run_ok(&server, &args).trim(), "There are no active blocks.", "{args:?}");
    }
    let misspelt = run(&server, &["blocks", "list", "--namespace", "other"]);
    misspelt.assert_exit(2, &["there is no such namespace", "unknown-namespace"]);

    let id = only_id(&server);
    let history = run_ok(&server, &["blocks", "history", &id]);
    assert!(history.contains("active until") && history.contains("started"), "{history}");
    let stdout = run_ok(&server, &["blocks", "release", &id, "--why", "the customer called"]);
    assert!(stdout.starts_with("released customer="), "{stdout}");
    assert_eq!(run(&server, &["check", "api", CUSTOMER]).code, Some(0));
    let history = run_ok(&server, &["blocks", "history", &id]);
    assert!(history.contains("ended at") && history.contains("released"), "{history}");
    let audit = run_ok(&server, &["audit"]);
    assert!(audit.contains("the customer called") && audit.contains("fraud"), "{audit}");

    run(&server, &["blocks", "release", &id]).assert_exit(1, &["not-blocked", "has ended already"]);
    run_ok(&server, &add);
    let later = only_id(&server);
    run(&server, &["blocks", "release", &id]).assert_exit(1, &["nothing was released", &later]);
    assert_eq!(run(&server, &["check", "api", CUSTOMER]).code, Some(1), "the later block stays");
    let ended = run_ok(&server, &["blocks", "list", CUSTOMER, "--state", "ended"]);
    assert!(ended.contains(&id) && ended.contains("(ended)") && !ended.contains(&later), "{ended}");
    let history = run_ok(&server, &["blocks", "history", CUSTOMER]);
    assert!(history.contains(&id) && history.contains(&later), "{history}");
    run(&server, &["blocks", "history", "customer=c-4712"]).assert_exit(1, &["no block"]);
    run(&server, &["blocks", "release", "99"]).assert_exit(1, &["unknown-block"]);
    run(&server, &["blocks", "history", "99"]).assert_exit(1, &["unknown-block"]);
}

#[test]
fn a_caller_is_released_from_every_block_at_once() {
    let server = start_server();
    for policy in ["login", "api"] {
        run_ok(&server, &["blocks", "add", policy, IP, CUSTOMER, "--for", "forever"]);
    }
    let other = "ip=203.0.113.9";
    run_ok(&server, &["blocks", "add", "login", other, "--for", "10m"]);
    run(&server, &["blocks", "release", IP, "ip=192.0.2.1"]).assert_exit(2, &["ip is given twice"]);
    let output = run(&server, &["blocks", "release", IP, CUSTOMER, "-o", "json"]);
    assert_eq!((output.code, output.out.lines().count()), (Some(0), 2), "{}", output.err);
    let output = run(&server, &["blocks", "release", "ip=192.0.2.1", CUSTOMER]);
    assert_eq!((output.code, &*output.out), (Some(1), ""), "{}", output.err);
    assert!(output.err.contains("no active block matches this ip and customer"), "{}", output.err);
    assert!(!output.err.contains("192.0.2.1"), "a value may be private: {}", output.err);
    let left = json(&server, &["blocks", "list"]);
    assert_eq!(left["blocks"].as_array().unwrap().len(), 1, "{left}");
    let output = run(&server, &["blocks", "release", other, "--policy", "api"]);
    assert_eq!(output.code, Some(1));
    run_ok(&server, &["blocks", "release", other, "--policy", "login"]);
    run(&server, &["blocks", "release", "7", "--policy", "login"]).assert_exit(2, &["--policy"]);
    run(&server, &["blocks", "release", "no-value"]).assert_exit(2, &["ATTRIBUTE=VALUE"]);
}

#[test]
fn somebody_else_behind_the_same_address_stays_blocked() {
    let server =
        TestServer::with_catalog("[policy.pair]\nby = ['ip', 'user']\nwindow = '5 per 1h'\n");
    for user in ["user=ana", "user=bob"] {
        run_ok(&server, &["blocks", "add", "pair", IP, user, "--for", "1h"]);
    }
    let stdout = run_ok(&server, &["blocks", "release", IP, "user=bob"]);
    assert_eq!((stdout.lines().count(), stdout.contains("bob")), (1, true), "{stdout}");
    let left = json(&server, &["blocks", "list"]);
    assert_eq!(left["blocks"][0]["subject"]["user"], "ana", "{left}");
    run_ok(&server, &["blocks", "release", IP]);
    assert_eq!(run_ok(&server, &["blocks", "list"]).trim(), "There are no active blocks.");
}

/// Runs `catraca blocks release` at a terminal, where an operator types these lines.
fn release_at_a_terminal(server: &TestServer, which: &str, lines: &str) -> CliOutput {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&terminal).unwrap();
    unlockpt(&terminal).unwrap();
    let name = ptsname(&terminal, Vec::new()).unwrap();
    let stdin = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    let mut release = command(&url(server), &["blocks", "release", which]);
    let child = release.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    File::from(terminal.try_clone().unwrap()).write_all(format!("{lines}\n").as_bytes()).unwrap();
    CliOutput::new(child.wait_with_output().unwrap())
}

/// Regression: the release of one identity of a ban left the other, without a word about it.
#[test]
fn a_release_at_a_terminal_lists_the_members_of_a_ban_and_asks() {
    let ban = "[policy.pay]\neach = ['customer', 'device']\n\
               ban = [ { when = 'status == 403', for = '1h', reason = 'refused' } ]\n\
               [attribute.customer]\n[attribute.device]\n";
    let server = TestServer::with_catalog(ban);
    let subject = ["customer=c-7", "device=d-9"];
    let checked = json(&server, &["check", "pay", subject[0], subject[1]]);
    let ticket = checked["ticket"].as_str().unwrap();
    run_ok(&server, &["settle", "--ticket", ticket, "--status", "403"]);
    let listed = json(&server, &["blocks", "list"]);
    let id = listed["blocks"][0]["id"].as_str().unwrap();

    let refused = release_at_a_terminal(&server, id, "n");
    refused.assert_exit(1, &["customer=c-7", "device=d-9", "[y/N]", "nothing was released"]);
    for identity in subject {
        assert_eq!(run(&server, &["peek", "pay", identity]).code, Some(1), "{identity}");
    }
    let released = release_at_a_terminal(&server, id, "y");
    assert_eq!(released.code, Some(0), "{released:?}");
    assert!(released.err.contains("customer=c-7") && released.err.contains("device=d-9"));
    assert!(released.out.contains("which the same act blocked"), "{}", released.out);
    for identity in subject {
        assert_eq!(run(&server, &["peek", "pay", identity]).code, Some(0), "{identity}");
    }
}

/// Regression: after `y` and then `n` it said that nothing was released.
#[test]
fn a_release_that_is_stopped_says_what_was_released_before() {
    let ban = "each = ['customer', 'device']\n\
               ban = [ { when = 'status == 403', for = '1h', reason = 'refused' } ]\n";
    let server = TestServer::with_catalog(&format!(
        "[policy.pay]\n{ban}[policy.order]\n{ban}[attribute.customer]\n[attribute.device]\n"
    ));
    for (policy, device) in [("pay", "device=d-1"), ("order", "device=d-2")] {
        let checked = json(&server, &["check", policy, "customer=c-7", device]);
        let ticket = checked["ticket"].as_str().unwrap();
        run_ok(&server, &["settle", "--ticket", ticket, "--status", "403"]);
    }
    let output = release_at_a_terminal(&server, "customer=c-7", "y\nn");
    assert_eq!(output.code, Some(1), "{output:?}");
    assert_eq!(output.out.matches("released customer=c-7").count(), 1, "{output:?}");
    assert!(!output.err.contains("nothing was released"), "{}", output.err);
    let left = json(&server, &["blocks", "list"]);
    let [left] = &left["blocks"].as_array().unwrap()[..] else { panic!("one act is left: {left}") };
    assert_eq!(left["members"].as_array().map(Vec::len), Some(1), "{left}");
    let row = json(&server, &["blocks", "list", "customer=c-7"]);
    let id = row["blocks"][0]["id"].as_str().unwrap();
    let words = format!("were released, 2 in all, and these were not: {id};");
    assert!(output.err.contains(&words), "{}", output.err);
}

#[test]
fn a_release_says_that_the_window_is_still_full() {
    let server = start_server();
    while run(&server, &["check", "login", IP]).code == Some(0) {}
    let stdout = run_ok(&server, &["blocks", "release", IP]);
    assert!(stdout.contains("`--reset` clears both"), "{stdout}");
    assert_eq!(run(&server, &["check", "login", IP]).code, Some(1));
    run_ok(&server, &["reset", "login", IP]);
    assert_eq!(run(&server, &["check", "login", IP]).code, Some(0));
}

/// Regression: a customer that the counter of a tier denied was shown as free.
#[test]
fn an_inspection_shows_counters_of_tiers_and_blocks_that_have_ended() {
    let server = start_server();
    while run(&server, &["check", "api", CUSTOMER, "plan=gold"]).code == Some(0) {}
    run_ok(&server, &["blocks", "add", "api", CUSTOMER, "--for", "1h", "--reason", "case 7"]);
    let active = run_ok(&server, &["inspect", CUSTOMER]);
    assert!(active.contains("case 7") && !active.contains("have ended"), "{active}");
    run_ok(&server, &["blocks", "release", CUSTOMER]);
    let shown = run_ok(&server, &["inspect", CUSTOMER]);
    let passes = |policy: &str| {
        let mut lines = shown.lines().filter_map(|line| line.trim_start().strip_prefix(policy));
        lines.next().unwrap().split_whitespace().nth(2).unwrap().to_owned()
    };
    assert_eq!((&*passes("api "), &*passes("api (plan=gold) ")), ("yes", "no"), "{shown}");
    let (active, ended) = shown.split_once("These blocks have ended").unwrap();
    assert!(active.contains("There are no active blocks.") && !active.contains("case 7"));
    assert!(ended.contains("case 7"), "{shown}");
    let found = json(&server, &["inspect", CUSTOMER]);
    assert_eq!(found["policies"][0].get("tier"), None, "{found}");
    assert_eq!(found["policies"][1]["tier"].to_string(), r#"{"plan":["gold"]}"#, "{found}");
    assert_eq!(found["ended_blocks"][0]["reason"], "case 7", "{found}");
}

#[test]
fn long_lists_come_in_pages_or_whole() {
    let server = start_server();
    for last in 1..=5 {
        let ip = format!("ip=198.51.100.{last}");
        run_ok(&server, &["blocks", "add", "login", &ip, "--for", "1h"]);
    }
    let page = run_ok(&server, &["blocks", "list", "--limit", "2"]);
    let next = page.split("--after ").nth(1).and_then(|rest| rest.split(',').next()).unwrap();
    let second = json(&server, &["blocks", "list", "--limit", "2", "--after", next]);
    assert_eq!(second["blocks"][0]["subject"]["ip"], "198.51.100.3", "{second}");
    let all = json(&server, &["blocks", "list", "--limit", "2", "--all"]);
    assert_eq!(all["blocks"].as_array().unwrap().len(), 5, "{all}");
    assert!(all["next"].is_null(), "{all}");
    let acts = json(&server, &["audit", "--by", "local", "--limit", "2", "--all"]);
    assert_eq!(acts["acts"].as_array().unwrap().len(), 5, "{acts}");
}

#[test]
fn bad_orders_are_named_and_change_nothing() {
    let server = start_server();
    run(&server, &["blocks", "add", "login", IP]).assert_exit(2, &["--for"]);
    run(&server, &["blocks", "add", "login", IP, "--for", "soon"])
        .assert_exit(2, &["bad-duration"]);
    run(&server, &["blocks", "add", "nothing", IP, "--for", "1h"])
        .assert_exit(2, &["unknown-policy", "where: POST http://127.0.0.1", "fix: "]);
    run(&server, &["blocks", "list", "--origin", "luck"]).assert_exit(2, &["bad-query", "excess"]);
    run(&server, &["blocks", "list", "--after", "x"]).assert_exit(2, &["bad-query"]);
    assert_eq!(run_ok(&server, &["audit", "--by", "local"]).trim(), "No operator did anything.");
}

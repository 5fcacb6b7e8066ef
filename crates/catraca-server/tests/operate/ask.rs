//! Verbs of a caller: check, peek, settle, credit.

use crate::desk::{CUSTOMER, IP, PAYER, command, done, json, run, served, url};
use crate::served::{Served, file};

#[test]
fn a_check_is_charged_and_a_peek_is_not() {
    let served = served();
    for _ in 0..3 {
        let said = done(&served, &["peek", "login", IP]);
        assert!(said.starts_with("allowed, tightest is login\n"), "{said}");
    }
    assert_eq!(json(&served, &["check", "login", IP])["remaining"], 1);
    assert_eq!(json(&served, &["check", "login", IP])["remaining"], 0);
    let ran = run(&served, &["check", "login", IP]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.out.starts_with("denied: over_limit by login; again in 2h, blocked"),
        "{}",
        ran.out
    );
    assert!(ran.out.lines().last().unwrap().contains("over_limit"), "{}", ran.out);
    let ran = run(&served, &["peek", "login", IP, "-o", "json"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.out.contains(r#""reason":"blocked""#), "{}", ran.out);
}

#[test]
fn a_check_takes_all_that_the_server_takes() {
    let served = served();
    let listed = "ip=192.0.2.66";
    let ran = run(&served, &["check", "front", listed, CUSTOMER]);
    assert_eq!((ran.code, ran.out.trim()), (Some(1), "denied: blocklisted; no wait helps"));
    let passed = json(&served, &["check", "front", listed, CUSTOMER, "--no-lists"]);
    assert_eq!(passed["policies"].as_array().unwrap().len(), 2);
    let ran = run(&served, &["check", "login", IP, "--cost", "3"]);
    assert!(ran.out.starts_with("denied: too_costly by login; no wait helps"), "{}", ran.out);
    run(&served, &["check", "login", IP, "--cost=-1"]).says(2, &["bad-cost"]);
    run(&served, &["check", "nowhere", IP]).says(2, &["unknown-gate", "catraca config show"]);
    run(&served, &["check", "login"]).says(2, &["missing-attribute"]);
    run(&served, &["check", "login", "198.51.100.7"]).says(2, &["ATTRIBUTE=VALUE"]);
    run(&served, &["check", "login", IP, "ip=192.0.2.1"]).says(2, &["`ip` is given twice"]);
}

#[test]
fn what_came_of_a_check_is_settled_once_and_credited_once() {
    let served = served();
    let ticket = json(&served, &["check", "lookup", PAYER, "--ref", "E1"])["ticket"].clone();
    let ticket = ticket.as_str().unwrap();
    let said = done(&served, &["settle", "--ref", "E1", PAYER, "--status", "200"]);
    assert!(said.starts_with("settled\n"), "{said}");
    let again = done(&served, &["settle", "--ticket", ticket, "--status", "404"]);
    assert!(again.starts_with("settled before"), "{again}");
    let said = done(&served, &["credit", "E1", "payment", PAYER]);
    assert!(said.lines().last().unwrap().trim_end().ends_with('1'), "{said}");
    let ran = run(&served, &["credit", "E1", "payment", PAYER]);
    assert_eq!((ran.code, ran.out.trim()), (Some(1), "nothing was given back: duplicate"));

    let ticket = json(&served, &["check", "lookup", PAYER])["ticket"].clone();
    let miss = ["settle", "--ticket", ticket.as_str().unwrap(), "--status", "404", "--body", "{}"];
    let settled = json(&served, &miss);
    assert_eq!(settled["policies"][0]["charged"], 20, "{settled}");
    run(&served, &["settle", "--ticket", "nonsense", "--status", "200"]).says(2, &["bad-ticket"]);
    run(&served, &["settle", "--ticket", "x", "--body", "{"]).says(2, &["--body"]);
    run(&served, &["settle", "--status", "200"]).says(2, &["--ticket"]);
    run(&served, &["settle", "--ref", "E1"]).says(2, &["ATTRIBUTE=VALUE"]);
}

#[test]
fn the_exit_code_does_not_depend_on_who_reads() {
    let served = served();
    for code in [0, 0, 1] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let status = command(&url(&served), &["check", "login", IP]).stdout(writer).status();
        assert_eq!(status.unwrap().code(), Some(code));
    }
}

/// Every run of the binary is a process of its own.
///
/// covers: 000-09
#[test]
fn a_ban_denies_other_processes_and_other_sessions_at_once_and_is_on_disk() {
    let file = file(include_str!("../../../../presets/soft-ban/catalog.toml"));
    let served = Served::of(&file);
    let checked = json(&served, &["check", "submit_payment", "customer=c1", "session=s1"]);
    let ticket = checked["ticket"].as_str().unwrap();
    let body = r#"{"reject_id":5}"#;
    let settled = json(&served, &["settle", "--ticket", ticket, "--status", "200", "--body", body]);
    assert_eq!(settled["durable"], true, "{settled}");
    let codes = |served: &Served| {
        [
            ["customer=c1", "session=s2"],
            ["customer=c2", "session=s1"],
            ["customer=c3", "session=s3"],
        ]
        .map(|[customer, session]| {
            run(served, &["check", "submit_payment", customer, session]).code
        })
    };
    assert_eq!(codes(&served), [1, 1, 0].map(Some));
    served.signal("KILL");
    drop(served);
    assert_eq!(codes(&Served::of(&file)), [1, 1, 0].map(Some));
}

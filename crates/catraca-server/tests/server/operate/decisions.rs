//! The callers' commands: check, peek, settle, credit.

use crate::operate::helpers::{CUSTOMER, IP, PAYER, command, json, run, run_ok, start_server, url};
use crate::test_server::{TestServer, catalog_file};

#[test]
fn a_check_is_charged_and_a_peek_is_not() {
    let server = start_server();
    for _ in 0..3 {
        let stdout = run_ok(&server, &["peek", "login", IP]);
        assert!(stdout.starts_with("allowed, tightest is login\n"), "{stdout}");
    }
    assert_eq!(json(&server, &["check", "login", IP])["remaining"], 1);
    assert_eq!(json(&server, &["check", "login", IP])["remaining"], 0);
    let output = run(&server, &["check", "login", IP]);
    assert_eq!(output.code, Some(1));
    assert!(
        output.out.starts_with("denied: over_limit by login; again in 2h, blocked"),
        "{}",
        output.out
    );
    assert!(output.out.lines().last().unwrap().contains("over_limit"), "{}", output.out);
    let output = run(&server, &["peek", "login", IP, "-o", "json"]);
    assert_eq!(output.code, Some(1));
    assert!(output.out.contains(r#""reason":"blocked""#), "{}", output.out);
}

#[test]
fn a_check_takes_all_that_the_server_takes() {
    let server = start_server();
    let listed = "ip=192.0.2.66";
    let output = run(&server, &["check", "front", listed, CUSTOMER]);
    assert_eq!(
        (output.code, output.out.trim()),
        (Some(1), "denied: blocklisted; retrying does not help")
    );
    let passed = json(&server, &["check", "front", listed, CUSTOMER, "--no-lists"]);
    assert_eq!(passed["policies"].as_array().unwrap().len(), 2);
    let output = run(&server, &["check", "login", IP, "--cost", "3"]);
    assert!(
        output.out.starts_with("denied: too_costly by login; retrying does not help"),
        "{}",
        output.out
    );
    run(&server, &["check", "login", IP, "--cost=-1"]).assert_exit(2, &["bad-cost"]);
    run(&server, &["check", "nowhere", IP])
        .assert_exit(2, &["unknown-gate", "catraca config show"]);
    run(&server, &["check", "login"]).assert_exit(2, &["missing-attribute"]);
    run(&server, &["check", "login", "198.51.100.7"]).assert_exit(2, &["ATTRIBUTE=VALUE"]);
    run(&server, &["check", "login", IP, "ip=192.0.2.1"]).assert_exit(2, &["`ip` is given twice"]);
}

#[test]
fn what_came_of_a_check_is_settled_once_and_credited_once() {
    let server = start_server();
    let ticket = json(&server, &["check", "lookup", PAYER, "--ref", "E1"])["ticket"].clone();
    let ticket = ticket.as_str().unwrap();
    let stdout = run_ok(&server, &["settle", "--ref", "E1", PAYER, "--status", "200"]);
    assert!(stdout.starts_with("settled\n"), "{stdout}");
    let again = run_ok(&server, &["settle", "--ticket", ticket, "--status", "404"]);
    assert!(again.starts_with("settled before"), "{again}");
    let stdout = run_ok(&server, &["credit", "E1", "payment", PAYER]);
    assert!(stdout.lines().last().unwrap().trim_end().ends_with('1'), "{stdout}");
    let output = run(&server, &["credit", "E1", "payment", PAYER]);
    assert_eq!((output.code, output.out.trim()), (Some(1), "nothing was given back: duplicate"));

    let ticket = json(&server, &["check", "lookup", PAYER])["ticket"].clone();
    let miss = ["settle", "--ticket", ticket.as_str().unwrap(), "--status", "404", "--body", "{}"];
    let settled = json(&server, &miss);
    assert_eq!(settled["policies"][0]["charged"], 20, "{settled}");
    run(&server, &["settle", "--ticket", "nonsense", "--status", "200"])
        .assert_exit(2, &["bad-ticket"]);
    run(&server, &["settle", "--ticket", "x", "--body", "{"]).assert_exit(2, &["--body"]);
    run(&server, &["settle", "--status", "200"]).assert_exit(2, &["--ticket"]);
    run(&server, &["settle", "--ref", "E1"]).assert_exit(2, &["ATTRIBUTE=VALUE"]);
}

#[test]
fn the_exit_code_does_not_depend_on_who_reads() {
    let server = start_server();
    for code in [0, 0, 1] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let status = command(&url(&server), &["check", "login", IP]).stdout(writer).status();
        assert_eq!(status.unwrap().code(), Some(code));
    }
}

/// Every run of the binary is a new process.
///
/// covers: 000-09
#[test]
fn a_ban_denies_other_processes_and_other_sessions_at_once_and_is_on_disk() {
    let file = catalog_file(include_str!("../../../../../presets/soft-ban/catalog.toml"));
    let server = TestServer::from_file(&file);
    let checked = json(&server, &["check", "submit_payment", "customer=c1", "session=s1"]);
    let ticket = checked["ticket"].as_str().unwrap();
    let body = r#"{"reject_id":5}"#;
    let settled = json(&server, &["settle", "--ticket", ticket, "--status", "200", "--body", body]);
    assert_eq!(settled["durable"], true, "{settled}");
    let codes = |server: &TestServer| {
        [
            ["customer=c1", "session=s2"],
            ["customer=c2", "session=s1"],
            ["customer=c3", "session=s3"],
        ]
        .map(|[customer, session]| {
            run(server, &["check", "submit_payment", customer, session]).code
        })
    };
    assert_eq!(codes(&server), [1, 1, 0].map(Some));
    server.signal("KILL");
    drop(server);
    assert_eq!(codes(&TestServer::from_file(&file)), [1, 1, 0].map(Some));
}

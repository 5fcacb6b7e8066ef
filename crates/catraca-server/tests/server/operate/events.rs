//! `catraca events`: the live feed on a terminal.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStderr};

use crate::operate::helpers::{CUSTOMER, CliOutput, IP, command, run, run_ok, start_server, url};
use crate::test_server::TestServer;

/// Starts `catraca events` and waits until it is connected, so that no event is missed.
fn start_listening(server: &TestServer, args: &[&str]) -> (Child, BufReader<ChildStderr>) {
    let args = [&["events"], args].concat();
    let mut child = command(&url(server), &args).spawn().unwrap();
    let mut stderr = String::new();
    let mut err = BufReader::new(child.stderr.take().unwrap());
    err.read_line(&mut stderr).unwrap();
    assert!(stderr.contains("listening"), "{stderr}");
    (child, err)
}

#[test]
fn what_happens_is_told_as_it_happens() {
    let server = start_server();
    let (child, _err) =
        start_listening(&server, &["--only", "blocked", "--only", "released", "--count", "2"]);
    let (lines, _more) = start_listening(&server, &["--count", "1", "-o", "json"]);
    run_ok(&server, &["check", "login", IP]);
    run_ok(&server, &["blocks", "add", "api", CUSTOMER, "--for", "1h", "--reason", "fraud"]);
    assert_eq!(run(&server, &["check", "api", CUSTOMER]).code, Some(1));
    run_ok(&server, &["blocks", "release", CUSTOMER]);
    let output = CliOutput::new(child.wait_with_output().unwrap());
    assert_eq!((output.code, output.out.lines().count()), (Some(0), 2), "{}", output.out);
    assert!(
        output.out.contains("reason=fraud") && output.out.contains("released"),
        "{}",
        output.out
    );
    assert!(!output.out.contains("c-4711"), "{}", output.out);
    let output = CliOutput::new(lines.wait_with_output().unwrap());
    let event: serde_json::Value = serde_json::from_str(&output.out).unwrap();
    assert_eq!((&event["event"], &event["policy"]), (&"blocked".into(), &"api".into()));
}

#[test]
fn a_feed_ends_with_its_reader_or_with_the_server() {
    let server = start_server();
    let (mut child, _err) = start_listening(&server, &[]);
    drop(child.stdout.take());
    run_ok(&server, &["blocks", "add", "login", IP, "--for", "1h"]);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let (child, _err) = start_listening(&server, &[]);
    server.signal("TERM");
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(3));
}

#[test]
fn a_misspelt_event_is_refused_with_the_name_that_was_meant() {
    let server = start_server();
    run(&server, &["events", "--only", "realeased"]).assert_exit(2, &["released"]);
}

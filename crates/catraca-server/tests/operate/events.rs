//! The live feed on a terminal.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStderr};

use crate::desk::{CUSTOMER, IP, Ran, command, done, run, served, url};
use crate::served::Served;

/// Listens, and goes on once nothing can be missed any more.
fn listening(served: &Served, args: &[&str]) -> (Child, BufReader<ChildStderr>) {
    let args = [&["events"], args].concat();
    let mut child = command(&url(served), &args).spawn().unwrap();
    let mut heard = String::new();
    let mut err = BufReader::new(child.stderr.take().unwrap());
    err.read_line(&mut heard).unwrap();
    assert!(heard.contains("listening"), "{heard}");
    (child, err)
}

#[test]
fn what_happens_is_told_as_it_happens() {
    let served = served();
    let (child, _err) =
        listening(&served, &["--only", "blocked", "--only", "released", "--count", "2"]);
    let (lines, _more) = listening(&served, &["--count", "1", "-o", "json"]);
    done(&served, &["check", "login", IP]);
    done(&served, &["blocks", "add", "api", CUSTOMER, "--for", "1h", "--reason", "fraud"]);
    assert_eq!(run(&served, &["check", "api", CUSTOMER]).code, Some(1));
    done(&served, &["blocks", "release", CUSTOMER]);
    let ran = Ran::of(child.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.out.lines().count()), (Some(0), 2), "{}", ran.out);
    assert!(ran.out.contains("reason=fraud") && ran.out.contains("released"), "{}", ran.out);
    assert!(!ran.out.contains("c-4711"), "{}", ran.out);
    let ran = Ran::of(lines.wait_with_output().unwrap());
    let event: serde_json::Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((&event["event"], &event["policy"]), (&"blocked".into(), &"api".into()));
}

#[test]
fn a_feed_ends_with_its_reader_or_with_the_server() {
    let served = served();
    let (mut child, _err) = listening(&served, &[]);
    drop(child.stdout.take());
    done(&served, &["blocks", "add", "login", IP, "--for", "1h"]);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let (child, _err) = listening(&served, &[]);
    served.signal("TERM");
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(3));
}

//! The real binary on a disk that fails or is full: operations report `durable: false`, decisions
//! continue, and every loss is reported.
//!
//! A small library loaded before the C library makes system calls fail while a file exists.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use catraca::core::cell::block::{Block, BlockNote, Origin};
use catraca::core::digest::{Digester, Domain, Secret};
use catraca::records::{BlockEvent, Options, Record, RecordKind, Records, SubjectKey};
use catraca::{Span, Time};
use serde_json::Value;

use crate::http::admin::{CATALOG, call, expect_durable, expect_ok, payer, reason};
use crate::operate::helpers::run;
use crate::test_server::{TestServer, catalog_file};

/// While the file named by the variable exists, syncs fail, or writes fail with ENOSPC.
const LIBRARY: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static int broken(const char *name, int why) {
    const char *file = getenv(name);
    if (!file || access(file, F_OK) != 0) return 0;
    errno = why;
    return 1;
}

int fsync(int file) {
    if (broken("SYNC_FAILS", EIO)) return -1;
    return ((int (*)(int)) dlsym(RTLD_NEXT, "fsync"))(file);
}

int fdatasync(int file) {
    if (broken("SYNC_FAILS", EIO)) return -1;
    return ((int (*)(int)) dlsym(RTLD_NEXT, "fdatasync"))(file);
}

ssize_t pwrite64(int file, const void *bytes, size_t size, off64_t at) {
    if (broken("DISK_FULL", ENOSPC)) return -1;
    return ((ssize_t (*)(int, const void *, size_t, off64_t)) dlsym(RTLD_NEXT, "pwrite64"))
        (file, bytes, size, at);
}

ssize_t pwrite(int file, const void *bytes, size_t size, off_t at) {
    if (broken("DISK_FULL", ENOSPC)) return -1;
    return ((ssize_t (*)(int, const void *, size_t, off_t)) dlsym(RTLD_NEXT, "pwrite"))
        (file, bytes, size, at);
}
"#;

fn library(folder: &Path) -> PathBuf {
    let source = folder.join("fail.c");
    let library = folder.join("fail.so");
    fs::write(&source, LIBRARY).unwrap();
    let mut cc = Command::new("cc");
    let built = cc.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).arg("-ldl").status();
    assert!(built.expect("a C compiler is needed").success());
    library
}

fn order(customer: &str) -> String {
    let subject = format!(r#"{{"customer":"{customer}"}}"#);
    format!(r#"{{"policy":"api","subject":{subject},"for":"1h","reason":"fraud"}}"#)
}

fn is_blocked(server: &TestServer, customer: &str) -> bool {
    reason(server, "api", &format!(r#"{{"customer":"{customer}"}}"#)) == "blocked"
}

/// covers: B-03
#[test]
fn an_act_on_a_broken_disk_is_admitted_and_written_when_it_works_again() {
    for variable in ["SYNC_FAILS", "DISK_FULL"] {
        let file = catalog_file(CATALOG);
        let folder = file.parent().unwrap();
        let library = library(folder);
        let broken = folder.join("broken");
        let variables = [("LD_PRELOAD", library.as_path()), (variable, broken.as_path())];
        let server = TestServer::with_env(&file, &variables);
        expect_durable(&server, "POST /v1/blocks", &order("before"));
        fs::write(&broken, "").unwrap();
        let refused = expect_ok(&server, "POST /v1/blocks", &order("meanwhile"));
        assert_eq!(refused["durable"], false, "{variable}: {refused}");
        let listed = expect_ok(&server, "POST /v1/blocklist", r#"{"range":"203.0.113.0/24"}"#);
        assert_eq!(listed["durable"], false, "{variable}: {listed}");
        // The block applies all the same, and decisions and queries continue.
        assert!(is_blocked(&server, "meanwhile"), "{variable}");
        assert_eq!(reason(&server, "lookup", &payer()), "ok");
        assert_eq!(call(&server, "GET /v1/audit", "").0, 200);
        fs::remove_file(&broken).unwrap();
        // The queue is written in order, so a later operation is durable only after all earlier
        // ones.
        while expect_ok(&server, "POST /v1/blocks", &order("after"))["durable"] != true {}
        server.signal("KILL");
        drop(server);
        let server = TestServer::from_file(&file);
        for customer in ["before", "meanwhile", "after"] {
            assert!(is_blocked(&server, customer), "{variable}: {customer}");
        }
        assert_eq!(reason(&server, "login", r#"{"ip":"203.0.113.7"}"#), "blocklisted");
    }
}

/// As after a crash on a disk that its own log had filled.
///
/// covers: B-03
#[test]
fn a_start_on_a_full_disk_serves_and_says_that_nothing_is_durable() {
    let file = catalog_file(CATALOG);
    let folder = file.parent().unwrap();
    let library = library(folder);
    let broken = folder.join("broken");
    let variables = [("LD_PRELOAD", library.as_path()), ("DISK_FULL", broken.as_path())];
    let server = TestServer::from_file(&file);
    expect_durable(&server, "POST /v1/blocks", &order("before"));
    server.signal("KILL");
    drop(server);
    fs::write(&broken, "").unwrap();
    let server = TestServer::with_env(&file, &variables);
    assert!(is_blocked(&server, "before"));
    let refused = expect_ok(&server, "POST /v1/blocks", &order("meanwhile"));
    assert_eq!(refused["durable"], false, "{refused}");
    let problems = || server.request("GET /readyz", &[]).json()["problems"].to_string();
    assert!(problems().contains("records") && problems().contains("full"), "{}", problems());
    fs::remove_file(&broken).unwrap();
    while expect_ok(&server, "POST /v1/blocks", &order("after"))["durable"] != true {}
    assert_eq!(problems(), "[]");
    server.signal("KILL");
    drop(server);
    let server = TestServer::from_file(&file);
    for customer in ["before", "meanwhile", "after"] {
        assert!(is_blocked(&server, customer), "{customer}");
    }
}

/// covers: 000-36
#[test]
fn a_ban_that_cannot_be_written_stands_all_the_same_and_is_counted_and_told() {
    let preset = include_str!("../../../../../presets/soft-ban/catalog.toml");
    let file = catalog_file(preset);
    let folder = file.parent().unwrap();
    let library = library(folder);
    let broken = folder.join("broken");
    let variables = [("LD_PRELOAD", library.as_path()), ("DISK_FULL", broken.as_path())];
    let server = TestServer::with_env(&file, &variables);
    fs::write(&broken, "").unwrap();
    let check = r#"{"gate":"submit_payment","subject":{"customer":"c1","session":"s1"}}"#;
    let ticket = server.json("/v1/check", check).1["ticket"].clone();
    let settle = serde_json::json!({
        "ticket": ticket, "outcome": { "status": 200, "body": { "reject_id": 5 } },
    });
    let (status, settled) = server.json("/v1/settle", &settle.to_string());
    assert_eq!((status, &settled["durable"]), (200, &false.into()), "{settled}");
    for identity in [r#"{"customer":"c1"}"#, r#"{"session":"s1"}"#] {
        assert_eq!(reason(&server, "submit_payment", identity), "blocked");
    }
    let metrics = server.request("GET /metrics", &[]).body;
    // Both identities are banned: their records are written together or one after the other.
    let refused =
        |count: u8| metrics.contains(&format!("\ncatraca_records_not_durable_total {count}\n"));
    assert!(refused(1) || refused(2), "{metrics}");
    assert!(metrics.contains("\ncatraca_records_up 0\n"), "{metrics}");
    let ready = server.request("GET /readyz", &[]);
    assert_eq!((ready.status, &ready.json()["problems"][0]["what"]), (200, &"records".into()));
    fs::remove_file(&broken).unwrap();
}

/// Regression: lists were answered with 200 as if they were complete.
#[test]
fn answers_from_records_that_cannot_be_written_say_that_they_are_incomplete() {
    let file = catalog_file(CATALOG);
    let folder = file.parent().unwrap();
    let library = library(folder);
    let broken = folder.join("broken");
    let variables = [("LD_PRELOAD", library.as_path()), ("DISK_FULL", broken.as_path())];
    let server = TestServer::with_env(&file, &variables);
    let before = expect_durable(&server, "POST /v1/blocks", &order("before"));
    let id = before["blocks"][0]["id"].as_str().unwrap();
    let history = format!("GET /v1/blocks/{id}");
    let inspect = r#"{"subject":{"customer":"meanwhile"}}"#;
    let queries = [
        ("GET /v1/blocks", ""),
        (&history, ""),
        ("POST /v1/inspect", inspect),
        ("GET /v1/blocklist", ""),
        ("GET /v1/allowlist", ""),
        ("GET /v1/facts", ""),
        ("GET /v1/audit", ""),
    ];
    let reasons =
        || queries.map(|(query, body)| expect_ok(&server, query, body)["incomplete"].clone());
    assert!(reasons().iter().all(Value::is_null), "{:?}", reasons());
    fs::write(&broken, "").unwrap();
    assert_eq!(expect_ok(&server, "POST /v1/blocks", &order("meanwhile"))["durable"], false);
    for reason in reasons() {
        assert!(reason.as_str().is_some_and(|why| why.contains("may be missing")), "{reason}");
    }
    for command in
        [&["blocks", "list"][..], &["blocks", "list", "--all"], &["blocks", "history", id]]
    {
        let shown = run(&server, command);
        assert_eq!(shown.code, Some(0), "{shown:?}");
        assert!(shown.err.contains("the newest entries may be missing"), "{shown:?}");
    }
    let metrics = server.request("GET /metrics", &[]).body;
    assert!(!metrics.contains("\ncatraca_records_incomplete_queries_total 0\n"), "{metrics}");
    fs::remove_file(&broken).unwrap();
    while expect_ok(&server, "POST /v1/blocks", &order("after"))["durable"] != true {}
    assert!(reasons().iter().all(Value::is_null), "{:?}", reasons());
    assert_eq!(run(&server, &["blocks", "list"]).err, "");
}

/// Only operations that were never answered `durable: true` may be lost.
#[test]
fn a_kill_on_a_broken_disk_loses_only_what_was_refused() {
    let file = catalog_file(CATALOG);
    let folder = file.parent().unwrap();
    let library = library(folder);
    let broken = folder.join("broken");
    let variables = [("LD_PRELOAD", library.as_path()), ("DISK_FULL", broken.as_path())];
    let server = TestServer::with_env(&file, &variables);
    expect_durable(&server, "POST /v1/blocks", &order("before"));
    fs::write(&broken, "").unwrap();
    assert_eq!(expect_ok(&server, "POST /v1/blocks", &order("meanwhile"))["durable"], false);
    server.signal("KILL");
    drop(server);
    let server = TestServer::from_file(&file);
    assert!(is_blocked(&server, "before"));
}

/// A server that cannot write its queue stops all the same, and logs how many records are lost.
#[test]
fn a_stop_on_a_broken_disk_ends_and_says_what_is_missing() {
    let file = catalog_file(CATALOG);
    let folder = file.parent().unwrap();
    let library = library(folder);
    let broken = folder.join("broken");
    let variables = [("LD_PRELOAD", library.as_path()), ("DISK_FULL", broken.as_path())];
    let server = TestServer::with_env(&file, &variables);
    fs::write(&broken, "").unwrap();
    assert_eq!(expect_ok(&server, "POST /v1/blocks", &order("meanwhile"))["durable"], false);
    server.signal("TERM");
    let (status, stderr) = server.wait_for_exit();
    assert!(!status.success() && stderr.contains("could not be written"), "{status} {stderr}");
}

/// covers: X-27, B-56
#[test]
fn what_is_over_its_time_is_deleted_while_it_serves() {
    let file = catalog_file(&format!(
        "{CATALOG}[records]\nkeep_history = '1h'\npurge_interval = '1s'\n\
         [store]\nsnapshot_interval = '100ms'\n"
    ));
    let server = TestServer::from_file(&file);
    server.signal("TERM");
    assert!(server.wait_for_exit().0.success());
    let database = file.with_file_name("catraca.db");
    let url = format!("sqlite:{}", database.display());
    let records = Records::open(&url, Options::default()).unwrap();
    assert!(records.record(vec![ended_block("198.51.100.77")]).wait().is_durable());
    assert_eq!(records.close(), 0);
    let holds = || {
        let bytes = fs::read(&database).unwrap();
        bytes.windows(13).any(|at| at == b"198.51.100.77")
    };
    assert!(holds());
    let _server = TestServer::from_file(&file);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while holds() {
        assert!(std::time::Instant::now() < deadline, "the row is still on disk");
        std::thread::yield_now();
    }
}

/// A block that ended years ago.
fn ended_block(address: &str) -> Record {
    let year = |text: &str| Time::parse_rfc3339(text).unwrap();
    let digester = Digester::new(&Secret::from_bytes([7; 32]));
    let who = SubjectKey {
        key: digester.start(Domain::Cell).part(address.as_bytes()).finish(),
        namespace: "default".to_owned(),
        policy: "login".to_owned(),
        parts: vec![("ip".to_owned(), address.to_owned())],
    };
    let until = year("2021-01-01T00:00:00Z");
    let origin = Origin::Excess;
    let note = BlockNote::default();
    let block = Block { until, origin, shadow: false, level: 0, forget: Span::ZERO, note };
    let blocking = BlockEvent { subject: who, epoch: Time::ZERO, first_of_act: None, block };
    Record::automatic(year("2020-01-01T00:00:00Z"), RecordKind::Block(Box::new(blocking)))
}

//! A records file that is deleted while the server runs: acts are answered `durable: false`,
//! `/readyz`, the metrics and the log say so, and a stop saves what the server has open.

use std::fs;

use crate::http::admin::{CATALOG, expect_durable, expect_ok, reason};
use crate::test_server::{TestServer, binary, catalog_file};

const RANGE: &str = r#"{"range":"203.0.113.0/24"}"#;

#[test]
fn a_deleted_records_file_is_reported_and_saved_at_the_stop() {
    let file = catalog_file(CATALOG);
    let server = TestServer::from_file(&file);
    expect_durable(&server, "POST /v1/blocklist", r#"{"range":"192.0.2.0/24"}"#);
    let records = file.with_file_name("catraca.db");
    for ending in ["", "-wal", "-shm"] {
        fs::remove_file(file.with_file_name(format!("catraca.db{ending}"))).unwrap();
    }
    assert_eq!(expect_ok(&server, "POST /v1/blocklist", RANGE)["durable"], false);
    let problems = server.request("GET /readyz", &[]).json()["problems"].clone();
    assert_eq!(problems[0]["what"], "records", "{problems}");
    let why = problems[0]["why"].as_str().unwrap();
    assert!(why.contains("catraca.db was deleted or moved"), "{why}");
    assert!(why.contains("catraca restore --force"), "{why}");
    let metrics = server.request("GET /metrics", &[]).body;
    assert!(metrics.contains("\ncatraca_records_up 0\n"), "{metrics}");
    // The writer still writes: the list is complete and the entry decides.
    let listed = expect_ok(&server, "GET /v1/blocklist", "");
    assert_eq!(listed["entries"].as_array().unwrap().len(), 2, "{listed}");
    assert_eq!(listed.get("incomplete"), None);
    assert_eq!(reason(&server, "login", r#"{"ip":"203.0.113.7"}"#), "blocklisted");

    server.signal("TERM");
    let (status, log) = server.wait_for_exit();
    assert!(status.success(), "{log}");
    assert!(log.contains("catraca.db.rescued"), "{log}");
    let rescued = file.with_file_name("catraca.db.rescued");
    let mut restore = binary();
    restore.args(["restore", "--force", "--records"]).arg(&records).arg(&rescued);
    let restored = restore.output().unwrap();
    assert!(restored.status.success(), "{restored:?}");
    let server = TestServer::from_file(&file);
    assert_eq!(server.request("GET /readyz", &[]).json()["problems"].to_string(), "[]");
    assert_eq!(reason(&server, "login", r#"{"ip":"203.0.113.7"}"#), "blocklisted");
}

/// The log has one line, however long the file is gone and however many acts are refused.
#[test]
fn a_lost_and_a_returned_file_are_logged_once_each() {
    let file = catalog_file(&format!("{CATALOG}[store]\nsnapshot_interval = '100ms'\n"));
    let server = TestServer::from_file(&file);
    let records = file.with_file_name("catraca.db");
    let elsewhere = file.with_file_name("elsewhere.db");
    fs::rename(&records, &elsewhere).unwrap();
    for _ in 0..3 {
        assert_eq!(expect_ok(&server, "POST /v1/blocklist", RANGE)["durable"], false);
        wait_for_snapshot(&file);
        wait_for_snapshot(&file);
    }
    fs::rename(&elsewhere, &records).unwrap();
    expect_durable(&server, "POST /v1/blocklist", RANGE);
    assert_eq!(server.request("GET /readyz", &[]).json()["problems"].to_string(), "[]");
    wait_for_snapshot(&file);
    wait_for_snapshot(&file);
    server.signal("TERM");
    let (status, log) = server.wait_for_exit();
    assert!(status.success(), "{log}");
    let count = |text: &str| log.lines().filter(|line| line.contains(text)).count();
    assert_eq!(count("records file lost"), 1, "{log}");
    assert_eq!(count("the records file is back"), 1, "{log}");
    assert!(!file.with_file_name("catraca.db.rescued").exists());
}

/// Waits until the maintenance thread, which also writes the log lines, has run once more.
fn wait_for_snapshot(catalog: &std::path::Path) {
    use std::os::unix::fs::MetadataExt;
    let snapshot = catalog.with_file_name("catraca.snapshot");
    let inode = || fs::metadata(&snapshot).map(|found| found.ino()).ok();
    let before = inode();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while inode() == before {
        assert!(std::time::Instant::now() < deadline, "no snapshot was written");
        std::thread::yield_now();
    }
}

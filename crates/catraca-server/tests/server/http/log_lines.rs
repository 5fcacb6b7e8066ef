//! Log lines that cannot be written.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::test_server::{TestServer, catalog_file};

/// Longer than any log line takes: a test that waits this long has failed.
const TIMEOUT: Duration = Duration::from_secs(30);

fn dropped_lines(server: &TestServer) -> u64 {
    let text = server.request("GET /metrics", &[]).body;
    let name = "catraca_log_lines_dropped_total ";
    text.lines().find_map(|line| line.strip_prefix(name)).unwrap().parse().unwrap()
}

/// Regression: lines that standard error did not take were not counted.
#[test]
fn lines_that_standard_error_does_not_take_are_counted() {
    let file = catalog_file("[policy.login]\nby = ['ip']\nwindow = '1 per 1m'\n");
    let mut server = TestServer::from_file(&file);
    assert_eq!(dropped_lines(&server), 0);
    server.close_stderr();
    // A reload that fails writes a line.
    fs::write(&file, "[policy.login]\n").unwrap();
    server.signal("HUP");
    let deadline = Instant::now() + TIMEOUT;
    while dropped_lines(&server) == 0 {
        assert!(Instant::now() < deadline, "no line was counted");
        sleep(Duration::from_millis(20));
    }
}

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

/// Regression: a ban rule that always failed was disarmed, and a counter without a policy was the
/// only sign.
#[test]
fn conditions_that_always_fail_are_counted_and_logged_by_policy() {
    let file = catalog_file(
        "[policy.pay]\nby = ['ip']\nwindow = '99 per 1m'\n\
         ban = [ { when = \"body.code == 7\", for = '1h' } ]\n\
         [policy.login]\nby = ['ip']\nwindow = '99 per 1m'\n",
    );
    let server = TestServer::from_file(&file);
    let check = r#"{"gate":"pay","subject":{"ip":"198.51.100.7"}}"#;
    for _ in 0..5 {
        let (_, decision) = server.json("/v1/check", check);
        let outcome = r#"{"status":200,"body":{"kode":7}}"#;
        let settle = format!(r#"{{"ticket":{},"outcome":{outcome}}}"#, decision["ticket"]);
        assert_eq!(server.json("/v1/settle", &settle).0, 200);
    }
    let metrics = server.request("GET /metrics", &[]).body;
    assert!(metrics.contains(r#"catraca_condition_errors_total{policy="pay"} 5"#), "{metrics}");
    assert!(metrics.contains(r#"catraca_condition_errors_total{policy="login"} 0"#), "{metrics}");
    server.signal("TERM");
    let (_, log) = server.wait_for_exit();
    let lines = log.lines().filter(|line| line.contains("could not be evaluated"));
    let lines: Vec<&str> = lines.collect();
    // The five settles may be in two minutes.
    assert!((1..=2).contains(&lines.len()), "{log}");
    assert!(
        lines[0].contains(r#"policy="pay""#) && lines[0].contains("compare the `when`"),
        "{log}"
    );
}

/// A name is logged once, with the declared one that it may be meant for. A name that is like none
/// is not logged: any text of a caller may contain what must not be in a log.
#[test]
fn an_undeclared_gate_is_logged_once_with_the_nearest_name() {
    let file = catalog_file(
        "default = 'rest'\n[policy.rest]\nby = ['ip']\nwindow = '99 per 1m'\n\
         [policy.login]\nby = ['ip']\nwindow = '99 per 1m'\n",
    );
    let server = TestServer::from_file(&file);
    for gate in ["logn", "login", "logn", "export_report", "logn"] {
        let check = format!(r#"{{"gate":"{gate}","subject":{{"ip":"198.51.100.7"}}}}"#);
        assert_eq!(server.json("/v1/check", &check).1["allowed"], true);
    }
    server.signal("TERM");
    let (_, log) = server.wait_for_exit();
    let lines: Vec<&str> =
        log.lines().filter(|line| line.contains("that the catalog does not declare")).collect();
    let [misspelt, other] = &lines[..] else { panic!("one line for each name: {log}") };
    assert!(lines.iter().all(|line| line.contains("WARN")), "{log}");
    let words = [r#"gate="logn""#, r#"nearest="login""#, "the default policy decides"];
    assert!(words.iter().all(|word| misspelt.contains(word)), "{misspelt}");
    assert!(other.contains("`catraca stats` lists its name"), "{other}");
    assert!(!log.contains("export_report"), "{log}");
}

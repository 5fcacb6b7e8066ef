//! Problems of nodes that share a store, as `/readyz` and the metrics of real servers show them.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use catraca_testkit::redis::{RedisSentinels, RedisServer};

use crate::test_server::{TestServer, catalog_file};

/// What takes longer never happens.
const TIMEOUT: Duration = Duration::from_secs(60);

fn node(url: &str, window: &str) -> PathBuf {
    let path = catalog_file(&format!(
        "[policy.login]\nby = ['ip']\nwindow = '{window}'\n\
         [store]\nurl = '{url}'\nnodes = 2\ndeadline = '1s'\n[records]\nscope = 'node'\n"
    ));
    fs::write(path.with_file_name("catraca.secret"), "07".repeat(32)).unwrap();
    path
}

/// The reasons of the problems of one kind.
fn problems(server: &TestServer, what: &str) -> Vec<String> {
    let readiness = server.request("GET /readyz", &[]).json();
    let all = readiness["problems"].as_array().unwrap().iter();
    let reason = |one: &serde_json::Value| one["why"].as_str().unwrap().to_owned();
    all.filter(|one| one["what"] == what).map(reason).collect()
}

fn metric(server: &TestServer, series: &str) -> Option<f64> {
    let text = server.request("GET /metrics", &[]).body;
    let line = text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.map(|number| number.parse().unwrap())
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < TIMEOUT, "never: {what}");
        std::thread::sleep(Duration::from_millis(50));
    }
    println!("{what}: {:?}", begun.elapsed());
}

#[test]
fn nodes_with_other_catalogs_are_a_problem_of_both() {
    let Some(redis) = RedisServer::start() else { return };
    let file = node(&redis.url(), "9 per 1h");
    let here = TestServer::from_file(&node(&redis.url(), "8 per 1h"));
    let there = TestServer::from_file(&file);
    let differ = |server: &TestServer| {
        let reported = problems(server, "nodes");
        let series = metric(server, "catraca_shared_revisions_differ");
        assert!(reported.len() < 2, "{reported:?}");
        reported.len() == 1 && series == Some(1.0)
    };
    wait_until("both report the difference", || differ(&here) && differ(&there));
    assert!(metric(&here, "catraca_shared_heartbeat_age_seconds").is_some());
    drop(there);
    fs::write(&file, fs::read_to_string(&file).unwrap().replace("9 per", "8 per")).unwrap();
    let there = TestServer::from_file(&file);
    wait_until("neither does any more", || {
        [&here, &there].iter().all(|server| {
            let series = metric(server, "catraca_shared_revisions_differ");
            problems(server, "nodes").is_empty() && series == Some(0.0)
        })
    });
}

#[test]
fn a_primary_that_no_majority_of_sentinels_confirms_is_a_problem_until_one_does() {
    let Some(group) = RedisSentinels::start() else { return };
    let server = TestServer::from_file(&node(&group.url(), "9 per 1h"));
    let is_doubtful = || {
        let reasons = problems(&server, "store");
        reasons.iter().any(|why| why.contains("no majority of the Sentinels confirms"))
    };
    let series = || metric(&server, "catraca_shared_unconfirmed");
    wait_until("the primary is confirmed", || !is_doubtful() && series() == Some(0.0));
    for sentinel in &group.sentinels[..2] {
        sentinel.signal("STOP");
    }
    wait_until("the doubt is reported", || is_doubtful() && series() == Some(1.0));
    for sentinel in &group.sentinels[..2] {
        sentinel.signal("CONT");
    }
    wait_until("it is confirmed again", || !is_doubtful() && series() == Some(0.0));
}

//! Latency at a thousand lock calls per second, as the server's own histogram reports it.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::{CATALOG, acquire, post, release};
use crate::test_server::{TestServer, catalog_file};

const CALLERS: u64 = 8;
/// Between two calls of one caller; all callers together make a thousand calls per second.
const GAP: Duration = Duration::from_millis(CALLERS);
const EACH: u64 = 250;

/// The number of calls that took at most `bound` seconds, and the number of all calls.
fn calls_within(server: &TestServer, bound: &str) -> (f64, f64) {
    let text = server.request("GET /metrics", &[]).body;
    let count = |bound: &str| -> f64 {
        let series = format!("catraca_call_seconds_bucket{{le=\"{bound}\"}} ");
        let row = text.lines().find_map(|line| line.strip_prefix(&series));
        row.unwrap_or_else(|| panic!("no {series} in\n{text}")).parse().unwrap()
    };
    (count(bound), count("+Inf"))
}

/// Runs `act` at the fixed rate from all callers, each time with another number.
fn run_paced(act: impl Fn(u64) + Sync) {
    let begun = Instant::now();
    thread::scope(|scope| {
        for caller in 0..CALLERS {
            let act = &act;
            scope.spawn(move || {
                for round in 0..EACH {
                    let due = begun + GAP * u32::try_from(round).unwrap();
                    thread::sleep(due.saturating_duration_since(Instant::now()));
                    act(caller * EACH + round);
                }
            });
        }
    });
}

/// The share of the calls made by `run` that the server answered within `bound` seconds.
fn share_within(server: &TestServer, bound: &str, run: impl FnOnce()) -> f64 {
    let before = calls_within(server, bound);
    run();
    let after = calls_within(server, bound);
    (after.0 - before.0) / (after.1 - before.1)
}

/// covers: 004-77, 004-78
#[test]
fn a_thousand_locks_a_second_are_answered_in_time() {
    let server = TestServer::from_file(&catalog_file(CATALOG));
    let taken = share_within(&server, "0.002", || {
        run_paced(|number| {
            let lease = acquire(&server, &json!({ "key": format!("k{number}"), "ttl_ms": 60_000 }));
            assert_eq!(release(&server, &lease), "released");
        });
    });
    acquire(&server, &json!({ "key": "held", "ttl_ms": 60_000 }));
    let refused = share_within(&server, "0.005", || {
        run_paced(|_| {
            assert_eq!(post(&server, "/v1/locks/acquire", &json!({ "key": "held" })).status, 409);
        });
    });
    println!(
        "within 2 ms: {taken:.4} of acquires and releases; within 5: {refused:.4} of refusals"
    );
    assert!(taken >= 0.99 && refused >= 0.99, "{taken} {refused}");
}

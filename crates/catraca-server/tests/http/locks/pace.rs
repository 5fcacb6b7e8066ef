//! A thousand locks a second: how long the server takes for each, by its own clock.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::{CATALOG, give, post, take};
use crate::served::{Served, file};

const CALLERS: u64 = 8;
/// Each caller's: a thousand a second together.
const GAP: Duration = Duration::from_millis(CALLERS);
const EACH: u64 = 250;

/// So many calls took no longer than this many seconds, and so many were there at all.
fn within(served: &Served, bound: &str) -> (f64, f64) {
    let text = served.ask("GET /metrics", &[]).body;
    let count = |bound: &str| -> f64 {
        let series = format!("catraca_call_seconds_bucket{{le=\"{bound}\"}} ");
        let row = text.lines().find_map(|line| line.strip_prefix(&series));
        row.unwrap_or_else(|| panic!("no {series} in\n{text}")).parse().unwrap()
    };
    (count(bound), count("+Inf"))
}

/// Callers at this pace; what each does has its own number.
fn paced(act: impl Fn(u64) + Sync) {
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

/// The share that the server answered within this bound, of what was asked meanwhile.
fn share(served: &Served, bound: &str, ask: impl FnOnce()) -> f64 {
    let before = within(served, bound);
    ask();
    let after = within(served, bound);
    (after.0 - before.0) / (after.1 - before.1)
}

/// covers: 004-77, 004-78
#[test]
fn a_thousand_locks_a_second_are_answered_in_time() {
    let served = Served::of(&file(CATALOG));
    let taken = share(&served, "0.002", || {
        paced(|number| {
            let lease = take(&served, &json!({ "key": format!("k{number}"), "ttl_ms": 60_000 }));
            assert_eq!(give(&served, &lease), "released");
        });
    });
    take(&served, &json!({ "key": "held", "ttl_ms": 60_000 }));
    let refused = share(&served, "0.005", || {
        paced(|_| {
            assert_eq!(post(&served, "/v1/locks/acquire", &json!({ "key": "held" })).status, 409);
        });
    });
    println!(
        "within 2 ms: {taken:.4} of acquires and releases; within 5: {refused:.4} of refusals"
    );
    assert!(taken >= 0.99 && refused >= 0.99, "{taken} {refused}");
}

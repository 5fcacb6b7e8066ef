//! Failures that no call reports: the statistics and the heartbeat do.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use catraca::supervise::task_panics;
use catraca::{App, ManualClock, MemoryOptions, Outcome, Settle, SharedOptions, Subject};

use super::helpers::{Remote, START, builder, check, heartbeat, pair, poll_ready, settle, stats};

const CATALOG: &str = r#"
[policy.login]
by     = ["ip"]
window = "5 per 1m"
[policy.pay]
by     = ["ip"]
bucket = { size = 1000000, refill = "1 per 1h" }
cost   = { "404" = 2, default = 1 }
"#;

/// Regression: a change that other nodes did not learn of was retried without a report.
#[test]
fn a_change_that_other_nodes_do_not_learn_of_is_reported() {
    let (app, store, _) = pair(CATALOG, 2);
    heartbeat(&app);
    assert_eq!(stats(&app).background_error, None);
    store.refuse_changes(true);
    let subject = Subject::from([("ip", "192.0.2.1")]);
    poll_ready(app.reset_unaudited("default", "login", &subject)).unwrap();
    let reported = stats(&app).background_error.unwrap();
    assert!(
        reported.contains("other nodes do not learn of a change") && reported.contains("NOPERM")
    );
    let report = heartbeat(&app);
    assert_eq!((report.up, report.error), (true, Some(reported)));
    store.refuse_changes(false);
    heartbeat(&app);
    assert_eq!(stats(&app).background_error, None);
    assert_eq!(heartbeat(&app).error, None);
}

/// Regression: a settle that the local fallback had no room for was lost there without a count.
#[test]
fn changes_that_the_local_fallback_misses_are_counted() {
    let clock = ManualClock::at(START);
    let store = Remote::new(&clock);
    let small = MemoryOptions { mark_bytes: 4 << 10, shards: 1, ..MemoryOptions::default() };
    let engine = builder(CATALOG, &clock).memory(small);
    let app = App::over_store(engine, Arc::new(store), SharedOptions::default()).unwrap().build();
    let outcome = Outcome { status: Some(404), ..Outcome::default() };
    for _ in 0..500 {
        let ticket = check(&app, "pay", "192.0.2.1").ticket.unwrap();
        settle(&app, &Settle::ticket(&ticket, &outcome));
    }
    let missed = stats(&app).failed_mirrors;
    println!("{missed} of 500 settles did not fit into the local fallback");
    assert!(missed > 0);
}

/// Regression: after a panic there were no heartbeats until the process ended, and nothing said so.
#[tokio::test]
async fn heartbeats_go_on_after_a_panic() {
    let (app, _, _) = pair(CATALOG, 1);
    let (reports, mut received) = tokio::sync::mpsc::unbounded_channel();
    let count = AtomicU64::new(0);
    let heartbeats = app.start_heartbeat(move |report| {
        assert!(count.fetch_add(1, Ordering::SeqCst) > 0, "a report with an impossible value");
        drop(reports.send(report.clone()));
    });
    let report = tokio::time::timeout(Duration::from_secs(30), received.recv()).await;
    assert!(report.expect("heartbeats go on").unwrap().up);
    let panics = task_panics().into_iter().find(|panics| panics.task == "heartbeat").unwrap();
    assert!(panics.count >= 1 && panics.message.contains("an impossible value"), "{panics:?}");
    assert!(stats(&app).heartbeat_age.is_some());
    heartbeats.unwrap().abort();
}

//! Waiting over HTTP: handed over at once, in vain at the deadline, and nothing left of the gone.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::{CATALOG, give, post, said, site, take};
use crate::served::Served;

/// Waits until so many wait.
fn waiting(served: &Served, count: u64) {
    let patience = Instant::now() + Duration::from_secs(10);
    while served.ask("GET /v1/stats/locks", &[]).json()["waiters"] != count {
        assert!(Instant::now() < patience, "not {count} waiters");
    }
}

/// L02.
#[test]
fn a_hundred_waiters_are_served_one_after_the_other() {
    let served = site(CATALOG);
    let fences: Vec<i64> = thread::scope(|scope| {
        let callers: Vec<_> = (0..100)
            .map(|_| {
                let served = &served;
                scope.spawn(move || {
                    let lease = take(served, &json!({ "key": "p", "wait_ms": 20_000 }));
                    assert_eq!(give(served, &lease), "released");
                    lease["fence"].as_i64().unwrap()
                })
            })
            .collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).collect()
    });
    let mut unique = fences.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), 100);
    let stats = served.ask("GET /v1/stats/locks", &[]).json();
    assert_eq!((&stats["success"], &stats["released"]), (&100.into(), &100.into()), "{stats}");
}

/// L16.
#[test]
fn whoever_hangs_up_loses_its_place() {
    let served = site(CATALOG);
    let held = take(&served, &json!({ "key": "p", "ttl_ms": 60_000 }));
    let mut gone = served.connect();
    gone.post("/v1/locks/acquire", r#"{"key":"p","wait_ms":30000}"#);
    waiting(&served, 1);
    let mut next = served.connect();
    next.post("/v1/locks/acquire", r#"{"key":"p","wait_ms":30000}"#);
    waiting(&served, 2);
    drop(gone);
    waiting(&served, 1);
    let begun = Instant::now();
    assert_eq!(give(&served, &held), "released");
    assert_eq!(next.answer().status, 200);
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
}

/// L18, and a wait that is longer than anybody's patience with a request.
/// covers: B-75
#[test]
fn a_deadline_ends_the_wait_and_a_long_wait_is_nobodys_impatience() {
    let catalog = format!("{CATALOG}[server]\nbody_timeout = '200ms'\nanswer_timeout = '200ms'\n");
    let served = site(&catalog);
    let held = take(&served, &json!({ "key": "p", "ttl_ms": 60_000 }));
    let begun = Instant::now();
    let missed = post(&served, "/v1/locks/acquire", &json!({ "key": "p", "wait_ms": 1_000 }));
    assert_eq!(missed.status, 409);
    assert!(begun.elapsed() >= Duration::from_millis(1_000));
    assert!(missed.header("retry-after").is_some_and(|wait| wait.parse::<u64>().unwrap() > 50));
    assert_eq!(served.ask("GET /v1/stats/locks", &[]).json()["waiters"], 0);
    give(&served, &held);
    let stats = served.ask("GET /v1/stats/locks", &[]).json();
    assert_eq!((&stats["active"], &stats["conflicts"]), (&0.into(), &1.into()), "{stats}");
}

/// L17. The holder never gives it back, so nothing is sent that could be lost.
#[test]
fn a_waiter_needs_nobody_to_tell_it_that_the_holders_time_is_over() {
    let served = site(CATALOG);
    let before = Instant::now();
    let held = take(&served, &json!({ "key": "p", "kind": "quick" }));
    let told = Instant::now();
    let next = take(&served, &json!({ "key": "p", "kind": "quick", "wait_ms": 20_000 }));
    assert!(before.elapsed() >= Duration::from_millis(400), "{held}");
    assert!(told.elapsed() < Duration::from_millis(1_400), "{:?}", told.elapsed());
    assert!(next["fence"].as_i64() > held["fence"].as_i64());
}

/// Told to stop, the server answers whoever waits, and does not wait for them.
#[test]
fn a_stop_answers_whoever_waits_at_once() {
    let served = Served::with(CATALOG);
    take(&served, &json!({ "key": "p", "ttl_ms": 60_000 }));
    let mut waiter = served.connect();
    waiter.post("/v1/locks/acquire", r#"{"key":"p","wait_ms":30000}"#);
    waiting(&served, 1);
    let begun = Instant::now();
    served.signal("TERM");
    assert_eq!(said(&waiter.answer()), (503, "locks-stopping".to_owned()));
    let (status, told) = served.ended();
    assert!(status.success(), "{told}");
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

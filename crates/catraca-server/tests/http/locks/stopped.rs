//! Locks over a stop in order, a crash after it, and what a careful start tells about itself.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::world::{history, right};
use super::{CATALOG, give, post, said, take};
use crate::served::{Served, file};
use crate::talk::Answer;

/// Told to stop, and gone.
fn stopped(served: Served) {
    served.signal("TERM");
    let (status, said) = served.ended();
    assert!(status.success(), "{said}");
}

fn renew(served: &Served, lease: &Value) -> Answer {
    let body = json!({ "lease_id": lease["lease_id"], "ttl_ms": 60_000 });
    post(served, "/v1/locks/renew", &body)
}

fn gauge(served: &Served) -> String {
    let text = served.ask("GET /metrics", &[]).body;
    let line = text.lines().find(|line| line.starts_with("catraca_locks_starting "));
    line.unwrap().to_owned()
}

/// covers: B-72
#[test]
fn a_server_that_is_told_to_stop_forgets_no_lease_and_refuses_nobody_after_it() {
    let file = file(CATALOG);
    let served = Served::of(&file);
    let long = take(&served, &json!({ "key": "long", "ttl_ms": 60_000, "owner_label": "ana" }));
    let short = take(&served, &json!({ "key": "short", "ttl_ms": 60_000 }));
    stopped(served);
    let served = Served::of(&file);
    assert_eq!(gauge(&served), "catraca_locks_starting 0");
    let taken = post(&served, "/v1/locks/acquire", &json!({ "key": "long" }));
    assert_eq!(said(&taken).0, 409, "{taken:?}");
    let told = taken.json();
    assert_eq!(told["holder"]["owner_label"], "ana", "{told}");
    let left = told["retry_after_ms"].as_i64();
    assert!(left.is_some_and(|left| (40_000..=60_000).contains(&left)), "{told}");
    let renewed = renew(&served, &long);
    assert_eq!((renewed.status, &renewed.json()["fence"]), (200, &long["fence"]), "{renewed:?}");
    let fresh = take(&served, &json!({ "key": "fresh", "ttl_ms": 3_000 }));
    assert!(fresh["fence"].as_i64() > short["fence"].as_i64());
    assert_eq!(give(&served, &short), "released");
    let all = served.ask("GET /v1/stats/locks", &[]).json();
    let count = |name: &str| all[name].as_u64().unwrap();
    assert_eq!(count("success"), count("active") + count("released"), "{all}");
    assert_eq!(count("total"), count("success") + count("conflicts"), "{all}");
    // A crash after that is as careful as any: nobody knows what was given since.
    served.signal("KILL");
    drop(served);
    let served = Served::of(&file);
    for key in ["short", "long", "new"] {
        let refused = post(&served, "/v1/locks/acquire", &json!({ "key": key }));
        assert_eq!(said(&refused), (503, "locks-starting".to_owned()));
    }
    assert_eq!(said(&renew(&served, &short)), (409, "not-holder".to_owned()));
    // Nor does a stop while it waits make it forget why.
    stopped(served);
    let served = Served::of(&file);
    let refused = post(&served, "/v1/locks/acquire", &json!({ "key": "new" }));
    assert_eq!(said(&refused), (503, "locks-starting".to_owned()));
}

/// covers: 004-93
#[test]
fn a_server_that_was_told_to_stop_gives_nothing_to_two() {
    for (durability, seed) in [("memory", 41), ("fsync", 51)] {
        let file = file(&format!("{CATALOG}[locks]\ndurability = '{durability}'\n"));
        let again = file.clone();
        let history = history(&file, seed, move |served| {
            stopped(served);
            Served::of(&again)
        });
        right(&history, 0);
    }
}

#[test]
fn a_careful_start_is_told_to_operators_while_it_lasts() {
    let file = file(CATALOG);
    let served = Served::of(&file);
    assert_eq!(gauge(&served), "catraca_locks_starting 0");
    take(&served, &json!({ "key": "p", "ttl_ms": 4_000 }));
    served.signal("KILL");
    drop(served);
    let (killed, served) = (Instant::now(), Served::of(&file));
    let ready = served.ask("GET /readyz", &[]).json();
    let problem = &ready["problems"][0];
    assert_eq!((&ready["ready"], &problem["what"]), (&true.into(), &"locks".into()), "{ready}");
    assert!(problem["why"].as_str().unwrap().contains(" s more"), "{ready}");
    assert_eq!(gauge(&served), "catraca_locks_starting 1");
    while gauge(&served) == "catraca_locks_starting 1" {
        assert!(killed.elapsed() < Duration::from_secs(20), "it does not end");
        thread::park_timeout(Duration::from_millis(50));
    }
    assert!(killed.elapsed() >= Duration::from_millis(3_900), "{:?}", killed.elapsed());
    assert_eq!(served.ask("GET /readyz", &[]).json()["problems"], json!([]));
    take(&served, &json!({ "key": "p" }));
    served.signal("TERM");
    let said = served.ended().1;
    assert_eq!(said.matches("locks wait").count(), 1, "{said}");
}

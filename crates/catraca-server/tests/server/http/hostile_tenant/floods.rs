//! Floods of one tenant through what all tenants share: the live feed, the queue of the records,
//! the reader of bodies, and facts.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{CUSTOMER, Tenants, send};

/// The longest time for a call beside a flood, on a machine that has other work too.
const SLOWEST: Duration = Duration::from_secs(10);

/// Calls `flood` on four threads until `measure` has returned. Returns its result, and how many
/// calls of the flood were answered before that.
fn beside<R>(flood: impl Fn(u32) + Sync, measure: impl FnOnce() -> R) -> (R, u32) {
    let is_over = AtomicBool::new(false);
    let calls = AtomicU32::new(0);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    flood(calls.fetch_add(1, Ordering::Relaxed));
                }
            });
        }
        while calls.load(Ordering::Relaxed) < 20 {
            thread::yield_now();
        }
        let result = measure();
        is_over.store(true, Ordering::Relaxed);
        (result, calls.load(Ordering::Relaxed))
    })
}

/// The bound: a listener of one namespace lags behind 1,024 events of that namespace, and behind no
/// other. That the channels are apart is tested in `feed`; here, that the stream goes on.
#[test]
fn denials_of_one_tenant_do_not_disconnect_the_listener_of_another() {
    let all = Tenants::start();
    let listen = |key: &crate::keys::Key| {
        let mut connection = all.server.connect();
        let bearer = format!("Bearer {}", key.key);
        connection.send("GET /v1/events", &[("Authorization", &bearer)], b"");
        connection.read_until(": listening");
        connection
    };
    let mut shop = listen(&all.shop_support);
    let login = json!({ "gate": "login", "subject": { "customer": "m" } });
    let denied = all.checks(&all.hostile, 20_000, |_| login.clone());
    let denied = denied.iter().filter(|decision| decision["allowed"] == false).count();
    let block = json!({ "policy": "login", "subject": { "customer": CUSTOMER }, "for": "1h",
        "namespace": "shop" });
    all.post(&all.operator, "/v1/blocks", &block);
    let events = shop.read_until(CUSTOMER);
    println!(
        "{denied} denials of one tenant; the listener of the shop gets its own event, and {} bytes \
         of others",
        events.split("event: ").next().unwrap_or_default().trim().len()
    );
    assert_eq!(denied, 19_998);
    assert!(!events.contains("missed") && !events.contains("denied"), "{events}");
}

/// The bound: an act is written in the order of the queue, which has 65,536 records, each of a few
/// microseconds; operators' acts have a tenth more.
#[test]
fn acts_of_another_are_durable_beside_a_flood_of_records() {
    let all = Tenants::start();
    let entries = |call: u32| {
        let entry = |n: u32| {
            json!({ "attribute": "customer", "value": format!("invented-{n}"),
                "reason": format!("call {call}") })
        };
        json!((0..1_000).map(entry).collect::<Vec<Value>>()).to_string()
    };
    let flood = |call: u32| {
        let answer = all.hostile_admin.post(&all.server, "/v1/blocklist", &entries(call));
        assert_eq!(answer.status, 200, "{}", answer.body);
    };
    let measure = || {
        (0..20).map(|n| {
            let subject = json!({ "customer": format!("of-the-shop-{n}") });
            let block = json!({ "policy": "login", "subject": subject, "for": "1h",
                "namespace": "shop" });
            let begun = Instant::now();
            let made = all.post(&all.operator, "/v1/blocks", &block);
            (made["durable"] == true, begun.elapsed())
        })
    };
    let (acts, calls) = beside(flood, || measure().collect::<Vec<(bool, Duration)>>());
    let durable = acts.iter().filter(|(durable, _)| *durable).count();
    let slowest = acts.iter().map(|(_, took)| *took).max().unwrap_or_default();
    println!(
        "beside {calls} calls of one tenant with 1000 records each: {durable} of 20 acts for the \
         shop are durable when they are answered, the slowest after {slowest:?}"
    );
    assert_eq!(durable, 20);
    assert!(slowest < SLOWEST, "{slowest:?}");
}

/// The bound: a batch has 100 checks, a body `body_max` bytes, and JSON 128 levels.
#[test]
fn full_batches_and_deep_json_of_one_tenant_do_not_stop_the_checks_of_another() {
    let all = Tenants::start();
    let long = "x".repeat(200);
    let checks: Vec<Value> = (0..100)
        .map(|n| json!({ "gate": "spend", "subject": { "customer": format!("{long}{n}") } }))
        .collect();
    let batch = json!(checks).to_string();
    let deep = format!("{}1{}", "[".repeat(250_000), "]".repeat(250_000));
    let check = json!({ "gate": "rules", "subject": { "customer": "m" } });
    let refused = AtomicU32::new(0);
    let flood = |call: u32| {
        if call.is_multiple_of(2) {
            all.hostile.post(&all.server, "/v1/check/batch", &batch);
            return;
        }
        let ticket = all.post(&all.hostile, "/v1/check", &check)["ticket"].to_string();
        let outcome = format!(r#"{{"status":200,"cost":0,"body":{deep}}}"#);
        let body = format!(r#"{{"ticket":{ticket},"outcome":{outcome}}}"#);
        for (path, body) in [("/v1/settle", &body), ("/v1/check", &deep)] {
            let status = all.hostile.post(&all.server, path, body).status;
            assert!(status < 500, "{path}: {status}");
            refused.fetch_add(u32::from(status != 200), Ordering::Relaxed);
        }
    };
    let check = json!({ "gate": "spend", "subject": { "customer": "c-1" }, "cost": 0 });
    let measure = || {
        (0..200).map(|_| {
            let begun = Instant::now();
            all.post(&all.shop, "/v1/check", &check);
            begun.elapsed()
        })
    };
    let (mut latencies, calls) = beside(flood, || measure().collect::<Vec<Duration>>());
    latencies.sort_unstable();
    let median = latencies[latencies.len() / 2];
    let slowest = latencies.last().copied().unwrap_or_default();
    println!(
        "beside {calls} full batches or bodies of 250000 levels ({} refused): 200 checks of the \
         shop, median {median:?}, slowest {slowest:?}",
        refused.load(Ordering::Relaxed)
    );
    assert!(refused.load(Ordering::Relaxed) > 0);
    assert!(slowest < SLOWEST, "{slowest:?}");
}

/// The bound: 10,000 facts of a namespace. Those of others are set and apply.
#[test]
fn facts_of_one_tenant_are_bounded() {
    let all = Tenants::start();
    let facts: Value = (0..32).map(|n| (format!("f{n}"), json!("x"))).collect();
    let set = |key: &crate::keys::Key, customer: &str, body: &Value| {
        let call = format!("PUT /v1/facts/customer/{customer}");
        send(&all.server, key, &call, &body.to_string())
    };
    let mut accepted = 0;
    let refusal = (0..400).find_map(|n| {
        let body = json!({ "facts": facts });
        let answer = set(&all.hostile_admin, &format!("invented-{n}"), &body);
        accepted += if answer.status == 200 { 32 } else { 0 };
        (answer.status != 200).then(|| (answer.status, answer.problem_code()))
    });
    let gold = json!({ "facts": { "plan": "gold" }, "namespace": "shop" });
    let of_the_shop = set(&all.operator, CUSTOMER, &gold);
    println!("{accepted} facts of one tenant, then {refusal:?}; the shop sets its own after that");
    assert!((9_968..=10_000).contains(&accepted), "{accepted}");
    assert_eq!(refusal.map(|(status, _)| status), Some(400));
    assert_eq!(of_the_shop.status, 200, "{}", of_the_shop.body);
}

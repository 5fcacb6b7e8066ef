//! What one tenant can use up that all tenants share: locks, waiting callers, connections and the
//! processor.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Tenants;
use crate::keys::Key;
use crate::raw_connection::{JSON, RawConnection, head};

/// The address of the hostile tenant, and that of the shop.
const ATTACKER: &str = "127.0.0.2";
const CALLER: &str = "127.0.0.3";
/// A slow machine may need this long for one call; a tenant that is starved waits longer.
const PROMPT: Duration = Duration::from_secs(2);

fn post(connection: &mut RawConnection, key: &Key, path: &str, body: &Value) {
    let bearer = format!("Bearer {}", key.key);
    let headers = [JSON, ("Authorization", bearer.as_str())];
    connection.send(&format!("POST {path}"), &headers, body.to_string().as_bytes());
}

/// Acquires a lock of the shop on a connection of its own; returns how long it took.
fn acquire_in_shop(all: &Tenants, name: &str) -> Duration {
    let mut connection = all.server.connect_from(CALLER);
    let begun = Instant::now();
    let lock = json!({ "key": name, "ttl_ms": 60_000 });
    post(&mut connection, &all.shop, "/v1/locks/acquire", &lock);
    let answer = connection.read_response();
    assert_eq!(answer.status, 200, "{}", answer.body);
    begun.elapsed()
}

/// The bound: leases are counted per namespace, so those of one do not refuse those of another.
#[test]
fn locks_of_one_tenant_take_none_from_another() {
    let all = Tenants::start();
    let mut connection = all.server.connect_from(ATTACKER);
    let mut granted = 0;
    for n in 0..3_000 {
        let lock = json!({ "key": format!("order-{n}"), "ttl_ms": 60_000 });
        post(&mut connection, &all.hostile, "/v1/locks/acquire", &lock);
        granted += u32::from(connection.read_response().status == 200);
    }
    let slowest = (0..100).map(|n| acquire_in_shop(&all, &format!("order-{n}"))).max();
    println!("{granted} leases of one tenant; the slowest of 100 of the shop took {slowest:?}");
    assert_eq!(granted, 3_000);
    assert!(slowest.is_some_and(|slowest| slowest < PROMPT), "{slowest:?}");
}

/// The bound: an address may take half of all connections, also to wait for locks, and at most 256
/// more whose request arrived while they were chosen to be closed. A waiting caller of one
/// namespace is never in the queue of another.
#[test]
fn waiting_callers_of_one_tenant_do_not_keep_out_those_of_another() {
    let all = Tenants::with_settings("[server]\nconnections_max = 400\n");
    let held = json!({ "key": "order-7", "ttl_ms": 60_000 });
    all.post(&all.hostile, "/v1/locks/acquire", &held);
    let wait = json!({ "key": "order-7", "wait_ms": 30_000 }).to_string();
    let bearer = format!("Bearer {}", all.hostile.key);
    let headers = [JSON, ("Authorization", bearer.as_str()), ("Expect", "100-continue")];
    let request = head("POST /v1/locks/acquire", &headers, Some(wait.len()));
    let mut waiting: Vec<RawConnection> = Vec::new();
    for _ in 0..250 {
        let mut connection = all.server.connect_from(ATTACKER);
        // A connection above the limit may be closed before the request is sent.
        let sent = connection.try_send_bytes(&request);
        let answer = sent.and_then(|()| connection.try_read_response());
        if answer.is_ok_and(|answer| answer.status == 100) {
            connection.send_bytes(wait.as_bytes());
            waiting.push(connection);
        }
    }
    let deadline = Instant::now() + Duration::from_secs(20);
    let waiters = loop {
        let answer = all.operator.request(&all.server, "GET /metrics").body;
        let line = answer.lines().find_map(|line| line.strip_prefix("catraca_lock_waiters "));
        let waiters: u32 = line.unwrap().parse().unwrap();
        if waiters >= 200 || Instant::now() > deadline {
            break waiters;
        }
    };
    let took = acquire_in_shop(&all, "order-7");
    println!(
        "250 connections of one tenant that wait for a lock: {waiters} wait, the others are \
         refused; the shop gets its lock of the same name in {took:?}"
    );
    assert_eq!(waiters, 200, "half of `connections_max`");
    assert!(took < PROMPT, "{took:?}");
    drop(waiting);
}

/// The bound: at most one settle of a kind that takes long runs per processor, on a thread of its
/// own, so that checks are answered between them.
#[test]
fn expensive_settles_of_one_tenant_do_not_stop_the_checks_of_another() {
    let all = Tenants::start();
    let text = "lorem ipsum dolor ".repeat(3_400);
    let items: Vec<Value> = (0..500).map(|n| json!({ "code": n, "kind": "rejected" })).collect();
    let outcome = json!({ "status": 200, "cost": 0, "body": { "text": text, "items": items } });
    let is_over = AtomicBool::new(false);
    let settled = AtomicU32::new(0);
    let mut latencies: Vec<Duration> = thread::scope(|scope| {
        for n in 0..4 {
            let (all, outcome, is_over, settled) = (&all, &outcome, &is_over, &settled);
            scope.spawn(move || {
                let check = json!({ "gate": "rules", "subject": { "customer": format!("m{n}") } });
                while !is_over.load(Ordering::Relaxed) {
                    let ticket = all.post(&all.hostile, "/v1/check", &check)["ticket"].clone();
                    let settle = json!({ "ticket": ticket, "outcome": outcome });
                    all.post(&all.hostile, "/v1/settle", &settle);
                    settled.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let check = json!({ "gate": "spend", "subject": { "customer": "c-1" }, "cost": 0 });
        let mut latencies = Vec::new();
        while settled.load(Ordering::Relaxed) < 40 || latencies.len() < 100 {
            let begun = Instant::now();
            all.post(&all.shop, "/v1/check", &check);
            latencies.push(begun.elapsed());
        }
        is_over.store(true, Ordering::Relaxed);
        latencies
    });
    latencies.sort_unstable();
    let median = latencies[latencies.len() / 2];
    let slowest = latencies.last().copied().unwrap_or_default();
    println!(
        "beside {} settles of 60 KiB with four expensive rules: {} checks of the shop, median \
         {median:?}, slowest {slowest:?}",
        settled.load(Ordering::Relaxed),
        latencies.len()
    );
    assert!(median < PROMPT, "{median:?}");
}

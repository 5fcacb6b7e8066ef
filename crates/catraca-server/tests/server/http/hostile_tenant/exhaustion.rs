//! What one tenant can use up that all tenants share: locks, waiting callers, connections and the
//! processor.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Tenants;
use crate::keys::Key;
use crate::raw_connection::{JSON, RawConnection, head};
use crate::test_server::catalog_file;

/// The address of the hostile tenant, and that of the shop.
const ATTACKER: &str = "127.0.0.2";
const CALLER: &str = "127.0.0.3";
/// A slow machine may need this long for one call; a tenant that is starved waits longer.
const PROMPT: Duration = Duration::from_secs(2);
/// The longest time for a check beside expensive work, on a machine that has other work too.
const SLOWEST: Duration = Duration::from_secs(5);

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
    assert!(slowest < SLOWEST, "{slowest:?}");
}

/// The bound: each address may take half of what the others leave, so two addresses take three
/// quarters of all connections, and `n` leave 1 in 2^n.
#[test]
fn two_addresses_of_one_tenant_leave_connections_for_another() {
    let all = Tenants::with_settings("[server]\nconnections_max = 80\n");
    let held = json!({ "key": "order-7", "ttl_ms": 60_000 });
    all.post(&all.hostile, "/v1/locks/acquire", &held);
    let wait = json!({ "key": "order-7", "wait_ms": 30_000 }).to_string();
    let bearer = format!("Bearer {}", all.hostile.key);
    let headers = [JSON, ("Authorization", bearer.as_str()), ("Expect", "100-continue")];
    let request = head("POST /v1/locks/acquire", &headers, Some(wait.len()));
    let mut waiting: Vec<RawConnection> = Vec::new();
    let mut taken = Vec::new();
    for source in [ATTACKER, "127.0.0.4"] {
        let before = waiting.len();
        for _ in 0..80 {
            let mut connection = all.server.connect_from(source);
            let sent = connection.try_send_bytes(&request);
            let answer = sent.and_then(|()| connection.try_read_response());
            if answer.is_ok_and(|answer| answer.status == 100) {
                connection.send_bytes(wait.as_bytes());
                waiting.push(connection);
            }
        }
        taken.push(waiting.len() - before);
    }
    let slowest = (0..20).map(|n| acquire_in_shop(&all, &format!("order-{n}"))).max();
    println!(
        "of 80 connections two addresses of one tenant take {taken:?}; the slowest of 20 calls of \
         the shop takes {slowest:?}"
    );
    assert!(taken[0] <= 40 && taken[1] <= 20, "{taken:?}");
    assert!(taken[0] >= 38 && taken[1] >= 18, "{taken:?}");
    assert!(slowest.is_some_and(|slowest| slowest < PROMPT), "{slowest:?}");
    drop(waiting);
}

/// The bound: 1,000 pairs of caller and gate in each namespace; more are counted together.
#[test]
fn invented_names_of_programs_are_bounded_in_each_namespace() {
    let all = Tenants::start();
    let check = json!({ "gate": "spend", "subject": { "customer": "c" }, "cost": 0 }).to_string();
    let send = |key: &Key, name: &str, connection: &mut RawConnection| {
        let bearer = format!("Bearer {}", key.key);
        let headers = [JSON, ("Authorization", &bearer), ("Catraca-Caller", name)];
        connection.send("POST /v1/check", &headers, check.as_bytes());
        assert_eq!(connection.read_response().status, 200);
    };
    let mut connection = all.server.connect_from(ATTACKER);
    for n in 0..1_500 {
        send(&all.hostile, &format!("invented-{n}"), &mut connection);
    }
    send(&all.shop, "shop/1.4", &mut connection);
    let pairs = |key: &Key| {
        let stats = key.request(&all.server, "GET /v1/stats/callers").json();
        stats["callers"].as_array().unwrap().clone()
    };
    let own = pairs(&all.hostile_admin);
    let other = own.iter().find(|pair| pair["caller"] == "(other)").unwrap();
    let shop = pairs(&all.operator);
    let shop = shop.iter().find(|pair| pair["namespace"] == "shop").unwrap();
    println!(
        "1500 invented programs of one tenant: {} pairs, {} checks without a pair of their own; \
         the shop has its pair {}",
        own.len(),
        other["checks"],
        shop["caller"]
    );
    assert_eq!((own.len(), &other["checks"]), (1_001, &json!(500)));
    assert_eq!(shop["caller"], "shop/1.4");
}

/// The bound: 10,000 entries of a namespace in each list. Checks of others do not get slower.
#[test]
fn list_entries_of_one_tenant_are_bounded() {
    let all = Tenants::start();
    let mut refusal = None;
    let mut accepted = 0;
    for part in 0..11 {
        let numbers = part * 1_000..(part + 1) * 1_000;
        let entries: Vec<Value> = numbers
            .map(|n| json!({ "attribute": "customer", "value": format!("invented-{n}") }))
            .collect();
        let body = json!(entries).to_string();
        let answer = all.hostile_admin.post(&all.server, "/v1/blocklist", &body);
        match answer.status {
            200 => accepted += 1_000,
            _ => refusal = Some((answer.status, answer.problem_code())),
        }
    }
    let check = json!({ "gate": "spend", "subject": { "customer": "invented-7" }, "cost": 0 });
    let begun = Instant::now();
    let passed = all.post(&all.shop, "/v1/check", &check);
    let took = begun.elapsed();
    println!("{accepted} list entries of one tenant, then {refusal:?}; a check takes {took:?}");
    assert_eq!(accepted, 10_000);
    assert_eq!(refusal.map(|(status, _)| status), Some(400));
    assert_eq!(passed["reason"], "ok", "{passed}");
    assert!(took < PROMPT, "{took:?}");
}

/// The bound: rows have a size, and are deleted when they are older than `keep_history` and
/// `keep_audit`; their number until then is bounded by the rate of acts alone.
#[test]
fn each_row_of_the_records_that_a_tenant_causes_is_small() {
    let file = catalog_file("");
    let all = Tenants::over(&file, "");
    let acts = 500;
    let reason = "r".repeat(500);
    for n in 0..acts {
        let block = json!({ "policy": "login", "subject": { "customer": format!("invented-{n}") },
            "for": "1h", "reason": reason, "why": reason });
        all.post(&all.hostile_admin, "/v1/blocks", &block);
    }
    all.server.signal("TERM");
    all.server.wait_for_exit();
    let each = file.with_file_name("catraca.db").metadata().unwrap().len() / acts;
    println!(
        "{acts} blocks by an operator of one tenant with the longest texts: {each} bytes each"
    );
    assert!(each < 8 * 1_024, "{each}");
}

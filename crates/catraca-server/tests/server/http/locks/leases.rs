//! Leases: one holder, the four ways to end, and repeated requests.

use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{CATALOG, acquire, lock_server, post, release, status_and_code};
use crate::keys::keygen;
use crate::raw_connection::JSON;

/// L01.
/// covers: 004-21, 004-38, B-64
#[test]
fn of_a_hundred_at_once_one_is_granted_and_all_others_see_the_winners_version() {
    let server = lock_server(CATALOG);
    let barrier = Barrier::new(100);
    let answers = thread::scope(|scope| {
        let callers: Vec<_> = (0..100)
            .map(|number| {
                let server = &server;
                let barrier = &barrier;
                scope.spawn(move || {
                    let mut connection = server.connect();
                    barrier.wait();
                    connection.post(
                        "/v1/locks/acquire",
                        &json!({ "key": "p", "version": number }).to_string(),
                    );
                    connection.read_response()
                })
            })
            .collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).collect::<Vec<_>>()
    });
    let winners: Vec<_> = answers.iter().filter(|answer| answer.status == 200).collect();
    assert_eq!(winners.len(), 1);
    let version = &winners[0].json()["version"];
    for loser in answers.iter().filter(|answer| answer.status != 200) {
        let conflict = loser.json();
        assert_eq!((loser.status, &conflict["holder"]["version"]), (409, version), "{conflict}");
        assert_eq!(conflict["conflict"], true);
        assert!(!loser.body.contains("lease_id"), "{conflict}");
        // A conflict shows nothing that could end the winner's lease.
        assert!(conflict["holder"].get("fence").is_none());
    }
    let stats = server.request("GET /v1/stats/locks", &[]).json();
    assert_eq!(
        (&stats["total"], &stats["success"], &stats["conflicts"]),
        (&100.into(), &1.into(), &99.into())
    );
}

/// L03, L06. A lease ends at its microsecond; the time on the wire is on the safe side.
/// covers: 004-25, 004-29, 004-62, 004-84
#[test]
fn a_lease_lasts_as_long_as_it_said_and_not_longer() {
    let server = lock_server(CATALOG);
    let before = Instant::now();
    let lease = acquire(&server, &json!({ "key": "p", "kind": "quick" }));
    assert!(lease["ttl_ms"].as_i64().unwrap() <= 400);
    let mut conflicts = 0;
    loop {
        let sent_at = Instant::now();
        let answer = post(&server, "/v1/locks/acquire", &json!({ "key": "p", "kind": "quick" }));
        if answer.status == 200 {
            assert!(
                before.elapsed() >= Duration::from_millis(400),
                "the lease was granted to another caller too early"
            );
            assert!(answer.json()["fence"].as_i64() > lease["fence"].as_i64());
            break;
        }
        // This request was sent after the end of the lease, so the lock must be free.
        assert!(sent_at.duration_since(before) < Duration::from_millis(900), "{answer:?}");
        conflicts += 1;
    }
    assert!(conflicts > 0);
    // A's lease has expired and cannot be renewed; B's lease is not changed by A's release.
    assert_eq!(
        status_and_code(&post(
            &server,
            "/v1/locks/renew",
            &json!({ "lease_id": lease["lease_id"] })
        )),
        (410, "lease-expired".to_owned())
    );
    assert_eq!(release(&server, &lease), "expired");
    let taken = post(&server, "/v1/locks/acquire", &json!({ "key": "p", "kind": "quick" }));
    assert_eq!(taken.status, 409);
}

/// L04, L05, L06.
/// covers: 004-28, 004-29, 004-61
#[test]
fn only_the_holder_renews_and_releases_and_every_end_has_its_name() {
    let server = lock_server(CATALOG);
    let body = json!({ "key": "p", "tenant": "t1", "kind": "payment", "version": 7 });
    let answer = post(&server, "/v1/locks/acquire", &body);
    let lease = answer.json();
    assert_eq!(answer.header("x-lock-version"), Some("7"));
    assert_eq!(answer.header("x-lock-fence"), Some(lease["fence"].to_string().as_str()));
    let expires: i64 = answer.header("x-lock-expires").unwrap().parse().unwrap();
    let acquired = lease["fence"].as_i64().unwrap() / 1_000;
    assert!((expires - acquired - 30_000).abs() <= 1, "{lease}");
    let stranger = json!({ "lease_id": "0123456789abcdef0123456789abcdef" });
    assert_eq!(release(&server, &stranger), "not_holder");
    assert_eq!(
        status_and_code(&post(&server, "/v1/locks/renew", &stranger)),
        (409, "not-holder".to_owned())
    );
    let renewed = post(
        &server,
        "/v1/locks/renew",
        &json!({ "lease_id": lease["lease_id"], "ttl_ms": 60_000 }),
    );
    assert_eq!((renewed.status, &renewed.json()["fence"]), (200, &lease["fence"]));
    assert!(renewed.json()["expires_at"].as_str() > lease["expires_at"].as_str());
    assert_eq!(release(&server, &lease), "released");
    assert_eq!(release(&server, &lease), "already_released");
    assert_eq!(
        status_and_code(&post(
            &server,
            "/v1/locks/renew",
            &json!({ "lease_id": lease["lease_id"] })
        )),
        (410, "lease-expired".to_owned())
    );
    let next = acquire(&server, &body);
    assert_eq!(release(&server, &lease), "already_released");
    assert_eq!(post(&server, "/v1/locks/acquire", &body).status, 409, "{next}");
}

/// L07.
#[test]
fn renewals_end_where_they_must() {
    let server = lock_server(CATALOG);
    let body = json!({ "key": "p", "ttl_ms": 5_000, "max_hold_ms": 5_000 });
    let lease = acquire(&server, &body);
    let renewed = post(&server, "/v1/locks/renew", &json!({ "lease_id": lease["lease_id"] }));
    assert_eq!(status_and_code(&renewed), (409, "max-hold-reached".to_owned()));
    assert_eq!(lease["renewable_until"], lease["expires_at"]);
}

/// L09, L10.
#[test]
fn a_repeated_request_gets_the_same_lease_and_counts_once() {
    let server = lock_server(CATALOG);
    let body = json!({ "key": "p", "request_id": "r-1", "ttl_ms": 20_000 });
    // The response of the first request is not read, as if it had been lost.
    let mut lost = server.connect();
    lost.post("/v1/locks/acquire", &body.to_string());
    let first = lost.read_response().json();
    let again = acquire(&server, &body);
    for field in ["lease_id", "fence", "version", "expires_at", "acquired_at", "keys"] {
        assert_eq!(first[field], again[field], "{field}");
    }
    let other = json!({ "key": "p", "request_id": "r-1", "ttl_ms": 20_001 });
    assert_eq!(
        status_and_code(&post(&server, "/v1/locks/acquire", &other)),
        (422, "request-id-reused".to_owned())
    );
    let stats = server.request("GET /v1/stats/locks", &[]).json();
    assert_eq!((&stats["total"], &stats["success"]), (&1.into(), &1.into()));
    assert_eq!(release(&server, &first), "released");
    assert_eq!(
        status_and_code(&post(&server, "/v1/locks/acquire", &body)),
        (410, "request-expired".to_owned())
    );
}

/// L08, L11.
/// covers: 004-42
#[test]
fn a_version_is_a_note_or_must_rise_but_is_never_a_proof() {
    let server = lock_server(CATALOG);
    let plain = json!({ "key": "p", "version": 5 });
    acquire(&server, &plain);
    assert_eq!(post(&server, "/v1/locks/acquire", &plain).status, 409);
    let mut said_so = Vec::new();
    for version in [5, 4, 5, 6] {
        let body = json!({ "key": "q", "version": version, "version_policy": "monotonic" });
        let answer = post(&server, "/v1/locks/acquire", &body);
        if answer.status == 200 {
            release(&server, &answer.json());
        } else {
            assert_eq!(answer.problem_code(), "stale-version");
        }
        said_so.push(answer.status);
    }
    assert_eq!(said_so, [200, 409, 409, 200]);
}

/// L12, L13.
#[test]
fn several_names_are_all_or_none_in_any_order() {
    let server = lock_server(CATALOG);
    let held = acquire(&server, &json!({ "key": "b" }));
    let both = post(&server, "/v1/locks/acquire", &json!({ "keys": ["a", "b"] }));
    assert_eq!((both.status, &both.json()["taken"]), (409, &"b".into()));
    let a = acquire(&server, &json!({ "key": "a" }));
    release(&server, &a);
    release(&server, &held);
    thread::scope(|scope| {
        for number in 0..16 {
            let server = &server;
            scope.spawn(move || {
                let keys = if number % 2 == 0 { json!(["a", "b"]) } else { json!(["b", "a"]) };
                for _ in 0..20 {
                    let lease = acquire(server, &json!({ "keys": keys, "wait_ms": 30_000 }));
                    assert_eq!(release(server, &lease), "released");
                }
            });
        }
    });
    let stats = server.request("GET /v1/stats/locks", &[]).json();
    assert_eq!(stats["released"], 322, "{stats}");
}

/// L28 and invalid input: refused, and no lock is acquired.
/// covers: 004-83, 004-34, 004-35, 004-36
#[test]
fn odd_names_never_meet_and_wrong_ones_are_refused() {
    let server = lock_server(CATALOG);
    for (tenant, key) in [("a{b}", "x"), ("a", "{b}x"), ("a:b", "x"), ("a", "b:x"), ("a", "b}x")] {
        acquire(&server, &json!({ "tenant": tenant, "key": key }));
    }
    let long = "x".repeat(257);
    let many: Vec<String> = (0..17).map(|number| number.to_string()).collect();
    let wrong = [
        json!({ "key": "" }),
        json!({ "key": "a\nb" }),
        json!({ "key": long }),
        json!({ "key": "a", "tenant": "" }),
        json!({ "key": "a", "ttl_ms": 0 }),
        json!({ "key": "a", "ttl_ms": 300_001 }),
        json!({ "key": "a", "wait_ms": 30_001 }),
        json!({ "key": "a", "version": -1 }),
        json!({ "key": "a", "version_policy": "monotonic" }),
        json!({ "key": "a", "meta": "x".repeat(1_025) }),
        json!({ "keys": [] }),
        json!({ "keys": ["a", "a"] }),
        json!({ "keys": many }),
        json!({ "key": "a", "keys": ["b"] }),
        json!({}),
    ];
    for body in wrong {
        let answer = post(&server, "/v1/locks/acquire", &body);
        assert_eq!(status_and_code(&answer), (400, "bad-lock".to_owned()), "{body}");
    }
    assert_eq!(server.request("GET /v1/stats/locks", &[]).json()["total"], 5);
}

/// L25.
/// covers: 004-82
#[test]
fn a_tenants_key_sees_and_ends_only_its_own() {
    let a = keygen(&["--role", "admin"]);
    let b = keygen(&["--role", "admin"]);
    let fixed = |key: &crate::keys::Key, tenant: &str| {
        format!("{}\nfix = {{ tenant = '{tenant}' }}\n", key.table.trim_end())
    };
    let server = lock_server(&format!("{CATALOG}{}{}", fixed(&a, "a"), fixed(&b, "b")));
    let ask = |key: &crate::keys::Key, request: &str, body: &str| {
        let bearer = format!("Bearer {}", key.key);
        let mut connection = server.connect();
        connection.send(request, &[JSON, ("Authorization", &bearer)], body.as_bytes());
        connection.read_response()
    };
    let other_lease = ask(&b, "POST /v1/locks/acquire", r#"{"key":"p","ttl_ms":60000}"#).json();
    assert_eq!(other_lease["tenant"], "b");
    let own = ask(&a, "POST /v1/locks/acquire", r#"{"key":"p","ttl_ms":60000}"#);
    assert_eq!(own.status, 200, "the same name of another tenant: {own:?}");
    let list = ask(&a, "GET /v1/locks", "").json();
    assert_eq!(list["locks"].as_array().unwrap().len(), 1);
    let refused = ["GET /v1/locks?tenant=b", "DELETE /v1/locks?tenant=b"];
    for request in refused.into_iter().chain(["GET /v1/stats/locks?tenant=b"]) {
        let refused = ask(&a, request, "");
        assert_eq!((refused.status, refused.problem_code().as_str()), (403, "fixed-attribute"));
    }
    let stolen = ask(&a, "POST /v1/locks/acquire", r#"{"key":"p","tenant":"b"}"#);
    assert_eq!(stolen.status, 403);
    let proof = json!({ "lease_id": other_lease["lease_id"] }).to_string();
    assert_eq!(ask(&a, "POST /v1/locks/release", &proof).json()["outcome"], "not_holder");
    assert_eq!(ask(&a, "POST /v1/locks/renew", &proof).status, 409);
    let fence = other_lease["fence"].to_string();
    let force = ask(&a, &format!("DELETE /v1/locks/{fence}"), r#"{"reason":"mine"}"#);
    assert_eq!((force.status, force.problem_code().as_str()), (404, "unknown-lease"));
    let still: Value = ask(&b, "GET /v1/locks", "").json();
    assert_eq!(still["locks"][0]["fence"], other_lease["fence"]);
}

/// Regression: a key bound to one tenant saw the figures of every tenant of the namespace.
#[test]
fn a_tenants_key_sees_only_its_own_counts() {
    let a = keygen(&["--role", "admin"]);
    let all = keygen(&["--role", "admin"]);
    let fixed = format!("{}\nfix = {{ tenant = 'a' }}\n", a.table.trim_end());
    let server = lock_server(&format!("{CATALOG}{fixed}{}", all.table));
    let ask = |key: &crate::keys::Key, request: &str, body: &str| {
        let bearer = format!("Bearer {}", key.key);
        let mut connection = server.connect();
        connection.send(request, &[JSON, ("Authorization", &bearer)], body.as_bytes());
        connection.read_response().json()
    };
    ask(&a, "POST /v1/locks/acquire", r#"{"key":"p","ttl_ms":60000}"#);
    for tenant in ["b", "c", "c"] {
        let body = format!(r#"{{"key":"p","tenant":"{tenant}","ttl_ms":60000}}"#);
        ask(&all, "POST /v1/locks/acquire", &body);
    }
    let whole = ask(&all, "GET /v1/stats/locks", "");
    assert_eq!((&whole["total"], whole["rows"].as_array().unwrap().len()), (&json!(4), 3));
    let one = ask(&all, "GET /v1/stats/locks?tenant=c", "");
    assert_eq!((&one["total"], &one["conflicts"]), (&json!(2), &json!(1)));
    for own in [
        ask(&a, "GET /v1/stats/locks", ""),
        ask(&a, "GET /v1/stats/locks?tenant=a", ""),
        ask(&a, "GET /v1/selftest", "")["locks"].clone(),
    ] {
        assert_eq!((&own["total"], &own["waiters"]), (&json!(1), &json!(0)), "{own}");
        let rows = own["rows"].as_array().unwrap();
        assert_eq!((rows.len(), &rows[0]["tenant"]), (1, &json!("a")), "{own}");
    }
    let active = ask(&a, "GET /v1/selftest", "")["active"].clone();
    assert_eq!(active.as_array().unwrap().len(), 1, "{active}");
}

//! A store whose clock is set forward and back by an hour: the effects that the guide describes.
//!
//! The store is a real server; a preloaded library changes the time that it reads.

use std::time::{Duration, Instant};

use catraca_testkit::fake_clock::FakeClockLibrary;
use catraca_testkit::redis::RedisServer;
use serde_json::{Value, json};

use super::super::{acquire, post};
use super::{Postgres, SharedStore, node};
use crate::test_server::TestServer;

const HOUR: i64 = 3_600;

/// Longer than the time to live of the short leases here, by the real clock.
const MEANWHILE: Duration = Duration::from_millis(400);

fn acquire_body(key: &str, ttl_ms: u64) -> Value {
    json!({ "key": key, "ttl_ms": ttl_ms })
}

/// Asserts that this name is not granted during `MEANWHILE`.
fn assert_stays_taken(server: &TestServer, key: &str) {
    let begun = Instant::now();
    while begun.elapsed() < MEANWHILE {
        assert_eq!(post(server, "/v1/locks/acquire", &acquire_body(key, 200)).status, 409, "{key}");
    }
}

/// L24. Set forward, leases expire early, by the step. Set back, no lease expires before the clock
/// has reached its old value.
///
#[test]
fn a_clock_that_is_set_moves_ends_and_never_a_number_back() {
    let clock = FakeClockLibrary::build();
    let Some(redis) = RedisServer::start_with_clock(&clock) else { return };
    assert_ends_follow_clock(&redis, &clock);
}

/// L24 on PostgreSQL.
///
#[test]
fn a_clock_of_postgresql_that_is_set_moves_ends_and_never_a_number_back() {
    let clock = FakeClockLibrary::build();
    assert_ends_follow_clock(&Postgres::start_believing(&clock), &clock);
}

fn assert_ends_follow_clock(store: &dyn SharedStore, clock: &FakeClockLibrary) {
    let server = TestServer::from_file(&node(store, "sqlite:catraca.db", "5s"));
    let mut fences = vec![acquire(&server, &acquire_body("p", 60_000))["fence"].as_i64()];
    assert_stays_taken(&server, "p");
    clock.set(HOUR);
    fences.push(acquire(&server, &acquire_body("p", 60_000))["fence"].as_i64());
    clock.set(0);
    fences.push(acquire(&server, &acquire_body("q", 200))["fence"].as_i64());
    assert_stays_taken(&server, "q");
    assert_stays_taken(&server, "p");
    clock.set(HOUR + 61);
    for key in ["q", "p"] {
        fences.push(acquire(&server, &acquire_body(key, 200))["fence"].as_i64());
    }
    assert!(fences.is_sorted_by(|one, next| one < next), "{fences:?}");
    assert!(fences.iter().all(Option::is_some), "{fences:?}");
}

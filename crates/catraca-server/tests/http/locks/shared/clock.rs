//! A store whose clock is set by an hour: what the guide says of it, over HTTP.
//!
//! The server itself is a real one that believes another time.

use std::time::{Duration, Instant};

use catraca_testkit::redis::RedisServer;
use catraca_testkit::wrong_clock::WrongClock;
use serde_json::{Value, json};

use super::super::{post, take};
use super::{Postgres, Shared, node};
use crate::served::Served;

const HOUR: i64 = 3_600;

/// What has passed by the real clock, and more, for the longest lease here.
const MEANWHILE: Duration = Duration::from_millis(400);

fn wish(key: &str, ttl_ms: u64) -> Value {
    json!({ "key": key, "ttl_ms": ttl_ms })
}

/// Nobody else gets this name, for as long as that.
fn stays_taken(served: &Served, key: &str) {
    let begun = Instant::now();
    while begun.elapsed() < MEANWHILE {
        assert_eq!(post(served, "/v1/locks/acquire", &wish(key, 200)).status, 409, "{key}");
    }
}

/// L24. Forward: leases end early, by the step. Back: none ends before the clock is where it was.
///
#[test]
fn a_clock_that_is_set_moves_ends_and_never_a_number_back() {
    let clock = WrongClock::build();
    let Some(redis) = RedisServer::start_believing(&clock) else { return };
    moves_ends(&redis, &clock);
}

/// L24 on PostgreSQL.
///
#[test]
fn a_clock_of_postgresql_that_is_set_moves_ends_and_never_a_number_back() {
    let clock = WrongClock::build();
    moves_ends(&Postgres::start_believing(&clock), &clock);
}

fn moves_ends(store: &dyn Shared, clock: &WrongClock) {
    let served = Served::of(&node(store, "sqlite:catraca.db", "5s"));
    let mut fences = vec![take(&served, &wish("p", 60_000))["fence"].as_i64()];
    stays_taken(&served, "p");
    clock.set(HOUR);
    fences.push(take(&served, &wish("p", 60_000))["fence"].as_i64());
    clock.set(0);
    fences.push(take(&served, &wish("q", 200))["fence"].as_i64());
    stays_taken(&served, "q");
    stays_taken(&served, "p");
    clock.set(HOUR + 61);
    for key in ["q", "p"] {
        fences.push(take(&served, &wish(key, 200))["fence"].as_i64());
    }
    assert!(fences.is_sorted_by(|one, next| one < next), "{fences:?}");
    assert!(fences.iter().all(Option::is_some), "{fences:?}");
}

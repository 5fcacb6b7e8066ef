//! The store contract on the Redis store.

use std::sync::atomic::{AtomicU32, Ordering};

use catraca::redis::RedisOptions;
use catraca_testkit::contract::{Case, admitted_at_once, run_all};
use catraca_testkit::redis::RedisServer;

use super::helpers::{LONG_DEADLINE, connect, connect_with};

/// covers: 002-21, 002-22, 002-25, X-02, B-36, B-38
#[test]
fn the_redis_store_keeps_the_contract() {
    let Some(server) = RedisServer::start() else { return };
    let number = AtomicU32::new(0);
    let make = || {
        // Each case has its own keys.
        let prefix = format!("case{}:", number.fetch_add(1, Ordering::Relaxed));
        let options = RedisOptions { deadline: LONG_DEADLINE, prefix, ..RedisOptions::default() };
        Box::new(connect_with(&server.url(), options).expect("the server accepts the connection"))
            as Box<_>
    };
    let cases = run_all(make);
    let failed: Vec<&Case> = cases.iter().filter(|case| case.result.is_err()).collect();
    println!("{} cases", cases.len());
    assert!(failed.is_empty(), "{} of {} cases: {failed:#?}", failed.len(), cases.len());
}

/// covers: 002-35, B-33, B-34
#[test]
fn a_hundred_callers_of_one_connection_get_exactly_ten_a_hundred_times() {
    let Some(server) = RedisServer::start() else { return };
    let store = connect(&server.url());
    assert_eq!(admitted_at_once(&store, 100, 100, 10).unwrap(), [10; 100]);
}

//! F14: a PostgreSQL server whose wall clock jumps.

use std::sync::Arc;

use catraca_core::batch::CheckRow;
use catraca_core::limit::Penalty;
use catraca_core::time::Span;
use catraca_testkit::fake_clock::FakeClockLibrary;

use super::helpers::{Database, HOUR, check, gate, long_deadline, row, runtime, window};
use catraca_testkit::postgres::PostgresServer;

const LIMIT: i64 = 5;

/// An hour forward gives one limit more, and an hour backward nothing. A block of three hours ends
/// at its own end.
///
///
#[test]
fn f14_a_server_clock_that_jumps_gives_one_limit_forward_and_nothing_backward() {
    let clock = FakeClockLibrary::build();
    let server = PostgresServer::start();
    server.stop("INT");
    *server.variables.lock().unwrap() = clock.environment();
    server.run();
    let database = Database::on(Arc::new(server));
    let runtime = runtime();
    let store = runtime.block_on(database.open(long_deadline()));
    let admitted = || {
        let batch = gate([row(1, window(LIMIT, HOUR / 2))]);
        let passed = |_: &i32| runtime.block_on(check(&store, &batch)).unwrap().passed;
        (0..20).filter(passed).count() as i64
    };
    assert_eq!(admitted(), LIMIT);
    let target = CheckRow {
        penalty: Some(Penalty::without_escalation(Span::from_micros(3 * HOUR))),
        ..row(3, window(1, HOUR / 2))
    };
    let is_admitted = || runtime.block_on(check(&store, &gate([target.clone()]))).unwrap().passed;
    assert_eq!([is_admitted(), is_admitted()], [true, false], "the second call starts the block");
    clock.set(3_600);
    assert!(!is_admitted(), "an hour forward does not end the block");
    let more = admitted();
    println!("F14 an hour forward: {more} more of {LIMIT}");
    assert_eq!(more, LIMIT, "the clock did jump, and gave no more than that");
    clock.set(0);
    assert_eq!(admitted(), 0, "an hour backward");
    clock.set(-3_600);
    assert_eq!(admitted(), 0, "two hours backward");
    let fresh = gate([row(2, window(LIMIT, HOUR))]);
    assert!(runtime.block_on(check(&store, &fresh)).unwrap().passed, "who is new is served");
    assert!(!is_admitted(), "an hour backward does not end the block");
    clock.set(3 * 3_600 + 60);
    assert!(is_admitted(), "the block ends at its end");
}

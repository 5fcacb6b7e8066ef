//! Rows that another transaction locks: their calls end at the deadline, other calls continue, and
//! a dropped call leaves no lock.

use std::time::{Duration, Instant};

use catraca::postgres::PostgresOptions;
use catraca::store::{SharedStore, StoreError, When};
use catraca_testkit::generate::Rng;
use catraca_testkit::pause_watch::PauseWatch;

use super::clock::wait_for;
use super::helpers::{Database, HOUR, all, check, gate, long_deadline, row, runtime, window};

/// Additional time on a busy machine.
const SLACK: Duration = Duration::from_millis(500);
/// An eighth of it is left for the other rows after the wait for the held one.
const DEADLINE: Duration = Duration::from_secs(2);

fn short_deadline() -> PostgresOptions {
    PostgresOptions { deadline: DEADLINE, connections: 1, ..PostgresOptions::default() }
}

#[test]
fn a_row_that_is_held_is_unavailable_in_time_and_the_others_are_not() {
    let database = Database::new();
    let runtime = runtime();
    let store = std::sync::Arc::new(runtime.block_on(database.open(short_deadline())));
    let one = |number| gate([row(number, window(100, HOUR))]);
    runtime.block_on(check(&store, &one(1))).unwrap();
    let mut other = database.session();
    other
        .query("BEGIN; SELECT count(*) FROM (SELECT FROM catraca_store.cells FOR UPDATE) AS held;");
    // There is one connection, so most of the calls share a transaction.
    let machine = PauseWatch::start();
    let start = Instant::now();
    let call = |number: u64| {
        let store = std::sync::Arc::clone(&store);
        async move { (number, check(&store, &one(number)).await.map(|reply| reply.passed)) }
    };
    let answers = runtime.block_on(all((0..8).map(|index| call(1 + index % 2 * index))));
    let took = start.elapsed();
    assert!(took < DEADLINE + SLACK + machine.added_to_a_call(), "{took:?}");
    let held = answers.iter().filter(|(number, _)| *number == 1);
    for (_, answer) in held {
        let Err(StoreError::Unavailable { reason }) = answer else { panic!("{answer:?}") };
        assert!(reason.contains("holds rows") || reason.contains("did not answer"), "{reason}");
    }
    let free: Vec<_> = answers.iter().filter(|(number, _)| *number > 1).collect();
    assert!(free.iter().filter(|(_, answer)| matches!(answer, Ok(true))).count() >= 3, "{free:?}");
    other.query("COMMIT;");
    let after = runtime.block_on(check(&store, &one(1))).unwrap();
    assert_eq!(after.rows[0].free, 98, "what was unavailable has charged nothing");
}

/// The transaction of a dropped call must end when its wait for the row ends.
#[test]
fn a_call_that_is_dropped_leaves_nothing_locked() {
    let database = Database::new();
    let runtime = runtime();
    // Long enough for another process to observe the waiting connection.
    let options = PostgresOptions { deadline: Duration::from_secs(3), ..short_deadline() };
    let store = runtime.block_on(database.open(options));
    let batch = gate([row(1, window(100, HOUR)), row(2, window(100, HOUR))]);
    runtime.block_on(check(&store, &batch)).unwrap();
    let mut other = database.session();
    let hold = "BEGIN; SELECT count(*) FROM (SELECT FROM catraca_store.cells
                ORDER BY key DESC LIMIT 1 FOR UPDATE) AS held;";
    other.query(hold);
    let hasty = async { tokio::time::timeout(Duration::ZERO, check(&store, &batch)).await };
    let waits = std::thread::spawn({
        let database = Database { server: database.server.clone(), name: database.name.clone() };
        move || wait_for(&database, 1)
    });
    runtime.block_on(async {
        drop(hasty.await);
        tokio::task::spawn_blocking(move || waits.join().unwrap()).await.unwrap();
    });
    wait_for(&database, 0);
    let free = "SELECT count(*) FROM (SELECT FROM catraca_store.cells FOR UPDATE SKIP LOCKED) AS f";
    assert_eq!(database.query(free), "1", "only the row that the other one holds is held");
    drop(other);
    let after = runtime.block_on(check(&store, &batch)).unwrap();
    assert!(after.rows.iter().all(|row| row.free >= 97), "{after:?}");
}

/// Gates over few keys in any order, from independent stores.
#[test]
fn crossing_gates_of_several_stores_never_deadlock() {
    let database = Database::new();
    let runtime = runtime();
    let stores: Vec<_> = (0..3)
        .map(|_| std::sync::Arc::new(runtime.block_on(database.open(long_deadline()))))
        .collect();
    let call = |caller: u64| {
        let store = std::sync::Arc::clone(&stores[caller as usize % stores.len()]);
        async move {
            let mut rng = Rng::new(caller);
            let mut passed = 0;
            for _ in 0..30 {
                let mut numbers: Vec<u64> = (0..12).collect();
                let keys = (0..4).map(|_| {
                    let index = rng.within(0, numbers.len() as i64 - 1) as usize;
                    numbers.swap_remove(index)
                });
                let batch = gate(keys.map(|number| row(number, window(10_000, HOUR))));
                let Ok(reply) = store.apply(&batch, When::Store).await else { return None };
                passed += matches!(reply, catraca_core::batch::Reply::Check(c) if c.passed) as i64;
            }
            Some(passed)
        }
    };
    let passed: Option<Vec<i64>> = runtime.block_on(all((0..64).map(call))).into_iter().collect();
    assert_eq!(passed.map(|passed| passed.iter().sum()), Some(64 * 30), "no call failed");
    let look = (0..12).map(|number| super::helpers::peek(row(number, window(10_000, HOUR))));
    let mut used = 0;
    for peek in look {
        used += 10_000 - runtime.block_on(check(&stores[0], &peek)).unwrap().rows[0].free;
    }
    assert_eq!(used, 64 * 30 * 4, "each gate charged all of its keys");
    let deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    assert_eq!(database.query(deadlocks), "0");
}

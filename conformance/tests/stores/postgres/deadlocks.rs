//! Deadlocks that other clients cause: the server ends one transaction with an error, and the store
//! repeats the call.

use std::sync::Arc;
use std::time::Duration;

use super::clock::wait_for;
use super::helpers::{
    Database, HOUR, Session, check, gate, key, long_deadline, row, runtime, window,
};

fn hold(session: &mut Session, number: u64) {
    session.send(&locking(number));
}

fn locking(number: u64) -> String {
    let bytes: String = key(number).to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    format!(
        "SELECT count(*) FROM (SELECT FROM catraca_store.cells WHERE key = '\\x{bytes}'
             FOR UPDATE) AS held;"
    )
}

/// The store holds the first row and waits for the last; the holder of the last waits for the
/// first.
#[test]
fn a_deadlock_that_others_cause_is_tried_again_and_charges_once() {
    let database = Database::new();
    let runtime = runtime();
    let store = Arc::new(runtime.block_on(database.open(long_deadline())));
    let mut numbers = [1, 2, 3];
    numbers.sort_by_key(|number| key(*number).to_bytes());
    let batch = gate(numbers.map(|number| row(number, window(100, HOUR))));
    assert!(runtime.block_on(check(&store, &batch)).unwrap().passed);
    let mut one = database.session();
    let mut other = database.session();
    one.query(&format!("BEGIN; {}", locking(numbers[1])));
    // The server ends the transaction whose deadlock timeout fires first: the store's.
    other.query(&format!("SET deadlock_timeout = '60s'; BEGIN; {}", locking(numbers[2])));
    let call = runtime.spawn({
        let store = Arc::clone(&store);
        async move { check(&store, &batch).await }
    });
    wait_for(&database, 1);
    hold(&mut other, numbers[0]);
    wait_for(&database, 2);
    one.query("COMMIT;");
    // The store's transaction is ended; the other session then has both rows.
    other.receive();
    other.query("COMMIT;");
    let waited =
        runtime.block_on(async { tokio::time::timeout(Duration::from_secs(20), call).await });
    let reply = waited.expect("it ends in time").unwrap().unwrap();
    assert!(reply.passed && reply.rows.iter().all(|row| row.free == 98), "{reply:?}");
    // More than one if the repeated call locked the first row before the other session woke up.
    let deadlocks = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()";
    let counted = (0..500).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        database.query(deadlocks).parse::<u64>().unwrap() >= 1
    });
    assert!(counted, "the server counted no deadlock");
}

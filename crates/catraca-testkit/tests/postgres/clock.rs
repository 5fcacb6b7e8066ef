//! The server's clock decides, read when the rows are held and not before.

use std::time::Duration;

use catraca_core::time::Time;

use crate::helpers::{Database, HOUR, check, gate, patient, row, runtime, window};

const NOW: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;";

/// A call that had to wait for a row must not be judged at the instant at which it began to wait.
#[test]
fn the_clock_is_read_after_the_rows_are_locked() {
    let (database, runtime) = (Database::new(), runtime());
    let store = runtime.block_on(database.open(patient()));
    let batch = gate([row(1, window(10, HOUR)), row(2, window(10, HOUR))]);
    let first = runtime.block_on(check(&store, &batch)).unwrap();
    let mut other = database.session();
    other.ask("BEGIN; SELECT count(*) FROM (SELECT FROM catraca_store.cells FOR UPDATE) AS held;");
    let waiting = runtime.spawn(async move { check(&store, &batch).await });
    wait_for(&database, 1);
    let freed: i64 = other.ask(NOW).parse().unwrap();
    other.ask("COMMIT;");
    let second = runtime.block_on(waiting).unwrap().unwrap();
    assert!(second.now > Time::from_micros(freed), "{:?} after {freed}", second.now);
    assert!(second.now > first.now && second.rows.iter().all(|row| row.free == 8));
}

/// Waits until so many connections wait for a row.
pub fn wait_for(database: &Database, count: usize) {
    let sql = "SELECT count(*) FROM pg_stat_activity
               WHERE datname = current_database() AND wait_event_type = 'Lock'";
    for _ in 0..500 {
        if database.ask(sql) == count.to_string() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("nobody waits for a row");
}

//! The server's clock decides; it is read after the rows are locked.

use std::time::Duration;

use catraca_core::time::Time;

use super::helpers::{Database, HOUR, check, gate, long_deadline, row, runtime, window};

const NOW: &str = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;";

/// A call that waited for a row is decided at the instant when it got the row, not when it began to
/// wait.
#[test]
fn the_clock_is_read_after_the_rows_are_locked() {
    let database = Database::new();
    let runtime = runtime();
    let store = runtime.block_on(database.open(long_deadline()));
    let batch = gate([row(1, window(10, HOUR)), row(2, window(10, HOUR))]);
    let first = runtime.block_on(check(&store, &batch)).unwrap();
    let mut other = database.session();
    other
        .query("BEGIN; SELECT count(*) FROM (SELECT FROM catraca_store.cells FOR UPDATE) AS held;");
    let waiting = runtime.spawn(async move { check(&store, &batch).await });
    wait_for(&database, 1);
    let freed: i64 = other.query(NOW).parse().unwrap();
    other.query("COMMIT;");
    let second = runtime.block_on(waiting).unwrap().unwrap();
    assert!(second.now > Time::from_micros(freed), "{:?} after {freed}", second.now);
    assert!(second.now > first.now && second.rows.iter().all(|row| row.free == 8));
}

/// Waits until `count` connections wait for a row.
pub fn wait_for(database: &Database, count: usize) {
    let sql = "SELECT count(*) FROM pg_stat_activity
               WHERE datname = current_database() AND wait_event_type = 'Lock'";
    for _ in 0..500 {
        if database.query(sql) == count.to_string() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("the number of connections that wait for a row is not {count}");
}

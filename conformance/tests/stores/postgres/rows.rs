//! The rows of the table: sweeping, rows that are not written, and damaged rows.

use std::time::Duration;

use catraca::postgres::PostgresOptions;
use catraca::store::{SharedStore, StoreError, When};
use catraca_core::batch::{Batch, Reply};
use catraca_testkit::redis::until;

use super::helpers::{
    Database, HOUR, bucket, check, gate, long_deadline, peek, row, runtime, window,
};

const COUNT: &str = "SELECT count(*) FROM catraca_store.cells";

#[test]
fn rows_whose_time_is_over_are_swept_and_no_others() {
    let database = Database::new();
    let runtime = runtime();
    let store = runtime.block_on(database.open(long_deadline()));
    for number in 0..6 {
        runtime.block_on(check(&store, &gate([row(number, window(5, 1_000))]))).unwrap();
    }
    let slack = "SELECT min(expires) - extract(epoch FROM clock_timestamp()) > 590
                 FROM catraca_store.cells";
    assert_eq!(database.query(slack), "t", "a clock that is set back finds everything");
    assert_eq!(runtime.block_on(store.sweep()).unwrap(), 0);
    let age = "UPDATE catraca_store.cells SET expires = 1 WHERE key IN
               (SELECT key FROM catraca_store.cells ORDER BY key LIMIT 4)";
    database.query(age);
    let mut other = database.session();
    other.query(
        "BEGIN; SELECT count(*) FROM (SELECT FROM catraca_store.cells ORDER BY key LIMIT 1
         FOR UPDATE) AS held;",
    );
    assert_eq!(runtime.block_on(store.sweep()).unwrap(), 3, "not the one that is held");
    other.query("COMMIT;");
    assert_eq!(runtime.block_on(store.sweep()).unwrap(), 1);
    assert_eq!(database.query(COUNT), "2");
    for number in 0..6 {
        let batch = gate([row(number, window(5, HOUR))]);
        assert!(runtime.block_on(check(&store, &batch)).unwrap().passed);
    }
}

#[test]
fn what_leaves_nothing_behind_leaves_no_row() {
    let database = Database::new();
    let runtime = runtime();
    let store = runtime.block_on(database.open(long_deadline()));
    let limit = || window(5, HOUR);
    runtime.block_on(check(&store, &peek(row(1, limit())))).unwrap();
    let mut free_of_charge = row(2, bucket(5));
    free_of_charge.held = 0;
    assert!(runtime.block_on(check(&store, &gate([free_of_charge]))).unwrap().passed);
    assert_eq!(database.query(COUNT), "0");
    runtime.block_on(check(&store, &gate([row(3, limit())]))).unwrap();
    assert_eq!(database.query(COUNT), "1");
    let reset = Batch::Reset(vec![super::helpers::key(3), super::helpers::key(4)]);
    assert!(matches!(runtime.block_on(store.apply(&reset, When::Store)), Ok(Reply::Reset(_))));
    assert_eq!(database.query(COUNT), "0");
}

#[test]
fn a_row_that_was_tampered_with_is_named_and_hurts_nobody_else() {
    let database = Database::new();
    let runtime = runtime();
    let store = runtime.block_on(database.open(long_deadline()));
    let batch = |number| gate([row(number, window(5, HOUR))]);
    runtime.block_on(check(&store, &batch(1))).unwrap();
    runtime.block_on(check(&store, &batch(2))).unwrap();
    let damage = "UPDATE catraca_store.cells SET body = '\\x0102000000ff'
                  WHERE key = (SELECT key FROM catraca_store.cells LIMIT 1)";
    database.query(damage);
    let answers = [1, 2].map(|number| runtime.block_on(check(&store, &batch(number))));
    let damaged: Vec<String> = answers
        .iter()
        .filter_map(|answer| answer.as_ref().err())
        .map(|error| match error {
            StoreError::Corrupt { reason } => reason.clone(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(damaged.len(), 1, "{answers:?}");
    assert!(damaged[0].contains("the row of key"), "{damaged:?}");
    let both = gate([row(1, window(5, HOUR)), row(2, window(5, HOUR))]);
    assert!(runtime.block_on(check(&store, &both)).is_err(), "all or nothing");
    assert_eq!(database.query(COUNT), "2", "what cannot be read is not dropped either");
    let reset = Batch::Reset(vec![super::helpers::key(1), super::helpers::key(2)]);
    assert!(matches!(runtime.block_on(store.apply(&reset, When::Store)), Ok(Reply::Reset(_))));
    let after = runtime.block_on(check(&store, &both)).unwrap();
    assert!(after.rows.iter().all(|row| row.free == 4), "an operator's reset helps: {after:?}");
}

/// Regression: sweeps that failed were silent, and the table grew.
#[test]
fn a_sweep_that_fails_is_reported() {
    let database = Database::new();
    let runtime = runtime();
    let sweep_every = Some(Duration::from_millis(20));
    let options = PostgresOptions { sweep_every, ..long_deadline() };
    let store = runtime.block_on(database.open(options));
    assert_eq!(SharedStore::background_error(&store), None);
    database.query("ALTER FUNCTION catraca_store.sweep RENAME TO renamed");
    until("it is reported", || SharedStore::background_error(&store).is_some());
    let reported = SharedStore::background_error(&store).unwrap();
    println!("{reported}");
    assert!(reported.contains("not deleted") && reported.contains("sweep"), "{reported}");
    database.query("ALTER FUNCTION catraca_store.renamed RENAME TO sweep");
    until("it works again", || SharedStore::background_error(&store).is_none());
}

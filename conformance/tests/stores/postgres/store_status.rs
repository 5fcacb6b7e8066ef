//! The status of the store that nodes share: published changes, bound records and incarnation.

use catraca::store::SharedStore;

use super::helpers::{Database, long_deadline, runtime};

#[test]
fn every_node_sees_that_something_has_changed() {
    let database = Database::new();
    let runtime = runtime();
    let [one, two] = [(); 2].map(|()| runtime.block_on(database.open(long_deadline())));
    let before = runtime.block_on(two.status()).unwrap();
    runtime.block_on(one.publish_change()).unwrap();
    let after = runtime.block_on(two.status()).unwrap();
    assert_eq!((after.changes, after.incarnation), (before.changes + 1, before.incarnation));
    assert!(after.now > before.now);
}

#[test]
fn the_first_records_are_the_ones_of_all() {
    let database = Database::new();
    let runtime = runtime();
    let [one, two] = [(); 2].map(|()| runtime.block_on(database.open(long_deadline())));
    assert_eq!(runtime.block_on(one.bind_records("records of one")).unwrap(), "records of one");
    assert_eq!(runtime.block_on(two.bind_records("records of two")).unwrap(), "records of one");
    assert_eq!(runtime.block_on(one.bind_records("records of one")).unwrap(), "records of one");
}

#[test]
fn another_database_is_another_life() {
    let databases = [Database::new(), Database::new()];
    let runtime = runtime();
    let incarnations = databases.map(|database| {
        let store = runtime.block_on(database.open(long_deadline()));
        runtime.block_on(store.status()).unwrap().incarnation
    });
    assert_ne!(incarnations[0], incarnations[1]);
}

/// Nodes then write their blocks to the store again.
#[test]
fn a_table_that_was_emptied_is_another_life() {
    let database = Database::new();
    let runtime = runtime();
    let store = runtime.block_on(database.open(long_deadline()));
    let incarnation = || runtime.block_on(store.status()).unwrap().incarnation;
    let before = incarnation();
    assert_eq!(incarnation(), before);
    database.query("TRUNCATE catraca_store.cells");
    assert_ne!(incarnation(), before);
}

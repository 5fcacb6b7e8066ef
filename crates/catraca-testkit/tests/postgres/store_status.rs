//! What nodes tell each other through the store: changes, whose records, and which life it is.

use catraca::store::SharedStore;

use crate::helpers::{Database, patient, runtime};

#[test]
fn every_node_sees_that_something_has_changed() {
    let (database, runtime) = (Database::new(), runtime());
    let [one, two] = [(); 2].map(|()| runtime.block_on(database.open(patient())));
    let before = runtime.block_on(two.status()).unwrap();
    runtime.block_on(one.publish_change()).unwrap();
    let after = runtime.block_on(two.status()).unwrap();
    assert_eq!((after.changes, after.incarnation), (before.changes + 1, before.incarnation));
    assert!(after.now > before.now);
}

#[test]
fn the_first_records_are_the_ones_of_all() {
    let (database, runtime) = (Database::new(), runtime());
    let [one, two] = [(); 2].map(|()| runtime.block_on(database.open(patient())));
    assert_eq!(runtime.block_on(one.bind_records("records of one")).unwrap(), "records of one");
    assert_eq!(runtime.block_on(two.bind_records("records of two")).unwrap(), "records of one");
    assert_eq!(runtime.block_on(one.bind_records("records of one")).unwrap(), "records of one");
}

#[test]
fn another_database_is_another_life() {
    let (databases, runtime) = ([Database::new(), Database::new()], runtime());
    let lives = databases.map(|database| {
        let store = runtime.block_on(database.open(patient()));
        runtime.block_on(store.status()).unwrap().incarnation
    });
    assert_ne!(lives[0], lives[1]);
}

/// Nodes bring their blocks again then.
#[test]
fn a_table_that_was_emptied_is_another_life() {
    let (database, runtime) = (Database::new(), runtime());
    let store = runtime.block_on(database.open(patient()));
    let life = || runtime.block_on(store.status()).unwrap().incarnation;
    let before = life();
    assert_eq!(life(), before);
    database.ask("TRUNCATE catraca_store.cells");
    assert_ne!(life(), before);
}

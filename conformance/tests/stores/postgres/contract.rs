//! The store contract on PostgreSQL, also with another default isolation level.

use std::sync::Mutex;

use catraca::postgres::{PostgresOptions, PostgresStore};
use catraca::store::Store;
use catraca_testkit::blocking_store::BlockingStore;
use catraca_testkit::contract::{Case, admitted_at_once, run_all};

use super::helpers::{Database, long_deadline};

/// Runs the store contract, each case on an empty table.
pub fn assert_contract(database: &Database, url: &str, options: PostgresOptions) {
    let made = Mutex::new(());
    let open = || {
        let _one = made.lock();
        let store = BlockingStore::start(async || PostgresStore::open(url, options).await).unwrap();
        database.query("TRUNCATE catraca_store.cells");
        Box::new(store) as Box<dyn Store>
    };
    let cases = run_all(open);
    let failed: Vec<&Case> = cases.iter().filter(|case| case.result.is_err()).collect();
    assert!(failed.is_empty(), "{} of {} cases: {failed:#?}", failed.len(), cases.len());
    println!("{} cases hold", cases.len());
}

/// covers: 002-21, 002-22, 002-25, X-02, B-07, B-36, B-38, B-49
#[test]
fn the_store_keeps_the_contract() {
    let database = Database::new();
    assert_contract(&database, &database.url(), long_deadline());
}

/// Under the default isolation level of this database, a wait for a row would end in an error.
#[test]
fn the_store_keeps_the_contract_where_others_want_to_be_serialized() {
    let database = Database::new();
    let name = &database.name;
    database
        .query(&format!("ALTER DATABASE {name} SET default_transaction_isolation = serializable"));
    let one = PostgresOptions { connections: 1, ..long_deadline() };
    assert_contract(&database, &database.url(), one);
}

/// covers: 002-35, B-33, B-34
#[test]
fn two_hundred_callers_get_exactly_ten_every_time() {
    let database = Database::new();
    let store = database.blocking(long_deadline());
    let rounds = super::helpers::setting("CATRACA_POSTGRES_ROUNDS", 20) as usize;
    let admitted = admitted_at_once(&store, 200, rounds, 10).unwrap();
    assert_eq!(admitted, vec![10; rounds]);
}

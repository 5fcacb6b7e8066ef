//! The store behind a real PgBouncer in transaction mode: each transaction may use another
//! connection.

use catraca_testkit::postgres::PgBouncer;
use catraca_testkit::redis::until;

use super::contract::assert_contract;
use super::helpers::{Database, long_deadline};
use super::locks::{LockClient, assert_wakes, compare_traces};

/// A pooler with two connections to the server of a new database, and the URL of the database.
fn start() -> Option<(Database, PgBouncer, String)> {
    let database = Database::new();
    let bouncer = PgBouncer::start(&database.server, 2)?;
    let url = bouncer.url(&database.name);
    Some((database, bouncer, url))
}

#[test]
fn the_store_keeps_the_contract_behind_a_pooler() {
    let Some((database, _bouncer, url)) = start() else { return };
    assert_contract(&database, &url, long_deadline());
}

#[test]
fn locks_do_behind_a_pooler_and_whoever_waits_is_told_to_look() {
    let Some((_database, _bouncer, url)) = start() else { return };
    let client = LockClient::of(&url);
    compare_traces(&client, 3);
    assert_wakes(&client, false);
}

/// Regression: callers that wait for a lock then polled for ever, and nothing said so. Later it was
/// an error for as long as the pooler was there.
#[test]
fn a_pooler_that_passes_no_notifications_is_a_limitation_and_no_error() {
    let Some((database, _bouncer, url)) = start() else { return };
    let pooled = LockClient::of(&url);
    assert_wakes(&pooled, false);
    until("it is reported", || pooled.limitation().is_some());
    let reported = pooled.limitation().unwrap();
    println!("{reported}");
    assert!(reported.contains("pooler") && reported.contains("wait for a lock"), "{reported}");
    assert_eq!(pooled.background_error(), None);
    let direct = LockClient::of(&database.url());
    assert_wakes(&direct, true);
    assert_eq!((direct.background_error(), direct.limitation()), (None, None));
}

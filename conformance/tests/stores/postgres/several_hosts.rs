//! A URL that names a primary and its standbys: the primary is found, followed after a failover,
//! and a former primary is not used.

use std::time::Duration;

use catraca::Time;
use catraca::core::policy::Mode;
use catraca::locks::LockStore;
use catraca::postgres::{PostgresOptions, PostgresStore};
use catraca::records::{Options, Record, RecordKind, Records, RestoredItem};
use catraca::store::SharedStore;
use catraca_testkit::postgres::{PASSWORD, PostgresServer};
use catraca_testkit::redis::until;

use super::helpers::{bucket, check, gate, row, runtime};

const SIZE: i64 = 1_000;

fn url(servers: &[&PostgresServer]) -> String {
    let hosts = servers.iter().map(|server| format!("127.0.0.1:{}", server.port));
    let hosts: Vec<String> = hosts.collect();
    format!("postgres://catraca:{PASSWORD}@{}/postgres", hosts.join(","))
}

fn options() -> PostgresOptions {
    PostgresOptions { deadline: Duration::from_secs(5), ..PostgresOptions::default() }
}

/// Takes one unit of a key; returns the units left, or the error.
async fn take(store: &PostgresStore, number: u64) -> Result<i64, String> {
    let taken = check(store, &gate([row(number, bucket(SIZE))])).await;
    taken.map(|reply| reply.rows[0].free).map_err(|error| error.to_string())
}

/// The units left of a key, when the store works again.
fn take_when_back(runtime: &tokio::runtime::Runtime, store: &PostgresStore, number: u64) -> i64 {
    let mut left = None;
    until("the store works", || {
        left = runtime.block_on(take(store, number)).ok();
        left.is_some()
    });
    left.unwrap()
}

/// Before this was written, a hung first host made every connection time out.
#[test]
fn the_primary_is_found_among_its_standbys_and_followed() {
    let runtime = runtime();
    let first = PostgresServer::start();
    let second = first.start_replica();
    first.commit_synchronously();
    let named = url(&[&second, &first]);
    let store = runtime.block_on(PostgresStore::open(&named, options())).unwrap();
    assert_eq!(runtime.block_on(take(&store, 1)), Ok(SIZE - 1));
    let shown = store.redacted_url();
    let both = [&first, &second].iter().all(|server| shown.contains(&server.port.to_string()));
    assert!(both && !shown.contains(PASSWORD), "{shown}");
    // The old primary hangs: its connections stay open and do not answer.
    first.signal_all("STOP");
    second.promote();
    assert_eq!(take_when_back(&runtime, &store, 1), SIZE - 2, "nothing was lost");
    let hung_first = url(&[&first, &second]);
    let other = runtime.block_on(PostgresStore::open(&hung_first, options())).unwrap();
    assert_eq!(runtime.block_on(take(&other, 1)), Ok(SIZE - 3));
    first.signal_all("CONT");
}

/// Two servers accept writes; the one with the newer timeline is right.
#[test]
fn a_former_primary_that_returns_is_not_used() {
    let runtime = runtime();
    let first = PostgresServer::start();
    let second = first.start_replica();
    // Otherwise the replica may lack the tables.
    first.commit_synchronously();
    let named = url(&[&first, &second]);
    let store = runtime.block_on(PostgresStore::open(&named, options())).unwrap();
    assert_eq!(runtime.block_on(take(&store, 1)), Ok(SIZE - 1));
    first.stop("KILL");
    second.promote();
    assert_eq!(take_when_back(&runtime, &store, 2), SIZE - 1);
    first.run();
    let other = runtime.block_on(PostgresStore::open(&named, options())).unwrap();
    assert_eq!(runtime.block_on(take(&other, 2)), Ok(SIZE - 2), "it uses the new primary");
    second.stop("KILL");
    let mut reason = String::new();
    until("the former primary is refused", || {
        reason = runtime.block_on(take(&store, 2)).map_or_else(|error| error, |_| String::new());
        reason.contains("former primary")
    });
    println!("{reason}");
    second.run();
    assert_eq!(take_when_back(&runtime, &store, 2), SIZE - 3);
}

/// A promotion while the old primary still works: connections to it end by themselves.
#[test]
fn connections_to_an_old_primary_end_when_another_takes_over() {
    let runtime = runtime();
    let first = PostgresServer::start();
    let second = first.start_replica();
    let named = url(&[&first, &second]);
    let store = runtime.block_on(PostgresStore::open(&named, options())).unwrap();
    assert_eq!(runtime.block_on(take(&store, 1)), Ok(SIZE - 1));
    let before = runtime.block_on(store.status()).unwrap().incarnation;
    second.promote();
    until("the store uses the new primary", || {
        let status = runtime.block_on(store.status());
        status.is_ok_and(|status| status.incarnation != before)
    });
}

/// Regression: the connection that waits for freed locks stayed on the old primary, where no
/// notification arrived any more.
#[test]
fn waiters_for_locks_leave_an_old_primary_that_still_works() {
    let runtime = runtime();
    let first = PostgresServer::start();
    let second = first.start_replica();
    first.commit_synchronously();
    let named = url(&[&first, &second]);
    let store = runtime.block_on(PostgresStore::open(&named, options())).unwrap();
    runtime.block_on(async { store.listen(Box::new(|_| {})) });
    let listeners = |server: &PostgresServer| {
        let sql = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN %'";
        server.psql("postgres", sql)[0][0].clone()
    };
    until("it listens at the primary", || listeners(&first) == "1");
    second.promote();
    until("it listens at the new primary", || listeners(&second) == "1");
    until("it has left the old one", || listeners(&first) == "0");
}

/// Records the mode of a policy; the receipt is not awaited.
fn record_mode(records: &Records, number: usize) {
    let kind = RecordKind::Mode(format!("policy{number}"), Some(Mode::Off));
    let at = Time::from_micros(1_800_000_000_000_000);
    drop(records.record(vec![Record::automatic(at, kind)]));
}

/// How many modes a query of the records shows.
fn shown_modes(records: &Records) -> usize {
    let mut modes = 0;
    let now = Time::from_micros(1_800_000_000_000_000);
    let read = records.restore_changes(now, Time::FOREVER, |item| {
        modes += usize::from(matches!(item, RestoredItem::Mode(..)));
    });
    read.map_or(0, |()| modes)
}

/// Regression: records stayed on the old primary until it closed the connection, and acts that they
/// acknowledged as durable were unknown to nodes that used the new one.
#[test]
fn records_leave_an_old_primary_that_still_works() {
    let first = PostgresServer::start();
    let second = first.start_replica();
    let records = Records::open(&url(&[&first, &second]), Options::default()).unwrap();
    let modes = |server: &PostgresServer| -> usize {
        let count = server.psql("postgres", "SELECT count(*) FROM catraca.modes");
        count[0][0].parse().unwrap()
    };
    record_mode(&records, 0);
    records.flush().unwrap();
    let tables =
        "SELECT count(*) FROM pg_tables WHERE (schemaname, tablename) = ('catraca', 'modes')";
    until("the replica has the table", || second.psql("postgres", tables)[0][0] == "1");
    until("the replica has the record", || modes(&second) == 1);
    assert_eq!(shown_modes(&records), 1);
    second.promote();
    let mut written = 0;
    until("records are written to the new primary", || {
        written += 1;
        record_mode(&records, written);
        // Fails while the connection is made again; the record stays queued.
        let _ = records.flush();
        modes(&second) > 1
    });
    let on_the_old_one = modes(&first);
    let on_the_new_one = modes(&second);
    println!("{on_the_old_one} records on the old primary, {on_the_new_one} on the new one");
    record_mode(&records, written + 1);
    records.flush().unwrap();
    assert_eq!((modes(&first), modes(&second)), (on_the_old_one, on_the_new_one + 1));
    until("queries read the new primary", || shown_modes(&records) == on_the_new_one + 1);
}

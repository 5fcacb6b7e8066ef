//! A server that is restarted, disconnected or stopped: decisions continue, nothing is acknowledged
//! before it is written, and everything is written once when the server is available again.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use catraca::records::{Ack, AuditNote, AuditQuery, BlockQuery, Record, RecordKind, Records};

use super::helpers::{TestDatabase, at, engine, excess_block, passes, write};
use catraca_testkit::postgres::{PostgresServer, kill, shared_server};

const LOGIN: &str = "[policy.login]\nby = [\"ip\"]\nwindow = \"1 per 1m\"\nblock = \"15m\"";
/// Longer than any call may take.
const CALL_TIMEOUT: Duration = Duration::from_secs(30);

fn note(mark: &str) -> Vec<Record> {
    let audit_note = AuditNote { act: "note".to_owned(), target: mark.to_owned() };
    vec![Record::operator(at(0), "ana", None, RecordKind::Note(audit_note))]
}

/// The marks that were written, in order.
fn marks(database: &TestDatabase) -> Vec<String> {
    database.rows("SELECT target FROM catraca.audit WHERE act = 'note' ORDER BY id").concat()
}

/// covers: B-03
#[test]
fn a_restart_of_the_server_is_survived_in_order() {
    let database = TestDatabase::on(Arc::new(PostgresServer::start()));
    let records = Arc::new(database.open());
    let (engine, _) = engine(LOGIN, &records);
    for (round, signal) in ["INT", "QUIT"].iter().enumerate() {
        write(&records, note(&format!("{round} before")));
        database.server.stop(signal);
        let down = records.record(note(&format!("{round} down"))).wait();
        assert!(matches!(&down, Ack::NotYet(why) if why.contains("PostgreSQL")), "{down:?}");
        let started = Instant::now();
        let address = format!("198.51.100.{round}");
        let decided = [(); 2].map(|()| passes(&engine, "login", &[("ip", &address)]));
        assert_eq!(decided, [true, false], "decisions continue, and the block applies");
        assert!(
            started.elapsed() < Duration::from_secs(1),
            "decisions do not wait for the database"
        );
        let health = records.health();
        assert!(health.down.is_some() && health.refused > 0 && health.failures > 0, "{health:?}");
        assert!(records.audit(&AuditQuery::default()).is_err(), "queries fail too");
        database.server.run();
        records.flush().unwrap();
        write(&records, note(&format!("{round} after")));
        assert!(records.health().down.is_none() && records.health().lost == 0);
    }
    let wanted = ["0 before", "0 down", "0 after", "1 before", "1 down", "1 after"];
    assert_eq!(marks(&database), wanted);
    assert_eq!(records.blocks(&BlockQuery::default(), at(1)).unwrap().rows.len(), 2);
}

/// An ended block does not apply, purged or not; a purge that fails is counted.
///
/// covers: 000-28
#[test]
fn a_block_that_has_ended_is_over_even_if_nobody_can_clean_it_away() {
    let database = TestDatabase::on(Arc::new(PostgresServer::start()));
    let records = Arc::new(database.open());
    let (engine, clock) = engine(LOGIN, &records);
    let ip = [("ip", "198.51.100.7")];
    assert_eq!([(); 2].map(|()| passes(&engine, "login", &ip)), [true, false]);
    records.flush().unwrap();
    database.server.stop("INT");
    clock.set(at(900));
    let failed = records.health().maintenance_failures;
    assert!(records.purge(at(900 + 400 * 86_400)).is_err());
    assert_eq!(records.health().maintenance_failures, failed + 1);
    assert!(passes(&engine, "login", &ip), "the block has ended");
    database.server.run();
    records.flush().unwrap();
}

/// Ends every connection of the records.
const CUT: &str = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                   WHERE application_name = 'catraca' AND datname = current_database()";

/// Connections are ended at any time, also between a commit and its reply.
#[test]
fn an_act_whose_answer_was_lost_is_written_once() {
    let database = TestDatabase::new();
    let records = database.open();
    let mut acknowledged = BTreeSet::new();
    let (tick, ticks) = channel();
    std::thread::scope(|scope| {
        // One cut for every four acts: without a pause no act would ever succeed.
        let cut = |()| drop(database.rows(CUT));
        scope.spawn(move || ticks.iter().step_by(4).for_each(cut));
        for number in 0..400 {
            let mark = number.to_string();
            if records.record(note(&mark)).wait().is_durable() {
                acknowledged.insert(mark);
            }
            tick.send(()).unwrap();
        }
        drop(tick);
    });
    records.flush().unwrap();
    let marks = marks(&database);
    let health = records.health();
    println!("{} acknowledged, {health:?}", acknowledged.len());
    assert_eq!(marks.len(), 400, "each act once");
    assert!(marks.iter().enumerate().all(|(number, mark)| *mark == number.to_string()), "in order");
    assert!(health.failures > 0, "no connection was cut: {health:?}");
}

/// A server that accepts requests and sends no replies.
#[test]
fn a_server_that_sleeps_is_given_up_in_time() {
    let database = TestDatabase::on(shared_server());
    let records = database.open();
    write(&records, note("before"));
    let asleep = connections(&database);
    asleep.iter().for_each(|id| kill("STOP", id));
    let begun = Instant::now();
    let slept = records.record(note("asleep")).wait();
    let waited = begun.elapsed();
    asleep.iter().for_each(|id| kill("CONT", id));
    assert!(!slept.is_durable() && waited < CALL_TIMEOUT, "{slept:?} after {waited:?}");
    records.flush().unwrap();
    write(&records, note("after"));
    assert_eq!(marks(&database), ["before", "asleep", "after"]);
}

/// The server ends the wait for the lock of another node, after the transaction has begun.
#[test]
fn a_node_that_waits_too_long_for_its_turn_tries_again() {
    let database = TestDatabase::new();
    let records = database.open();
    // The server is shared: tests with a database of their own hold locks there, too.
    const HELD: &str = "SELECT 1 FROM pg_locks JOIN pg_database ON oid = database
                        WHERE locktype = 'advisory' AND granted AND datname = current_database()";
    // The lock of all writers, held for longer than a statement may take.
    let hold = "SELECT pg_advisory_lock(4846247386286342401), pg_sleep(6)";
    std::thread::scope(|scope| {
        scope.spawn(|| database.rows(hold));
        while database.rows(HELD).is_empty() {}
        let waited = records.record(note("waits")).wait();
        assert!(matches!(&waited, Ack::NotYet(why) if why.contains("timeout")), "{waited:?}");
    });
    records.flush().unwrap();
    assert_eq!(marks(&database), ["waits"]);
}

fn connections(database: &TestDatabase) -> Vec<String> {
    let sql = "SELECT pid FROM pg_stat_activity
               WHERE application_name = 'catraca' AND datname = current_database()";
    let found = database.rows(sql).concat();
    assert_eq!(found.len(), 2, "one connection writes, one reads");
    found
}

/// `close` returns the number of records that could not be written.
#[test]
fn a_process_that_ends_while_the_server_is_away_says_how_much_is_missing() {
    let database = TestDatabase::on(Arc::new(PostgresServer::start()));
    let records: Records = database.open();
    database.server.stop("INT");
    let block = excess_block("login", "198.51.100.7", at(0), at(60));
    assert!(!records.record(vec![block]).wait().is_durable());
    assert_eq!(records.close(), 1);
}

//! A server that is restarted, cut off or asleep: decisions go on, nothing is acknowledged that is
//! not written, and all of it is written once when the server is back.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use catraca::records::{Ack, AuditNote, AuditQuery, BlockQuery, Record, RecordKind, Records};

use crate::helpers::{Folder, at, engine, excess, passes, write};
use crate::server::{Server, kill, shared};

const LOGIN: &str = "[policy.login]\nby = [\"ip\"]\nwindow = \"1 per 1m\"\nblock = \"15m\"";
/// More than any call may take.
const PATIENCE: Duration = Duration::from_secs(30);

fn note(mark: &str) -> Vec<Record> {
    let noted = AuditNote { act: "note".to_owned(), target: mark.to_owned() };
    vec![Record::operator(at(0), "ana", None, RecordKind::Note(noted))]
}

/// Every mark that was written, in order.
fn marks(folder: &Folder) -> Vec<String> {
    folder.rows("SELECT target FROM catraca.audit WHERE act = 'note' ORDER BY id").concat()
}

/// covers: B-03
#[test]
fn a_restart_of_the_server_is_survived_in_order() {
    let folder = Folder::on(Arc::new(Server::start()));
    let records = Arc::new(folder.open());
    let (engine, _) = engine(LOGIN, &records);
    for (round, signal) in ["INT", "QUIT"].iter().enumerate() {
        write(&records, note(&format!("{round} before")));
        folder.server.stop(signal);
        let down = records.record(note(&format!("{round} down"))).wait();
        assert!(matches!(&down, Ack::NotYet(why) if why.contains("PostgreSQL")), "{down:?}");
        let asked = Instant::now();
        let address = format!("198.51.100.{round}");
        let decided = [(); 2].map(|()| passes(&engine, "login", &[("ip", &address)]));
        assert_eq!(decided, [true, false], "decisions go on, and the block stands");
        assert!(asked.elapsed() < Duration::from_secs(1), "they wait for nothing");
        let health = records.health();
        assert!(health.down.is_some() && health.refused > 0 && health.failures > 0, "{health:?}");
        assert!(records.audit(&AuditQuery::default()).is_err(), "a question says so too");
        folder.server.run();
        records.flush().unwrap();
        write(&records, note(&format!("{round} after")));
        assert!(records.health().down.is_none() && records.health().lost == 0);
    }
    let wanted = ["0 before", "0 down", "0 after", "1 before", "1 down", "1 after"];
    assert_eq!(marks(&folder), wanted);
    assert_eq!(records.blocks(&BlockQuery::default(), at(1)).unwrap().rows.len(), 2);
}

/// What has ended needs no cleaning to be over; a cleaning that fails is counted.
///
/// covers: 000-28
#[test]
fn a_block_that_has_ended_is_over_even_if_nobody_can_clean_it_away() {
    let folder = Folder::on(Arc::new(Server::start()));
    let records = Arc::new(folder.open());
    let (engine, clock) = engine(LOGIN, &records);
    let ip = [("ip", "198.51.100.7")];
    assert_eq!([(); 2].map(|()| passes(&engine, "login", &ip)), [true, false]);
    records.flush().unwrap();
    folder.server.stop("INT");
    clock.set(at(900));
    let failed = records.health().maintenance_failures;
    assert!(records.purge(at(900 + 400 * 86_400)).is_err());
    assert_eq!(records.health().maintenance_failures, failed + 1);
    assert!(passes(&engine, "login", &ip), "and the caller is free");
    folder.server.run();
    records.flush().unwrap();
}

/// Ends every connection of ours.
const CUT: &str = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                   WHERE application_name = 'catraca' AND datname = current_database()";

/// Connections are cut at any moment, also between a commit and its answer.
#[test]
fn an_act_whose_answer_was_lost_is_written_once() {
    let folder = Folder::new();
    let records = folder.open();
    let mut acknowledged = BTreeSet::new();
    let (tell, told) = channel();
    std::thread::scope(|scope| {
        // One cut for every few acts: cutting without a pause would let nothing through.
        let cut = |()| drop(folder.rows(CUT));
        scope.spawn(move || told.iter().step_by(4).for_each(cut));
        for number in 0..400 {
            let mark = number.to_string();
            if records.record(note(&mark)).wait().is_durable() {
                acknowledged.insert(mark);
            }
            tell.send(()).unwrap();
        }
        drop(tell);
    });
    records.flush().unwrap();
    let marks = marks(&folder);
    let health = records.health();
    println!("{} acknowledged, {health:?}", acknowledged.len());
    assert_eq!(marks.len(), 400, "each act once");
    assert!(marks.iter().enumerate().all(|(number, mark)| *mark == number.to_string()), "in order");
    assert!(health.failures > 0, "no connection was cut: {health:?}");
}

/// A server that takes everything and answers nothing.
#[test]
fn a_server_that_sleeps_is_given_up_in_time() {
    let folder = Folder::on(shared());
    let records = folder.open();
    write(&records, note("before"));
    let asleep = connections(&folder);
    asleep.iter().for_each(|id| kill("STOP", id));
    let begun = Instant::now();
    let slept = records.record(note("asleep")).wait();
    let waited = begun.elapsed();
    asleep.iter().for_each(|id| kill("CONT", id));
    assert!(!slept.is_durable() && waited < PATIENCE, "{slept:?} after {waited:?}");
    records.flush().unwrap();
    write(&records, note("after"));
    assert_eq!(marks(&folder), ["before", "asleep", "after"]);
}

fn connections(folder: &Folder) -> Vec<String> {
    let sql = "SELECT pid FROM pg_stat_activity
               WHERE application_name = 'catraca' AND datname = current_database()";
    let found = folder.rows(sql).concat();
    assert_eq!(found.len(), 2, "one that writes, one that reads");
    found
}

/// What the process itself leaves behind is what another one finds.
#[test]
fn a_process_that_ends_while_the_server_is_away_says_how_much_is_missing() {
    let folder = Folder::on(Arc::new(Server::start()));
    let records: Records = folder.open();
    folder.server.stop("INT");
    let block = excess("login", "198.51.100.7", at(0), at(60));
    assert!(!records.record(vec![block]).wait().is_durable());
    assert_eq!(records.close(), 1);
}

//! The writer thread over a database that fails on demand: acknowledgements and written records.

use std::collections::VecDeque;

use parking_lot::Mutex;

use super::*;
use crate::records::ack::Receipt;
use crate::records::database::{Access, DatabaseResult, RowVisitor};
use crate::records::record::AuditNote;
use crate::records::sql::value::Value;

/// A scripted outcome of each attempt, and the notes that were written.
#[derive(Clone, Default)]
struct ScriptedDatabase {
    outcomes: Arc<Mutex<VecDeque<Outcome>>>,
    written: Arc<Mutex<Vec<String>>>,
    file_fault: Arc<Mutex<Option<&'static str>>>,
    maintenance_fault: Arc<Mutex<Option<&'static str>>>,
}

#[derive(Clone, Copy)]
enum Outcome {
    Down,
    BadIf(&'static str),
    Panic,
}

impl Database for ScriptedDatabase {
    fn write(&mut self, records: &[&Record]) -> DatabaseResult<()> {
        let targets: Vec<String> = records.iter().map(|record| target(record)).collect();
        match self.outcomes.lock().pop_front() {
            Some(Outcome::Down) => return Err(DatabaseError::Down("disk full".to_owned())),
            Some(Outcome::BadIf(bad)) if targets.iter().any(|target| target == bad) => {
                return Err(DatabaseError::Bad("too big".to_owned()));
            }
            Some(Outcome::Panic) => panic!("on purpose"),
            _ => {}
        }
        self.written.lock().extend(targets);
        Ok(())
    }

    fn begin(&mut self, _: Access) -> DatabaseResult<()> {
        Ok(())
    }

    fn commit(&mut self) -> DatabaseResult<()> {
        Ok(())
    }

    fn rollback(&mut self) {}

    fn add(&mut self, _: &'static str, _: &[Value<'_>]) -> DatabaseResult<bool> {
        Ok(true)
    }

    fn execute(&mut self, _: &str, _: &[Value<'_>]) -> DatabaseResult<u64> {
        Ok(0)
    }

    fn query(&mut self, _: &str, _: &[Value<'_>], _: RowVisitor<'_>) -> DatabaseResult<()> {
        Ok(())
    }

    fn file_fault(&mut self) -> Option<String> {
        self.file_fault.lock().map(str::to_owned)
    }

    fn maintain(&mut self) -> DatabaseResult<()> {
        match *self.maintenance_fault.lock() {
            Some(why) => Err(DatabaseError::Down(why.to_owned())),
            None => Ok(()),
        }
    }

    fn backup(&mut self, _: &std::path::Path) -> DatabaseResult<()> {
        Ok(())
    }

    fn verify(&mut self) -> DatabaseResult<Vec<String>> {
        Ok(Vec::new())
    }
}

fn target(record: &Record) -> String {
    let RecordKind::Note(note) = &record.kind else { panic!("{record:?}") };
    note.target.clone()
}

fn note(target: &str) -> Vec<Record> {
    let note = AuditNote { act: "note".to_owned(), target: target.to_owned() };
    vec![Record::operator(Time::ZERO, "ana", None, RecordKind::Note(note))]
}

/// Submits notes and runs the writer to its end. Returns the acks, the written notes and the queue.
fn run_writer(outcomes: &[Outcome], targets: &[&str]) -> (Vec<Ack>, Vec<String>, Arc<RecordQueue>) {
    let database_script = ScriptedDatabase {
        outcomes: Arc::new(Mutex::new(outcomes.iter().copied().collect())),
        ..Default::default()
    };
    let queue = Arc::new(RecordQueue::default());
    let minute_counts = Arc::new(MinuteCounts::new());
    let key_counts = Arc::new(KeyCounts::new(0));
    let receipts: Vec<Receipt> = targets
        .iter()
        .map(|target| {
            let (ack_sender, receipt) = Receipt::new();
            queue.submit(note(target), Some(ack_sender));
            receipt
        })
        .collect();
    let database = Box::new(database_script.clone());
    let writer = WriterThread { database, queue: Arc::clone(&queue), minute_counts, key_counts };
    let thread = std::thread::spawn(|| writer.start());
    let acks = receipts.into_iter().map(Receipt::wait).collect();
    while !thread.is_finished() && queue.status().1.is_some() {
        std::thread::yield_now();
    }
    queue.close();
    let _ = thread.join();
    let written = database_script.written.lock().clone();
    (acks, written, queue)
}

#[test]
fn a_failed_batch_is_refused_kept_and_written_in_order() {
    let (acks, written, queue) = run_writer(&[Outcome::Down, Outcome::Down], &["a", "b"]);
    assert!(acks.iter().all(|ack| *ack == Ack::NotYet("disk full".into())), "{acks:?}");
    assert_eq!(written, ["a", "b"]);
    let health = queue.health();
    assert_eq!((health.failures, health.refused, health.written), (2, 2, 2));
}

/// One record that can never be written must not hold up the others.
#[test]
fn a_bad_record_is_rejected_alone() {
    let bad = [Outcome::BadIf("b"); 3];
    let (acks, written, queue) = run_writer(&bad, &["a", "b", "c"]);
    let durable: Vec<bool> = acks.iter().map(Ack::is_durable).collect();
    assert_eq!((durable, written), (vec![true, false, true], vec!["a".to_owned(), "c".to_owned()]));
    let health = queue.health();
    assert_eq!((health.rejected, health.rejection.as_deref()), (1, Some("too big")));
}

#[test]
fn a_writer_that_panics_answers_all_receipts() {
    let (acks, written, queue) = run_writer(&[Outcome::Panic], &["a"]);
    assert!(!acks[0].is_durable() && written.is_empty());
    let (ack_sender, receipt) = Receipt::new();
    queue.submit(note("b"), Some(ack_sender));
    let Ack::NotYet(why) = receipt.wait() else { panic!("acknowledged") };
    assert!(why.contains("restart"), "{why}");
}

fn idle_writer(database: &ScriptedDatabase) -> (WriterThread, Arc<RecordQueue>) {
    let queue = Arc::new(RecordQueue::default());
    let writer = WriterThread {
        database: Box::new(database.clone()),
        queue: Arc::clone(&queue),
        minute_counts: Arc::new(MinuteCounts::new()),
        key_counts: Arc::new(KeyCounts::new(0)),
    };
    (writer, queue)
}

/// Without any record, the next idle round notices that the file is lost, and that it is back.
#[test]
fn a_lost_file_is_noticed_while_nothing_is_written() {
    let database = ScriptedDatabase::default();
    let (mut writer, queue) = idle_writer(&database);
    for fault in [None, Some("the file was deleted"), None] {
        *database.file_fault.lock() = fault;
        writer.maintain();
        assert_eq!(queue.health().file_fault.as_deref(), fault);
    }
}

/// Regression: a failed checkpoint was counted, and its reason dropped.
#[test]
fn a_failed_maintenance_says_why_until_one_succeeds() {
    let database = ScriptedDatabase::default();
    let (mut writer, queue) = idle_writer(&database);
    for (fault, failures) in [(None, 0), (Some("disk full"), 1), (Some("disk full"), 2), (None, 2)]
    {
        *database.maintenance_fault.lock() = fault;
        writer.maintain();
        let health = queue.health();
        assert_eq!(health.maintenance_fault.as_deref(), fault);
        assert_eq!(health.maintenance_failures, failures);
    }
}

//! The writer over a database that fails as told: who is told what, and what is kept.

use std::collections::VecDeque;

use parking_lot::Mutex;

use super::*;
use crate::records::port::{Purged, Retention, Swept};
use crate::records::privacy::Erased;
use crate::records::receipt::Receipt;
use crate::records::record::{About, Noted};

/// What became of each attempt, and the marks that were written.
#[derive(Clone, Default)]
struct Script {
    fates: Arc<Mutex<VecDeque<Fate>>>,
    written: Arc<Mutex<Vec<String>>>,
}

#[derive(Clone, Copy)]
enum Fate {
    Down,
    BadIf(&'static str),
    Panics,
}

impl Writes for Script {
    fn write(&mut self, records: &[&Record]) -> Result<(), WriteError> {
        let marks: Vec<String> = records.iter().map(|record| mark(record)).collect();
        match self.fates.lock().pop_front() {
            Some(Fate::Down) => return Err(WriteError::Down("disk full".to_owned())),
            Some(Fate::BadIf(bad)) if marks.iter().any(|mark| mark == bad) => {
                return Err(WriteError::Bad("too big".to_owned()));
            }
            Some(Fate::Panics) => panic!("on purpose"),
            _ => {}
        }
        self.written.lock().extend(marks);
        Ok(())
    }

    fn purge(&mut self, _: Time, _: &Retention) -> Result<Purged, WriteError> {
        Ok(Purged::default())
    }

    fn sweep(&mut self, _: Time) -> Result<Swept, WriteError> {
        Ok(Swept::default())
    }

    fn erase(&mut self, _: &[About], _: Time) -> Result<Erased, WriteError> {
        Ok(Erased::default())
    }

    fn tie(&mut self, id: &str) -> Result<String, WriteError> {
        Ok(id.to_owned())
    }

    fn identify(&mut self, id: &str) -> Result<String, WriteError> {
        Ok(id.to_owned())
    }

    fn tend(&mut self) -> Result<(), WriteError> {
        Ok(())
    }

    fn scrub(&mut self) -> Result<(), WriteError> {
        Ok(())
    }
}

fn mark(record: &Record) -> String {
    let Deed::Note(noted) = &record.deed else { panic!("{record:?}") };
    noted.target.clone()
}

fn note(target: &str) -> Vec<Record> {
    let noted = Noted { act: "note".to_owned(), target: target.to_owned() };
    vec![Record::operator(Time::ZERO, "ana", None, Deed::Note(noted))]
}

/// Submits marks, lets the writer run to the end, and gives what it left.
fn played(fates: &[Fate], marks: &[&str]) -> (Vec<Ack>, Vec<String>, Arc<Queue>) {
    let script = Script {
        fates: Arc::new(Mutex::new(fates.iter().copied().collect())),
        ..Default::default()
    };
    let (queue, tally) = (Arc::new(Queue::default()), Arc::new(Tally::new()));
    let receipts: Vec<Receipt> = marks
        .iter()
        .map(|mark| {
            let (acker, receipt) = Receipt::new();
            queue.submit(note(mark), Some(acker));
            receipt
        })
        .collect();
    let database = Box::new(script.clone());
    let writer = Writer { database, queue: Arc::clone(&queue), tally };
    let thread = std::thread::spawn(|| writer.start());
    let acks = receipts.into_iter().map(Receipt::wait).collect();
    while !thread.is_finished() && queue.state().1.is_some() {
        std::thread::yield_now();
    }
    queue.close();
    let _ = thread.join();
    let written = script.written.lock().clone();
    (acks, written, queue)
}

#[test]
fn a_failed_batch_is_refused_kept_and_written_in_order() {
    let (acks, written, queue) = played(&[Fate::Down, Fate::Down], &["a", "b"]);
    assert!(acks.iter().all(|ack| *ack == Ack::NotYet("disk full".into())), "{acks:?}");
    assert_eq!(written, ["a", "b"]);
    let health = queue.counters.health(queue.state());
    assert_eq!((health.failures, health.refused, health.written), (2, 2, 2));
}

/// One record that can never be written must not hold up the others.
#[test]
fn a_bad_record_is_rejected_alone() {
    let bad = [Fate::BadIf("b"); 3];
    let (acks, written, queue) = played(&bad, &["a", "b", "c"]);
    let durable: Vec<bool> = acks.iter().map(Ack::is_durable).collect();
    assert_eq!((durable, written), (vec![true, false, true], vec!["a".to_owned(), "c".to_owned()]));
    assert_eq!(queue.counters.health(queue.state()).rejected, 1);
}

#[test]
fn a_writer_that_fell_leaves_nobody_waiting() {
    let (acks, written, queue) = played(&[Fate::Panics], &["a"]);
    assert!(!acks[0].is_durable() && written.is_empty());
    let (acker, receipt) = Receipt::new();
    queue.submit(note("b"), Some(acker));
    let Ack::NotYet(why) = receipt.wait() else { panic!("acknowledged") };
    assert!(why.contains("start again"), "{why}");
}

//! The queue at its bounds: submitting never waits, the newest record of a key survives, dropped
//! records are counted.

use catraca_core::cell::block::{Block, BlockNote, Origin};
use catraca_core::time::{Span, Time};

use super::*;
use crate::event::{BlockEvent, SubjectKey};
use crate::records::ack::Receipt;
use crate::records::record::{AuditNote, RecordKind};

fn key(number: u64) -> Key {
    Key::from_bytes(u128::from(number).to_be_bytes())
}

fn step(number: u64, until: i64) -> Record {
    let parts = vec![("n".to_owned(), number.to_string())];
    let subject =
        SubjectKey { key: key(number), namespace: String::new(), policy: String::new(), parts };
    let until = Time::from_micros(until);
    let origin = Origin::Excess;
    let note = BlockNote::default();
    let block = Block { until, origin, shadow: false, level: 0, forget: Span::ZERO, note };
    let block = BlockEvent { subject, epoch: Time::ZERO, first_of_act: None, block };
    Record::automatic(Time::ZERO, RecordKind::Block(Box::new(block)))
}

fn full() -> RecordQueue {
    let queue = RecordQueue::default();
    (0..QUEUE_MAX as u64).for_each(|number| queue.submit(vec![step(number, 1)], None));
    queue
}

fn until(record: &Record) -> i64 {
    let RecordKind::Block(block) = &record.kind else { panic!("{record:?}") };
    block.block.until.micros()
}

fn take(queue: &RecordQueue) -> Vec<Record> {
    let WriterWork::Write(jobs) = queue.next(Duration::ZERO) else { return Vec::new() };
    jobs.into_iter().flat_map(|job| job.records).collect()
}

#[test]
fn a_batch_is_bounded_and_in_order() {
    let queue = full();
    let batch: Vec<_> = take(&queue).iter().filter_map(Record::key).collect();
    assert_eq!(batch, (0..BATCH_MAX as u64).map(key).collect::<Vec<_>>());
}

#[test]
fn when_it_is_full_the_newest_step_of_a_key_comes_later() {
    let queue = full();
    for until in [5, 6, 7] {
        queue.submit(vec![step(9_999_999, until)], None);
    }
    let (waiting, _) = queue.status();
    assert_eq!(waiting, QUEUE_MAX as u64 + 1);
    let mut all = Vec::new();
    loop {
        let some = take(&queue);
        if some.is_empty() {
            break;
        }
        all.extend(some);
    }
    assert_eq!(all.len(), QUEUE_MAX + 1);
    assert_eq!(all.last().map(until), Some(7));
    let health = queue.health();
    assert_eq!((health.postponed, health.lost, health.waiting), (3, 0, 0));
}

/// When there is room again, a newer record of a key does not pass the postponed one.
#[test]
fn steps_of_one_key_never_overtake_each_other() {
    let queue = full();
    queue.submit(vec![step(9_999_999, 5)], None);
    take(&queue);
    queue.submit(vec![step(9_999_999, 6)], None);
    let mut seen = Vec::new();
    loop {
        let some = take(&queue);
        if some.is_empty() {
            break;
        }
        seen.extend(some.iter().filter(|record| record.key() == Some(key(9_999_999))).map(until));
    }
    assert_eq!(seen, [6]);
}

#[test]
fn operators_have_a_share_of_their_own_and_are_told_when_it_is_full() {
    let queue = full();
    let note = || {
        let note_record = AuditNote { act: "reset".to_owned(), target: "all".to_owned() };
        Record::operator(Time::ZERO, "ana", None, RecordKind::Note(note_record))
    };
    let mut refused = 0;
    for _ in 0..=OPERATOR_EXTRA {
        let (ack_sender, receipt) = Receipt::new();
        queue.submit(vec![note()], Some(ack_sender));
        // A queued one is not answered yet; only the refusal is counted.
        refused += u64::from(queue.health().refused > refused);
        drop(receipt);
    }
    assert_eq!((refused, queue.health().lost), (1, 1));
}

#[test]
fn receipts_are_answered_at_once_while_the_disk_is_unavailable() {
    let queue = RecordQueue::default();
    let (ack_sender, waiting) = Receipt::new();
    queue.submit(vec![step(1, 1)], Some(ack_sender));
    queue.mark_unavailable(&"disk full".into());
    assert_eq!(waiting.wait(), Ack::NotYet("disk full".into()));
    let (ack_sender, newcomer) = Receipt::new();
    queue.submit(vec![step(2, 1)], Some(ack_sender));
    assert_eq!(newcomer.wait(), Ack::NotYet("disk full".into()));
    assert_eq!(take(&queue).len(), 2, "both stay queued");
    queue.mark_available();
    assert_eq!(queue.status(), (0, None));
}

/// Regression: such a record was neither written nor counted, and its receipt was never answered.
#[test]
fn a_record_after_the_end_is_refused_and_counted() {
    let queue = RecordQueue::default();
    queue.close();
    queue.submit(vec![step(1, 1)], None);
    assert_eq!(take(&queue).len(), 1, "the writer still takes what is there");
    assert!(matches!(queue.next(Duration::ZERO), WriterWork::Closed));
    let (ack_sender, receipt) = Receipt::new();
    queue.submit(vec![step(2, 1), step(3, 1)], Some(ack_sender));
    assert_eq!(receipt.wait(), Ack::NotYet("the records are closed".into()));
    let health = queue.health();
    assert_eq!((health.lost, health.refused, health.waiting), (2, 1, 0));
}

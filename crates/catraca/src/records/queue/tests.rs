//! The queue at its bounds: nobody waits, the newest step of a key survives, the rest is counted.

use catraca_core::cell::block::{Note, Origin};
use catraca_core::time::{Span, Time};

use super::*;
use crate::records::receipt::Receipt;
use crate::records::record::{Blocking, Deed, Noted, Who};

fn key(number: u64) -> Key {
    Key::from_bytes(u128::from(number).to_be_bytes())
}

fn step(number: u64, until: i64) -> Record {
    let parts = vec![("n".to_owned(), number.to_string())];
    let who = Who { key: key(number), namespace: String::new(), policy: String::new(), parts };
    let (until, origin, note) = (Time::from_micros(until), Origin::Excess, Note::default());
    let (epoch, shadow, forget) = (Time::ZERO, false, Span::ZERO);
    let blocking = Blocking { who, epoch, until, origin, note, shadow, forget };
    Record::automatic(Time::ZERO, Deed::Block(Box::new(blocking)))
}

fn full() -> Queue {
    let queue = Queue::default();
    (0..QUEUE_MAX as u64).for_each(|number| queue.submit(vec![step(number, 1)], None));
    queue
}

fn until(record: &Record) -> i64 {
    let Deed::Block(blocking) = &record.deed else { panic!("{record:?}") };
    blocking.until.micros()
}

fn take(queue: &Queue) -> Vec<Record> {
    let Next::Write(jobs) = queue.next(Duration::ZERO) else { return Vec::new() };
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
    let (waiting, _) = queue.state();
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
    let health = queue.counters.health(queue.state());
    assert_eq!((health.postponed, health.lost, health.waiting), (3, 0, 0));
}

/// Room again does not let a newer step pass the one that was put off.
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
        let noted = Noted { act: "reset".to_owned(), target: "all".to_owned() };
        Record::operator(Time::ZERO, "ana", None, Deed::Note(noted))
    };
    let mut refused = 0;
    for _ in 0..=OPERATORS_SHARE {
        let (acker, receipt) = Receipt::new();
        queue.submit(vec![note()], Some(acker));
        // One that was taken is not answered yet; a queue that goes says so too.
        refused += u64::from(queue.counters.health(queue.state()).refused > refused);
        drop(receipt);
    }
    assert_eq!((refused, queue.counters.health(queue.state()).lost), (1, 1));
}

#[test]
fn nobody_waits_for_a_disk_that_is_down() {
    let queue = Queue::default();
    let (acker, waiting) = Receipt::new();
    queue.submit(vec![step(1, 1)], Some(acker));
    queue.down(&"disk full".into());
    assert_eq!(waiting.wait(), Ack::NotYet("disk full".into()));
    let (acker, newcomer) = Receipt::new();
    queue.submit(vec![step(2, 1)], Some(acker));
    assert_eq!(newcomer.wait(), Ack::NotYet("disk full".into()));
    assert_eq!(take(&queue).len(), 2, "both are kept");
    queue.up();
    assert_eq!(queue.state(), (0, None));
}

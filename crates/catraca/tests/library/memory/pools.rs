//! The pools of blocks, references and settled markers when each of them is full.

use catraca::memory::{Memory, MemoryOptions, MemoryPool};
use catraca_core::batch::{
    Batch, CheckBatch, CheckRow, NewReference, Reply, SettleBatch, SettleReply, SettleRow,
};
use catraca_core::cell::CellKind;
use catraca_core::cell::block::Origin;
use catraca_core::digest::Key;
use catraca_core::limit::Limit;
use catraca_core::price::Price;
use catraca_core::time::{Span, Time};
use smallvec::SmallVec;

use super::helpers::{
    START, answer, apply, block, bucket, check, check_reply, count_blocked, key, row, store, strict,
};

const HOUR: Span = Span::from_secs(3_600);
/// Keys of references and markers, different from those of rows.
const OTHERS: u64 = 1 << 40;

fn one_shard(bytes: usize) -> MemoryOptions {
    MemoryOptions {
        shards: 1,
        block_bytes: bytes,
        reference_bytes: bytes,
        mark_bytes: bytes,
        ..MemoryOptions::default()
    }
}

/// Exceeds the limit of every key; returns how many blocks started.
fn exceed(memory: &Memory, keys: impl Iterator<Item = Key>) -> u64 {
    let over = |key| CheckRow { held: 2, ..strict(key, bucket(2, HOUR), HOUR) };
    let started = keys.filter(|key| (0..2).any(|_| answer(memory, over(*key)).started));
    started.count() as u64
}

#[test]
fn a_full_pool_starts_no_automatic_block_and_keeps_a_tenth_for_operators() {
    let (memory, _) = store(one_shard(64 << 10));
    let started = exceed(&memory, (0..2_000).map(key));
    let stats = memory.stats();
    assert!(started > 300 && started < 2_000, "{stats:?}");
    assert_eq!(stats.refused_blocks, 2_000 - started);
    assert_eq!(
        count_blocked(&memory, (0..2_000).map(key)) as u64,
        started,
        "every started block is active"
    );
    let by_hand = (5_000..7_000).map(key);
    apply(&memory, &block(by_hand.clone(), Origin::Operator, HOUR));
    let reserved = count_blocked(&memory, by_hand) as u64;
    assert!(reserved >= started / 10, "{reserved} beside {started}");
    assert_eq!(
        exceed(&memory, (8_000..8_100).map(key)),
        0,
        "the reserve for operators is not used by others"
    );
    assert_eq!(count_blocked(&memory, (0..2_000).map(key)) as u64, started);
    assert!(memory.stats()[CellKind::Block].bytes <= 64 << 10);
}

///
#[test]
fn blocks_that_ended_make_room_for_new_ones() {
    let (memory, clock) = store(one_shard(64 << 10));
    let first = exceed(&memory, (0..2_000).map(key));
    clock.advance(HOUR);
    let second = exceed(&memory, (10_000..12_000).map(key));
    assert!(second >= first * 9 / 10, "{second} after {first}");
    let mut listed = 0;
    memory.for_each_block(|_, block| {
        assert_eq!(block.origin, Origin::Excess);
        listed += 1;
    });
    assert_eq!(listed, second);
}

#[test]
fn counters_never_take_the_bytes_of_blocks() {
    let (memory, _) = store(MemoryOptions { budget_bytes: 64 << 10, ..one_shard(64 << 10) });
    (0..20_000).for_each(|number| {
        answer(&memory, row(key(number), bucket(2, HOUR)));
    });
    assert!(memory.stats().overflowed > 0);
    let banned = (OTHERS..OTHERS + 100).map(key);
    apply(&memory, &block(banned.clone(), Origin::Ban, HOUR));
    assert_eq!(count_blocked(&memory, banned), 100);
}

fn remember(memory: &Memory, number: u64, size: usize) -> bool {
    let remember = NewReference {
        key: key(OTHERS + number),
        owner: key(number),
        ticket: vec![1; size].into(),
        span: 24.hours(),
    };
    let rows: SmallVec<[CheckRow; 1]> = [row(key(0), Limit::Unlimited)].into_iter().collect();
    let batch =
        CheckBatch { rows, new_reference: Some(Box::new(remember)), ..CheckBatch::default() };
    check_reply(memory, &Batch::Check(batch)).remembered
}

fn is_known(memory: &Memory, number: u64) -> bool {
    matches!(apply(memory, &Batch::Recall(key(OTHERS + number))), Reply::Recall(Some(_)))
}

trait Hours {
    fn hours(self) -> Span;
}

impl Hours for i64 {
    fn hours(self) -> Span {
        Span::from_secs(self * 3_600)
    }
}

#[test]
fn the_oldest_references_make_room_for_the_newest() {
    let (memory, _) = store(one_shard(64 << 10));
    assert!((0..1_000).all(|number| remember(&memory, number, 100)));
    let known: Vec<u64> = (0..1_000).filter(|number| is_known(&memory, *number)).collect();
    let stats = memory.stats();
    assert!(known.len() > 100, "{stats:?}");
    assert_eq!(known, (1_000 - known.len() as u64..1_000).collect::<Vec<_>>(), "oldest first");
    assert_eq!(stats.dropped_references, 1_000 - known.len() as u64);
    assert_eq!(memory.full_pools(), [MemoryPool::References]);
    assert!(stats[CellKind::Reference].bytes <= 64 << 10, "{stats:?}");
    assert!(!remember(&memory, 999, 100), "the first check owns it");
}

#[test]
fn a_reference_larger_than_its_pool_is_not_remembered() {
    let (memory, _) = store(one_shard(64 << 10));
    assert!(remember(&memory, 1, 100));
    assert!(!remember(&memory, 2, 70_000));
    assert!(!is_known(&memory, 2));
}

#[test]
fn references_that_lapsed_are_not_counted_as_dropped() {
    let (memory, clock) = store(one_shard(64 << 10));
    (0..100).for_each(|number| assert!(remember(&memory, number, 100)));
    clock.advance(24.hours());
    (100..250).for_each(|number| assert!(remember(&memory, number, 100)));
    assert_eq!(memory.stats().dropped_references, 0);
    assert!((100..250).all(|number| is_known(&memory, number)));
    // An expired reference may be used again by another check.
    assert!(remember(&memory, 3, 100));
}

fn settle(memory: &Memory, number: u64, expires: Time) -> SettleReply {
    let row = SettleRow {
        family: 1,
        held: 1,
        price: Price::Units(3),
        ..SettleRow::new(key(number), bucket(10, HOUR), START)
    };
    let mark = key(OTHERS + number);
    let rows = vec![row];
    match apply(
        memory,
        &Batch::Settle(SettleBatch { marker: mark, expires, rows, reference: None }),
    ) {
        Reply::Settle(reply) => reply,
        other => panic!("{other:?} is no answer to a settle"),
    }
}

#[test]
fn a_full_pool_of_markers_settles_nothing_until_some_lapse() {
    let (memory, clock) = store(one_shard(64 << 10));
    let minute = START.after(Span::from_secs(60));
    let is_settled = |number, expires| match settle(&memory, number, expires) {
        SettleReply::Settled { already_settled: again, .. } => !again,
        _ => false,
    };
    let settled = (0..1_000).filter(|number| is_settled(*number, minute)).count();
    let stats = memory.stats();
    assert!(settled > 300 && settled < 1_000, "{stats:?}");
    assert_eq!(stats.refused_marks, 1_000 - settled as u64);
    assert_eq!(memory.full_pools(), [MemoryPool::SettledMarkers]);
    assert!(stats[CellKind::SettledMarker].bytes <= 64 << 10, "{stats:?}");
    let refused = (0..1_000).find(|n| settle(&memory, *n, minute) == SettleReply::Full);
    let refused = refused.expect("some were refused");
    let peeked = answer(&memory, row(key(refused), bucket(10, HOUR)));
    assert_eq!(peeked.free, 9, "a settle that is refused charges nothing");
    clock.set(minute);
    let later = minute.after(Span::from_secs(60));
    let again = (2_000..3_000).filter(|number| is_settled(*number, later)).count();
    assert!(again >= settled * 9 / 10, "{again} after {settled}");
}

#[test]
fn strikes_and_ratios_find_room_when_newcomers_do_not() {
    let (memory, _) = store(MemoryOptions { budget_bytes: 256 << 10, ..one_shard(1 << 20) });
    (0..20_000).for_each(|number| {
        answer(&memory, row(key(number), bucket(2, HOUR)));
    });
    let before = memory.stats();
    assert!(before.overflowed > 0);
    // A bucket created by a reconcile is such a cell too: nothing has reserved memory for it.
    let terms = match bucket(10, HOUR) {
        Limit::Bucket(terms) => terms,
        other => panic!("{other:?} is no bucket"),
    };
    let row = |number| catraca_core::batch::ReconcileRow {
        key: key(OTHERS + number),
        terms,
        shared: None,
        available: 0,
        observed_at: START,
    };
    apply(&memory, &Batch::Reconcile((0..5_000).map(row).collect()));
    let after = memory.stats();
    assert!(after.counter_bytes() <= 256 << 10, "{after:?}");
    assert!(after.refused_counters > 0, "{after:?}");
}

#[test]
fn an_empty_batch_is_answered() {
    let (memory, _) = store(one_shard(64 << 10));
    let reply = check_reply(&memory, &check([]));
    assert!(reply.passed && reply.rows.is_empty());
    assert_eq!(reply.now, START);
}

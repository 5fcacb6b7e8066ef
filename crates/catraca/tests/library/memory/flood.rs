//! A flood of keys: memory stays within its budget, and denied keys stay denied.

use catraca::memory::{Memory, MemoryOptions};
use catraca_core::batch::{CheckRow, RowVerdict};
use catraca_core::cell::CellKind;
use catraca_core::cell::block::Origin;
use catraca_core::limit::Limit;
use catraca_core::time::Span;

use super::helpers::{
    answer, apply, block, bucket, count_blocked, fixed, inflight, key, passes, row, store, window,
};

const HOUR: Span = Span::from_secs(3_600);
const BUDGET: usize = 16 << 20;
/// Ten million in a deep run.
const FLOOD: u64 = 2_000_000;
const FLOOD_VARIABLE: &str = "CATRACA_FLOOD_KEYS";
/// Key numbers that the flood does not use.
const PLANTED: u64 = 1 << 40;
const BLOCKS: u64 = 20_000;

fn small_budget() -> MemoryOptions {
    MemoryOptions { budget_bytes: BUDGET, block_bytes: 8 << 20, ..MemoryOptions::default() }
}

/// A row of the flood; the algorithms alternate, each with its own policy.
fn attacker(number: u64) -> CheckRow {
    let limit = match number % 4 {
        0 => bucket(5, HOUR),
        1 => window(5, HOUR),
        2 => fixed(5, HOUR),
        _ => inflight(5, HOUR),
    };
    CheckRow { family: number % 4, ..row(key(number), limit) }
}

fn assert_within_budget(memory: &Memory) {
    let stats = memory.stats();
    let bytes = stats.counter_bytes();
    assert!(bytes <= BUDGET + BUDGET / 20, "{bytes} bytes: {stats:?}");
}

/// A key that has used up its limit.
fn exhausted_row(memory: &Memory) -> CheckRow {
    let row = row(key(PLANTED - 1), bucket(5, HOUR));
    assert_eq!((0..9).filter(|_| passes(memory, row.clone())).count(), 5);
    row
}

/// covers: X-31, B-15
#[test]
fn millions_of_keys_neither_pass_the_budget_nor_free_anybody() {
    let flood = std::env::var(FLOOD_VARIABLE).map_or(FLOOD, |text| text.parse().unwrap());
    let (memory, _) = store(small_budget());
    let planted = || (0..BLOCKS).map(|number| key(PLANTED + number));
    apply(&memory, &block(planted(), Origin::Ban, HOUR));
    let victim = row(key(PLANTED), Limit::Unlimited);
    let spent = exhausted_row(&memory);
    for number in 0..flood {
        answer(&memory, attacker(number));
        if number % 1_000 == 0 {
            assert!(!passes(&memory, victim.clone()), "unblocked after {number} keys");
            assert!(!passes(&memory, spent.clone()), "quota restored after {number} keys");
        }
        if number % 100_000 == 0 {
            assert_within_budget(&memory);
        }
    }
    assert_within_budget(&memory);
    assert_eq!(count_blocked(&memory, planted()), BLOCKS as usize);
    let stats = memory.stats();
    assert_eq!(stats[CellKind::Block].cells, BLOCKS as usize);
    assert!(stats.overflowed > flood / 2, "{stats:?}");
    // At most one overflow cell per policy; there are four policies.
    assert!(stats.overflow.cells <= 4, "{stats:?}");
}

/// Each algorithm alone stays within the budget and uses most of it.
#[test]
fn every_kind_of_counter_keeps_to_the_budget_alone() {
    for kind in 0..4 {
        let (memory, _) = store(small_budget());
        for number in 0..FLOOD / 8 {
            answer(&memory, attacker(4 * number + kind));
        }
        assert_within_budget(&memory);
        let stats = memory.stats();
        assert!(stats.overflowed > 0, "kind {kind} never filled the store: {stats:?}");
        assert!(stats.counter_bytes() > BUDGET / 3, "kind {kind} wastes: {stats:?}");
    }
}

///
#[test]
fn when_memory_is_full_newcomers_share_what_one_of_them_would_have() {
    let (memory, _) = store(MemoryOptions { shards: 1, budget_bytes: 64 << 10, ..small_budget() });
    let early = row(key(PLANTED), bucket(5, HOUR));
    assert!(!answer(&memory, early.clone()).is_overflow);
    for number in 0..5_000 {
        answer(&memory, CheckRow { family: 9, ..row(key(number), bucket(5, HOUR)) });
    }
    let newcomer = |number, family| {
        answer(&memory, CheckRow { family, ..row(key(PLANTED + number), bucket(5, HOUR)) })
    };
    let replies: Vec<_> = (1..=20).map(|number| newcomer(number, 1)).collect();
    assert!(replies.iter().all(|reply| reply.is_overflow));
    let passed = replies.iter().filter(|reply| reply.verdict == RowVerdict::Fits).count();
    assert_eq!(passed, 5, "keys of one family share one quota");
    assert_eq!(newcomer(30, 2).verdict, RowVerdict::Fits, "another family has its own quota");
    assert!(!answer(&memory, early).is_overflow, "an existing key keeps its own cell");
}

/// Regression: each of the 128 shards had an overflow cell of its own, so that 640 keys passed a
/// limit of 5.
#[test]
fn all_shards_of_a_store_share_one_overflow_cell() {
    let options = MemoryOptions { shards: 128, budget_bytes: 4 << 20, ..small_budget() };
    let (memory, _) = store(options);
    for number in 0..FLOOD / 8 {
        answer(&memory, CheckRow { family: 9, ..row(key(number), bucket(5, HOUR)) });
    }
    let newcomer = |number| {
        let reply =
            answer(&memory, CheckRow { family: 1, ..row(key(PLANTED + number), bucket(5, HOUR)) });
        assert!(reply.is_overflow);
        reply.verdict == RowVerdict::Fits
    };
    let passed = || (0..2_000).filter(|number| newcomer(*number)).count();
    let passed: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(passed)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(passed, 5);
    assert_eq!(memory.stats().overflow.cells, 2, "one for each policy");
}

///
#[test]
fn room_that_comes_free_is_used_again() {
    let options = MemoryOptions { shards: 1, budget_bytes: 256 << 10, ..small_budget() };
    let (memory, clock) = store(options);
    let wave = |from: u64| (from..from + 4_000).map(|number| row(key(number), bucket(1, HOUR)));
    let mut own = Vec::new();
    for generation in 0..5 {
        let replies = wave(generation * 10_000).map(|row| answer(&memory, row));
        own.push(replies.filter(|reply| !reply.is_overflow).count());
        clock.advance(Span::from_secs(3_601));
    }
    assert!(own[0] > 3_000 && own[0] < 4_000, "{own:?}");
    assert!(own.iter().all(|count| *count > own[0] * 9 / 10), "{own:?}");
    // Another algorithm gets the bytes of expired buckets after a few calls: each of them searches
    // 32 of at most 4096 slots.
    let window = |number| answer(&memory, row(key(PLANTED + number), window(1, HOUR)));
    let shared: Vec<u64> = (0..500).filter(|number| window(*number).is_overflow).collect();
    assert!(shared.len() < 128 && shared.iter().all(|number| *number < 300), "{shared:?}");
}

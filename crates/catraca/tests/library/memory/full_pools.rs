//! Full pools: a key without a cell of its own is never blocked for the usage of other keys, and
//! statistics show which pool is full.

use catraca::memory::{Memory, MemoryOptions, MemoryPool};
use catraca_core::batch::{
    BanRow, Batch, CheckRow, Reply, RowSettlement, RowVerdict, SettleBatch, SettleReply, SettleRow,
    WatchRow,
};
use catraca_core::cell::block::{BlockNote, BlockProposal, Origin};
use catraca_core::limit::{Limit, Penalty};
use catraca_core::price::Price;
use catraca_core::rate::{Percent, Rate};
use catraca_core::time::Span;
use smallvec::smallvec;

use super::helpers::{
    START, answer, apply, block, bucket, count_blocked, fixed, inflight, key, row, store, strict,
    window,
};

const HOUR: Span = Span::from_secs(3_600);
/// Keys of callers that arrive after the store is full.
const NEW: u64 = 1 << 40;
/// Keys of markers, different from those of rows.
const MARKS: u64 = 1 << 41;

/// One shard with room for about a thousand counters.
fn small_budget() -> MemoryOptions {
    MemoryOptions { shards: 1, budget_bytes: 64 << 10, ..MemoryOptions::default() }
}

fn limits() -> [Limit; 4] {
    [bucket(1, HOUR), window(1, HOUR), fixed(1, HOUR), inflight(1, HOUR)]
}

/// Fills the counters' memory until new keys share overflow cells.
fn fill(memory: &Memory, limit: &Limit) {
    (0..5_000).for_each(|number| {
        answer(memory, row(key(number), limit.clone()));
    });
    assert!(memory.stats().overflowed > 0, "the store never filled");
}

/// Regression: each of a hundred new callers was blocked for an hour at its first request.
#[test]
fn a_shared_cell_denies_and_starts_no_block() {
    for limit in limits() {
        let (memory, clock) = store(small_budget());
        fill(&memory, &limit);
        let strict = |number| strict(key(NEW + number), limit.clone(), HOUR);
        let count_denied = |number| CheckRow { count_denied: true, ..strict(number) };
        for number in 0..100 {
            let reply = answer(&memory, strict(number));
            assert!(reply.is_overflow && !reply.started && reply.block.is_none(), "{limit:?}");
            assert_eq!(reply.verdict, RowVerdict::OverLimit, "{limit:?}");
            assert!(!answer(&memory, count_denied(number)).started);
        }
        assert_eq!(count_blocked(&memory, (NEW..NEW + 100).map(key)), 0, "{limit:?}");
        let mut blocks = 0;
        memory.for_each_block(|_, _| blocks += 1);
        assert_eq!(blocks, 0, "no level is stored either");
        // With free memory the caller has its own counter, and its own excess blocks it.
        clock.advance(Span::from_secs(7_200));
        memory.reclaim();
        let own: Vec<bool> = (0..2).map(|_| answer(&memory, strict(7)).started).collect();
        assert_eq!(own, [false, true], "{limit:?}");
    }
}

fn block_proposal(origin: Origin) -> BlockProposal {
    BlockProposal::new(Penalty::without_escalation(HOUR), origin, false, BlockNote::default())
}

fn settle_row(number: u64, limit: Limit) -> SettleRow {
    SettleRow { family: 1, held: 1, ..SettleRow::new(key(number), limit, START) }
}

fn settle(memory: &Memory, number: u64, row: SettleRow) -> RowSettlement {
    let mark = key(MARKS + number);
    let expires = START.after(HOUR);
    let settle = SettleBatch { marker: mark, expires, rows: vec![row], reference: None };
    match apply(memory, &Batch::Settle(settle)) {
        Reply::Settle(SettleReply::Settled { rows, .. }) => rows[0].clone(),
        other => panic!("{other:?} is no settled ticket"),
    }
}

#[test]
fn a_settle_that_exceeds_a_shared_cell_starts_no_block() {
    for limit in [bucket(1, HOUR), window(1, HOUR), fixed(1, HOUR)] {
        let (memory, _) = store(small_budget());
        fill(&memory, &limit);
        let penalty = Some(Penalty::without_escalation(HOUR));
        let price = Price::Units(9);
        let row = SettleRow { price, penalty, ..settle_row(NEW, limit.clone()) };
        let done = settle(&memory, 0, row.clone());
        assert_eq!((done.started, done.blocked_until), (None, None), "{limit:?}");
        // A key with its own counter is blocked.
        let done = settle(&memory, 1, SettleRow { key: key(0), ..row });
        assert_eq!(done.started, Some(Origin::Excess), "{limit:?}");
    }
}

fn row_with_ban(number: u64, strikes: Option<i64>) -> SettleRow {
    let after = strikes.map(|amount| Rate { amount, per: HOUR });
    let ban = BanRow { rule: 0, after, proposal: block_proposal(Origin::Ban) };
    SettleRow { bans: smallvec![ban], ..settle_row(number, Limit::Unlimited) }
}

fn row_with_watch(number: u64, in_part: bool) -> SettleRow {
    let above = Percent::parse("50%").expect("a percentage");
    let watch =
        WatchRow { in_part, per: HOUR, above, min: 1, proposal: block_proposal(Origin::Ban) };
    SettleRow { watch: Some(Box::new(watch)), ..settle_row(number, Limit::Unlimited) }
}

/// Fills also the last eighth, which new counters leave for strikes and ratios.
fn fill_with_strikes(memory: &Memory) {
    (0..5_000).for_each(|number| {
        settle(memory, number, row_with_ban(number, Some(5)));
    });
    assert!(memory.stats().refused_counters > 0, "the store never filled");
}

/// Regression: an outcome without a ratio cell was judged as if it were the only one.
#[test]
fn strikes_and_ratios_without_room_start_no_ban() {
    let (memory, _) = store(small_budget());
    fill_with_strikes(&memory);
    (5_000..9_000).for_each(|number| {
        settle(&memory, number, row_with_watch(number, false));
    });
    let refused = memory.stats().refused_counters;
    let strike = settle(&memory, NEW, row_with_ban(NEW, Some(1)));
    let ratio = settle(&memory, NEW + 1, row_with_watch(NEW + 1, true));
    assert_eq!((strike.started, ratio.started), (None, None));
    assert_eq!(memory.stats().refused_counters, refused + 2);
    assert_eq!(count_blocked(&memory, [key(NEW), key(NEW + 1)]), 0);
}

#[test]
fn bans_without_after_and_operators_act_on_the_key_whatever_is_full() {
    let (memory, _) = store(small_budget());
    fill(&memory, &bucket(1, HOUR));
    fill_with_strikes(&memory);
    let done = settle(&memory, NEW, row_with_ban(NEW, None));
    assert_eq!(done.started, Some(Origin::Ban));
    apply(&memory, &block([key(NEW + 1)], Origin::Operator, HOUR));
    assert_eq!(count_blocked(&memory, [key(NEW), key(NEW + 1), key(NEW + 2)]), 2);
}

#[test]
fn a_pool_counts_as_full_for_a_minute_after_its_last_refusal() {
    let (memory, clock) = store(small_budget());
    assert_eq!(memory.full_pools(), []);
    fill(&memory, &bucket(1, HOUR));
    assert_eq!(memory.full_pools(), [MemoryPool::Counters]);
    clock.advance(Span::from_secs(60));
    assert_eq!(memory.full_pools(), [MemoryPool::Counters]);
    clock.advance(Span::from_micros(1));
    assert_eq!(memory.full_pools(), []);
    answer(&memory, row(key(NEW), bucket(1, HOUR)));
    assert_eq!(
        memory.full_pools(),
        [MemoryPool::Counters],
        "a new refusal marks the pool as full again"
    );
}

#[test]
fn strikes_without_room_and_blocks_without_room_name_their_pools() {
    let (memory, _) = store(MemoryOptions { block_bytes: 64 << 10, ..small_budget() });
    fill_with_strikes(&memory);
    assert_eq!(memory.full_pools(), [MemoryPool::Counters]);
    apply(&memory, &block((0..2_000).map(key), Origin::Ban, HOUR));
    assert_eq!(memory.full_pools(), [MemoryPool::Counters, MemoryPool::Blocks]);
}

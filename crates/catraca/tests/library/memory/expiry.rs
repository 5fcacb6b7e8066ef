//! Expired cells are removed by traffic or by maintenance, and the memory that a key uses.

use catraca::memory::{Memory, MemoryOptions, MemoryStats};
use catraca_core::batch::CheckRow;
use catraca_core::cell::CellKind;
use catraca_core::cell::block::Origin;
use catraca_core::limit::{Limit, WindowTerms};
use catraca_core::time::Span;

use super::helpers::{
    answer, apply, block, bucket, fixed, inflight, key, passes, row, store, window,
};

const MINUTE: Span = Span::from_secs(60);
/// Enough maintenance steps to visit every slot of the tables here.
const TURNS: usize = 64;

fn cells(stats: &MemoryStats) -> usize {
    let kinds: usize = CellKind::ALL.iter().map(|kind| stats[*kind].cells).sum();
    kinds + stats.overflow.cells
}

fn fill(memory: &Memory, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let limit = match number % 4 {
            0 => bucket(5, MINUTE),
            1 => window(5, MINUTE),
            2 => fixed(5, MINUTE),
            _ => inflight(5, MINUTE),
        };
        answer(memory, row(key(number), limit));
    }
}

/// covers: 002-11, 002-26, 000-27
#[test]
fn a_quiet_store_gives_everything_back() {
    let (memory, clock) = store(MemoryOptions { shards: 4, ..MemoryOptions::default() });
    let empty = memory.stats();
    fill(&memory, 0..40_000);
    apply(&memory, &block((0..5_000).map(key), Origin::Operator, MINUTE));
    let full = memory.stats();
    assert_eq!(cells(&full), 45_000);
    clock.advance(MINUTE);
    (0..TURNS).for_each(|_| memory.reclaim());
    assert_eq!(memory.stats(), empty);
}

/// A policy whose number of windows changed restarts its logs, and the accounting stays exact.
#[test]
fn a_log_that_starts_again_is_accounted_for() {
    let (memory, clock) = store(MemoryOptions { shards: 1, ..MemoryOptions::default() });
    let empty = memory.stats();
    let one = window(5, MINUTE);
    let windows = [5, 3].map(|limit| WindowTerms { limit, span: MINUTE });
    let two = Limit::Window(windows.into_iter().collect());
    for limit in [&one, &two, &one, &two, &two, &one] {
        (0..100).for_each(|number| {
            answer(&memory, row(key(number), limit.clone()));
        });
        clock.advance(Span::from_millis(10));
    }
    // Cells expire at whole seconds.
    clock.advance(MINUTE.plus(Span::from_secs(1)));
    (0..TURNS).for_each(|_| memory.reclaim());
    assert_eq!(memory.stats(), empty);
}

/// covers: 000-27
#[test]
fn an_ended_block_is_not_listed_though_nothing_swept() {
    let (memory, clock) = store(MemoryOptions::default());
    apply(&memory, &block([key(1)], Origin::Operator, MINUTE));
    let listed = || {
        let mut listed = Vec::new();
        memory.for_each_block(|key, block| listed.push((key, block.until)));
        listed
    };
    assert_eq!(listed(), [(key(1), clock_end(&clock))]);
    clock.advance(MINUTE);
    assert_eq!(listed(), []);
}

fn clock_end(clock: &catraca::clock::ManualClock) -> catraca_core::time::Time {
    catraca::clock::Clock::now(clock).after(MINUTE)
}

/// Traffic alone removes expired cells, without maintenance.
///
/// covers: 002-11
#[test]
fn waves_of_new_keys_sweep_out_the_old_ones() {
    let (memory, clock) = store(MemoryOptions { shards: 4, ..MemoryOptions::default() });
    let mut most = 0;
    for wave in 0..30 {
        fill(&memory, wave * 8_000..(wave + 1) * 8_000);
        most = most.max(cells(&memory.stats()));
        clock.advance(MINUTE);
    }
    assert!(most < 3 * 8_000, "{most} cells for 8000 active keys");
}

/// Maintenance must not remove cells that still count.
#[test]
fn the_living_are_never_swept() {
    let (memory, clock) = store(MemoryOptions { shards: 1, ..MemoryOptions::default() });
    let spent = |limit: Limit| CheckRow { held: 5, ..row(key(7), limit) };
    let limits = [bucket(5, MINUTE), window(5, MINUTE), fixed(5, MINUTE)].map(spent);
    limits.iter().for_each(|row| assert!(passes(&memory, row.clone())));
    clock.advance(Span::from_micros(MINUTE.micros() - 1));
    (0..TURNS).for_each(|_| memory.reclaim());
    limits.iter().for_each(|row| assert!(!passes(&memory, row.clone()), "{:?}", row.limit));
}

/// Accounted bytes for each active key of a policy that admits `limit` per minute.
fn bytes_per_key(limit: i64) -> usize {
    const KEYS: u64 = 20_000;
    let (memory, clock) = store(MemoryOptions::default());
    for _ in 0..limit {
        for number in 0..KEYS {
            assert!(passes(&memory, row(key(number), window(limit, MINUTE))));
        }
        clock.advance(Span::from_micros(MINUTE.micros() / (limit + 1)));
    }
    let stats = memory.stats();
    assert_eq!(stats[CellKind::SlidingWindow].cells, KEYS as usize);
    stats.counter_bytes() / KEYS as usize
}

/// covers: B-46
#[test]
fn an_active_key_of_an_exact_window_takes_less_than_a_kibibyte() {
    let bytes = [10, 60, 120].map(bytes_per_key);
    assert!(bytes.iter().all(|bytes| *bytes < 1_024), "{bytes:?}");
    // At least three bytes for every unit that is stored exactly.
    let grows = |pair: &[usize]| pair[1] > pair[0] + 3 * 50;
    assert!(bytes.windows(2).all(grows), "{bytes:?}");
}

/// The most common kind of cell must stay small.
#[test]
fn a_bucket_takes_48_bytes_and_its_share_of_the_table() {
    const KEYS: u64 = 400_000;
    let (memory, _) = store(MemoryOptions::default());
    for number in 0..KEYS {
        answer(&memory, row(key(number), bucket(5, MINUTE)));
    }
    let stats = memory.stats();
    assert_eq!(stats[CellKind::Bucket].cells, KEYS as usize);
    let bytes = stats[CellKind::Bucket].bytes / KEYS as usize;
    assert!((49..=112).contains(&bytes), "{bytes} bytes a key");
}

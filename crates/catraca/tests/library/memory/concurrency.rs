//! Concurrent callers: exactly the limit passes, a batch charges all rows or none, and there is no
//! deadlock.

use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::SystemTime;

use catraca::clock::Clock;
use catraca::memory::{Memory, MemoryOptions};
use catraca_core::limit::Limit;
use catraca_core::time::{Span, Time};

use super::helpers::{
    Rng, START, answer, bucket, check, check_reply, fixed, inflight, key, passes, peek, row, store,
    strict, window,
};

const THREADS: usize = 64;
const HOUR: Span = Span::from_secs(3_600);

/// Runs `call` in all threads at once, round after round; returns the sum of each round.
///
/// `call` must not assert: a thread that panics would leave the others at the barrier.
fn rounds(rounds: usize, call: impl Fn(usize, usize) -> usize + Sync) -> Vec<usize> {
    let barrier = Barrier::new(THREADS);
    let sums: Vec<AtomicUsize> = (0..rounds).map(|_| AtomicUsize::new(0)).collect();
    let caller = |thread: usize| {
        for (round, sum) in sums.iter().enumerate() {
            barrier.wait();
            sum.fetch_add(call(thread, round), Ordering::SeqCst);
        }
    };
    thread::scope(|scope| {
        let caller = &caller;
        (0..THREADS).for_each(|thread| {
            scope.spawn(move || caller(thread));
        });
    });
    sums.into_iter().map(AtomicUsize::into_inner).collect()
}

fn limit(round: usize) -> Limit {
    match round % 4 {
        0 => bucket(10, HOUR),
        1 => window(10, HOUR),
        2 => fixed(10, HOUR),
        _ => inflight(10, HOUR),
    }
}

/// covers: 002-35, B-33, B-34, B-49
#[test]
fn exactly_the_limit_passes_64_threads_at_a_barrier() {
    let (memory, _) = store(MemoryOptions::default());
    let call = |_, round: usize| {
        let row = || row(key(round as u64), limit(round));
        (0..4).filter(|_| passes(&memory, row())).count()
    };
    assert_eq!(rounds(1_000, call), [10; 1_000]);
}

/// covers: 002-36, B-38
#[test]
fn the_excess_starts_one_block_and_nobody_passes_after_it() {
    let (memory, _) = store(MemoryOptions::default());
    let call = |_, round: usize| {
        let row = || strict(key(round as u64), limit(round % 3), HOUR);
        let replies: Vec<_> = (0..3).map(|_| answer(&memory, row())).collect();
        let seen = replies.iter().position(|reply| reply.block.is_some());
        let after = seen.map_or(&[][..], |at| &replies[at..]);
        let escaped = after.iter().filter(|reply| reply.charged != 0).count();
        1_000 * escaped + replies.iter().filter(|reply| reply.started).count()
    };
    assert_eq!(rounds(200, call), [1; 200]);
}

/// covers: X-02, 001-25
#[test]
fn rows_in_several_shards_are_charged_together_or_not_at_all() {
    let (memory, _) = store(MemoryOptions::default());
    let rows = |round: usize| {
        let [wide, narrow] = [3 * round as u64, 3 * round as u64 + 1].map(key);
        [row(wide, bucket(50, HOUR)), row(narrow, window(30, HOUR))]
    };
    let call = |thread: usize, round: usize| {
        let mut rows = rows(round).to_vec();
        // Half of the callers name the keys in reverse order, which must not cause a deadlock.
        if thread.is_multiple_of(2) {
            rows.reverse();
        }
        usize::from(check_reply(&memory, &check(rows)).passed)
    };
    assert_eq!(rounds(300, call), [30; 300]);
    for round in 0..300 {
        let free = rows(round).map(|row| check_reply(&memory, &peek(row)).rows[0].free);
        assert_eq!(free, [20, 0], "round {round}");
    }
}

/// The counters are exact after many batches over the same shards in any order.
#[test]
fn batches_in_any_order_neither_deadlock_nor_lose_a_unit() {
    const KEYS: u64 = 16;
    let (memory, _) = store(MemoryOptions { shards: 8, ..MemoryOptions::default() });
    let charged: Vec<AtomicUsize> = (0..KEYS).map(|_| AtomicUsize::new(0)).collect();
    let call = |thread: usize, round: usize| {
        let mut rng = Rng((thread * 1_000 + round) as u64 * 1_000);
        for _ in 0..20 {
            let first = rng.below(KEYS);
            let step = 1 + 2 * rng.below(KEYS / 2);
            let numbers: Vec<u64> =
                (0..1 + rng.below(6)).map(|n| (first + n * step) % KEYS).collect();
            let rows = numbers.iter().map(|number| row(key(*number), bucket(9_000, HOUR)));
            if check_reply(&memory, &check(rows)).passed {
                numbers.iter().for_each(|number| {
                    charged[*number as usize].fetch_add(1, Ordering::SeqCst);
                });
            }
        }
        0
    };
    assert_eq!(rounds(20, call).len(), 20, "no round deadlocked");
    for number in 0..KEYS {
        let free = check_reply(&memory, &peek(row(key(number), bucket(9_000, HOUR)))).rows[0].free;
        let charged = charged[number as usize].load(Ordering::SeqCst) as i64;
        assert_eq!(free, 9_000 - charged, "key {number}");
        assert!(charged > 0);
    }
}

/// A clock that never returns the same time twice.
#[derive(Default)]
struct TickingClock(AtomicI64);

impl Clock for TickingClock {
    fn system_time(&self) -> SystemTime {
        let tick = self.0.fetch_add(1, Ordering::SeqCst);
        // Lets another thread overtake one that reads the time before it has locked the key.
        thread::yield_now();
        Time::from_micros(START.micros() + tick).into()
    }
}

/// The clock is read while the keys are locked: no decision uses a time earlier than one that was
/// already used for the key.
///
/// covers: B-35
#[test]
fn time_never_runs_backwards_for_a_key() {
    let memory = Memory::new(MemoryOptions::default(), Arc::new(TickingClock::default()));
    let call = |_, round: usize| {
        let [one, other] = [2 * round as u64, 2 * round as u64 + 1].map(key);
        let rows = [row(one, window(1_000, HOUR)), row(other, bucket(1_000, HOUR))];
        let batches = [check(rows.clone()), check([rows[0].clone()]), check([rows[1].clone()])];
        let earlier = |batch| {
            let reply = check_reply(&memory, batch);
            !reply.passed || reply.rows.iter().any(|row| row.at != reply.now)
        };
        batches.iter().filter(|batch| earlier(batch)).count()
    };
    assert_eq!(rounds(100, call), [0; 100]);
}

/// Threads share a store by reference alone.
#[test]
fn a_store_can_be_shared() {
    fn is_shared<T: Send + Sync>() {}
    is_shared::<Memory>();
}

//! Contract cases of concurrent callers: the sums must be exact for any interleaving.
//!
//! All threads start at a barrier. Instants are given, so only the interleaving varies.

use std::sync::Barrier;
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;

use catraca::store::{Store, When};
use catraca_core::batch::{
    Batch, CheckBatch, CheckRow, CreditReply, CreditRow, NewReference, Reply, RowVerdict,
    SettleBatch, SettleReply,
};
use catraca_core::digest::Key;
use catraca_core::time::Span;

use super::harness::*;

/// Concurrent callers of most cases.
const CALLERS: usize = 100;

/// Runs `call` in `callers` threads that start together, and returns their results.
pub(super) fn all<T: Send>(callers: usize, call: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let barrier = Barrier::new(callers);
    let barrier = &barrier;
    let call = &call;
    thread::scope(|scope| {
        let start = |caller| {
            scope.spawn(move || {
                barrier.wait();
                call(caller)
            })
        };
        let threads: Vec<_> = (0..callers).map(start).collect();
        let results = threads.into_iter().map(|thread| thread.join());
        let unwrap = |result: thread::Result<T>| {
            result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        results.map(unwrap).collect()
    })
}

/// Returns for each round how many of `callers`, started together, pass a window of `limit`.
pub fn admitted_at_once(
    store: &dyn Store,
    callers: usize,
    rounds: usize,
    limit: i64,
) -> Result<Vec<usize>, String> {
    let barrier = Barrier::new(callers);
    let one = |round: usize| {
        // A new key for each round.
        let mut bytes = [0xa5; 16];
        bytes[4..12].copy_from_slice(&(round as u64).wrapping_mul(0x9e37_79b9).to_be_bytes());
        let row = CheckRow { key: Key::from_bytes(bytes), ..row(0, window(limit, S)) };
        let batch =
            Batch::Check(CheckBatch { rows: [row].into_iter().collect(), ..CheckBatch::default() });
        barrier.wait();
        match store.apply(&batch, When::At(instant(0))) {
            Ok(Reply::Check(reply)) => Ok(usize::from(reply.passed)),
            other => Err(format!("a check answered {other:?}")),
        }
    };
    let passed = all(callers, |_| (0..rounds).map(one).collect::<Result<Vec<_>, _>>());
    let passed: Vec<Vec<usize>> = passed.into_iter().collect::<Result<_, _>>()?;
    Ok((0..rounds).map(|round| passed.iter().map(|caller| caller[round]).sum()).collect())
}

pub(super) fn a_crowd_at_one_instant_gets_exactly_the_limit(harness: &StoreHarness) -> CaseResult {
    let limits = [bucket(5, 1, S), window(5, S), fixed_window(5, S, false), inflight(5, S)];
    for (number, limit) in (1..).zip(limits) {
        let name = limit.algorithm();
        let of = |caller: usize| CheckRow { lease: caller as u64, ..row(number, limit.clone()) };
        let passed =
            all(CALLERS, |caller| harness.check_one(&of(caller), 0).map(|row| row.charged));
        let passed: i64 = passed.into_iter().collect::<Result<Vec<_>, _>>()?.iter().sum();
        same(name, passed, 5)?;
    }
    Ok(())
}

pub(super) fn a_crowd_leaves_the_balance_of_its_charges(harness: &StoreHarness) -> CaseResult {
    let vast = row(1, bucket(1_000_000, 1, 3_600 * S));
    let three = with_held(3, &vast);
    let calls = all(8, |_| (0..250).try_for_each(|_| harness.check_one(&three, 0).map(drop)));
    calls.into_iter().collect::<Result<(), _>>()?;
    same("free", harness.free(&vast, 0)?, 1_000_000 - 3 * 8 * 250)
}

pub(super) fn a_crowd_over_time_never_gets_more_than_the_rate(
    harness: &StoreHarness,
) -> CaseResult {
    let clock = AtomicI64::new(0);
    let limit = row(1, bucket(10, 1, 10 * MS));
    let calls = all(8, |_| {
        let next = || harness.check_one(&limit, clock.fetch_add(MS, Ordering::SeqCst));
        (0..250).map(|_| next().map(|row| row.charged)).sum::<Result<i64, _>>()
    });
    let admitted: i64 = calls.into_iter().sum::<Result<i64, _>>()?;
    // The size, and one token per 10 ms of the 2,000 ms that the 8 * 250 calls take.
    let permitted = 10 + 2_000 / 10;
    let within = (1..=permitted).contains(&admitted);
    same(&format!("{admitted} of at most {permitted}"), within, true)
}

pub(super) fn a_crowd_in_excess_starts_one_block(harness: &StoreHarness) -> CaseResult {
    let strict = with_block(60 * S, &row(1, window(1, S)));
    harness.check_one(&strict, 0)?;
    let replies = all(CALLERS, |_| harness.check_one(&strict, 0));
    let replies: Vec<_> = replies.into_iter().collect::<Result<_, _>>()?;
    let passed = replies.iter().filter(|row| row.verdict == RowVerdict::Fits).count();
    let started = replies.iter().filter(|row| row.started).count();
    same("passed, started", (passed, started), (0, 1))?;
    let ends = replies.iter().all(|row| row.fits_at == Some(instant(60 * S)));
    same("one end for all", ends, true)
}

pub(super) fn crossing_gates_do_not_deadlock_and_stay_whole(harness: &StoreHarness) -> CaseResult {
    let rows =
        [row(1, window(50, S)), row(2, bucket(1_000, 1, S)), row(3, fixed_window(900, S, false))];
    // Callers name the rows in different orders; a store that locks them as named deadlocks.
    let orders = [[0, 1, 2], [2, 1, 0], [1, 2, 0], [0, 2, 1]];
    let passed = all(8, |caller| {
        let gate = orders[caller % orders.len()].map(|index: usize| rows[index].clone());
        let tries = (0..25).map(|_| harness.check(&gate, 0).map(|reply| i64::from(reply.passed)));
        tries.sum::<Result<i64, _>>()
    });
    let passed: i64 = passed.into_iter().sum::<Result<i64, _>>()?;
    let left: Vec<_> = rows.iter().map(|row| harness.free(row, 0)).collect::<Result<_, _>>()?;
    same("passed", passed, 50)?;
    same("left", left, vec![0, 950, 850])
}

pub(super) fn a_crowd_settles_once(harness: &StoreHarness) -> CaseResult {
    let ten = row(1, bucket(100, 1, 3_600 * S));
    harness.check_one(&ten, 0)?;
    let call = || SettleBatch {
        marker: key(100),
        expires: instant(60 * S),
        rows: vec![settle_row(&ten, 0, 20)],
        reference: None,
    };
    let replies = all(CALLERS, |_| harness.settle(call(), S));
    let replies: Vec<_> = replies.into_iter().collect::<Result<_, _>>()?;
    let first =
        |reply: &&SettleReply| matches!(reply, SettleReply::Settled { already_settled: false, .. });
    same("applied", replies.iter().filter(first).count(), 1)?;
    same("free", harness.free(&ten, S)?, 80)
}

pub(super) fn a_crowd_credits_once(harness: &StoreHarness) -> CaseResult {
    let ten = row(1, bucket(100, 1, 3_600 * S));
    let remember = NewReference {
        key: key(200),
        owner: key(100),
        ticket: Box::new([1]),
        span: Span::from_secs(60),
    };
    let rows = [with_held(50, &ten)].into_iter().collect();
    harness.check_batch(
        CheckBatch { rows, new_reference: Some(Box::new(remember)), ..CheckBatch::default() },
        0,
    )?;
    let credit =
        CreditRow { key: ten.key, terms: terms(100, 1, 3_600 * S), shared: None, amount: 2 };
    let replies = all(CALLERS, |_| harness.credit(key(200), "payment", credit.clone(), S));
    let replies: Vec<_> = replies.into_iter().collect::<Result<_, _>>()?;
    let applied = replies.iter().filter(|reply| matches!(reply, CreditReply::Applied(_)));
    same("applied", applied.count(), 1)?;
    same("free", harness.free(&ten, S)?, 52)
}

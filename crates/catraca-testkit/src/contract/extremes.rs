//! Contract cases of the largest accepted numbers: no store panics, wraps or loses a unit.

use catraca_core::batch::{CheckBatch, NewReference};
use catraca_core::batch::{CheckRow, CreditReply, CreditRow, ReconcileRow, RowVerdict, SettleRow};
use catraca_core::cell::block::Origin;
use catraca_core::request::COST_MAX;
use catraca_core::time::{Span, Time};

use super::harness::*;

/// The largest integer that every store computes exactly: Redis' Lua has doubles only.
const EXACT: i64 = (1 << 53) - 1;

pub(super) fn the_largest_amounts_are_too_much_and_break_nothing(
    harness: &StoreHarness,
) -> CaseResult {
    let limits = [bucket(5, 1, S), window(5, S), fixed_window(5, S, false)];
    for (number, limit) in (1..).zip(limits) {
        let one = CheckRow { count_denied: true, ..row(number, limit) };
        for held in [COST_MAX, EXACT, i64::MAX] {
            let reply = harness.check_one(&with_held(held, &one), 0)?;
            same("too much", (reply.verdict, reply.free), (RowVerdict::TooCostly, 5))?;
        }
        same(
            "as if nothing had been",
            harness.check_one(&with_held(5, &one), 0)?.verdict,
            RowVerdict::Fits,
        )?;
    }
    let lease = CheckRow { held: i64::MAX, lease: u64::MAX, ..row(9, inflight(1, S)) };
    same("leases ignore amounts", harness.check_one(&lease, 0)?.charged, 1)
}

pub(super) fn the_largest_bucket_is_exact(harness: &StoreHarness) -> CaseResult {
    let vast = row(1, bucket(EXACT, 1, 1));
    harness.check_one(&with_held(COST_MAX, &vast), 0)?;
    same("free", harness.free(&vast, 0)?, EXACT - COST_MAX)?;
    same("one more", harness.free(&vast, 1)?, EXACT - COST_MAX + 1)?;
    let full = harness.peek(&vast, 1)?.full_at;
    same("full again", full, instant(COST_MAX))?;
    let wide = row(2, fixed_window(EXACT, 60 * S, false));
    harness.check_one(&with_held(COST_MAX, &wide), 0)?;
    same("a window as wide", harness.free(&wide, 0)?, EXACT - COST_MAX)
}

pub(super) fn the_fastest_refill_gives_no_false_denial(harness: &StoreHarness) -> CaseResult {
    let fast = row(1, bucket(2_000_000_000, 2_000, 1));
    // Two callers, so that instants also reach the store out of order.
    let denied = super::concurrency::all(2, |_| {
        let tries = (0..2_000).map(|at| harness.check_one(&fast, at));
        tries.filter(|reply| !matches!(reply, Ok(row) if row.verdict == RowVerdict::Fits)).count()
    });
    same("denied", denied, vec![0, 0])
}

pub(super) fn the_deepest_debt_stops_at_the_floor(harness: &StoreHarness) -> CaseResult {
    let day = 86_400 * S;
    let slow = row(1, bucket(10, 1, day));
    harness.check_one(&slow, 0)?;
    let absurd = SettleRow { debt: true, ..settle_row(&slow, 0, COST_MAX) };
    let done = harness.settle_one(100, absurd, 0)?;
    // Below this level the time until full would exceed 2^53 microseconds.
    let floor = 10 - (1 << 53) / day;
    same("at the floor", (done.charged, done.free), (10 - floor, Some(floor)))?;
    let denied = harness.check_one(&slow, 0)?;
    same("denied", denied.verdict, RowVerdict::OverLimit)?;
    same("and not for ever", denied.fits_at, Some(instant((1 - floor) * day)))
}

pub(super) fn the_longest_times_do_not_wrap(harness: &StoreHarness) -> CaseResult {
    let late = Time::FOREVER.micros() - instant(0).micros() - 10 * S;
    let one = row(1, bucket(1, 1, S));
    same("fits", harness.check_one(&one, late)?.verdict, RowVerdict::Fits)?;
    same("over", harness.check_one(&one, late)?.fits_at, Some(instant(late + S)))?;
    let century = 100 * 365 * 86_400 * S;
    let long = row(2, window(1, century));
    harness.check_one(&long, 0)?;
    same("a long window", harness.check_one(&long, century - 1)?.fits_at, Some(instant(century)))?;
    same("free", harness.check_one(&long, century)?.verdict, RowVerdict::Fits)?;
    let act = block_proposal(Origin::Operator, Span::from_micros(EXACT - 1));
    same("past the end", harness.block(key(3), act, S)?.block.until, Time::FOREVER)
}

pub(super) fn absurd_views_and_credits_are_clamped(harness: &StoreHarness) -> CaseResult {
    let ten = row(1, bucket(10, 1, S));
    let ticket: Box<[u8]> = Box::new([]);
    let remember =
        NewReference { key: key(200), owner: key(100), ticket, span: Span::from_secs(10) };
    let rows = [with_held(10, &ten)].into_iter().collect();
    harness.check_batch(
        CheckBatch { rows, new_reference: Some(Box::new(remember)), ..CheckBatch::default() },
        0,
    )?;
    let given = CreditRow { key: ten.key, terms: terms(10, 1, S), shared: None, amount: COST_MAX };
    let credit = harness.credit(key(200), "a", given, 0)?;
    same("to its size", credit, CreditReply::Applied(vec![10]))?;
    let observed_at = instant(0);
    let view = |available| ReconcileRow {
        key: ten.key,
        terms: terms(10, 1, S),
        shared: None,
        available,
        observed_at,
    };
    same("not above", harness.reconcile(view(COST_MAX), 0)?.after, 10)?;
    let floor = 10 - (1 << 53) / S;
    same("not below the floor", harness.reconcile(view(-EXACT), 0)?.after, floor)
}

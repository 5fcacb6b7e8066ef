//! Contract cases of tiers that the key does not determine: each has a counter of its own, and all
//! of them share the block of the key.

use catraca_core::batch::{Batch, CheckRow, CreditRow, ReconcileRow, RowVerdict, SettleRow};
use catraca_core::limit::Limit;

use super::harness::*;

const TIER: u32 = 0xFEED_0007;

/// The row of a tier with a counter of its own.
fn of_tier(number: u8, limit: Limit) -> CheckRow {
    CheckRow { tier_counter: Some(TIER), ..row(number, limit) }
}

/// The scenario of the finding: `10 per 1m`, and for some requests `5 per 1m` and `3 per 1s`.
pub(super) fn a_thousand_requests_of_two_tiers_get_the_limits_of_both(
    harness: &StoreHarness,
) -> CaseResult {
    let get = row(1, window(10, 60 * S));
    let post = of_tier(1, windows(&[(5, 60 * S), (3, S)]));
    let mut admitted = [0, 0];
    for number in 0..1_000 {
        let index = number % 2;
        let reply = harness.check_one([&get, &post][index], 0)?;
        admitted[index] += i64::from(reply.verdict == RowVerdict::Fits);
    }
    same("admitted GET and POST", admitted, [10, 3])?;
    same("the second frees the shorter window", harness.free(&post, S)?, 2)
}

pub(super) fn a_tier_has_a_counter_of_its_own(harness: &StoreHarness) -> CaseResult {
    let limits = [
        bucket(3, 1, 3_600 * S),
        window(3, 60 * S),
        fixed_window(3, 60 * S, false),
        inflight(3, 60 * S),
    ];
    for (number, limit) in (1..).zip(limits) {
        let shared = CheckRow { lease: 1, ..row(number, limit.clone()) };
        let own = CheckRow { lease: 2, ..of_tier(number, limit.clone()) };
        let other = CheckRow { tier_counter: Some(8), ..own.clone() };
        harness.check_one(&shared, 0)?;
        harness.check_one(&own, 0)?;
        harness.check_one(&CheckRow { lease: 3, ..own.clone() }, 0)?;
        let free = [&shared, &own, &other].map(|row| harness.free(row, 0));
        same("free", free, [Ok(2), Ok(1), Ok(3)])?;
    }
    Ok(())
}

pub(super) fn a_block_is_of_the_key_and_not_of_the_tier(harness: &StoreHarness) -> CaseResult {
    let shared = with_block(60 * S, &row(1, window(5, S)));
    let own = with_block(60 * S, &of_tier(1, window(1, S)));
    harness.check_one(&own, 0)?;
    let over = harness.check_one(&own, 0)?;
    same("the tier starts it", (over.verdict, over.started), (RowVerdict::OverLimit, true))?;
    let other = harness.check_one(&shared, 2 * S)?;
    same("and it blocks all tiers", other.verdict, RowVerdict::Blocked)?;
    same("released", harness.unblock(shared.key, 3 * S)?, true)?;
    same("for all", harness.check_one(&own, 3 * S)?.verdict, RowVerdict::Fits)
}

pub(super) fn a_settle_reaches_the_counter_that_was_charged(harness: &StoreHarness) -> CaseResult {
    for (number, limit) in [(1, window(9, 60 * S)), (2, bucket(9, 1, 3_600 * S))] {
        let shared = with_held(3, &row(number, limit.clone()));
        let own = with_held(3, &of_tier(number, limit));
        harness.check_one(&shared, 0)?;
        harness.check_one(&own, 0)?;
        let refunded = harness.settle_one(number + 100, settle_row(&own, 0, 1), S)?;
        same("refunded", (refunded.charged, refunded.free), (1, Some(8)))?;
        let extra = harness.settle_one(number + 110, settle_row(&own, 0, 5), S)?;
        same("charged", (extra.charged, extra.free), (5, Some(6)))?;
        same("the shared counter", harness.free(&shared, S)?, 6)?;
    }
    let lease = CheckRow { lease: 4, ..of_tier(3, inflight(1, 60 * S)) };
    harness.check_one(&lease, 0)?;
    harness.settle_one(120, settle_row(&lease, 0, 0), S)?;
    same("the lease came back", harness.free(&lease, S)?, 1)
}

pub(super) fn an_excess_of_a_tier_blocks_the_key(harness: &StoreHarness) -> CaseResult {
    let own = of_tier(1, window(5, 60 * S));
    let penalty = with_block(60 * S, &own).penalty;
    harness.check_one(&own, 0)?;
    let crossing = SettleRow { penalty, ..settle_row(&own, 0, 9) };
    harness.settle_one(100, crossing, S)?;
    let shared = harness.check_one(&row(1, window(5, 60 * S)), 2 * S)?;
    same("blocked", (shared.verdict, shared.free), (RowVerdict::Blocked, 5))
}

pub(super) fn credits_and_views_reach_the_bucket_of_the_tier(harness: &StoreHarness) -> CaseResult {
    let own = with_held(5, &of_tier(1, bucket(10, 1, 3_600 * S)));
    let shared = row(1, bucket(10, 1, 3_600 * S));
    harness.check_one(&own, 0)?;
    let terms = terms(10, 1, 3_600 * S);
    let key = own.counter().key;
    let view = ReconcileRow { key, terms, shared: None, available: 2, observed_at: instant(0) };
    same("lower", harness.reconcile(view, 0)?.before, 5)?;
    same("adopted", harness.free(&own, 0)?, 2)?;
    same("only there", harness.free(&shared, 0)?, 10)?;
    let credit = CreditRow { key, terms, shared: None, amount: 1 };
    harness.credit(super::harness::key(99), "none", credit, 0)?;
    same("no such reference", harness.free(&own, 0)?, 2)
}

pub(super) fn a_reset_clears_the_counters_it_names(harness: &StoreHarness) -> CaseResult {
    let own = of_tier(1, window(5, 60 * S));
    let shared = row(1, window(5, 60 * S));
    harness.check_one(&own, 0)?;
    harness.check_one(&shared, 0)?;
    harness.apply(&Batch::Reset(vec![shared.key, own.counter().key]), 0)?;
    same("all free", [&own, &shared].map(|row| harness.free(row, 0)), [Ok(5), Ok(5)])
}

/// A peek under other terms drops nothing that the next check counts.
pub(super) fn a_peek_drops_no_entries(harness: &StoreHarness) -> CaseResult {
    let long = row(1, window(5, 60 * S));
    harness.check_one(&with_held(2, &long), 0)?;
    harness.check_one(&long, 5 * S)?;
    same("short", harness.free(&row(1, window(5, S)), 5 * S)?, 4)?;
    same("others", harness.free(&row(1, windows(&[(5, S), (9, 60 * S)])), 5 * S)?, 4)?;
    same("all three", harness.free(&long, 5 * S)?, 2)
}

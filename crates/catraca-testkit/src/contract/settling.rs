//! Contract cases of settling: the held units become the final cost, once and in time.

use catraca_core::batch::{
    CheckRow, RowSettlement, RowVerdict, SettleBatch, SettleReply, SettleRow,
};
use catraca_core::cell::block::Origin;
use catraca_core::price::Price;
use catraca_core::time::Span;

use super::harness::*;

/// The units that a row was charged in total, and the units free afterwards.
fn cost(done: &RowSettlement) -> (i64, Option<i64>) {
    (done.charged, done.free)
}

pub(super) fn a_refund_reaches_its_own_entry_only(harness: &StoreHarness) -> CaseResult {
    let three = row(1, window(3, 10 * S));
    let two = with_held(2, &three);
    harness.check_one(&two, 0)?;
    harness.check_one(&three, 5 * S)?;
    same("refunded", cost(&harness.settle_one(100, settle_row(&two, 0, 0), 6 * S)?), (0, Some(2)))?;
    let empty = harness.settle_one(101, settle_row(&two, 0, 0), 6 * S)?;
    same("there is nothing left to refund", cost(&empty), (2, Some(2)))?;
    let gone = harness.settle_one(102, settle_row(&three, 5 * S, 0), 15 * S)?;
    same("too old to count", cost(&gone), (1, Some(3)))
}

pub(super) fn a_refund_fills_a_bucket_to_its_size(harness: &StoreHarness) -> CaseResult {
    let three = with_held(3, &row(1, bucket(5, 1, S)));
    harness.check_one(&three, 0)?;
    let done = harness.settle_one(100, settle_row(&three, 0, 0), 2 * S)?;
    same("capped", done.free, Some(5))?;
    same("no remainder is left over", harness.peek(&three, 2 * S)?.full_at, instant(2 * S))
}

pub(super) fn a_refund_never_reaches_the_next_fixed_window(harness: &StoreHarness) -> CaseResult {
    let two = row(1, fixed_window(2, 10 * S, false));
    harness.check_one(&two, 0)?;
    harness.check_one(&two, 12 * S)?;
    let late = harness.settle_one(100, settle_row(&two, 0, 0), 13 * S)?;
    same("not this window", cost(&late), (1, Some(1)))?;
    let own = harness.settle_one(101, settle_row(&two, 12 * S, 0), 13 * S)?;
    same("its own", cost(&own), (0, Some(2)))
}

pub(super) fn an_extra_charge_stops_at_what_is_free(harness: &StoreHarness) -> CaseResult {
    let limits = [bucket(5, 1, 60 * S), window(5, 60 * S), fixed_window(5, 60 * S, false)];
    for (number, limit) in (1..).zip(limits) {
        let one = row(number, limit);
        harness.check_one(&one, 0)?;
        let some = harness.settle_one(number + 100, settle_row(&one, 0, 3), S)?;
        same("some more", cost(&some), (3, Some(2)))?;
        harness.check_one(&one, S)?;
        let much = harness.settle_one(number + 110, settle_row(&one, S, 20), S)?;
        same("no more than that", cost(&much), (2, Some(0)))?;
    }
    Ok(())
}

pub(super) fn debt_goes_below_zero(harness: &StoreHarness) -> CaseResult {
    let payer = row(1, bucket(100, 1, 30 * S));
    harness.check_one(&with_held(95, &payer), 0)?;
    harness.check_one(&payer, 0)?;
    let owing = SettleRow { debt: true, ..settle_row(&payer, 0, 20) };
    same("owed", cost(&harness.settle_one(100, owing, 0)?), (20, Some(-15)))?;
    let denied = harness.check_one(&payer, 0)?;
    same("denied", (denied.verdict, denied.free), (RowVerdict::OverLimit, -15))?;
    // From -15 to 1 are 16 tokens of 30 s each.
    same("for eight minutes", denied.fits_at, Some(instant(480 * S)))?;
    same("not before", harness.check_one(&payer, 480 * S - 1)?.verdict, RowVerdict::OverLimit)?;
    same("and then", harness.check_one(&payer, 480 * S)?.verdict, RowVerdict::Fits)?;
    let window = row(2, window(5, 60 * S));
    harness.check_one(&window, 0)?;
    let owing = SettleRow { debt: true, ..settle_row(&window, 0, 8) };
    same("windows too", cost(&harness.settle_one(101, owing, S)?), (8, Some(-3)))
}

pub(super) fn crossing_the_limit_starts_the_block(harness: &StoreHarness) -> CaseResult {
    for (number, debt) in [(1, false), (2, true)] {
        let five = with_block(30 * S, &row(number, window(5, 60 * S)));
        harness.check_one(&five, 0)?;
        let all =
            harness.settle_one(number + 100, SettleRow { debt, ..settle_row(&five, 0, 4) }, S)?;
        same("up to the limit", (all.started, all.blocked_until), (None, None))?;
        harness.check_one(&five, S)?;
        let over = harness.settle_one(
            number + 110,
            SettleRow { debt, ..settle_row(&five, S, 2) },
            2 * S,
        )?;
        same("beyond it", over.started, Some(Origin::Excess))?;
        same("until", over.blocked_until, Some(instant(32 * S)))?;
        same("blocked", harness.check_one(&five, 3 * S)?.verdict, RowVerdict::Blocked)?;
    }
    Ok(())
}

pub(super) fn no_crossing_while_an_excess_stands(harness: &StoreHarness) -> CaseResult {
    let two = with_block(30 * S, &row(1, window(2, 60 * S)));
    harness.check_one(&with_held(2, &two), 0)?;
    same("an excess", harness.check_one(&two, S)?.started, true)?;
    let held = with_held(2, &two);
    let crossing = harness.settle_one(100, settle_row(&held, 0, 9), 10 * S)?;
    same("starts nothing", (crossing.started, crossing.charged), (None, 2))?;
    same("extends nothing", crossing.blocked_until, Some(instant(31 * S)))
}

pub(super) fn a_drain_leaves_nothing(harness: &StoreHarness) -> CaseResult {
    let limits = [bucket(10, 1, 60 * S), window(10, 60 * S), fixed_window(10, 60 * S, false)];
    for (number, limit) in (1..).zip(limits) {
        let one = row(number, limit);
        harness.check_one(&one, 0)?;
        let upstream = Some(Span::from_secs(90));
        let drain = SettleRow { price: Price::Drain, upstream, ..settle_row(&one, 0, 0) };
        let done = harness.settle_one(number + 100, drain, S)?;
        same("everything", cost(&done), (10, Some(0)))?;
        same("by the upstream", done.started, Some(Origin::Upstream))?;
        same("for as long as it says", done.blocked_until, Some(instant(91 * S)))?;
    }
    let debtor = row(9, bucket(10, 1, 60 * S));
    harness.check_one(&debtor, 0)?;
    harness.settle_one(120, SettleRow { debt: true, ..settle_row(&debtor, 0, 15) }, 0)?;
    let drain = SettleRow { price: Price::Drain, ..settle_row(&debtor, 0, 0) };
    same("debt stays", harness.settle_one(121, drain, 0)?.free, Some(-5))
}

pub(super) fn a_settle_counts_once(harness: &StoreHarness) -> CaseResult {
    let one = row(1, bucket(10, 1, 60 * S));
    harness.check_one(&one, 0)?;
    let call = |price| SettleBatch {
        marker: key(100),
        expires: instant(60 * S),
        rows: vec![settle_row(&one, 0, price)],
        reference: None,
    };
    let first = harness.settle(call(4), S)?;
    let SettleReply::Settled { already_settled: false, rows, .. } = first else {
        return Err(format!("a first settle answered {first:?}"));
    };
    same("paid", cost(&rows[0]), (4, Some(6)))?;
    let again = SettleReply::Settled {
        now: instant(59 * S),
        already_settled: true,
        rows,
        blocks: Vec::new(),
    };
    same("the first result", harness.settle(call(9), 59 * S)?, again)?;
    same("and nothing more", harness.free(&one, 59 * S)?, 6)
}

pub(super) fn a_late_settle_changes_nothing(harness: &StoreHarness) -> CaseResult {
    let one = row(1, bucket(10, 1, 3_600 * S));
    harness.check_one(&one, 0)?;
    let call = |mark| SettleBatch {
        marker: key(mark),
        expires: instant(60 * S),
        rows: vec![settle_row(&one, 0, 9)],
        reference: None,
    };
    let late = harness.settle(call(100), 60 * S)?;
    same("expired", late, SettleReply::Expired { now: instant(60 * S) })?;
    same("what was held stays", harness.free(&one, 60 * S)?, 9)?;
    let just = harness.settle(call(101), 60 * S - 1)?;
    same("just in time", matches!(just, SettleReply::Settled { already_settled: false, .. }), true)
}

pub(super) fn a_lease_comes_back_at_settle(harness: &StoreHarness) -> CaseResult {
    let lease = |id| CheckRow { lease: id, ..row(1, inflight(1, 60 * S)) };
    harness.check_one(&lease(5), 0)?;
    same("taken", harness.check_one(&lease(6), S)?.verdict, RowVerdict::OverLimit)?;
    let other = harness.settle_one(100, settle_row(&lease(7), 0, 0), S)?;
    same("another's is not returned", cost(&other), (1, None))?;
    same("still taken", harness.check_one(&lease(6), S)?.verdict, RowVerdict::OverLimit)?;
    harness.settle_one(101, settle_row(&lease(5), 0, 0), S)?;
    same("returned", harness.check_one(&lease(6), S)?.verdict, RowVerdict::Fits)
}

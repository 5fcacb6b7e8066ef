//! Settling: what was held becomes the real cost, once and in time.

use catraca_core::batch::{CheckRow, RowSettled, Settle, SettleReply, SettleRow, Verdict};
use catraca_core::cell::block::Origin;
use catraca_core::price::Price;
use catraca_core::time::Span;

use super::desk::*;

/// What a row paid in all and what is free after.
fn cost(done: &RowSettled) -> (i64, Option<i64>) {
    (done.charged, done.free)
}

pub(super) fn a_refund_reaches_its_own_entry_only(desk: &Desk) -> Proof {
    let three = row(1, window(3, 10 * S));
    let two = asking(2, &three);
    desk.one(&two, 0)?;
    desk.one(&three, 5 * S)?;
    same("refunded", cost(&desk.settle_one(100, paid(&two, 0, 0), 6 * S)?), (0, Some(2)))?;
    let empty = desk.settle_one(101, paid(&two, 0, 0), 6 * S)?;
    same("there is nothing left to refund", cost(&empty), (2, Some(2)))?;
    let gone = desk.settle_one(102, paid(&three, 5 * S, 0), 15 * S)?;
    same("too old to count", cost(&gone), (1, Some(3)))
}

pub(super) fn a_refund_fills_a_bucket_to_its_size(desk: &Desk) -> Proof {
    let three = asking(3, &row(1, bucket(5, 1, S)));
    desk.one(&three, 0)?;
    let done = desk.settle_one(100, paid(&three, 0, 0), 2 * S)?;
    same("capped", done.free, Some(5))?;
    same("no remainder is left over", desk.peek(&three, 2 * S)?.full_at, instant(2 * S))
}

pub(super) fn a_refund_never_reaches_the_next_fixed_window(desk: &Desk) -> Proof {
    let two = row(1, fixed(2, 10 * S, false));
    desk.one(&two, 0)?;
    desk.one(&two, 12 * S)?;
    let late = desk.settle_one(100, paid(&two, 0, 0), 13 * S)?;
    same("not this window", cost(&late), (1, Some(1)))?;
    let own = desk.settle_one(101, paid(&two, 12 * S, 0), 13 * S)?;
    same("its own", cost(&own), (0, Some(2)))
}

pub(super) fn an_extra_charge_stops_at_what_is_free(desk: &Desk) -> Proof {
    let limits = [bucket(5, 1, 60 * S), window(5, 60 * S), fixed(5, 60 * S, false)];
    for (number, limit) in (1..).zip(limits) {
        let one = row(number, limit);
        desk.one(&one, 0)?;
        let some = desk.settle_one(number + 100, paid(&one, 0, 3), S)?;
        same("some more", cost(&some), (3, Some(2)))?;
        desk.one(&one, S)?;
        let much = desk.settle_one(number + 110, paid(&one, S, 20), S)?;
        same("no more than that", cost(&much), (2, Some(0)))?;
    }
    Ok(())
}

pub(super) fn debt_goes_below_zero(desk: &Desk) -> Proof {
    let payer = row(1, bucket(100, 1, 30 * S));
    desk.one(&asking(95, &payer), 0)?;
    desk.one(&payer, 0)?;
    let owing = SettleRow { debt: true, ..paid(&payer, 0, 20) };
    same("owed", cost(&desk.settle_one(100, owing, 0)?), (20, Some(-15)))?;
    let denied = desk.one(&payer, 0)?;
    same("denied", (denied.verdict, denied.free), (Verdict::OverLimit, -15))?;
    same("for eight minutes", denied.fits_at, Some(instant(480 * S)))?;
    same("not before", desk.one(&payer, 480 * S - 1)?.verdict, Verdict::OverLimit)?;
    same("and then", desk.one(&payer, 480 * S)?.verdict, Verdict::Fits)?;
    let window = row(2, window(5, 60 * S));
    desk.one(&window, 0)?;
    let owing = SettleRow { debt: true, ..paid(&window, 0, 8) };
    same("windows too", cost(&desk.settle_one(101, owing, S)?), (8, Some(-3)))
}

pub(super) fn crossing_the_limit_starts_the_block(desk: &Desk) -> Proof {
    for (number, debt) in [(1, false), (2, true)] {
        let five = blocking(30 * S, &row(number, window(5, 60 * S)));
        desk.one(&five, 0)?;
        let all = desk.settle_one(number + 100, SettleRow { debt, ..paid(&five, 0, 4) }, S)?;
        same("up to the limit", (all.started, all.blocked_until), (None, None))?;
        desk.one(&five, S)?;
        let over = desk.settle_one(number + 110, SettleRow { debt, ..paid(&five, S, 2) }, 2 * S)?;
        same("beyond it", over.started, Some(Origin::Excess))?;
        same("until", over.blocked_until, Some(instant(32 * S)))?;
        same("blocked", desk.one(&five, 3 * S)?.verdict, Verdict::Blocked)?;
    }
    Ok(())
}

pub(super) fn no_crossing_while_an_excess_stands(desk: &Desk) -> Proof {
    let two = blocking(30 * S, &row(1, window(2, 60 * S)));
    desk.one(&asking(2, &two), 0)?;
    same("an excess", desk.one(&two, S)?.started, true)?;
    let held = asking(2, &two);
    let crossing = desk.settle_one(100, paid(&held, 0, 9), 10 * S)?;
    same("starts nothing", (crossing.started, crossing.charged), (None, 2))?;
    same("extends nothing", crossing.blocked_until, Some(instant(31 * S)))
}

pub(super) fn a_drain_leaves_nothing(desk: &Desk) -> Proof {
    let limits = [bucket(10, 1, 60 * S), window(10, 60 * S), fixed(10, 60 * S, false)];
    for (number, limit) in (1..).zip(limits) {
        let one = row(number, limit);
        desk.one(&one, 0)?;
        let upstream = Some(Span::from_secs(90));
        let drain = SettleRow { price: Price::Drain, upstream, ..paid(&one, 0, 0) };
        let done = desk.settle_one(number + 100, drain, S)?;
        same("everything", cost(&done), (10, Some(0)))?;
        same("by the upstream", done.started, Some(Origin::Upstream))?;
        same("for as long as it says", done.blocked_until, Some(instant(91 * S)))?;
    }
    let debtor = row(9, bucket(10, 1, 60 * S));
    desk.one(&debtor, 0)?;
    desk.settle_one(120, SettleRow { debt: true, ..paid(&debtor, 0, 15) }, 0)?;
    let drain = SettleRow { price: Price::Drain, ..paid(&debtor, 0, 0) };
    same("debt stays", desk.settle_one(121, drain, 0)?.free, Some(-5))
}

pub(super) fn a_settle_counts_once(desk: &Desk) -> Proof {
    let one = row(1, bucket(10, 1, 60 * S));
    desk.one(&one, 0)?;
    let call = |price| Settle {
        mark: key(100),
        expires: instant(60 * S),
        rows: vec![paid(&one, 0, price)],
        reference: None,
    };
    let first = desk.settle(call(4), S)?;
    let SettleReply::Settled { again: false, rows, .. } = first else {
        return Err(format!("a first settle answered {first:?}"));
    };
    same("paid", cost(&rows[0]), (4, Some(6)))?;
    let again = SettleReply::Settled { now: instant(59 * S), again: true, rows };
    same("the first result", desk.settle(call(9), 59 * S)?, again)?;
    same("and nothing more", desk.free(&one, 59 * S)?, 6)
}

pub(super) fn a_late_settle_changes_nothing(desk: &Desk) -> Proof {
    let one = row(1, bucket(10, 1, 3_600 * S));
    desk.one(&one, 0)?;
    let call = |mark| Settle {
        mark: key(mark),
        expires: instant(60 * S),
        rows: vec![paid(&one, 0, 9)],
        reference: None,
    };
    let late = desk.settle(call(100), 60 * S)?;
    same("expired", late, SettleReply::Expired { now: instant(60 * S) })?;
    same("what was held stays", desk.free(&one, 60 * S)?, 9)?;
    let just = desk.settle(call(101), 60 * S - 1)?;
    same("just in time", matches!(just, SettleReply::Settled { again: false, .. }), true)
}

pub(super) fn a_lease_comes_back_at_settle(desk: &Desk) -> Proof {
    let lease = |id| CheckRow { lease: id, ..row(1, inflight(1, 60 * S)) };
    desk.one(&lease(5), 0)?;
    same("taken", desk.one(&lease(6), S)?.verdict, Verdict::OverLimit)?;
    let other = desk.settle_one(100, paid(&lease(7), 0, 0), S)?;
    same("another's is not returned", cost(&other), (1, None))?;
    same("still taken", desk.one(&lease(6), S)?.verdict, Verdict::OverLimit)?;
    desk.settle_one(101, paid(&lease(5), 0, 0), S)?;
    same("returned", desk.one(&lease(6), S)?.verdict, Verdict::Fits)
}

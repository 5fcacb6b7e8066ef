//! The largest numbers that may come: nothing panics, wraps or loses a unit.

use catraca_core::batch::{Check, Remember};
use catraca_core::batch::{CheckRow, CreditReply, CreditRow, ReconcileRow, SettleRow, Verdict};
use catraca_core::cell::block::Origin;
use catraca_core::request::COST_MAX;
use catraca_core::time::{Span, Time};

use super::desk::*;

/// The largest integer that every store computes exactly, and one less.
const EXACT: i64 = (1 << 53) - 1;

pub(super) fn the_largest_amounts_are_too_much_and_break_nothing(desk: &Desk) -> Proof {
    let limits = [bucket(5, 1, S), window(5, S), fixed(5, S, false)];
    for (number, limit) in (1..).zip(limits) {
        let one = CheckRow { count_denied: true, ..row(number, limit) };
        for held in [COST_MAX, EXACT, i64::MAX] {
            let reply = desk.one(&asking(held, &one), 0)?;
            same("too much", (reply.verdict, reply.free), (Verdict::TooCostly, 5))?;
        }
        same("as if nothing had been", desk.one(&asking(5, &one), 0)?.verdict, Verdict::Fits)?;
    }
    let lease = CheckRow { held: i64::MAX, lease: u64::MAX, ..row(9, inflight(1, S)) };
    same("leases ignore amounts", desk.one(&lease, 0)?.charged, 1)
}

pub(super) fn the_largest_bucket_is_exact(desk: &Desk) -> Proof {
    let vast = row(1, bucket(EXACT, 1, 1));
    desk.one(&asking(COST_MAX, &vast), 0)?;
    same("free", desk.free(&vast, 0)?, EXACT - COST_MAX)?;
    same("one more", desk.free(&vast, 1)?, EXACT - COST_MAX + 1)?;
    let full = desk.peek(&vast, 1)?.full_at;
    same("full again", full, instant(COST_MAX))?;
    let wide = row(2, fixed(EXACT, 60 * S, false));
    desk.one(&asking(COST_MAX, &wide), 0)?;
    same("a window as wide", desk.free(&wide, 0)?, EXACT - COST_MAX)
}

pub(super) fn the_fastest_refill_gives_no_false_denial(desk: &Desk) -> Proof {
    let fast = row(1, bucket(2_000_000_000, 2_000, 1));
    let denied = super::crowd::all(2, |_| {
        let tries = (0..2_000).map(|at| desk.one(&fast, at));
        tries.filter(|tried| !matches!(tried, Ok(row) if row.verdict == Verdict::Fits)).count()
    });
    same("denied", denied, vec![0, 0])
}

pub(super) fn the_deepest_debt_stops_at_the_floor(desk: &Desk) -> Proof {
    let day = 86_400 * S;
    let slow = row(1, bucket(10, 1, day));
    desk.one(&slow, 0)?;
    let absurd = SettleRow { debt: true, ..paid(&slow, 0, COST_MAX) };
    let done = desk.settle_one(100, absurd, 0)?;
    let floor = 10 - (1 << 53) / day;
    same("at the floor", (done.charged, done.free), (10 - floor, Some(floor)))?;
    let denied = desk.one(&slow, 0)?;
    same("denied", denied.verdict, Verdict::OverLimit)?;
    same("and not for ever", denied.fits_at, Some(instant((1 - floor) * day)))
}

pub(super) fn the_longest_times_do_not_wrap(desk: &Desk) -> Proof {
    let late = Time::FOREVER.micros() - instant(0).micros() - 10 * S;
    let one = row(1, bucket(1, 1, S));
    same("fits", desk.one(&one, late)?.verdict, Verdict::Fits)?;
    same("over", desk.one(&one, late)?.fits_at, Some(instant(late + S)))?;
    let century = 100 * 365 * 86_400 * S;
    let long = row(2, window(1, century));
    desk.one(&long, 0)?;
    same("a long window", desk.one(&long, century - 1)?.fits_at, Some(instant(century)))?;
    same("free", desk.one(&long, century)?.verdict, Verdict::Fits)?;
    let act = ordered(Origin::Operator, Span::from_micros(EXACT - 1));
    same("past the end", desk.block(key(3), act, S)?.until, Time::FOREVER)
}

pub(super) fn absurd_views_and_credits_are_clamped(desk: &Desk) -> Proof {
    let ten = row(1, bucket(10, 1, S));
    let ticket: Box<[u8]> = Box::new([]);
    let remember = Remember { key: key(200), owner: key(100), ticket, span: Span::from_secs(10) };
    let rows = [asking(10, &ten)].into_iter().collect();
    desk.ask(Check { rows, remember: Some(Box::new(remember)), ..Check::default() }, 0)?;
    let given = CreditRow { key: ten.key, terms: terms(10, 1, S), amount: COST_MAX };
    let credit = desk.credit(key(200), "a", given, 0)?;
    same("to its size", credit, CreditReply::Applied(vec![10]))?;
    let observed_at = instant(0);
    let view =
        |available| ReconcileRow { key: ten.key, terms: terms(10, 1, S), available, observed_at };
    same("not above", desk.reconcile(view(COST_MAX), 0)?.after, 10)?;
    let floor = 10 - (1 << 53) / S;
    same("not below the floor", desk.reconcile(view(-EXACT), 0)?.after, floor)
}

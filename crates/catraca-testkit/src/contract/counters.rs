//! What each algorithm counts, to the microsecond.

use catraca_core::batch::{CheckRow, Verdict};
use catraca_core::limit::Limit;

use super::desk::*;

/// What a row's reply must say: verdict, charged, free, and when it fits, from the start.
type Figures = (Verdict, i64, i64, Option<i64>);

fn tries(desk: &Desk, row: &CheckRow, at: i64, want: Figures) -> Proof {
    let got = desk.one(row, at)?;
    let fits = got.fits_at.map(|fits| fits.micros() - instant(0).micros());
    same(&format!("at {at}"), (got.verdict, got.charged, got.free, fits), want)
}

const FITS: Verdict = Verdict::Fits;
const OVER: Verdict = Verdict::OverLimit;

pub(super) fn the_instant_given_is_the_instant_used(desk: &Desk) -> Proof {
    let reply = desk.check(&[row(1, window(1, S))], 1_234_567)?;
    same("now", reply.now, instant(1_234_567))?;
    same("the row's instant", reply.rows[0].at, instant(1_234_567))
}

pub(super) fn time_never_runs_backwards_for_a_key(desk: &Desk) -> Proof {
    for (number, limit) in [(1, bucket(2, 1, S)), (2, window(2, S))] {
        let row = row(number, limit);
        desk.one(&row, 10 * S)?;
        same("an earlier call", desk.one(&row, 5 * S)?.at, instant(10 * S))?;
        same("units free", desk.free(&row, 10 * S)?, 0)?;
    }
    Ok(())
}

pub(super) fn keys_do_not_meet(desk: &Desk) -> Proof {
    for number in 0..=u8::MAX {
        tries(desk, &row(number, window(1, S)), 0, (FITS, 1, 0, None))?;
    }
    tries(desk, &row(0, window(1, S)), 0, (OVER, 0, 0, Some(S)))
}

pub(super) fn a_bucket_refills_to_the_microsecond(desk: &Desk) -> Proof {
    let three = row(1, bucket(3, 1, S));
    tries(desk, &asking(3, &three), 0, (FITS, 3, 0, None))?;
    tries(desk, &three, S - 1, (OVER, 0, 0, Some(S)))?;
    tries(desk, &three, S, (FITS, 1, 0, None))?;
    tries(desk, &asking(2, &three), 2 * S + 1, (OVER, 0, 1, Some(3 * S)))?;
    same("full again", desk.peek(&three, 3 * S)?.full_at, instant(4 * S))?;
    same("never above the size", desk.free(&three, 1_000 * S)?, 3)
}

pub(super) fn a_bucket_loses_no_remainder(desk: &Desk) -> Proof {
    let ten = row(1, bucket(10, 1, 10));
    tries(desk, &asking(10, &ten), 0, (FITS, 10, 0, None))?;
    tries(desk, &asking(9, &ten), 97, (FITS, 9, 0, None))?;
    tries(desk, &ten, 97, (OVER, 0, 0, Some(100)))?;
    tries(desk, &ten, 100, (FITS, 1, 0, None))?;
    let odd = row(2, bucket(1_000, 7, 3));
    tries(desk, &asking(1_000, &odd), 0, (FITS, 1_000, 0, None))?;
    for at in 1..100 {
        desk.free(&odd, at)?;
    }
    same("after a hundred looks", desk.free(&odd, 100)?, 233)
}

pub(super) fn a_window_frees_a_unit_at_exactly_its_span(desk: &Desk) -> Proof {
    let two = row(1, window(2, 60 * S));
    tries(desk, &two, 0, (FITS, 1, 1, None))?;
    tries(desk, &two, S, (FITS, 1, 0, None))?;
    tries(desk, &two, 2 * S, (OVER, 0, 0, Some(60 * S)))?;
    tries(desk, &asking(2, &two), 60 * S - 1, (OVER, 0, 0, Some(61 * S)))?;
    tries(desk, &two, 60 * S, (FITS, 1, 0, None))?;
    same("all back", desk.peek(&two, 60 * S)?.full_at, instant(120 * S))
}

pub(super) fn a_thousand_units_of_one_instant_are_a_thousand(desk: &Desk) -> Proof {
    let thousand = row(1, window(1_000, S));
    for taken in 1..=1_000 {
        tries(desk, &thousand, 5, (FITS, 1, 1_000 - taken, None))?;
    }
    tries(desk, &thousand, 5, (OVER, 0, 0, Some(S + 5)))
}

pub(super) fn several_windows_must_all_fit(desk: &Desk) -> Proof {
    let both = row(1, windows(&[(3, 10 * S), (2, S)]));
    tries(desk, &both, 0, (FITS, 1, 1, None))?;
    let second = desk.one(&both, 0)?;
    same("the tighter is shown", (second.limit, second.free), (Some(2), 0))?;
    tries(desk, &both, 0, (OVER, 0, 0, Some(S)))?;
    let third = desk.one(&both, S)?;
    same("then the longer", (third.verdict, third.limit, third.free), (FITS, Some(3), 0))?;
    tries(desk, &both, S, (OVER, 0, 0, Some(10 * S)))?;
    tries(desk, &asking(3, &both), S, (Verdict::TooCostly, 0, 0, Some(never())))
}

/// The instant that never comes, from the start.
fn never() -> i64 {
    catraca_core::time::Time::FOREVER.micros() - instant(0).micros()
}

pub(super) fn a_fixed_window_opens_at_its_first_unit(desk: &Desk) -> Proof {
    let two = row(1, fixed(2, 60 * S, false));
    tries(desk, &asking(0, &two), 0, (FITS, 0, 2, None))?;
    tries(desk, &two, 25 * S, (FITS, 1, 1, None))?;
    tries(desk, &two, 80 * S, (FITS, 1, 0, None))?;
    tries(desk, &two, 85 * S - 1, (OVER, 0, 0, Some(85 * S)))?;
    tries(desk, &two, 85 * S, (FITS, 1, 1, None))?;
    same("over at", desk.peek(&two, 90 * S)?.full_at, instant(145 * S))
}

pub(super) fn an_aligned_window_opens_at_the_clock(desk: &Desk) -> Proof {
    let one = row(1, fixed(1, 60 * S, true));
    tries(desk, &one, 25 * S, (FITS, 1, 0, None))?;
    tries(desk, &one, 25 * S, (OVER, 0, 0, Some(60 * S)))?;
    tries(desk, &one, 60 * S, (FITS, 1, 0, None))
}

pub(super) fn a_lease_ends_by_itself_at_its_hold(desk: &Desk) -> Proof {
    let lease = |id| CheckRow { lease: id, held: 9, ..row(1, inflight(2, 10 * S)) };
    tries(desk, &lease(1), 0, (FITS, 1, 1, None))?;
    tries(desk, &lease(2), S, (FITS, 1, 0, None))?;
    tries(desk, &lease(3), 2 * S, (OVER, 0, 0, Some(10 * S)))?;
    tries(desk, &lease(4), 10 * S, (FITS, 1, 0, None))?;
    same("the last ends", desk.peek(&lease(5), 10 * S)?.full_at, instant(20 * S))
}

pub(super) fn counted_denials_push_the_window_on(desk: &Desk) -> Proof {
    let counting = CheckRow { count_denied: true, ..row(1, window(2, 10 * S)) };
    tries(desk, &asking(2, &counting), 0, (FITS, 2, 0, None))?;
    tries(desk, &counting, 4 * S, (OVER, 0, 0, Some(10 * S)))?;
    tries(desk, &counting, 8 * S, (OVER, 0, 0, Some(14 * S)))?;
    tries(desk, &counting, 12 * S, (OVER, 0, 0, Some(18 * S)))
}

pub(super) fn counted_denials_fill_a_fixed_window(desk: &Desk) -> Proof {
    let counting = CheckRow { count_denied: true, ..row(1, fixed(3, 10 * S, false)) };
    tries(desk, &asking(2, &counting), 0, (FITS, 2, 1, None))?;
    tries(desk, &asking(2, &counting), S, (OVER, 0, 0, Some(10 * S)))?;
    tries(desk, &counting, 2 * S, (OVER, 0, 0, Some(10 * S)))?;
    tries(desk, &asking(3, &counting), 10 * S, (FITS, 3, 0, None))
}

pub(super) fn a_row_without_a_limit_counts_nothing(desk: &Desk) -> Proof {
    let open = asking(1_000, &row(1, Limit::Unlimited));
    for at in 0..3 {
        let reply = desk.one(&open, at)?;
        same("verdict and limit", (reply.verdict, reply.limit), (FITS, None))?;
        same("charged", reply.charged, 0)?;
    }
    Ok(())
}

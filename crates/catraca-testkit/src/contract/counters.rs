//! Contract cases of the counters: what each algorithm counts, to the microsecond.

use catraca_core::batch::{CheckRow, RowVerdict, WindowFigures};
use catraca_core::limit::Limit;
use catraca_core::time::Time;

use super::harness::*;

/// The expected reply of a row: verdict, charged, free, and the instant at which the request fits,
/// in microseconds from the start.
type Figures = (RowVerdict, i64, i64, Option<i64>);

fn tries(harness: &StoreHarness, row: &CheckRow, at: i64, want: Figures) -> CaseResult {
    let got = harness.check_one(row, at)?;
    let fits = got.fits_at.map(|fits| fits.micros() - instant(0).micros());
    same(&format!("at {at}"), (got.verdict, got.charged, got.free, fits), want)
}

const FITS: RowVerdict = RowVerdict::Fits;
const OVER: RowVerdict = RowVerdict::OverLimit;

pub(super) fn the_instant_given_is_the_instant_used(harness: &StoreHarness) -> CaseResult {
    let reply = harness.check(&[row(1, window(1, S))], 1_234_567)?;
    same("now", reply.now, instant(1_234_567))?;
    same("the row's instant", reply.rows[0].at, instant(1_234_567))
}

pub(super) fn time_never_runs_backwards_for_a_key(harness: &StoreHarness) -> CaseResult {
    for (number, limit) in [(1, bucket(2, 1, S)), (2, window(2, S))] {
        let row = row(number, limit);
        harness.check_one(&row, 10 * S)?;
        same("an earlier call", harness.check_one(&row, 5 * S)?.at, instant(10 * S))?;
        same("units free", harness.free(&row, 10 * S)?, 0)?;
    }
    Ok(())
}

pub(super) fn keys_do_not_meet(harness: &StoreHarness) -> CaseResult {
    for number in 0..=u8::MAX {
        tries(harness, &row(number, window(1, S)), 0, (FITS, 1, 0, None))?;
    }
    tries(harness, &row(0, window(1, S)), 0, (OVER, 0, 0, Some(S)))
}

pub(super) fn a_bucket_refills_to_the_microsecond(harness: &StoreHarness) -> CaseResult {
    let three = row(1, bucket(3, 1, S));
    tries(harness, &with_held(3, &three), 0, (FITS, 3, 0, None))?;
    tries(harness, &three, S - 1, (OVER, 0, 0, Some(S)))?;
    tries(harness, &three, S, (FITS, 1, 0, None))?;
    tries(harness, &with_held(2, &three), 2 * S + 1, (OVER, 0, 1, Some(3 * S)))?;
    same("full again", harness.peek(&three, 3 * S)?.full_at, instant(4 * S))?;
    same("never above the size", harness.free(&three, 1_000 * S)?, 3)
}

pub(super) fn a_bucket_loses_no_remainder(harness: &StoreHarness) -> CaseResult {
    let ten = row(1, bucket(10, 1, 10));
    tries(harness, &with_held(10, &ten), 0, (FITS, 10, 0, None))?;
    tries(harness, &with_held(9, &ten), 97, (FITS, 9, 0, None))?;
    tries(harness, &ten, 97, (OVER, 0, 0, Some(100)))?;
    tries(harness, &ten, 100, (FITS, 1, 0, None))?;
    // 7 tokens per 3 µs never divide evenly; a store that rounds at every read loses tokens.
    let uneven = row(2, bucket(1_000, 7, 3));
    tries(harness, &with_held(1_000, &uneven), 0, (FITS, 1_000, 0, None))?;
    for at in 1..100 {
        harness.free(&uneven, at)?;
    }
    same("after a hundred peeks", harness.free(&uneven, 100)?, 233)
}

pub(super) fn a_window_frees_a_unit_at_exactly_its_span(harness: &StoreHarness) -> CaseResult {
    let two = row(1, window(2, 60 * S));
    tries(harness, &two, 0, (FITS, 1, 1, None))?;
    tries(harness, &two, S, (FITS, 1, 0, None))?;
    tries(harness, &two, 2 * S, (OVER, 0, 0, Some(60 * S)))?;
    tries(harness, &with_held(2, &two), 60 * S - 1, (OVER, 0, 0, Some(61 * S)))?;
    tries(harness, &two, 60 * S, (FITS, 1, 0, None))?;
    same("all back", harness.peek(&two, 60 * S)?.full_at, instant(120 * S))
}

pub(super) fn a_thousand_units_of_one_instant_are_a_thousand(harness: &StoreHarness) -> CaseResult {
    let thousand = row(1, window(1_000, S));
    for taken in 1..=1_000 {
        tries(harness, &thousand, 5, (FITS, 1, 1_000 - taken, None))?;
    }
    tries(harness, &thousand, 5, (OVER, 0, 0, Some(S + 5)))
}

pub(super) fn several_windows_must_all_fit(harness: &StoreHarness) -> CaseResult {
    let both = row(1, windows(&[(3, 10 * S), (2, S)]));
    tries(harness, &both, 0, (FITS, 1, 1, None))?;
    let second = harness.check_one(&both, 0)?;
    same("the tighter is shown", (second.limit, second.free), (Some(2), 0))?;
    tries(harness, &both, 0, (OVER, 0, 0, Some(S)))?;
    let third = harness.check_one(&both, S)?;
    same("then the longer", (third.verdict, third.limit, third.free), (FITS, Some(3), 0))?;
    tries(harness, &both, S, (OVER, 0, 0, Some(10 * S)))?;
    tries(harness, &with_held(3, &both), S, (RowVerdict::TooCostly, 0, 0, Some(never())))
}

pub(super) fn several_windows_have_figures_of_their_own(harness: &StoreHarness) -> CaseResult {
    let both = with_held(2, &row(1, windows(&[(5, 10 * S), (3, S)])));
    let figures = |free, fits_at: Option<i64>, full_at| WindowFigures {
        free,
        fits_at: fits_at.map(instant),
        full_at: instant(full_at),
    };
    let first = harness.check_one(&both, 0)?;
    let want = [figures(3, None, 10 * S), figures(1, Some(S), S)];
    same("after the charge", &first.windows[..], &want)?;
    let denied = harness.check_one(&both, MS)?;
    same("denied", &denied.windows[..], &want)?;
    let later = harness.peek(&both, 2 * S)?;
    let want = [figures(3, None, 10 * S), figures(3, None, 2 * S)];
    same("one is empty", &later.windows[..], &want)?;
    let too_much = harness.peek(&with_held(4, &both), 2 * S)?;
    same("never", too_much.windows[1].fits_at, Some(Time::FOREVER))?;
    same("one window", harness.peek(&row(2, window(5, S)), 0)?.windows.len(), 0)
}

/// `Time::FOREVER`, in microseconds from the start.
fn never() -> i64 {
    Time::FOREVER.micros() - instant(0).micros()
}

pub(super) fn a_fixed_window_opens_at_its_first_unit(harness: &StoreHarness) -> CaseResult {
    let two = row(1, fixed_window(2, 60 * S, false));
    tries(harness, &with_held(0, &two), 0, (FITS, 0, 2, None))?;
    tries(harness, &two, 25 * S, (FITS, 1, 1, None))?;
    tries(harness, &two, 80 * S, (FITS, 1, 0, None))?;
    tries(harness, &two, 85 * S - 1, (OVER, 0, 0, Some(85 * S)))?;
    tries(harness, &two, 85 * S, (FITS, 1, 1, None))?;
    same("over at", harness.peek(&two, 90 * S)?.full_at, instant(145 * S))
}

pub(super) fn an_aligned_window_opens_at_the_clock(harness: &StoreHarness) -> CaseResult {
    let one = row(1, fixed_window(1, 60 * S, true));
    tries(harness, &one, 25 * S, (FITS, 1, 0, None))?;
    tries(harness, &one, 25 * S, (OVER, 0, 0, Some(60 * S)))?;
    tries(harness, &one, 60 * S, (FITS, 1, 0, None))
}

pub(super) fn a_lease_ends_by_itself_at_its_hold(harness: &StoreHarness) -> CaseResult {
    let lease = |id| CheckRow { lease: id, held: 9, ..row(1, inflight(2, 10 * S)) };
    tries(harness, &lease(1), 0, (FITS, 1, 1, None))?;
    tries(harness, &lease(2), S, (FITS, 1, 0, None))?;
    tries(harness, &lease(3), 2 * S, (OVER, 0, 0, Some(10 * S)))?;
    tries(harness, &lease(4), 10 * S, (FITS, 1, 0, None))?;
    same("the last ends", harness.peek(&lease(5), 10 * S)?.full_at, instant(20 * S))
}

pub(super) fn counted_denials_push_the_window_on(harness: &StoreHarness) -> CaseResult {
    let counting = CheckRow { count_denied: true, ..row(1, window(2, 10 * S)) };
    tries(harness, &with_held(2, &counting), 0, (FITS, 2, 0, None))?;
    tries(harness, &counting, 4 * S, (OVER, 0, 0, Some(10 * S)))?;
    tries(harness, &counting, 8 * S, (OVER, 0, 0, Some(14 * S)))?;
    tries(harness, &counting, 12 * S, (OVER, 0, 0, Some(18 * S)))
}

pub(super) fn counted_denials_fill_a_fixed_window(harness: &StoreHarness) -> CaseResult {
    let counting = CheckRow { count_denied: true, ..row(1, fixed_window(3, 10 * S, false)) };
    tries(harness, &with_held(2, &counting), 0, (FITS, 2, 1, None))?;
    tries(harness, &with_held(2, &counting), S, (OVER, 0, 0, Some(10 * S)))?;
    tries(harness, &counting, 2 * S, (OVER, 0, 0, Some(10 * S)))?;
    tries(harness, &with_held(3, &counting), 10 * S, (FITS, 3, 0, None))
}

pub(super) fn a_row_without_a_limit_counts_nothing(harness: &StoreHarness) -> CaseResult {
    let open = with_held(1_000, &row(1, Limit::Unlimited));
    for at in 0..3 {
        let reply = harness.check_one(&open, at)?;
        same("verdict and limit", (reply.verdict, reply.limit), (FITS, None))?;
        same("charged", reply.charged, 0)?;
    }
    Ok(())
}

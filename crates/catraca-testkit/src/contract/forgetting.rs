//! Contract cases of expiry and changed terms.
//!
//! Larger terms make an expired cell visible: under them a cell that is still stored shows its old
//! level, an expired one starts full.

use catraca_core::batch::{RowVerdict, SettleRow};

use super::harness::*;

pub(super) fn a_full_bucket_is_forgotten_at_a_whole_second(harness: &StoreHarness) -> CaseResult {
    let small = row(1, bucket(10, 1, S));
    let large = row(1, bucket(100, 1, S));
    harness.check_one(&small, 500 * MS)?;
    same("full at 1.5 s, remembered", harness.free(&large, 1_999_999)?, 10)?;
    same("forgotten at 2 s", harness.free(&large, 2 * S)?, 100)
}

pub(super) fn an_empty_window_is_forgotten_at_a_whole_second(harness: &StoreHarness) -> CaseResult {
    for (number, short, long) in [
        (1, window(5, S), window(5, 10 * S)),
        (2, fixed_window(5, S, false), fixed_window(5, 10 * S, false)),
    ] {
        let short = row(number, short);
        let long = row(number, long);
        harness.check_one(&short, 500 * MS)?;
        same("over at 1.5 s, remembered", harness.free(&long, 1_999_999)?, 4)?;
        same("forgotten at 2 s", harness.free(&long, 2 * S)?, 5)?;
    }
    Ok(())
}

pub(super) fn other_terms_keep_tokens_and_drop_the_remainder(harness: &StoreHarness) -> CaseResult {
    let slow = row(1, bucket(10, 1, MS));
    let fast = row(1, bucket(10, 1, 100));
    harness.check_one(&with_held(10, &slow), 0)?;
    harness.check_one(&slow, 1_500)?;
    // Half a token was refilled under the slow terms. As time, 500 µs, it would be five tokens
    // under the fast ones.
    let changed = harness.check_one(&fast, 1_540)?;
    same("half a token is not five", changed.verdict, RowVerdict::OverLimit)?;
    same("counted from zero", changed.fits_at, Some(instant(1_600)))
}

pub(super) fn a_smaller_bucket_is_clamped_and_debt_is_kept(harness: &StoreHarness) -> CaseResult {
    let large = row(1, bucket(100, 1, 30 * S));
    let small = row(1, bucket(50, 1, 30 * S));
    harness.check_one(&with_held(10, &large), 0)?;
    same("clamped", harness.free(&small, S)?, 50)?;
    same("and not for good", harness.free(&large, S)?, 90)?;
    harness.check_one(&with_held(89, &large), S)?;
    harness.settle_one(100, SettleRow { debt: true, ..settle_row(&large, S, 17) }, S)?;
    same("debt", harness.free(&large, S)?, -15)?;
    same("kept", harness.free(&small, S)?, -15)
}

pub(super) fn another_number_of_windows_keeps_the_units(harness: &StoreHarness) -> CaseResult {
    let one = row(1, window(3, 10 * S));
    harness.check_one(&with_held(2, &one), 0)?;
    let two = row(1, windows(&[(3, 10 * S), (2, S)]));
    let third = harness.check_one(&two, S)?;
    same("a third", (third.verdict, third.limit, third.free), (RowVerdict::Fits, Some(3), 0))?;
    let fourth = harness.check_one(&two, 2 * S)?;
    same("over", (fourth.verdict, fourth.fits_at), (RowVerdict::OverLimit, Some(instant(10 * S))))?;
    same("one again", harness.check_one(&one, 2 * S)?.verdict, RowVerdict::OverLimit)?;
    same("and their ends", harness.check_one(&one, 10 * S)?.free, 1)
}

pub(super) fn a_lowered_limit_counts_what_is_there(harness: &StoreHarness) -> CaseResult {
    for (number, ten, five) in [
        (1, window(10, 60 * S), window(5, 60 * S)),
        (2, fixed_window(10, 60 * S, true), fixed_window(5, 60 * S, true)),
    ] {
        harness.check_one(&with_held(7, &row(number, ten)), 0)?;
        let lowered = harness.check_one(&row(number, five), S)?;
        same("over", (lowered.verdict, lowered.free), (RowVerdict::OverLimit, -2))?;
        same("until they leave", lowered.fits_at, Some(instant(60 * S)))?;
    }
    Ok(())
}

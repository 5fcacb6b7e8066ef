//! Forgetting and changed terms: what shows when the numbers of a policy change.

use catraca_core::batch::{SettleRow, Verdict};

use super::desk::*;

pub(super) fn a_full_bucket_is_forgotten_at_a_whole_second(desk: &Desk) -> Proof {
    let (small, large) = (row(1, bucket(10, 1, S)), row(1, bucket(100, 1, S)));
    desk.one(&small, 500 * MS)?;
    same("full at 1.5 s, remembered", desk.free(&large, 1_999_999)?, 10)?;
    same("forgotten at 2 s", desk.free(&large, 2 * S)?, 100)
}

pub(super) fn an_empty_window_is_forgotten_at_a_whole_second(desk: &Desk) -> Proof {
    for (number, short, long) in
        [(1, window(5, S), window(5, 10 * S)), (2, fixed(5, S, false), fixed(5, 10 * S, false))]
    {
        let (short, long) = (row(number, short), row(number, long));
        desk.one(&short, 500 * MS)?;
        same("over at 1.5 s, remembered", desk.free(&long, 1_999_999)?, 4)?;
        same("forgotten at 2 s", desk.free(&long, 2 * S)?, 5)?;
    }
    Ok(())
}

pub(super) fn other_terms_keep_tokens_and_drop_the_remainder(desk: &Desk) -> Proof {
    let (slow, fast) = (row(1, bucket(10, 1, MS)), row(1, bucket(10, 1, 100)));
    desk.one(&asking(10, &slow), 0)?;
    desk.one(&slow, 1_500)?;
    let changed = desk.one(&fast, 1_540)?;
    same("half a token is not five", changed.verdict, Verdict::OverLimit)?;
    same("counted anew", changed.fits_at, Some(instant(1_600)))
}

pub(super) fn a_smaller_bucket_is_clamped_and_debt_is_kept(desk: &Desk) -> Proof {
    let (large, small) = (row(1, bucket(100, 1, 30 * S)), row(1, bucket(50, 1, 30 * S)));
    desk.one(&asking(10, &large), 0)?;
    same("clamped", desk.free(&small, S)?, 50)?;
    same("and not for good", desk.free(&large, S)?, 90)?;
    desk.one(&asking(89, &large), S)?;
    desk.settle_one(100, SettleRow { debt: true, ..paid(&large, S, 17) }, S)?;
    same("debt", desk.free(&large, S)?, -15)?;
    same("kept", desk.free(&small, S)?, -15)
}

pub(super) fn another_number_of_windows_starts_empty(desk: &Desk) -> Proof {
    let one = row(1, window(2, 10 * S));
    desk.one(&asking(2, &one), 0)?;
    let two = row(1, windows(&[(2, 10 * S), (1, S)]));
    same("empty", desk.one(&two, S)?.verdict, Verdict::Fits)
}

pub(super) fn a_lowered_limit_counts_what_is_there(desk: &Desk) -> Proof {
    for (number, ten, five) in [
        (1, window(10, 60 * S), window(5, 60 * S)),
        (2, fixed(10, 60 * S, true), fixed(5, 60 * S, true)),
    ] {
        desk.one(&asking(7, &row(number, ten)), 0)?;
        let lowered = desk.one(&row(number, five), S)?;
        same("over", (lowered.verdict, lowered.free), (Verdict::OverLimit, -2))?;
        same("until they leave", lowered.fits_at, Some(instant(60 * S)))?;
    }
    Ok(())
}

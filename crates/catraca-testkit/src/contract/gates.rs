//! Contract cases of gates with several rows: a batch charges all rows or none.

use catraca_core::batch::{CheckBatch, CheckRow, RowVerdict};
use catraca_core::limit::Limit;
use catraca_core::time::{Span, Time};

use super::harness::*;

/// One row of every algorithm, each with `limit` units; the last row is unlimited.
fn one_of_each(limit: i64) -> Vec<CheckRow> {
    vec![
        row(1, bucket(limit, 1, 60 * S)),
        row(2, window(limit, 60 * S)),
        row(3, fixed_window(limit, 60 * S, false)),
        CheckRow { lease: 1, ..row(4, inflight(limit, 60 * S)) },
        row(5, Limit::Unlimited),
    ]
}

/// Units free in the rows of [`one_of_each`] that have a limit.
fn free_of_all(harness: &StoreHarness, rows: &[CheckRow], at: i64) -> Result<Vec<i64>, String> {
    rows.iter().take(4).map(|row| harness.free(row, at)).collect()
}

pub(super) fn a_denial_charges_nobody(harness: &StoreHarness) -> CaseResult {
    let mut gate = one_of_each(2);
    let full = row(9, window(1, 60 * S));
    harness.check_one(&full, 0)?;
    gate.push(full);
    let reply = harness.check(&gate, 0)?;
    same("passed", reply.passed, false)?;
    let rows: Vec<_> = reply.rows.iter().map(|row| (row.verdict, row.charged)).collect();
    let fits = (RowVerdict::Fits, 0);
    same("rows", rows, vec![fits, fits, fits, fits, fits, (RowVerdict::OverLimit, 0)])?;
    same("free", free_of_all(harness, &gate, 0)?, vec![2; 4])
}

pub(super) fn an_admission_charges_everybody(harness: &StoreHarness) -> CaseResult {
    let gate = one_of_each(2);
    let reply = harness.check(&gate, 0)?;
    same("passed", reply.passed, true)?;
    let charged: Vec<_> = reply.rows.iter().map(|row| row.charged).collect();
    same("charged", charged, vec![1, 1, 1, 1, 0])?;
    same("free", free_of_all(harness, &gate, 0)?, vec![1; 4])
}

pub(super) fn a_veto_charges_nobody(harness: &StoreHarness) -> CaseResult {
    let gate = one_of_each(2);
    let rows = gate.iter().cloned().collect();
    let reply = harness
        .check_batch(CheckBatch { rows, already_denied: true, ..CheckBatch::default() }, 0)?;
    same("passed", reply.passed, false)?;
    same("free", free_of_all(harness, &gate, 0)?, vec![2; 4])
}

pub(super) fn every_excess_starts_its_own_block(harness: &StoreHarness) -> CaseResult {
    let first = with_block(30 * S, &row(1, window(1, S)));
    let second = with_block(50 * S, &row(2, bucket(1, 1, S)));
    let roomy = with_block(70 * S, &row(3, window(9, S)));
    let gate = [first.clone(), second.clone(), roomy];
    harness.check(&gate, 0)?;
    let reply = harness.check(&gate, 0)?;
    let started: Vec<_> = reply.rows.iter().map(|row| row.started).collect();
    same("started", started, vec![true, true, false])?;
    let until = |index: usize| reply.rows[index].block.as_ref().map(|block| block.until);
    same("the first's end", until(0), Some(instant(30 * S)))?;
    same("the second's end", until(1), Some(instant(50 * S)))?;
    same("alone, later", harness.check_one(&second, 40 * S)?.verdict, RowVerdict::Blocked)?;
    same("alone, free", harness.check_one(&first, 40 * S)?.verdict, RowVerdict::Fits)
}

pub(super) fn a_shadow_row_never_decides(harness: &StoreHarness) -> CaseResult {
    let shadow = CheckRow { shadow: true, ..with_block(S, &row(1, window(1, 60 * S))) };
    let real = row(2, window(3, 60 * S));
    let gate = [shadow.clone(), real.clone()];
    let first = harness.check(&gate, 0)?;
    same("charged with the gate", first.rows[0].charged, 1)?;
    let second = harness.check(&gate, 0)?;
    same("passed all the same", second.passed, true)?;
    same("its own verdict", second.rows[0].verdict, RowVerdict::OverLimit)?;
    same("its own charge", second.rows[0].charged, 0)?;
    same("the real row", second.rows[1].charged, 1)?;
    harness.check_one(&real, 0)?;
    let other = CheckRow { shadow: true, ..row(3, window(1, 60 * S)) };
    let denied = harness.check(&[other.clone(), real], 0)?;
    same("denied by the real row", denied.passed, false)?;
    same("so the shadow is not charged", harness.free(&other, 0)?, 1)
}

pub(super) fn a_peek_moves_nothing(harness: &StoreHarness) -> CaseResult {
    for one in one_of_each(1).iter().take(4) {
        let one = with_block(60 * S, one);
        for at in 0..3 {
            let peeked = harness.peek(&one, at)?;
            same("fits", (peeked.verdict, peeked.charged), (RowVerdict::Fits, 0))?;
        }
        harness.check_one(&CheckRow { lease: 2, ..one.clone() }, 10)?;
        let over = harness.peek(&one, 20)?;
        same("over", (over.verdict, over.started), (RowVerdict::OverLimit, false))?;
        same("no block", over.block, None)?;
        same("still none", harness.peek(&one, 30)?.verdict, RowVerdict::OverLimit)?;
    }
    Ok(())
}

pub(super) fn too_much_never_fits_and_starts_nothing(harness: &StoreHarness) -> CaseResult {
    for one in one_of_each(5).iter().take(3) {
        let much = with_held(6, &with_block(60 * S, one));
        let reply = harness.check_one(&much, 0)?;
        same("verdict", reply.verdict, RowVerdict::TooCostly)?;
        same("never", reply.fits_at, Some(Time::FOREVER))?;
        same("untouched", (reply.free, reply.started), (5, false))?;
        let all = harness.check_one(&with_held(5, &with_block(60 * S, one)), 0)?;
        same("all of it", (all.verdict, all.free), (RowVerdict::Fits, 0))?;
    }
    let blocked = with_held(6, &row(9, window(5, S)));
    let act = block_proposal(catraca_core::cell::block::Origin::Operator, Span::from_secs(1));
    harness.block(blocked.key, act, 0)?;
    let reply = harness.check_one(&blocked, 0)?;
    same("blocked comes first", reply.verdict, RowVerdict::Blocked)?;
    same("and never still holds", reply.fits_at, Some(Time::FOREVER))
}

pub(super) fn nothing_needs_one_free_and_charges_none(harness: &StoreHarness) -> CaseResult {
    for one in one_of_each(1).iter().take(3) {
        let none = with_held(0, one);
        let reply = harness.check_one(&none, 0)?;
        same("charged", (reply.verdict, reply.charged, reply.free), (RowVerdict::Fits, 0, 1))?;
        harness.check_one(one, 0)?;
        same("none free", harness.check_one(&none, 0)?.verdict, RowVerdict::OverLimit)?;
    }
    Ok(())
}

pub(super) fn another_algorithm_starts_fresh_and_the_block_stays(
    harness: &StoreHarness,
) -> CaseResult {
    let bucket = with_block(30 * S, &row(1, bucket(1, 1, 3_600 * S)));
    let window = with_block(30 * S, &row(1, window(1, 3_600 * S)));
    harness.check_one(&bucket, 0)?;
    same("fresh", harness.check_one(&window, 0)?.verdict, RowVerdict::Fits)?;
    same("over", harness.check_one(&window, 0)?.started, true)?;
    same("blocked in both", harness.check_one(&bucket, S)?.verdict, RowVerdict::Blocked)?;
    same("and then as it was", harness.check_one(&bucket, 30 * S)?.verdict, RowVerdict::OverLimit)
}

//! Several rows in one batch: all are charged or none is.

use catraca_core::batch::{Check, CheckRow, Verdict};
use catraca_core::limit::Limit;
use catraca_core::time::{Span, Time};

use super::desk::*;

/// One row of every algorithm, each with room for `limit`.
fn one_of_each(limit: i64) -> Vec<CheckRow> {
    vec![
        row(1, bucket(limit, 1, 60 * S)),
        row(2, window(limit, 60 * S)),
        row(3, fixed(limit, 60 * S, false)),
        CheckRow { lease: 1, ..row(4, inflight(limit, 60 * S)) },
        row(5, Limit::Unlimited),
    ]
}

fn free_of_all(desk: &Desk, rows: &[CheckRow], at: i64) -> Result<Vec<i64>, String> {
    rows.iter().take(4).map(|row| desk.free(row, at)).collect()
}

pub(super) fn a_denial_charges_nobody(desk: &Desk) -> Proof {
    let mut gate = one_of_each(2);
    let full = row(9, window(1, 60 * S));
    desk.one(&full, 0)?;
    gate.push(full);
    let reply = desk.check(&gate, 0)?;
    same("passed", reply.passed, false)?;
    let told: Vec<_> = reply.rows.iter().map(|row| (row.verdict, row.charged)).collect();
    let fits = (Verdict::Fits, 0);
    same("rows", told, vec![fits, fits, fits, fits, fits, (Verdict::OverLimit, 0)])?;
    same("free", free_of_all(desk, &gate, 0)?, vec![2; 4])
}

pub(super) fn an_admission_charges_everybody(desk: &Desk) -> Proof {
    let gate = one_of_each(2);
    let reply = desk.check(&gate, 0)?;
    same("passed", reply.passed, true)?;
    let charged: Vec<_> = reply.rows.iter().map(|row| row.charged).collect();
    same("charged", charged, vec![1, 1, 1, 1, 0])?;
    same("free", free_of_all(desk, &gate, 0)?, vec![1; 4])
}

pub(super) fn a_veto_charges_nobody(desk: &Desk) -> Proof {
    let gate = one_of_each(2);
    let rows = gate.iter().cloned().collect();
    let reply = desk.ask(Check { rows, veto: true, ..Check::default() }, 0)?;
    same("passed", reply.passed, false)?;
    same("free", free_of_all(desk, &gate, 0)?, vec![2; 4])
}

pub(super) fn every_excess_starts_its_own_block(desk: &Desk) -> Proof {
    let first = blocking(30 * S, &row(1, window(1, S)));
    let second = blocking(50 * S, &row(2, bucket(1, 1, S)));
    let roomy = blocking(70 * S, &row(3, window(9, S)));
    let gate = [first.clone(), second.clone(), roomy];
    desk.check(&gate, 0)?;
    let reply = desk.check(&gate, 0)?;
    let started: Vec<_> = reply.rows.iter().map(|row| row.started).collect();
    same("started", started, vec![true, true, false])?;
    let until = |place: usize| reply.rows[place].block.as_ref().map(|block| block.until);
    same("the first's end", until(0), Some(instant(30 * S)))?;
    same("the second's end", until(1), Some(instant(50 * S)))?;
    same("alone, later", desk.one(&second, 40 * S)?.verdict, Verdict::Blocked)?;
    same("alone, free", desk.one(&first, 40 * S)?.verdict, Verdict::Fits)
}

pub(super) fn a_shadow_row_never_decides(desk: &Desk) -> Proof {
    let shadow = CheckRow { shadow: true, ..blocking(S, &row(1, window(1, 60 * S))) };
    let real = row(2, window(3, 60 * S));
    let gate = [shadow.clone(), real.clone()];
    let first = desk.check(&gate, 0)?;
    same("charged with the gate", first.rows[0].charged, 1)?;
    let second = desk.check(&gate, 0)?;
    same("passed all the same", second.passed, true)?;
    let (verdict, charged) = (second.rows[0].verdict, second.rows[0].charged);
    same("its own verdict", (verdict, charged), (Verdict::OverLimit, 0))?;
    same("the real row", second.rows[1].charged, 1)?;
    desk.one(&real, 0)?;
    let other = CheckRow { shadow: true, ..row(3, window(1, 60 * S)) };
    let denied = desk.check(&[other.clone(), real], 0)?;
    same("denied by the real row", denied.passed, false)?;
    same("so the shadow is not charged", desk.free(&other, 0)?, 1)
}

pub(super) fn a_peek_moves_nothing(desk: &Desk) -> Proof {
    for one in one_of_each(1).iter().take(4) {
        let one = blocking(60 * S, one);
        for at in 0..3 {
            let peeked = desk.peek(&one, at)?;
            same("fits", (peeked.verdict, peeked.charged), (Verdict::Fits, 0))?;
        }
        desk.one(&CheckRow { lease: 2, ..one.clone() }, 10)?;
        let over = desk.peek(&one, 20)?;
        same("over", (over.verdict, over.started), (Verdict::OverLimit, false))?;
        same("no block", over.block, None)?;
        same("still none", desk.peek(&one, 30)?.verdict, Verdict::OverLimit)?;
    }
    Ok(())
}

pub(super) fn too_much_never_fits_and_starts_nothing(desk: &Desk) -> Proof {
    for one in one_of_each(5).iter().take(3) {
        let much = asking(6, &blocking(60 * S, one));
        let reply = desk.one(&much, 0)?;
        same("verdict", reply.verdict, Verdict::TooCostly)?;
        same("never", reply.fits_at, Some(Time::FOREVER))?;
        same("untouched", (reply.free, reply.started), (5, false))?;
        let all = desk.one(&asking(5, &blocking(60 * S, one)), 0)?;
        same("all of it", (all.verdict, all.free), (Verdict::Fits, 0))?;
    }
    let blocked = asking(6, &row(9, window(5, S)));
    let act = ordered(catraca_core::cell::block::Origin::Operator, Span::from_secs(1));
    desk.block(blocked.key, act, 0)?;
    let reply = desk.one(&blocked, 0)?;
    same("blocked comes first", reply.verdict, Verdict::Blocked)?;
    same("and never still holds", reply.fits_at, Some(Time::FOREVER))
}

pub(super) fn nothing_needs_one_free_and_charges_none(desk: &Desk) -> Proof {
    for one in one_of_each(1).iter().take(3) {
        let none = asking(0, one);
        let reply = desk.one(&none, 0)?;
        same("charged", (reply.verdict, reply.charged, reply.free), (Verdict::Fits, 0, 1))?;
        desk.one(one, 0)?;
        same("none free", desk.one(&none, 0)?.verdict, Verdict::OverLimit)?;
    }
    Ok(())
}

pub(super) fn another_algorithm_starts_fresh_and_the_block_stays(desk: &Desk) -> Proof {
    let bucket = blocking(30 * S, &row(1, bucket(1, 1, 3_600 * S)));
    let window = blocking(30 * S, &row(1, window(1, 3_600 * S)));
    desk.one(&bucket, 0)?;
    same("fresh", desk.one(&window, 0)?.verdict, Verdict::Fits)?;
    same("over", desk.one(&window, 0)?.started, true)?;
    same("blocked in both", desk.one(&bucket, S)?.verdict, Verdict::Blocked)?;
    same("and then as it was", desk.one(&bucket, 30 * S)?.verdict, Verdict::OverLimit)
}

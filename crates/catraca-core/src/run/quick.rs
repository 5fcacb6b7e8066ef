//! The quick way through a check: one known bucket with room and without a block.
//!
//! Judges and charges in one visit to the cell. Must not answer anything but what [`super::check`]
//! answers; whatever is not the common case is left to it, untouched.

use smallvec::SmallVec;

use super::blocks;
use super::check::need;
use crate::batch::{Check, CheckReply, CheckRow, RowReply, Verdict};
use crate::cell::{Bucket, Cells};
use crate::limit::{BucketTerms, Limit};
use crate::time::Time;

/// Decides if the check is the common case.
#[inline(always)]
pub fn run<C: Cells>(check: &Check, cells: &mut C, now: Time) -> Option<CheckReply> {
    let [row] = check.rows.as_slice() else { return None };
    let Limit::Bucket(terms) = &row.limit else { return None };
    let plain = !check.veto && check.remember.is_none();
    if !plain || blocks::standing(row.key, row.shadow, cells, now).is_some() {
        return None;
    }
    let held = if check.peek { 0 } else { row.held };
    let row = charge(row, held, terms, cells, now)?;
    Some(CheckReply { now, passed: true, remembered: false, rows: SmallVec::from_buf([row]) })
}

/// Takes what is held from a bucket that has room.
#[inline(always)]
fn charge<C: Cells>(
    row: &CheckRow,
    held: i64,
    terms: &BucketTerms,
    cells: &mut C,
    now: Time,
) -> Option<RowReply> {
    let cell: &mut Bucket = cells.get(row.key, now)?;
    let mut bucket = cell.refilled(terms, now);
    if bucket.tokens < need(row) {
        return None;
    }
    let mut charged = 0;
    if held > 0 {
        charged = bucket.take(terms, held);
        *cell = bucket;
    }
    Some(answer(terms, &bucket, charged))
}

#[inline(always)]
fn answer(terms: &BucketTerms, bucket: &Bucket, charged: i64) -> RowReply {
    RowReply {
        verdict: Verdict::Fits,
        at: bucket.at,
        charged,
        limit: Some(terms.size),
        free: bucket.tokens,
        fits_at: None,
        full_at: bucket.full_at(terms),
        block: None,
        started: false,
        shared: false,
    }
}

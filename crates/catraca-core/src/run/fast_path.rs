//! Fast path of a check: one existing bucket with room and without an active block.
//!
//! Reads, charges and answers with one lookup of the bucket. The reply must be equal to that of
//! [`super::check`], which handles every check that this function declines. Nothing is written
//! before it has accepted.

use smallvec::SmallVec;

use super::blocks;
use crate::batch::{CheckBatch, CheckReply, CheckRow, RowReply, RowVerdict};
use crate::cell::{Bucket, CellStore};
use crate::limit::{BucketTerms, Limit};
use crate::time::Time;

/// Applies the check if it is eligible for the fast path.
#[inline(always)]
pub fn run<C: CellStore>(check: &CheckBatch, cells: &mut C, now: Time) -> Option<CheckReply> {
    let [row] = check.rows.as_slice() else { return None };
    let Limit::Bucket(terms) = &row.limit else { return None };
    // A check that stores a reference, that is denied already, or whose bucket other tiers share,
    // takes the general path.
    let is_plain = !check.already_denied && check.new_reference.is_none() && row.shared.is_none();
    if !is_plain || blocks::active_block(row.key, row.shadow, cells, now).is_some() {
        return None;
    }
    // A peek charges nothing, but needs the same units to be free.
    let held = if check.peek { 0 } else { row.held };
    let row = charge(row, held, terms, cells, now)?;
    Some(CheckReply { now, passed: true, remembered: false, rows: SmallVec::from_buf([row]) })
}

/// Charges a bucket that has room. `None` if the bucket is absent or has too few tokens.
#[inline(always)]
fn charge<C: CellStore>(
    row: &CheckRow,
    held: i64,
    terms: &BucketTerms,
    cells: &mut C,
    now: Time,
) -> Option<RowReply> {
    // An absent bucket needs a slot from the store, which may be an overflow cell.
    let cell: &mut Bucket = cells.get(row.counter().key, now)?;
    let mut bucket = cell.refill_to(terms, now);
    // Enough tokens also means that the amount is not too costly, since tokens never exceed the
    // size. The general path distinguishes too costly from over limit, and starts the block.
    if bucket.tokens < row.limit.need(row.held) {
        return None;
    }
    let mut charged = 0;
    if held > 0 {
        charged = bucket.take(terms, held);
        // Written in place instead of by `put`: a bucket has no heap bytes, so its size does not
        // change.
        *cell = bucket;
    }
    Some(row_reply(terms, &bucket, charged))
}

#[inline(always)]
fn row_reply(terms: &BucketTerms, bucket: &Bucket, charged: i64) -> RowReply {
    RowReply {
        verdict: RowVerdict::Fits,
        at: bucket.at,
        charged,
        limit: Some(terms.size),
        free: bucket.tokens,
        fits_at: None,
        full_at: bucket.full_at(terms),
        block: None,
        started: false,
        is_overflow: false,
        windows: Box::default(),
    }
}

//! Giving back: late events that credit the buckets of a check, and an upstream's view of a bucket.
//!
//! Must not lift a block, nor fill a bucket above its size.

use crate::batch::{Credit, CreditReply, CreditRow, ReconcileRow, Reconciled};
use crate::cell::{Block, Bucket, Cells, Pool, Reference};
use crate::museum::{Bug, planted};
use crate::time::Time;

/// Credits every bucket of a reference, once per event.
pub fn run<C: Cells>(credit: &Credit, cells: &mut C, now: Time) -> CreditReply {
    let known: Option<&mut Reference> = cells.get(credit.reference, now);
    let Some(reference) = known else { return CreditReply::Unknown };
    if reference.credited.iter().any(|event| **event == *credit.event) {
        return CreditReply::Duplicate;
    }
    cells.edit(credit.reference, now, |reference: &mut Reference| {
        reference.credited.push((*credit.event).into());
    });
    CreditReply::Applied(credit.rows.iter().map(|row| give(row, cells, now)).collect())
}

fn give<C: Cells>(row: &CreditRow, cells: &mut C, now: Time) -> i64 {
    if planted(Bug::CreditLiftsBlock) {
        Pool::<Block>::remove(cells, row.key, now);
    }
    // A bucket that was forgotten is full: there is nothing to give back to.
    let known: Option<&mut Bucket> = cells.get(row.key, now);
    let Some(bucket) = known else { return 0 };
    let mut bucket = bucket.refilled(&row.terms, now);
    let given = -bucket.take(&row.terms, -row.amount);
    if given != 0 {
        cells.put(row.key, bucket, now);
    }
    given
}

/// Takes an upstream's view: a lower figure wins, a higher one only if nothing was written since.
pub fn reconcile<C: Cells>(rows: &[ReconcileRow], cells: &mut C, now: Time) -> Vec<Reconciled> {
    rows.iter().map(|row| reconcile_one(row, cells, now)).collect()
}

fn reconcile_one<C: Cells>(row: &ReconcileRow, cells: &mut C, now: Time) -> Reconciled {
    let known: Option<Bucket> = cells.get(row.key, now).map(|bucket| *bucket);
    let written_at = known.map_or(Time::ZERO, |bucket| bucket.at);
    let ours = known
        .map_or_else(|| Bucket::full(&row.terms, now), |bucket| bucket.refilled(&row.terms, now));
    let theirs = observed(row, ours.at);
    let (seen, known) = ((theirs.tokens, theirs.rem), (ours.tokens, ours.rem));
    if seen == known || (seen > known && written_at > row.observed_at) {
        return Reconciled { before: ours.tokens, after: ours.tokens };
    }
    cells.put(row.key, theirs, now);
    Reconciled { before: ours.tokens, after: theirs.tokens }
}

fn observed(row: &ReconcileRow, now: Time) -> Bucket {
    let mut seen = Bucket::full(&row.terms, row.observed_at.min(now));
    seen.tokens = row.available.clamp(row.terms.floor(), row.terms.size);
    let mut seen = seen.refilled(&row.terms, now);
    seen.take(&row.terms, 0);
    seen
}

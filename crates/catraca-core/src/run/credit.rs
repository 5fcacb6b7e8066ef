//! Credits and reconciliation: units that later events give back to buckets, and the level that an
//! upstream reports.
//!
//! A credit never lifts a block and never fills a bucket above its size.

use crate::batch::{BucketAdjustment, CreditBatch, CreditReply, CreditRow, ReconcileRow};
use crate::cell::{Bucket, CellStore, Reference};
use crate::time::Time;

/// Credits the buckets of a reference, once per event.
pub fn run<C: CellStore>(credit: &CreditBatch, cells: &mut C, now: Time) -> CreditReply {
    let reference: Option<&mut Reference> = cells.get(credit.reference, now);
    let Some(reference) = reference else { return CreditReply::Unknown };
    // A short list: only events that the catalog credits get here.
    if reference.credited.iter().any(|event| **event == *credit.event) {
        return CreditReply::Duplicate;
    }
    // The event is stored even if no bucket can take anything: a repetition must be a duplicate.
    // Stored by `edit`, because it makes the reference larger.
    cells.edit(credit.reference, now, |reference: &mut Reference| {
        reference.credited.push((*credit.event).into());
    });
    CreditReply::Applied(credit.rows.iter().map(|row| credit_bucket(row, cells, now)).collect())
}

/// Gives tokens back to one bucket. Returns how many it took.
fn credit_bucket<C: CellStore>(row: &CreditRow, cells: &mut C, now: Time) -> i64 {
    // A bucket without a cell is full, so it can take nothing.
    let bucket: Option<&mut Bucket> = cells.get(row.key, now);
    let Some(bucket) = bucket else { return 0 };
    let mut bucket = bucket.refill_to(&row.terms, now);
    // A negative charge; `take` stops at the size.
    let given = -bucket.take(&row.terms, -row.amount);
    if given != 0 {
        bucket.keep_for(row.shared.as_deref());
        cells.put(row.key, bucket, now);
    }
    given
}

/// Adopts the level that an upstream observed: a lower level always, a higher one only if the
/// bucket was not written after the observation.
pub fn reconcile<C: CellStore>(
    rows: &[ReconcileRow],
    cells: &mut C,
    now: Time,
) -> Vec<BucketAdjustment> {
    rows.iter().map(|row| reconcile_one(row, cells, now)).collect()
}

fn reconcile_one<C: CellStore>(row: &ReconcileRow, cells: &mut C, now: Time) -> BucketAdjustment {
    let stored: Option<Bucket> = cells.get(row.key, now).map(|bucket| *bucket);
    let written_at = stored.map_or(Time::ZERO, |bucket| bucket.at);
    let ours = match stored {
        Some(bucket) => bucket.refill_to(&row.terms, now),
        None => Bucket::full(&row.terms, now),
    };
    // Both buckets are refilled to the same instant before they are compared. It is that of ours,
    // which is later than `now` if the clock was set back.
    let theirs = observed_bucket(row, ours.at);
    // The remainder decides between equal tokens. A higher level is not adopted over a later write,
    // which may be a charge that the upstream had not seen yet.
    let observed = (theirs.tokens, theirs.rem);
    let current = (ours.tokens, ours.rem);
    if observed == current || (observed > current && written_at > row.observed_at) {
        return BucketAdjustment { before: ours.tokens, after: ours.tokens };
    }
    cells.put(row.key, theirs, now);
    BucketAdjustment { before: ours.tokens, after: theirs.tokens }
}

/// The bucket as the upstream observed it, refilled to `now`.
fn observed_bucket(row: &ReconcileRow, now: Time) -> Bucket {
    // An observation cannot be in the future of the store's clock.
    let mut bucket = Bucket::full(&row.terms, row.observed_at.min(now));
    bucket.tokens = row.available.clamp(row.terms.floor(), row.terms.size);
    let mut bucket = bucket.refill_to(&row.terms, now);
    // Takes nothing, but computes the instant at which the bucket is forgotten.
    bucket.take(&row.terms, 0);
    bucket.keep_for(row.shared.as_deref());
    bucket
}

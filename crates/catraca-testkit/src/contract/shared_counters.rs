//! Contract cases of tiers that share a bucket: it is remembered until it is full for all of them.

use std::slice::from_ref;
use std::sync::Arc;

use catraca_core::algorithm::SharedBuckets;
use catraca_core::batch::{CheckRow, CreditRow, ReconcileRow};
use catraca_core::limit::Limit;

use super::harness::*;
use super::references::check_with_reference;

/// A row of each tier, all on the counter of one key.
fn tiers<const N: usize>(limits: [Limit; N]) -> [CheckRow; N] {
    limits.clone().map(|limit| {
        let shared = SharedBuckets::new(&limit, limits.iter()).map(Arc::new);
        CheckRow { shared, ..row(1, limit) }
    })
}

pub(super) fn a_shared_bucket_is_forgotten_when_it_is_full_for_all(
    harness: &StoreHarness,
) -> CaseResult {
    let [fast, slow] = tiers([bucket(10, 1, S), bucket(100, 1, 60 * S)]);
    harness.check_one(&fast, 500 * MS)?;
    same("full for one", harness.free(&fast, 2 * S)?, 10)?;
    same("remembered for the other", harness.free(&slow, 2 * S)?, 9)?;
    same("after a minute", harness.free(&slow, 60 * S + 500 * MS)?, 10)?;
    same("just before it is full", harness.free(&slow, 5_460 * S)?, 99)?;
    same("full", harness.free(&slow, 5_461 * S)?, 100)
}

pub(super) fn credits_and_views_keep_a_shared_bucket(harness: &StoreHarness) -> CaseResult {
    let [fast, slow] = tiers([bucket(10, 1, S), bucket(100, 1, 60 * S)]);
    let view = ReconcileRow {
        key: fast.key,
        terms: terms(10, 1, S),
        shared: fast.shared.clone(),
        available: 8,
        observed_at: instant(0),
    };
    harness.reconcile(view, 0)?;
    same("remembered", harness.free(&slow, 10 * S)?, 8)?;
    check_with_reference(harness, from_ref(&fast), 1, 10 * S)?;
    let credit =
        CreditRow { key: fast.key, terms: terms(10, 1, S), shared: fast.shared.clone(), amount: 1 };
    harness.credit(key(200), "payment", credit, 10 * S)?;
    same("credited, and remembered", harness.free(&slow, 20 * S)?, 10)
}

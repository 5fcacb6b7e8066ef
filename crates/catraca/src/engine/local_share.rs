//! The share of one node: the batch of a check for the memory of this node, which decides while the
//! shared store is unavailable.
//!
//! Rows with `on_failure = "open"` still check the blocks that this node knows; rows with
//! `"closed"` report that the store is unavailable. A node must never apply a whole limit, or N
//! nodes would admit N limits.

use catraca_core::batch::{self, Batch, CheckReply, CheckRow, RowVerdict};
use catraca_core::catalog::Catalog;
use catraca_core::limit::Limit;
use catraca_core::plan::Plan;
use catraca_core::policy::OnFailure;
use smallvec::SmallVec;

use super::exchange::FailureModes;

/// The `on_failure` of each row that has a limit.
pub(super) fn failure_modes(catalog: &Catalog, plan: &Plan<'_, '_>) -> FailureModes {
    let counted = plan.rows.iter().filter(|row| row.terms.is_some());
    counted.map(|row| catalog.policy(row.policy).on_failure).collect()
}

/// Changes the batch into one for the memory of this node, and its ticket into one that only this
/// node can settle.
pub(super) fn to_local_plan(catalog: &Catalog, plan: &mut Plan<'_, '_>, nodes: i64) {
    let failure_modes = failure_modes(catalog, plan);
    let Batch::Check(check) = &mut plan.batch else { return };
    for (row, on_failure) in check.rows.iter_mut().zip(&failure_modes) {
        match on_failure {
            OnFailure::Local => row.limit = row.limit.share(nodes),
            OnFailure::Open | OnFailure::Closed => *row = only_blocks(row),
        }
        check.already_denied |= *on_failure == OnFailure::Closed && !row.shadow;
    }
    if let Some(body) = &mut plan.body {
        body.local = true;
        if let Some(remember) = &mut check.new_reference {
            remember.ticket = body.to_bytes().into_boxed_slice();
        }
    }
}

/// A row that counts nothing and still denies if a block is active.
fn only_blocks(row: &CheckRow) -> CheckRow {
    CheckRow { limit: Limit::Unlimited, shared: None, held: 0, penalty: None, ..row.clone() }
}

/// Sets the verdict of `closed` rows to unavailable, unless a block denies them.
pub(super) fn mark_unavailable(reply: &mut CheckReply, failure_modes: &FailureModes) {
    for (row, on_failure) in reply.rows.iter_mut().zip(failure_modes) {
        if *on_failure == OnFailure::Closed && row.verdict != RowVerdict::Blocked {
            row.verdict = RowVerdict::Unavailable;
        }
    }
}

/// Removes all rows of a plan but one: the row of a cached block. The others were not evaluated.
pub(super) fn keep_only_row(plan: &mut Plan<'_, '_>, index: usize) {
    let Batch::Check(check) = &mut plan.batch else { return };
    plan.rows.retain(|row| row.terms.is_some());
    plan.rows = std::mem::take(&mut plan.rows).into_iter().skip(index).take(1).collect();
    check.rows = std::mem::take(&mut check.rows).into_iter().skip(index).take(1).collect();
    plan.body = None;
}

/// The charge of an admission by the shared store to this node's share, so that its memory does not
/// start with full limits when the store becomes unavailable.
pub(crate) fn local_charge(
    check: &batch::CheckBatch,
    failure_modes: &FailureModes,
    nodes: i64,
) -> Option<batch::CheckBatch> {
    let rows = check.rows.iter().zip(failure_modes);
    let counts = |row: &CheckRow| row.limit != Limit::Unlimited;
    let local = rows.filter(|(row, on_failure)| **on_failure == OnFailure::Local && counts(row));
    let share = |(row, _): (&CheckRow, _)| CheckRow {
        limit: row.limit.share(nodes),
        penalty: None,
        ..row.clone()
    };
    let rows: SmallVec<[CheckRow; 1]> = local.map(share).collect();
    (!rows.is_empty()).then(|| batch::CheckBatch { rows, ..batch::CheckBatch::default() })
}

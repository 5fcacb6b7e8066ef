//! A check without the store: the same batch with this node's part of each limit.
//!
//! Rows that let pass when the store fails still ask for blocks that this node knows of; rows that
//! deny say that the store was not there. Must not give a whole limit to each node.

use catraca_core::batch::{self, Batch, CheckReply, CheckRow, Verdict};
use catraca_core::catalog::Catalog;
use catraca_core::limit::Limit;
use catraca_core::plan::Plan;
use catraca_core::policy::OnFailure;
use smallvec::SmallVec;

use crate::engine::Planned;

/// What each counted row does when the store fails.
pub(super) type Hows = SmallVec<[OnFailure; 2]>;

pub(super) fn hows(catalog: &Catalog, plan: &Plan<'_, '_>) -> Hows {
    let counted = plan.rows.iter().filter(|row| row.terms.is_some());
    counted.map(|row| catalog.policy(row.policy).on_failure).collect()
}

/// Turns the batch into one for the store in process, and its ticket into one of this node.
pub(super) fn stand_in(plan: &mut Plan<'_, '_>, hows: &Hows, nodes: i64) {
    let Batch::Check(check) = &mut plan.batch else { return };
    for (row, how) in check.rows.iter_mut().zip(hows) {
        match how {
            OnFailure::Local => row.limit = row.limit.share(nodes),
            OnFailure::Open | OnFailure::Closed => *row = only_blocks(row),
        }
        check.veto |= *how == OnFailure::Closed && !row.shadow;
    }
    if let Some(body) = &mut plan.body {
        body.local = true;
        if let Some(remember) = &mut check.remember {
            remember.ticket = body.to_bytes().into_boxed_slice();
        }
    }
}

/// Nothing is counted, but a block still denies.
fn only_blocks(row: &CheckRow) -> CheckRow {
    CheckRow { limit: Limit::Unlimited, held: 0, penalty: None, ..row.clone() }
}

/// Rows that deny without the store say so, unless they know of a block.
pub(super) fn close(reply: &mut CheckReply, hows: &Hows) {
    for (row, how) in reply.rows.iter_mut().zip(hows) {
        if *how == OnFailure::Closed && row.verdict != Verdict::Blocked {
            row.verdict = Verdict::Unavailable;
        }
    }
}

/// What an admission that other nodes have counted takes from this node's part.
pub(super) fn warming(catalog: &Catalog, plan: &Plan<'_, '_>, nodes: i64) -> Option<batch::Check> {
    let Batch::Check(check) = &plan.batch else { return None };
    let rows = check.rows.iter().zip(hows(catalog, plan));
    let counts = |row: &CheckRow| row.limit != Limit::Unlimited;
    let local = rows.filter(|(row, how)| *how == OnFailure::Local && counts(row));
    let part = |(row, _): (&CheckRow, _)| CheckRow {
        limit: row.limit.share(nodes),
        penalty: None,
        ..row.clone()
    };
    let rows: SmallVec<[CheckRow; 1]> = local.map(part).collect();
    (!rows.is_empty()).then(|| batch::Check { rows, ..batch::Check::default() })
}

/// The plan with one of its counted rows only.
pub(super) fn only_row<'w, 's>(planned: Planned<'w, 's>, place: usize) -> Planned<'w, 's> {
    let Planned { plan, unlisted } = planned;
    let rows = plan.rows.into_iter().filter(|row| row.terms.is_some()).skip(place).take(1);
    let batch = match plan.batch {
        Batch::Check(check) => {
            let rows = check.rows.into_iter().skip(place).take(1).collect();
            Batch::Check(batch::Check { rows, ..batch::Check::default() })
        }
        other => other,
    };
    Planned { plan: Plan { batch, rows: rows.collect(), body: None }, unlisted }
}

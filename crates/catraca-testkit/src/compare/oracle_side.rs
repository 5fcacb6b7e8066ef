//! The oracle's side of a comparison: applies operations to the oracle.

use std::collections::BTreeMap;

use super::answer::{ComparedAnswer, ComparedRefusal};
use crate::generate::op::{Op, OpKind};
use crate::oracle::Oracle;
use crate::oracle::answer::{Decision, Refusal};
use crate::oracle::catalog::Catalog;
use crate::oracle::select::Subject;

/// An oracle, and its tickets by the number of the operation.
pub struct OracleSide {
    oracle: Oracle,
    versions: Vec<Catalog>,
    tickets: BTreeMap<usize, usize>,
}

impl OracleSide {
    /// A new oracle with the first version of the catalog.
    pub fn new(versions: &[Catalog]) -> OracleSide {
        let oracle = Oracle::new(versions[0].clone());
        OracleSide { oracle, versions: versions.to_vec(), tickets: BTreeMap::new() }
    }

    /// Removes the blocks of a subject under a policy, which the store had no room for.
    pub fn forget_block(&mut self, policy: &str, subject: &Subject) {
        self.oracle.forget_block(policy, subject);
    }

    /// Applies one operation; `None` for a settle whose check was dropped from the trace or denied.
    pub fn apply(&mut self, op: &Op) -> Option<ComparedAnswer> {
        let oracle = &mut self.oracle;
        let now = op.at;
        Some(match &op.kind {
            OpKind::Check(request) => {
                let mut decision = oracle.check(request, now);
                if let Ok(Decision { ticket: Some(ticket), .. }) = &mut decision {
                    // Both sides identify a ticket by the operation that issued it.
                    self.tickets.insert(op.number, *ticket);
                    *ticket = op.number;
                }
                decision_answer(decision)
            }
            OpKind::Peek(request) => decision_answer(oracle.peek(request, now)),
            OpKind::Settle { check, outcome } => {
                ComparedAnswer::Settled(oracle.settle(*self.tickets.get(check)?, outcome, now))
            }
            OpKind::Credit { reference, event, subject } => oracle
                .credit(reference, event, subject, now)
                .map_or_else(refusal_answer, ComparedAnswer::Credited),
            OpKind::Block { policy, subject, length } => oracle
                .block(policy, subject, *length, "asked", now)
                .map_or_else(refusal_answer, ComparedAnswer::Blocked),
            OpKind::Unblock { policy, subject } => oracle
                .unblock(policy, subject, now)
                .map_or_else(refusal_answer, ComparedAnswer::Released),
            OpKind::Reset { policy, subject } => {
                oracle.reset(policy, subject).map_or_else(refusal_answer, |()| ComparedAnswer::Done)
            }
            OpKind::Reconcile { policy, subject, level, observed_at } => {
                let drifts = oracle.reconcile(policy, subject, *level, *observed_at, now);
                drifts.map_or_else(refusal_answer, ComparedAnswer::Reconciled)
            }
            OpKind::Reload(version) => {
                oracle.reload(self.versions[*version].clone());
                ComparedAnswer::Done
            }
            OpKind::StateGrade { user, grade } => {
                let grade = grade.as_deref().map(|grade| ("grade", grade));
                oracle.state_fact(("user", user), grade);
                ComparedAnswer::Done
            }
        })
    }
}

/// The decision without `endless`, which the engine does not report.
fn decision_answer(decision: Result<Decision, Refusal>) -> ComparedAnswer {
    let mut decision = match decision {
        Ok(decision) => decision,
        Err(refusal) => return refusal_answer(refusal),
    };
    for row in &mut decision.rows {
        row.endless = false;
    }
    ComparedAnswer::Decided(decision)
}

fn refusal_answer(refusal: Refusal) -> ComparedAnswer {
    ComparedAnswer::Refused(match refusal {
        Refusal::MissingAttribute => ComparedRefusal::MissingAttribute,
        Refusal::UnknownGate => ComparedRefusal::UnknownGate,
        Refusal::UnknownPolicy => ComparedRefusal::UnknownPolicy,
        Refusal::NotYet => ComparedRefusal::Other(format!("{refusal:?}")),
    })
}

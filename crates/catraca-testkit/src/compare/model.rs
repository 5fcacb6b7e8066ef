//! The oracle's side of a comparison: plays operations against a world and gives plain answers.
//!
//! It must add no rule of its own; it only knows which ticket came from which operation.

use std::collections::BTreeMap;

use super::answer::{Answer, Refused};
use crate::generate::op::{Op, Verb};
use crate::oracle::World;
use crate::oracle::answer::{Decision, Refusal};
use crate::oracle::catalog::Catalog;

/// A world with the tickets its operations were given.
pub struct Model {
    world: World,
    versions: Vec<Catalog>,
    tickets: BTreeMap<usize, usize>,
}

impl Model {
    /// A fresh world under the first version of the catalog.
    pub fn new(versions: &[Catalog]) -> Model {
        let world = World::new(versions[0].clone());
        Model { world, versions: versions.to_vec(), tickets: BTreeMap::new() }
    }

    /// Plays one operation; `None` when it has no meaning, its check being left out or denied.
    pub fn play(&mut self, op: &Op) -> Option<Answer> {
        let (world, now) = (&mut self.world, op.at);
        Some(match &op.verb {
            Verb::Check(ask) => {
                let mut decision = world.check(ask, now);
                if let Ok(Decision { ticket: Some(ticket), .. }) = &mut decision {
                    // Both sides name a ticket by the operation that issued it.
                    self.tickets.insert(op.number, *ticket);
                    *ticket = op.number;
                }
                decided(decision)
            }
            Verb::Peek(ask) => decided(world.peek(ask, now)),
            Verb::Settle { check, outcome } => {
                Answer::Settled(world.settle(*self.tickets.get(check)?, outcome, now))
            }
            Verb::Credit { reference, event, subject } => {
                world.credit(reference, event, subject, now).map_or_else(refused, Answer::Credited)
            }
            Verb::Block { policy, subject, length } => world
                .block(policy, subject, *length, "asked", now)
                .map_or_else(refused, Answer::Blocked),
            Verb::Unblock { policy, subject } => {
                world.unblock(policy, subject, now).map_or_else(refused, Answer::Released)
            }
            Verb::Reset { policy, subject } => {
                world.reset(policy, subject).map_or_else(refused, |()| Answer::Done)
            }
            Verb::Reconcile { policy, subject, level, observed_at } => {
                let drifts = world.reconcile(policy, subject, *level, *observed_at, now);
                drifts.map_or_else(refused, Answer::Reconciled)
            }
            Verb::Reload(version) => {
                world.reload(self.versions[*version].clone());
                Answer::Done
            }
        })
    }
}

/// Without what only the oracle notes.
fn decided(decision: Result<Decision, Refusal>) -> Answer {
    let mut decision = match decision {
        Ok(decision) => decision,
        Err(refusal) => return refused(refusal),
    };
    for row in &mut decision.rows {
        row.endless = false;
    }
    Answer::Decided(decision)
}

fn refused(refusal: Refusal) -> Answer {
    Answer::Refused(match refusal {
        Refusal::MissingAttribute => Refused::MissingAttribute,
        Refusal::UnknownGate => Refused::UnknownGate,
        Refusal::UnknownPolicy => Refused::UnknownPolicy,
        Refusal::NotYet => Refused::Other(format!("{refusal:?}")),
    })
}

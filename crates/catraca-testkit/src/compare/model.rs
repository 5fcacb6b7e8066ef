//! The oracle's side of a comparison: plays operations against a world and gives plain answers.
//!
//! It must add no rule of its own; it only knows which ticket came from which operation.

use std::collections::BTreeMap;

use super::answer::Answer;
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
                let decision = world.check(ask, now);
                self.keep(op.number, &decision);
                decided(decision)
            }
            Verb::Peek(ask) => decided(world.peek(ask, now)),
            Verb::Settle { check, outcome } => {
                Answer::Settled(world.settle(*self.tickets.get(check)?, outcome, now))
            }
            Verb::Credit { reference, event, subject } => {
                Answer::Credited(world.credit(reference, event, subject, now))
            }
            Verb::Block { policy, subject, length } => {
                done(world.block(policy, subject, *length, "asked", now))
            }
            Verb::Unblock { policy, subject } => {
                world.unblock(policy, subject, now).map_or_else(Answer::Refused, Answer::Released)
            }
            Verb::Reset { policy, subject } => done(world.reset(policy, subject)),
            Verb::Reconcile { policy, subject, level, observed_at } => {
                done(world.reconcile(policy, subject, *level, *observed_at, now))
            }
            Verb::Reload(version) => {
                world.reload(self.versions[*version].clone());
                Answer::Done
            }
        })
    }

    fn keep(&mut self, number: usize, decision: &Result<Decision, Refusal>) {
        if let Ok(Decision { ticket: Some(ticket), .. }) = decision {
            self.tickets.insert(number, *ticket);
        }
    }
}

fn decided(decision: Result<Decision, Refusal>) -> Answer {
    decision.map_or_else(Answer::Refused, Answer::Decided)
}

fn done(result: Result<(), Refusal>) -> Answer {
    result.map_or_else(Answer::Refused, |()| Answer::Done)
}

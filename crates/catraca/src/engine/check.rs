//! Checking: decide and charge, or only look.

use catraca_core::batch::{Batch, CheckReply, Reply, Verdict};
use catraca_core::conclude::{conclude, listed};
use catraca_core::decision::{Decision, Row};
use catraca_core::plan::{Plan, Scope, plan};
use catraca_core::policy::Mode;
use catraca_core::request::Check;
use catraca_core::ticket::Ticket;
use catraca_core::time::Span;

use super::Engine;
use crate::error::Error;
use crate::event::{Blocked, Event};
use crate::store::{Store, StoreError, When};
use crate::world::World;

/// A check before the store is asked.
pub(crate) enum Prepared<'w, 's> {
    /// A list decides.
    Listed(Box<Decision>),
    /// The store decides.
    Planned(Planned<'w, 's>),
}

/// What to ask the store, and what to know when it answers.
pub(crate) struct Planned<'w, 's> {
    /// The batch with its rows.
    pub plan: Plan<'w, 's>,
    /// Whether nobody declared the gate.
    pub unlisted: bool,
}

impl<S: Store> Engine<S> {
    /// May this caller pass now? Charges every policy of the gate, or none.
    pub fn check(&self, check: &Check<'_>) -> Result<Decision, Error> {
        let world = self.world.load();
        let decision = self.decide(&world, check, false)?;
        self.record(&Event::Decided {
            namespace: check.namespace,
            gate: check.gate,
            decision: &decision,
        });
        Ok(decision)
    }

    /// What a check would answer; charges nothing and starts nothing.
    pub fn peek(&self, check: &Check<'_>) -> Result<Decision, Error> {
        let world = self.world.load();
        self.decide(&world, check, true)
    }

    fn decide(&self, world: &World, check: &Check<'_>, peek: bool) -> Result<Decision, Error> {
        let planned = match self.plan_check(world, check, peek)? {
            Prepared::Listed(decision) => return Ok(*decision),
            Prepared::Planned(planned) => planned,
        };
        let reply = checked(self.store.apply(&planned.plan.batch, When::Store)?)?;
        Ok(self.conclude_check(world, check, planned, &reply))
    }
}

impl<S> Engine<S> {
    /// The first half of a check: all that is done before the store is asked.
    #[inline]
    pub(crate) fn plan_check<'w, 's>(
        &self,
        world: &'w World,
        check: &Check<'s>,
        peek: bool,
    ) -> Result<Prepared<'w, 's>, Error> {
        check.validate()?;
        let asked = world.asked(check.gate)?;
        if let Some(decision) = self.by_list(world, check)? {
            return Ok(Prepared::Listed(Box::new(decision)));
        }
        let selected = world.selector().select(asked.policies, &check.subject)?;
        let unlisted = asked.is_default;
        let scope = Scope { unlisted: asked.unlisted, ..self.scope(world, check.namespace) };
        let plan = plan(&world.catalog, &scope, check, selected, peek, || self.ids.next())?;
        Ok(Prepared::Planned(Planned { plan, unlisted }))
    }

    /// The second half: the reply becomes a decision, a ticket and events.
    #[inline]
    pub(crate) fn conclude_check(
        &self,
        world: &World,
        check: &Check<'_>,
        planned: Planned<'_, '_>,
        reply: &CheckReply,
    ) -> Decision {
        let Planned { plan, unlisted } = planned;
        let mut decision = conclude(&world.catalog, &plan, reply);
        decision.unlisted = unlisted;
        if !is_peek(&plan.batch) {
            self.after_check(world, check, plan, reply, &mut decision);
        }
        decision
    }

    /// A list decides the whole gate before any policy is looked at.
    fn by_list(&self, world: &World, check: &Check<'_>) -> Result<Option<Decision>, Error> {
        if !check.lists || world.lists_nobody() {
            return Ok(None);
        }
        let now = self.clock.now();
        let entry = world.listed(&check.subject, &self.digester, now)?;
        Ok(entry.map(|(entry, passes)| listed(&world.catalog, entry, passes, now)))
    }

    /// What follows a real check: the ticket, and the events that are not the decision itself.
    fn after_check(
        &self,
        world: &World,
        check: &Check<'_>,
        plan: Plan<'_, '_>,
        reply: &CheckReply,
        decision: &mut Decision,
    ) {
        if decision.unlisted {
            self.note_unlisted(check.gate);
        }
        if self.listener.is_some() {
            self.record_blocks(world, check.namespace, &plan, reply);
            self.record_low_water(world, &plan, decision);
        }
        if let Some(body) = plan.body.filter(|_| reply.passed) {
            let mut ticket = Ticket { body: *body, instants: instants(reply), expires: reply.now };
            ticket.expires = reply.now.after(ticket.body.hold);
            // A reference that another check owns must not learn of this one's settle.
            ticket.body.reference = ticket.body.reference.filter(|_| reply.remembered);
            decision.ticket = Some(self.sealer.seal(&ticket, check.namespace));
        }
    }

    fn record_blocks(
        &self,
        world: &World,
        namespace: &str,
        plan: &Plan<'_, '_>,
        reply: &CheckReply,
    ) {
        let Batch::Check(asked) = &plan.batch else { return };
        let rows = plan.rows.iter().filter(|row| row.terms.is_some());
        let rows = rows.zip(&asked.rows).zip(&reply.rows);
        for ((row, asked), answer) in rows.filter(|(_, answer)| answer.started) {
            let Some(block) = &answer.block else { continue };
            self.record(&Event::Blocked(Blocked {
                at: answer.at,
                namespace: namespace.to_owned(),
                key: asked.key,
                epoch: world.epoch(&world.catalog.policy(row.policy).name),
                policy: world.catalog.policy(row.policy).name.to_string(),
                parts: catraca_core::plan::named(&world.catalog, &self.digester, &row.parts),
                until: block.until,
                origin: block.origin,
                note: block.note.clone(),
                shadow: row.mode == Mode::Shadow,
                forget: asked.penalty.map_or(Span::ZERO, |penalty| penalty.forget),
            }));
        }
    }

    fn record_low_water(&self, world: &World, plan: &Plan<'_, '_>, decision: &Decision) {
        for (selected, row) in plan.rows.iter().zip(&decision.rows) {
            let mark = world.catalog.policy(selected.policy).low_water;
            let Some((mark, (remaining, limit))) = mark.zip(row.remaining.zip(row.limit)) else {
                continue;
            };
            if sinks_below(mark.of(limit), row) {
                let (at, policy) = (decision.at, &*row.policy);
                self.record(&Event::LowWater { at, policy, remaining, limit });
            }
        }
    }
}

/// The answer to a check, if it is one.
#[inline]
pub(crate) fn checked(reply: Reply) -> Result<CheckReply, Error> {
    match reply {
        Reply::Check(reply) => Ok(reply),
        _ => Err(StoreError::odd_reply().into()),
    }
}

fn is_peek(batch: &Batch) -> bool {
    matches!(batch, Batch::Check(check) if check.peek)
}

/// Whether this very charge took what remains from the mark or above to below it.
fn sinks_below(mark: i64, row: &Row) -> bool {
    let remaining = row.remaining.unwrap_or(i64::MAX);
    remaining < mark && remaining + row.charged >= mark
}

fn instants(reply: &CheckReply) -> Vec<Option<catraca_core::time::Time>> {
    let fits = |verdict| verdict == Verdict::Fits;
    reply.rows.iter().map(|row| fits(row.verdict).then_some(row.at)).collect()
}

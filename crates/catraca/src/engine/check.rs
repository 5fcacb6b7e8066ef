//! Checking: decide and charge, or only look.

use catraca_core::batch::{Batch, CheckReply, Reply, Verdict};
use catraca_core::conclude::{conclude, listed};
use catraca_core::decision::{Decision, Row};
use catraca_core::plan::{Plan, Scope, plan};
use catraca_core::policy::Mode;
use catraca_core::request::Check;
use catraca_core::ticket::Ticket;

use super::Engine;
use crate::error::Error;
use crate::event::{Blocked, Event};
use crate::store::{Store, StoreError, When};
use crate::world::World;

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
        check.validate()?;
        let asked = world.asked(check.gate)?;
        if let Some(decision) = self.by_list(world, check)? {
            return Ok(decision);
        }
        let selected = world.selector().select(asked.policies, &check.subject)?;
        let scope = Scope { unlisted: asked.unlisted, ..self.scope(check.namespace) };
        let plan = plan(&world.catalog, &scope, check, selected, peek, || self.ids.next())?;
        let reply = self.apply_check(&plan.batch)?;
        let mut decision = conclude(&world.catalog, &plan, &reply);
        decision.unlisted = asked.unlisted.is_some();
        if !peek {
            self.after_check(world, check, plan, &reply, &mut decision);
        }
        Ok(decision)
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

    fn apply_check(&self, batch: &Batch) -> Result<CheckReply, Error> {
        match self.store.apply(batch, When::Store)? {
            Reply::Check(reply) => Ok(reply),
            _ => Err(StoreError::odd_reply().into()),
        }
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
                policy: world.catalog.policy(row.policy).name.to_string(),
                parts: catraca_core::plan::named(&world.catalog, &self.digester, &row.parts),
                until: block.until,
                origin: block.origin,
                note: block.note.clone(),
                shadow: row.mode == Mode::Shadow,
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

/// Whether this very charge took what remains from the mark or above to below it.
fn sinks_below(mark: i64, row: &Row) -> bool {
    let remaining = row.remaining.unwrap_or(i64::MAX);
    remaining < mark && remaining + row.charged >= mark
}

fn instants(reply: &CheckReply) -> Vec<Option<catraca_core::time::Time>> {
    let fits = |verdict| verdict == Verdict::Fits;
    reply.rows.iter().map(|row| fits(row.verdict).then_some(row.at)).collect()
}

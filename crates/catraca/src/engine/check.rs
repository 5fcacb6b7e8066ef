//! Check and peek: the first half builds the batch, the second turns the reply into a decision.

use catraca_core::batch::{Batch, CheckReply, Reply, RowVerdict};
use catraca_core::conclude::{conclude, conclude_from_list};
use catraca_core::decision::{Decision, DecisionRow};
use catraca_core::plan::{KeyScope, Plan, plan_check};
use catraca_core::policy::Mode;
use catraca_core::request::Check;
use catraca_core::ticket::Ticket;
use catraca_core::time::Span;

use super::Engine;
use crate::error::Error;
use crate::event::{BlockEvent, Event};
use crate::rule_set::RuleSet;
use crate::store::{Store, StoreError, When};

/// A check before its batch is applied.
pub(crate) enum PreparedCheck<'w, 's> {
    /// A list decides; the store is not called.
    ByList(Box<Decision>),
    /// The store decides.
    ByStore(PlannedCheck<'w, 's>),
}

/// The batch of a check, and the data to conclude its reply.
pub(crate) struct PlannedCheck<'w, 's> {
    /// The batch and the policy of each of its rows.
    pub plan: Plan<'w, 's>,
    /// Whether the gate is undeclared.
    pub unlisted: bool,
}

impl<S: Store> Engine<S> {
    /// Decides whether the caller may pass now. Charges every policy of the gate, or none.
    pub fn check(&self, check: &Check<'_>) -> Result<Decision, Error> {
        let rules = self.rules.load();
        let decision = self.decide(&rules, check, false)?;
        self.emit(&Event::Decided {
            namespace: check.namespace,
            gate: check.gate,
            decision: &decision,
        });
        Ok(decision)
    }

    /// Returns the decision that a check would return. Charges nothing and starts no block.
    pub fn peek(&self, check: &Check<'_>) -> Result<Decision, Error> {
        let rules = self.rules.load();
        self.decide(&rules, check, true)
    }

    fn decide(&self, rules: &RuleSet, check: &Check<'_>, peek: bool) -> Result<Decision, Error> {
        let planned = match self.plan_check(rules, check, peek)? {
            PreparedCheck::ByList(decision) => return Ok(*decision),
            PreparedCheck::ByStore(planned) => planned,
        };
        let reply = check_reply(self.store.apply(&planned.plan.batch, When::Store)?)?;
        Ok(self.conclude_check(rules, check, planned, &reply))
    }
}

impl<S> Engine<S> {
    /// The first half of a check: everything before the call to the store.
    #[inline]
    pub(crate) fn plan_check<'w, 's>(
        &self,
        rules: &'w RuleSet,
        check: &Check<'s>,
        peek: bool,
    ) -> Result<PreparedCheck<'w, 's>, Error> {
        check.validate()?;
        // Before the lists: an undeclared gate without a default is refused even for a listed
        // caller.
        let gate = rules.policies_for(check.gate)?;
        if let Some(decision) = self.decide_by_list(rules, check)? {
            return Ok(PreparedCheck::ByList(Box::new(decision)));
        }
        let selected = rules.selector().select(gate.policies, &check.subject)?;
        let unlisted = gate.is_default;
        let scope = KeyScope { unlisted: gate.unlisted, ..self.scope(rules, check.namespace) };
        let plan = plan_check(&rules.catalog, &scope, check, selected, peek, || self.ids.next())?;
        Ok(PreparedCheck::ByStore(PlannedCheck { plan, unlisted }))
    }

    /// The second half of a check: turns the reply into a decision with its ticket, and emits the
    /// events.
    #[inline]
    pub(crate) fn conclude_check(
        &self,
        rules: &RuleSet,
        check: &Check<'_>,
        planned: PlannedCheck<'_, '_>,
        reply: &CheckReply,
    ) -> Decision {
        let PlannedCheck { plan, unlisted } = planned;
        let mut decision = conclude(&rules.catalog, &plan, reply);
        decision.unlisted = unlisted;
        if !is_peek(&plan.batch) {
            self.finish_check(rules, check, plan, reply, &mut decision);
        }
        decision
    }

    /// The decision of a list entry, which applies to the whole gate and comes before its policies.
    fn decide_by_list(
        &self,
        rules: &RuleSet,
        check: &Check<'_>,
    ) -> Result<Option<Decision>, Error> {
        if !check.lists || rules.has_no_list_entries() {
            return Ok(None);
        }
        let now = self.clock.now();
        let entry = rules.list_entry_for(&check.subject, &self.digester, now)?;
        Ok(entry.map(|(entry, passes)| conclude_from_list(&rules.catalog, entry, passes, now)))
    }

    /// Adds the ticket and emits the events, except the one about the decision itself. Not for a
    /// peek.
    fn finish_check(
        &self,
        rules: &RuleSet,
        check: &Check<'_>,
        plan: Plan<'_, '_>,
        reply: &CheckReply,
        decision: &mut Decision,
    ) {
        if decision.unlisted {
            self.note_unlisted(check.gate);
        }
        // Building these events allocates; a check without a listener does not pay for it.
        if self.listener.is_some() {
            self.emit_blocks(rules, check.namespace, &plan, reply);
            self.emit_low_water(rules, &plan, decision);
        }
        if let Some(body) = plan.body.filter(|_| reply.passed) {
            // By the store's clock, which also judges the settle.
            let expires = reply.now.after(body.hold);
            let mut ticket = Ticket { body: *body, instants: instants(reply), expires };
            // An earlier check owns this `ref`. The ticket must not name it, or its settle would
            // overwrite what the reference knows of the earlier check.
            ticket.body.reference = ticket.body.reference.filter(|_| reply.remembered);
            decision.ticket = Some(self.sealer.seal(&ticket, check.namespace));
        }
    }

    fn emit_blocks(
        &self,
        rules: &RuleSet,
        namespace: &str,
        plan: &Plan<'_, '_>,
        reply: &CheckReply,
    ) {
        let Batch::Check(batch) = &plan.batch else { return };
        // A row without terms denies because its key is missing. It is not in the batch, so it must
        // be left out before zipping with the replies.
        let rows = plan.rows.iter().filter(|row| row.terms.is_some());
        let rows = rows.zip(&batch.rows).zip(&reply.rows);
        for ((row, check_row), reply) in rows.filter(|(_, reply)| reply.started) {
            let Some(block) = &reply.block else { continue };
            self.emit(&Event::Blocked(BlockEvent {
                at: reply.at,
                namespace: namespace.to_owned(),
                key: check_row.key,
                epoch: rules.epoch(&rules.catalog.policy(row.policy).name),
                policy: rules.catalog.policy(row.policy).name.to_string(),
                parts: catraca_core::plan::display_parts(
                    &rules.catalog,
                    &self.digester,
                    &row.parts,
                ),
                until: block.until,
                origin: block.origin,
                note: block.note.clone(),
                shadow: row.mode == Mode::Shadow,
                forget: check_row.penalty.map_or(Span::ZERO, |penalty| penalty.forget),
            }));
        }
    }

    fn emit_low_water(&self, rules: &RuleSet, plan: &Plan<'_, '_>, decision: &Decision) {
        for (selected, row) in plan.rows.iter().zip(&decision.rows) {
            let mark = rules.catalog.policy(selected.policy).low_water;
            let Some((mark, (remaining, limit))) = mark.zip(row.remaining.zip(row.limit)) else {
                continue;
            };
            if crosses_below(mark.of(limit), row) {
                let at = decision.at;
                self.emit(&Event::LowWater { at, policy: &row.policy, remaining, limit });
            }
        }
    }
}

/// The reply to a check batch.
#[inline]
pub(crate) fn check_reply(reply: Reply) -> Result<CheckReply, Error> {
    match reply {
        Reply::Check(reply) => Ok(reply),
        _ => Err(StoreError::mismatched_reply().into()),
    }
}

fn is_peek(batch: &Batch) -> bool {
    matches!(batch, Batch::Check(check) if check.peek)
}

/// Whether this charge took the remaining units from the mark or above to below it. Later charges
/// below the mark emit no further event.
fn crosses_below(mark: i64, row: &DecisionRow) -> bool {
    let remaining = row.remaining.unwrap_or(i64::MAX);
    remaining < mark && remaining + row.charged >= mark
}

/// The instant at which each row was charged; a refund looks for the entry of that instant.
fn instants(reply: &CheckReply) -> Vec<Option<catraca_core::time::Time>> {
    let fits = |verdict| verdict == RowVerdict::Fits;
    reply.rows.iter().map(|row| fits(row.verdict).then_some(row.at)).collect()
}

//! Check and peek: plans the batch of a gate, and turns the reply into a decision.

mod check_plan;

use catraca_core::batch::{Batch, CheckReply, Reply, RowVerdict};
use catraca_core::cell::Block;
use catraca_core::conclude::{conclude, conclude_from_list};
use catraca_core::decision::{Decision, DecisionRow};
use catraca_core::plan::{KeyScope, Plan, display_parts, plan_check};
use catraca_core::policy::Name;
use catraca_core::refusal::Refusal;
use catraca_core::request::Check;
use catraca_core::route::UNROUTED;
use catraca_core::ticket::Ticket;
use catraca_core::time::Time;

use super::Engine;
use super::exchange::{Events, Exchange, ReplySource, StoreReply};
#[cfg(feature = "shared")]
use super::{exchange::FailureModes, local_share};
use crate::error::Error;
use crate::event::{BlockEvent, Event, SubjectKey};
use crate::rule_set::{DecidingEntry, GatePolicies, RuleSet};
use crate::store::{Store, StoreError};

pub use check_plan::{CheckPlan, RulesSnapshot};

/// Whether a check charges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckMode {
    /// Decides and charges.
    Check,
    /// Decides and changes nothing.
    Peek,
}

/// A check in progress.
pub(crate) struct CheckExchange<'e, 'r, 's, S> {
    engine: &'e Engine<S>,
    rules: &'r RuleSet,
    check: &'e Check<'s>,
    mode: CheckMode,
    ticket: TicketForm,
    progress: CheckProgress<'r, 's>,
}

/// How the caller gets the ticket of an admitted check.
enum TicketForm {
    /// In the decision, as encrypted text.
    Sealed,
    /// Beside the decision.
    Unsealed(Option<Ticket>),
}

enum CheckProgress<'r, 's> {
    /// A list decides; the store is not called.
    ByList(Option<Box<Decision>>),
    /// The store decides.
    ByStore(PlannedCheck<'r, 's>),
}

/// The batch of a check, and after the reply to it, the reply.
struct PlannedCheck<'r, 's> {
    plan: Plan<'r, 's>,
    /// Whether the gate is undeclared.
    unlisted: bool,
    reply: Option<CheckReply>,
    source: ReplySource,
}

impl<S: Store> Engine<S> {
    /// Decides whether the caller may pass now. Charges every policy of the gate, or none.
    ///
    /// ```
    /// use catraca::{Catalog, Check, Engine};
    ///
    /// let catalog = Catalog::parse("[policy.api]\n by = ['ip']\n window = '9 per 1m'")?;
    /// let engine = Engine::new(catalog);
    /// let check = Check::new("api", [("ip", "198.51.100.7")]).cost(4);
    /// assert_eq!(engine.check(&check)?.remaining, Some(5));
    /// assert_eq!(engine.peek(&check)?.remaining, Some(5)); // a peek charges nothing
    /// assert_eq!(engine.check(&check)?.remaining, Some(1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn check(&self, check: &Check<'_>) -> Result<Decision, Error> {
        let rules = self.rules.load();
        self.run(&mut self.check_exchange(&rules, check, CheckMode::Check)?)
    }

    /// Returns the decision that a check would return. Charges nothing and starts no block, so the
    /// numbers are those before the charge.
    pub fn peek(&self, check: &Check<'_>) -> Result<Decision, Error> {
        let rules = self.rules.load();
        self.run(&mut self.check_exchange(&rules, check, CheckMode::Peek)?)
    }
}

impl<S> Engine<S> {
    /// Validates a check, selects its policies and plans its batch.
    #[inline]
    pub(crate) fn check_exchange<'e, 's>(
        &'e self,
        rules: &'e RuleSet,
        check: &'e Check<'s>,
        mode: CheckMode,
    ) -> Result<CheckExchange<'e, 'e, 's, S>, Error> {
        check.validate()?;
        // Before the lists: an undeclared gate without a default is refused even for a listed
        // caller.
        let gate = rules.policies_for(check.gate)?;
        self.gate_exchange(rules, &gate, check, mode)
    }

    /// Like [`Self::check_exchange`], for a valid check whose gate is known.
    #[inline]
    pub(super) fn gate_exchange<'e, 's>(
        &'e self,
        rules: &'e RuleSet,
        gate: &GatePolicies<'_>,
        check: &'e Check<'s>,
        mode: CheckMode,
    ) -> Result<CheckExchange<'e, 'e, 's, S>, Error> {
        let progress = match self.decide_by_list(rules, check)? {
            Some(decision) => CheckProgress::ByList(Some(Box::new(decision))),
            None => CheckProgress::ByStore(self.plan_gate(rules, gate, check, mode)?),
        };
        Ok(CheckExchange { engine: self, rules, check, mode, ticket: TicketForm::Sealed, progress })
    }

    /// Selects the policies of a gate and plans the batch. Reads no state and no clock.
    #[inline]
    fn plan_gate<'r, 's>(
        &self,
        rules: &'r RuleSet,
        gate: &GatePolicies<'_>,
        check: &Check<'s>,
        mode: CheckMode,
    ) -> Result<PlannedCheck<'r, 's>, Refusal> {
        let selected = rules.selector(check.namespace).select(gate.policies, &check.subject)?;
        let scope = KeyScope { unlisted: gate.unlisted, ..self.scope(rules, check.namespace) };
        let is_peek = mode == CheckMode::Peek;
        let next_id = || self.ids.next();
        let plan = plan_check(&rules.catalog, &scope, check, selected, is_peek, next_id)?;
        let unlisted = gate.is_default;
        Ok(PlannedCheck { plan, unlisted, reply: None, source: ReplySource::Store })
    }

    /// The decision of a list entry, which applies to the whole gate and comes before its policies.
    pub(crate) fn decide_by_list(
        &self,
        rules: &RuleSet,
        check: &Check<'_>,
    ) -> Result<Option<Decision>, Error> {
        if !check.lists || rules.has_no_list_entries(check.namespace) {
            return Ok(None);
        }
        let now = self.clock.now();
        let found = rules.list_entry_for(check.namespace, &check.subject, &self.digester, now)?;
        let decide = |found: DecidingEntry<'_>| {
            conclude_from_list(&rules.catalog, found.entry, found.allows, now)
        };
        Ok(found.map(decide))
    }
}

impl<S> Exchange for CheckExchange<'_, '_, '_, S> {
    type Answer = Decision;

    #[inline]
    fn batch(&self) -> Option<&Batch> {
        match &self.progress {
            CheckProgress::ByStore(planned) if planned.reply.is_none() => Some(&planned.plan.batch),
            _ => None,
        }
    }

    #[inline]
    fn on_reply(&mut self, reply: StoreReply) -> Result<(), Error> {
        let CheckProgress::ByStore(planned) = &mut self.progress else {
            return Err(StoreError::mismatched_reply().into());
        };
        planned.source = reply.source;
        #[cfg_attr(not(feature = "shared"), expect(unused_variables, reason = "one source only"))]
        let check_reply = planned.reply.insert(check_reply(reply.reply)?);
        match reply.source {
            ReplySource::Store => {}
            #[cfg(feature = "shared")]
            ReplySource::BlockCache { row } => local_share::keep_only_row(&mut planned.plan, row),
            #[cfg(feature = "shared")]
            ReplySource::Local => {
                let failure_modes = local_share::failure_modes(&self.rules.catalog, &planned.plan);
                local_share::mark_unavailable(check_reply, &failure_modes);
            }
        }
        Ok(())
    }

    #[inline]
    fn conclude(&mut self, events: &mut Events) -> Result<Decision, Error> {
        let no_reply = StoreError::mismatched_reply;
        let planned = match &mut self.progress {
            CheckProgress::ByList(decision) => return Ok(*decision.take().ok_or_else(no_reply)?),
            CheckProgress::ByStore(planned) => planned,
        };
        let reply = planned.reply.take().ok_or_else(no_reply)?;
        let mut decision = conclude(&self.rules.catalog, &planned.plan, &reply);
        decision.unlisted = planned.unlisted;
        decision.cached = planned.source.is_block_cache();
        decision.degraded |= planned.source.is_local();
        if self.mode == CheckMode::Check {
            self.finish_check(&reply, &mut decision, events);
        }
        Ok(decision)
    }

    #[inline]
    fn summary<'d>(&'d self, decision: &'d Decision) -> Option<Event<'d>> {
        let namespace = self.check.namespace;
        let gate = self.check.gate;
        // A peek is not an event: it changes nothing.
        (self.mode == CheckMode::Check).then_some(Event::Decided { namespace, gate, decision })
    }

    #[cfg(feature = "shared")]
    fn localize(&mut self, nodes: i64) -> bool {
        if let CheckProgress::ByStore(planned) = &mut self.progress {
            local_share::to_local_plan(&self.rules.catalog, &mut planned.plan, nodes);
        }
        true
    }

    #[cfg(feature = "shared")]
    fn failure_modes(&self) -> FailureModes {
        match &self.progress {
            CheckProgress::ByStore(planned) if self.mode == CheckMode::Check => {
                local_share::failure_modes(&self.rules.catalog, &planned.plan)
            }
            _ => FailureModes::new(),
        }
    }
}

impl<S> CheckExchange<'_, '_, '_, S> {
    /// Adds the ticket, and the events of blocks and low-water marks. Not for a peek.
    fn finish_check(&mut self, reply: &CheckReply, decision: &mut Decision, events: &mut Events) {
        let CheckProgress::ByStore(planned) = &mut self.progress else { return };
        // A request without a route names no gate, so it cannot have misspelt one.
        if decision.unlisted
            && self.check.gate != UNROUTED
            && self.engine.note_unlisted(self.check.gate)
        {
            events.push(Event::UnlistedGate {
                at: decision.at,
                gate: self.check.gate.to_owned(),
                nearest: self.rules.catalog.nearest_gate(self.check.gate).map(Name::from),
            });
        }
        let body = planned.plan.body.take().filter(|_| reply.passed);
        if events.is_wanted() {
            self.push_blocks(reply, events);
            self.push_low_water(decision, events);
        }
        if let Some(body) = body {
            // By the store's clock, which also judges the settle.
            let expires = reply.now.after(body.hold);
            let mut ticket = Ticket { body: *body, instants: instants(reply), expires };
            // An earlier check owns this `ref`. The ticket must not name it, or its settle would
            // overwrite what the reference knows of the earlier check.
            ticket.body.reference = ticket.body.reference.filter(|_| reply.remembered);
            // A row without a counter was charged nothing, so its settle must refund nothing.
            let uncounted = ticket.body.rows.iter_mut().zip(&reply.rows);
            uncounted.filter(|(_, reply)| reply.is_overflow).for_each(|(row, reply)| {
                row.held = reply.charged;
            });
            match &mut self.ticket {
                TicketForm::Sealed => {
                    let sealed = self.engine.sealer.seal(&ticket, self.check.namespace);
                    decision.ticket = Some(sealed);
                }
                TicketForm::Unsealed(unsealed) => *unsealed = Some(ticket),
            }
        }
    }

    fn push_blocks(&self, reply: &CheckReply, events: &mut Events) {
        let CheckProgress::ByStore(PlannedCheck { plan, .. }) = &self.progress else { return };
        let Batch::Check(batch) = &plan.batch else { return };
        // A row without terms denies because its key is missing. It is not in the batch, so it must
        // be left out before zipping with the replies.
        let rows = plan.rows.iter().filter(|row| row.terms.is_some());
        let rows = rows.zip(&batch.rows).zip(&reply.rows);
        for ((row, check_row), reply) in rows.filter(|(_, reply)| reply.started) {
            let Some(block) = &reply.block else { continue };
            let policy = &self.rules.catalog.policy(row.policy).name;
            let block = BlockEvent {
                subject: SubjectKey {
                    key: check_row.key,
                    namespace: self.check.namespace.to_owned(),
                    policy: policy.to_string(),
                    parts: display_parts(&self.rules.catalog, &self.engine.digester, &row.parts),
                },
                epoch: self.rules.epoch(policy),
                // An excess is one of this key alone.
                first_of_act: None,
                block: Block::clone(block),
            };
            events.push(Event::Blocked { at: reply.at, block: Box::new(block) });
        }
    }

    fn push_low_water(&self, decision: &Decision, events: &mut Events) {
        let CheckProgress::ByStore(PlannedCheck { plan, .. }) = &self.progress else { return };
        for (selected, row) in plan.rows.iter().zip(&decision.rows) {
            let mark = self.rules.catalog.policy(selected.policy).low_water;
            let Some((mark, (remaining, limit))) = mark.zip(row.remaining.zip(row.limit)) else {
                continue;
            };
            if crosses_below(mark.of(limit), row) {
                let policy = row.policy.clone();
                events.push(Event::LowWater { at: decision.at, policy, remaining, limit });
            }
        }
    }
}

/// The reply to a check batch.
#[inline]
pub(super) fn check_reply(reply: Reply) -> Result<CheckReply, Error> {
    match reply {
        Reply::Check(reply) => Ok(reply),
        _ => Err(StoreError::mismatched_reply().into()),
    }
}

/// Whether this charge took the remaining units from the mark or above to below it. Later charges
/// below the mark emit no further event.
fn crosses_below(mark: i64, row: &DecisionRow) -> bool {
    let remaining = row.remaining.unwrap_or(i64::MAX);
    remaining < mark && remaining + row.charged >= mark
}

/// The instant at which each row was charged; a refund looks for the entry of that instant.
fn instants(reply: &CheckReply) -> Vec<Option<Time>> {
    let fits = |verdict| verdict == RowVerdict::Fits;
    reply.rows.iter().map(|row| fits(row.verdict).then_some(row.at)).collect()
}

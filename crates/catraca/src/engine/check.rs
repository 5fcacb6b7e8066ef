//! Check and peek: plans the batch of a gate, and turns the reply into a decision.

mod check_mode;
mod check_plan;
mod row_keys;
#[cfg(all(feature = "records", feature = "shared"))]
mod tier_peek;
mod unsealed_check;

use catraca_core::batch::{Batch, CheckReply, Reply, RowVerdict};
use catraca_core::cell::Block;
use catraca_core::conclude::{conclude, conclude_from_list};
use catraca_core::decision::{Decision, DecisionRow};
use catraca_core::plan::{KeyScope, Plan};
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

pub use check_mode::CheckMode;
pub use check_plan::{CheckPlan, RulesSnapshot};

/// A check in progress.
///
/// It is large, so it is planned in place: returning it from one function to the next would copy it
/// each time.
pub(crate) struct CheckExchange<'e, 'r, 's, S> {
    engine: &'e Engine<S>,
    rules: &'r RuleSet,
    check: &'e Check<'s>,
    mode: CheckMode,
    ticket: TicketForm,
    /// The decision of a list entry. The store is not called then.
    list_decision: Option<Box<Decision>>,
    planned: PlannedCheck<'r, 's>,
    /// The keys of the decision's rows, if the engine reports them.
    keys: Vec<Option<SubjectKey>>,
}

/// How the caller gets the ticket of an admitted check.
enum TicketForm {
    /// In the decision, as encrypted text.
    Sealed,
    /// Beside the decision.
    Unsealed(Option<Ticket>),
}

/// The batch of a check, and after the reply to it, the reply.
struct PlannedCheck<'r, 's> {
    plan: Plan<'r, 's>,
    /// Whether the gate is undeclared.
    unlisted: bool,
    reply: Option<CheckReply>,
    source: ReplySource,
    /// Whether other nodes may decide on another copy of the store.
    is_doubtful: bool,
}

impl PlannedCheck<'_, '_> {
    #[inline]
    fn new(mode: CheckMode) -> Self {
        Self {
            plan: Plan::new(mode == CheckMode::Peek),
            unlisted: false,
            reply: None,
            source: ReplySource::Store,
            is_doubtful: false,
        }
    }
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
        self.decide(check, CheckMode::Check)
    }

    /// Returns the decision that a check would return. Charges nothing and starts no block, so the
    /// numbers are those before the charge.
    pub fn peek(&self, check: &Check<'_>) -> Result<Decision, Error> {
        self.decide(check, CheckMode::Peek)
    }

    #[inline]
    fn decide(&self, check: &Check<'_>, mode: CheckMode) -> Result<Decision, Error> {
        let rules = self.rules.load();
        let mut exchange = CheckExchange::new(self, &rules, check, mode);
        exchange.plan()?;
        self.run(&mut exchange)
    }
}

impl<S> Engine<S> {
    /// Validates a check, selects its policies and plans its batch.
    #[cfg(feature = "shared")]
    pub(crate) fn check_exchange<'e, 's>(
        &'e self,
        rules: &'e RuleSet,
        check: &'e Check<'s>,
        mode: CheckMode,
    ) -> Result<CheckExchange<'e, 'e, 's, S>, Error> {
        let mut exchange = CheckExchange::new(self, rules, check, mode);
        exchange.plan()?;
        Ok(exchange)
    }

    /// Selects the policies of a gate and plans the batch. Reads no state and no clock.
    #[inline]
    fn plan_gate<'r, 's>(
        &self,
        rules: &'r RuleSet,
        gate: &GatePolicies<'_>,
        check: &Check<'s>,
        planned: &mut PlannedCheck<'r, 's>,
    ) -> Result<(), Refusal> {
        planned.unlisted = gate.is_default;
        let plan = &mut planned.plan;
        let selector = rules.selector(check.namespace);
        selector.select_into(gate.policies, &check.subject, &mut plan.rows)?;
        let scope = KeyScope { unlisted: gate.unlisted, ..self.scope(rules, check.namespace) };
        plan.plan_batch(&rules.catalog, &scope, check, || self.ids.next())
    }

    /// The decision of a list entry, which applies to the whole gate and comes before its policies.
    pub(crate) fn decide_by_list(
        &self,
        rules: &RuleSet,
        check: &Check<'_>,
    ) -> Result<Option<Box<Decision>>, Error> {
        if !check.lists || rules.has_no_list_entries(check.namespace) {
            return Ok(None);
        }
        let now = self.clock.now();
        let found = rules.list_entry_for(check.namespace, &check.subject, &self.digester, now)?;
        let decide = |found: DecidingEntry<'_>| {
            Box::new(conclude_from_list(&rules.catalog, found.entry, found.allows, now))
        };
        Ok(found.map(decide))
    }
}

impl<'e, 'r, 's, S> CheckExchange<'e, 'r, 's, S> {
    #[inline]
    pub(super) fn new(
        engine: &'e Engine<S>,
        rules: &'r RuleSet,
        check: &'e Check<'s>,
        mode: CheckMode,
    ) -> Self {
        Self {
            engine,
            rules,
            check,
            mode,
            ticket: TicketForm::Sealed,
            list_decision: None,
            planned: PlannedCheck::new(mode),
            keys: Vec::new(),
        }
    }

    /// Validates the check, selects its policies and plans its batch.
    #[inline]
    pub(super) fn plan(&mut self) -> Result<(), Error> {
        self.check.validate()?;
        // Before the lists: an undeclared gate without a default is refused even for a listed
        // caller.
        let gate = self.rules.policies_for(self.check.gate)?;
        self.plan_gate(&gate)
    }

    /// Like [`Self::plan`], for a valid check whose gate is known.
    #[inline]
    pub(super) fn plan_gate(&mut self, gate: &GatePolicies<'_>) -> Result<(), Error> {
        self.list_decision = self.engine.decide_by_list(self.rules, self.check)?;
        if self.list_decision.is_none() {
            self.engine.plan_gate(self.rules, gate, self.check, &mut self.planned)?;
        }
        Ok(())
    }
}

impl<S> Exchange for CheckExchange<'_, '_, '_, S> {
    type Answer = Decision;

    #[inline]
    fn batch(&self) -> Option<&Batch> {
        let is_decided = self.list_decision.is_some() || self.planned.reply.is_some();
        (!is_decided).then_some(&self.planned.plan.batch)
    }

    #[inline]
    fn on_reply(&mut self, reply: StoreReply) -> Result<(), Error> {
        let planned = &mut self.planned;
        planned.source = reply.source;
        planned.is_doubtful = reply.is_doubtful;
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
        if let Some(decision) = self.list_decision.take() {
            return Ok(*decision);
        }
        let planned = &self.planned;
        let reply = planned.reply.as_ref().ok_or_else(StoreError::mismatched_reply)?;
        let mut decision = conclude(&self.rules.catalog, &planned.plan, reply);
        decision.unlisted = planned.unlisted;
        decision.cached = planned.source.is_block_cache();
        decision.degraded |= planned.source.is_local() || planned.is_doubtful;
        if self.mode == CheckMode::Check {
            self.finish_check(&mut decision, events);
            if self.engine.report_keys {
                self.keys = self.row_keys();
            }
        }
        Ok(decision)
    }

    #[inline]
    fn summary<'d>(&'d self, decision: &'d Decision) -> Option<Event<'d>> {
        let namespace = self.check.namespace;
        let gate = self.check.gate;
        let keys = &self.keys;
        // A peek is not an event: it changes nothing.
        let is_event = self.mode == CheckMode::Check;
        is_event.then_some(Event::Decided { namespace, gate, decision, keys })
    }

    #[cfg(feature = "shared")]
    fn localize(&mut self, nodes: i64) -> bool {
        local_share::to_local_plan(&self.rules.catalog, &mut self.planned.plan, nodes);
        true
    }

    #[cfg(feature = "shared")]
    fn failure_modes(&self) -> FailureModes {
        if self.mode == CheckMode::Peek {
            return FailureModes::new();
        }
        local_share::failure_modes(&self.rules.catalog, &self.planned.plan)
    }
}

impl<S> CheckExchange<'_, '_, '_, S> {
    /// Adds the ticket, and the events of blocks and low-water marks. Not for a peek.
    fn finish_check(&mut self, decision: &mut Decision, events: &mut Events) {
        let Some(reply) = &self.planned.reply else { return };
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
        let body = self.planned.plan.body.take().filter(|_| reply.passed);
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
        let plan = &self.planned.plan;
        let Batch::Check(batch) = &plan.batch else { return };
        // A row without terms denies because its key is missing. It is not in the batch, so it must
        // be left out before zipping with the replies.
        let rows = plan.rows.iter().filter(|row| row.terms.is_some());
        let rows = rows.zip(&batch.rows).zip(&reply.rows);
        let started = rows.filter(|(_, reply)| reply.started && reply.block.is_some());
        // The blocks of one check are one act: who releases one of them releases the caller.
        let first_of_act = match (started.clone().next(), started.clone().nth(1)) {
            (Some(((_, first), _)), Some(_)) => Some(first.key),
            _ => None,
        };
        for ((row, check_row), reply) in started {
            let Some(block) = &reply.block else { continue };
            let policy = &self.rules.catalog.policy(row.policy).name;
            let block = BlockEvent {
                subject: self.subject_key(check_row.key, row),
                epoch: self.rules.epoch(policy),
                first_of_act,
                block: Block::clone(block),
            };
            events.push(Event::Blocked { at: reply.at, block: Box::new(block) });
        }
    }

    fn push_low_water(&self, decision: &Decision, events: &mut Events) {
        for (selected, row) in self.planned.plan.rows.iter().zip(&decision.rows) {
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

//! Settle: replaces the held units of a check by the real cost, and applies the ban rules.

mod ban_places;
mod settle_call;
mod settle_events;
mod settle_result;

use catraca_core::batch::{Batch, Reply, SettleBatch, SettleReply, StoredReference};
use catraca_core::credit_plan::owns;
use catraca_core::outcome::Outcome;
use catraca_core::plan::KeyScope;
use catraca_core::policy::PolicyId;
use catraca_core::refusal::Refusal;
use catraca_core::request::validate_name;
use catraca_core::settle_plan::{SettlePlan, plan_settle};
use catraca_core::subject::Subject;
use catraca_core::ticket::{Ticket, TicketBody, TicketRow};

use super::Engine;
#[cfg(feature = "shared")]
use super::exchange::BatchTarget;
use super::exchange::{Events, Exchange, StoreReply};
use smallvec::SmallVec;

use crate::error::Error;
use crate::event::Event;
use crate::rule_set::RuleSet;
use crate::settlement::{SettleState, Settlement};
use crate::store::{Store, StoreError};
use ban_places::BanPlaces;

pub use settle_call::{CheckRef, Settle};

/// A settle in progress.
pub(crate) struct SettleExchange<'e, 's, S> {
    engine: &'e Engine<S>,
    rules: &'e RuleSet,
    namespace: &'e str,
    outcome: &'e Outcome,
    progress: SettleProgress<'e, 's>,
}

enum SettleProgress<'e, 's> {
    /// The ticket is in the store, under a reference of this subject.
    Recalling(Batch, &'e Subject<'s>),
    /// The ticket is known.
    Settling(Box<PlannedSettle<'e>>),
}

/// The batch of a settle, and after the reply to it, the reply.
struct PlannedSettle<'e> {
    ticket: Ticket,
    /// The planned batch, with the whole limits.
    batch: Batch,
    /// The batch with this node's share of each limit; applied instead of `batch`.
    #[cfg(feature = "shared")]
    local_batch: Option<Batch>,
    /// For each row of the batch: the policy, and the index of the row in the ticket.
    rows: Vec<(PolicyId, usize)>,
    /// For each policy with conditions that could not be evaluated, how many.
    failed_conditions: SmallVec<[(PolicyId, u32); 1]>,
    body_truncated: bool,
    body_invalid: bool,
    ban_places: BanPlaces<'e>,
    reply: Option<SettleReply>,
}

impl<S: Store> Engine<S> {
    /// Applies the outcome of an admitted check, once. A second settle returns the first result.
    ///
    /// ```
    /// # #[cfg(feature = "settle")] {
    /// use catraca::{Catalog, Check, Engine, Outcome, Settle};
    ///
    /// let limit = "[policy.api]\n by = ['ip']\n window = '9 per 1m'";
    /// let catalog = Catalog::parse(&format!("{limit}\n cost = {{ '404' = 5, default = 0 }}"))?;
    /// let engine = Engine::new(catalog);
    /// let decision = engine.check(&Check::new("api", [("ip", "198.51.100.7")]))?;
    /// let ticket = decision.ticket.expect("the cost depends on the outcome");
    /// let settled = engine.settle(&Settle::ticket(&ticket, &Outcome::status(404)))?;
    /// assert_eq!(settled.rows[0].charged, 5);
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn settle(&self, call: &Settle<'_>) -> Result<Settlement, Error> {
        let rules = self.rules.load();
        self.run(&mut self.settle_exchange(&rules, call)?)
    }

    /// Settles as [`Self::settle`] does, with the ticket of [`Self::check_planned`].
    pub fn settle_unsealed(
        &self,
        namespace: &str,
        ticket: Ticket,
        outcome: &Outcome,
    ) -> Result<Settlement, Error> {
        let rules = self.rules.load();
        self.run(&mut self.unsealed_settle_exchange(&rules, namespace, ticket, outcome)?)
    }
}

/// Whether this settle would match a rule whose ban replaces the response, and which does not read
/// the body. Asks no store: a rule with `after` may need more outcomes to ban.
#[cfg(feature = "shared")]
pub(crate) fn matches_head_ban<S>(engine: &Engine<S>, call: &Settle<'_>) -> Result<bool, Error> {
    let CheckRef::Ticket(token) = &call.check else { return Ok(false) };
    let rules = engine.rules.load();
    let ticket = engine.sealer.open(token, call.namespace)?;
    let planned = engine.plan_settle(&rules, call.namespace, ticket, call.outcome)?;
    let mut rows = planned.settle_batch().rows.iter().zip(&planned.rows);
    Ok(rows.any(|(row, (id, _))| {
        let rules = &rules.catalog.policy(*id).bans;
        let mut enforced = row.bans.iter().filter(|ban| !ban.proposal.shadow);
        enforced.any(|ban| {
            let rule = rules.get(usize::from(ban.rule));
            rule.is_some_and(|own| own.status_of_answer().is_some() && !own.when.reads_body())
        })
    }))
}

impl<S> Engine<S> {
    /// The settle of a ticket that was not sealed.
    pub(crate) fn unsealed_settle_exchange<'e>(
        &'e self,
        rules: &'e RuleSet,
        namespace: &'e str,
        ticket: Ticket,
        outcome: &'e Outcome,
    ) -> Result<SettleExchange<'e, 'e, S>, Error> {
        let planned = self.plan_settle(rules, namespace, ticket, outcome)?;
        let progress = SettleProgress::Settling(planned);
        Ok(SettleExchange { engine: self, rules, namespace, outcome, progress })
    }

    /// A ticket as text.
    #[cfg(feature = "shared")]
    pub(crate) fn seal_ticket(&self, ticket: &Ticket, namespace: &str) -> String {
        self.sealer.seal(ticket, namespace)
    }

    /// Opens the ticket of the call, or asks for the one that its reference contains.
    pub(crate) fn settle_exchange<'e, 's>(
        &'e self,
        rules: &'e RuleSet,
        call: &'e Settle<'s>,
    ) -> Result<SettleExchange<'e, 's, S>, Error> {
        let namespace = call.namespace;
        let outcome = call.outcome;
        let progress = match &call.check {
            CheckRef::Ticket(token) => {
                let ticket = self.sealer.open(token, namespace)?;
                SettleProgress::Settling(self.plan_settle(rules, namespace, ticket, outcome)?)
            }
            CheckRef::Reference(name, subject) => {
                validate_name("the reference", name)?;
                let scope = self.scope(rules, namespace);
                let key = scope.reference_key_of(&rules.catalog, name, subject)?;
                SettleProgress::Recalling(Batch::Recall(key), subject)
            }
        };
        Ok(SettleExchange { engine: self, rules, namespace, outcome, progress })
    }

    /// Plans the batch of a settle: the price of each row of the ticket, and the ban rules that
    /// match.
    fn plan_settle(
        &self,
        rules: &RuleSet,
        namespace: &str,
        ticket: Ticket,
        outcome: &Outcome,
    ) -> Result<Box<PlannedSettle<'_>>, Error> {
        let scope = self.scope(rules, namespace);
        let mut ban_places = BanPlaces::new(&self.ban_storms);
        let now = || self.clock.now();
        let in_storm = |id| !ban_places.try_take(rules.catalog.policy(id), now);
        let selector = rules.selector(namespace);
        let plan = plan_settle(&selector, &scope, &ticket, outcome, in_storm)?;
        let SettlePlan { batch, rows, failed_conditions, body_truncated, body_invalid } = plan;
        Ok(Box::new(PlannedSettle {
            ticket,
            batch: Batch::Settle(batch),
            #[cfg(feature = "shared")]
            local_batch: None,
            rows,
            failed_conditions,
            body_truncated,
            body_invalid,
            ban_places,
            reply: None,
        }))
    }

    /// The ticket stored with a reference, if the reference belongs to this subject.
    fn owned_ticket(
        &self,
        rules: &RuleSet,
        namespace: &str,
        subject: &Subject<'_>,
        recalled: Option<StoredReference>,
    ) -> Result<Ticket, Error> {
        let recalled = recalled.ok_or(Refusal::UnknownReference)?;
        let ticket = ticket_from_reference(&recalled).ok_or(Refusal::UnknownReference)?;
        let unlisted = ticket.body.unlisted.then_some(&*ticket.body.gate);
        let scope = KeyScope { unlisted, ..self.scope(rules, namespace) };
        for row in &ticket.body.rows {
            if !is_row_of(rules, &scope, row, subject)? {
                return Err(Refusal::OtherSubject.into());
            }
        }
        Ok(ticket)
    }
}

impl<S> Exchange for SettleExchange<'_, '_, S> {
    type Answer = Settlement;

    fn batch(&self) -> Option<&Batch> {
        match &self.progress {
            SettleProgress::Recalling(batch, _) => Some(batch),
            SettleProgress::Settling(planned) => planned.next_batch(),
        }
    }

    fn on_reply(&mut self, reply: StoreReply) -> Result<(), Error> {
        match &mut self.progress {
            SettleProgress::Settling(planned) => {
                planned.reply = Some(settle_reply(reply.reply)?);
            }
            SettleProgress::Recalling(_, subject) => {
                let recalled = recall_reply(reply.reply)?;
                let engine = self.engine;
                let ticket = engine.owned_ticket(self.rules, self.namespace, subject, recalled)?;
                let planned =
                    engine.plan_settle(self.rules, self.namespace, ticket, self.outcome)?;
                self.progress = SettleProgress::Settling(planned);
            }
        }
        Ok(())
    }

    fn conclude(&mut self, events: &mut Events) -> Result<Settlement, Error> {
        let SettleProgress::Settling(planned) = &self.progress else {
            return Err(StoreError::mismatched_reply().into());
        };
        let reply = planned.reply.as_ref().ok_or_else(StoreError::mismatched_reply)?;
        let mut settlement = settle_result::settlement(self.rules, &planned.ticket, reply);
        let is_expired = settlement.state == SettleState::Expired;
        settlement.body_truncated = planned.body_truncated && !is_expired;
        settlement.body_invalid = planned.body_invalid && !is_expired;
        if settlement.state == SettleState::Applied {
            let banning = self.push_events(planned, reply, events);
            self.count_bans(&banning, settlement.at, events);
        }
        self.give_back_places();
        Ok(settlement)
    }

    fn summary<'d>(&'d self, settlement: &'d Settlement) -> Option<Event<'d>> {
        Some(match settlement.state {
            SettleState::Applied => Event::Settled(settlement),
            state => Event::NotSettled { at: settlement.at, state, rows: self.ticket_rows() },
        })
    }

    #[cfg(feature = "shared")]
    fn target(&self) -> BatchTarget {
        match &self.progress {
            SettleProgress::Settling(planned) if planned.ticket.body.local => BatchTarget::Local,
            _ => BatchTarget::Shared,
        }
    }

    /// Only for a check that the local fallback decided: while the shared store is unavailable, a
    /// settle of its own tickets is refused and can be repeated later.
    #[cfg(feature = "shared")]
    fn localize(&mut self, nodes: i64) -> bool {
        let SettleProgress::Settling(planned) = &mut self.progress else { return false };
        if !planned.ticket.body.local {
            return false;
        }
        let mut batch = planned.settle_batch().clone();
        batch.rows.iter_mut().for_each(|row| row.limit = row.limit.share(nodes));
        planned.local_batch = Some(Batch::Settle(batch));
        true
    }
}

impl<S> SettleExchange<'_, '_, S> {
    fn ticket_rows(&self) -> &[TicketRow] {
        match &self.progress {
            SettleProgress::Recalling(..) => &[],
            SettleProgress::Settling(planned) => &planned.ticket.body.rows,
        }
    }
}

impl PlannedSettle<'_> {
    fn next_batch(&self) -> Option<&Batch> {
        if self.reply.is_some() {
            return None;
        }
        #[cfg(feature = "shared")]
        if let Some(local) = &self.local_batch {
            return Some(local);
        }
        Some(&self.batch)
    }

    fn settle_batch(&self) -> &SettleBatch {
        match &self.batch {
            Batch::Settle(batch) => batch,
            _ => unreachable!("`plan_settle` makes a settle batch"),
        }
    }
}

/// The stored reference, from the reply to a recall batch.
pub(crate) fn recall_reply(reply: Reply) -> Result<Option<StoredReference>, Error> {
    match reply {
        Reply::Recall(recalled) => Ok(recalled),
        _ => Err(StoreError::mismatched_reply().into()),
    }
}

/// The reply to a settle batch. It is an error if the store had no room for the settled-marker,
/// because then the settle was not applied.
fn settle_reply(reply: Reply) -> Result<SettleReply, Error> {
    match reply {
        Reply::Settle(SettleReply::Full) => Err(StoreError::full("settled-markers").into()),
        Reply::Settle(reply) => Ok(reply),
        _ => Err(StoreError::mismatched_reply().into()),
    }
}

fn is_row_of(
    rules: &RuleSet,
    scope: &KeyScope<'_>,
    row: &TicketRow,
    subject: &Subject<'_>,
) -> Result<bool, Refusal> {
    match rules.catalog.find(&row.policy) {
        Some((id, _)) => owns(&rules.selector(scope.namespace), scope, id, row, subject),
        // The settle skips a policy that is no longer in the catalog.
        None => Ok(true),
    }
}

fn ticket_from_reference(recalled: &StoredReference) -> Option<Ticket> {
    let body = TicketBody::from_bytes(&recalled.ticket)?;
    // The stored reference has no expiry: it is computed from the latest instant of its rows.
    let checked = recalled.instants.iter().flatten().max().copied()?;
    let expires = checked.after(body.hold);
    Some(Ticket { body, instants: recalled.instants.clone(), expires })
}

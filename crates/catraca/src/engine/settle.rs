//! Settle: replaces the held units of a check by the real cost, and applies the ban rules.

use catraca_core::batch::{Batch, Reply, RowSettlement, SettleReply, SettleRow, StoredReference};
use catraca_core::cell::block::{BlockNote, Origin};
use catraca_core::conclude::render;
use catraca_core::credit_plan::owns;
use catraca_core::digest::Key;
use catraca_core::limit::Limit;
use catraca_core::outcome::Outcome;
use catraca_core::plan::KeyScope;
use catraca_core::policy::Policy;
use catraca_core::refusal::Refusal;
use catraca_core::request::validate_name;
use catraca_core::settle_plan::{SettlePlan, plan_settle};
use catraca_core::subject::Subject;
use catraca_core::ticket::{Ticket, TicketBody, TicketRow};
use catraca_core::time::{Span, Time};

use super::Engine;
use crate::error::Error;
use crate::event::{BlockEvent, DebtEvent, Event};
use crate::rule_set::RuleSet;
use crate::settlement::{SettleState, SettledRow, Settlement};
use crate::store::{Store, StoreError, When};

/// The arguments of a settle.
#[derive(Clone, Debug)]
pub struct Settle<'a> {
    /// The namespace of the check.
    pub namespace: &'a str,
    /// The check to settle.
    pub check: CheckRef<'a>,
    /// The outcome of the request.
    pub outcome: &'a Outcome,
}

/// How a caller names an earlier check.
#[derive(Clone, Debug)]
pub enum CheckRef<'a> {
    /// By the ticket of its decision.
    Ticket(&'a str),
    /// By its reference; the subject must be that of the check.
    Reference(&'a str, Subject<'a>),
}

impl<'a> Settle<'a> {
    /// Settles by ticket, in the default namespace.
    pub fn ticket(ticket: &'a str, outcome: &'a Outcome) -> Self {
        let namespace = super::default_namespace();
        Self { namespace, check: CheckRef::Ticket(ticket), outcome }
    }
}

/// How the ticket of a settle is found.
pub(crate) enum SettleTarget {
    /// In the call itself.
    Ticket(Box<Ticket>),
    /// In the store, under this key.
    Reference(Key),
}

/// An applied settle, for its events.
struct AppliedSettle<'a> {
    namespace: &'a str,
    ticket: &'a Ticket,
    plan: &'a SettlePlan,
}

/// One row of an applied settle, for its events.
struct AppliedSettleRow<'a> {
    namespace: &'a str,
    policy: &'a Policy,
    row: &'a TicketRow,
    planned: &'a SettleRow,
    result: &'a RowSettlement,
    epoch: Time,
    at: Time,
}

impl<S: Store> Engine<S> {
    /// Applies the outcome of an admitted check, once. A second settle returns the first result.
    pub fn settle(&self, call: &Settle<'_>) -> Result<Settlement, Error> {
        let rules = self.rules.load();
        let ticket = match self.resolve_settle_target(&rules, call)? {
            SettleTarget::Ticket(ticket) => *ticket,
            SettleTarget::Reference(key) => {
                let recalled = recall_reply(self.store.apply(&Batch::Recall(key), When::Store)?)?;
                self.owned_ticket(&rules, call, recalled)?
            }
        };
        let plan = self.plan_settle(&rules, call, &ticket)?;
        let reply =
            settle_reply(self.store.apply(&Batch::Settle(plan.batch.clone()), When::Store)?)?;
        Ok(self.conclude_settle(&rules, call, &ticket, &plan, &reply))
    }
}

impl<S> Engine<S> {
    /// The ticket of the call, or the key of the reference that contains it.
    pub(crate) fn resolve_settle_target(
        &self,
        rules: &RuleSet,
        call: &Settle<'_>,
    ) -> Result<SettleTarget, Error> {
        match &call.check {
            CheckRef::Ticket(token) => {
                Ok(SettleTarget::Ticket(Box::new(self.sealer.open(token, call.namespace)?)))
            }
            CheckRef::Reference(name, subject) => {
                validate_name("the reference", name)?;
                let scope = self.scope(rules, call.namespace);
                Ok(SettleTarget::Reference(scope.reference_key_of(
                    &rules.catalog,
                    name,
                    subject,
                )?))
            }
        }
    }

    /// The batch of a settle: the price of each row of the ticket, and the ban rules that match.
    pub(crate) fn plan_settle(
        &self,
        rules: &RuleSet,
        call: &Settle<'_>,
        ticket: &Ticket,
    ) -> Result<SettlePlan, Error> {
        let scope = self.scope(rules, call.namespace);
        let in_ban_storm = |id| self.is_in_ban_storm(rules, id);
        Ok(plan_settle(&rules.selector(), &scope, ticket, call.outcome, in_ban_storm)?)
    }

    /// Turns the reply into the result, and emits the events.
    pub(crate) fn conclude_settle(
        &self,
        rules: &RuleSet,
        call: &Settle<'_>,
        ticket: &Ticket,
        plan: &SettlePlan,
        reply: &SettleReply,
    ) -> Settlement {
        let mut settlement = settlement_of(rules, ticket, reply);
        settlement.body_truncated = plan.body_truncated && settlement.state != SettleState::Expired;
        if settlement.state == SettleState::Applied {
            let applied = AppliedSettle { namespace: call.namespace, ticket, plan };
            self.emit_settle_events(rules, &applied, reply, &settlement);
        } else {
            self.emit(&Event::NotSettled(settlement.state));
        }
        settlement
    }

    /// The ticket stored with a reference, if the reference belongs to this subject.
    pub(crate) fn owned_ticket(
        &self,
        rules: &RuleSet,
        call: &Settle<'_>,
        recalled: Option<StoredReference>,
    ) -> Result<Ticket, Error> {
        let CheckRef::Reference(_, subject) = &call.check else {
            return Err(Refusal::UnknownReference.into());
        };
        let recalled = recalled.ok_or(Refusal::UnknownReference)?;
        let ticket = ticket_from_reference(&recalled).ok_or(Refusal::UnknownReference)?;
        let unlisted = ticket.body.unlisted.then_some(&*ticket.body.gate);
        let scope = KeyScope { unlisted, ..self.scope(rules, call.namespace) };
        for row in &ticket.body.rows {
            if !self.is_row_of(rules, &scope, row, subject)? {
                return Err(Refusal::OtherSubject.into());
            }
        }
        Ok(ticket)
    }

    fn is_row_of(
        &self,
        rules: &RuleSet,
        scope: &KeyScope<'_>,
        row: &TicketRow,
        subject: &Subject<'_>,
    ) -> Result<bool, Refusal> {
        match rules.catalog.find(&row.policy) {
            Some((id, _)) => owns(&rules.selector(), scope, id, row, subject),
            // The settle skips a policy that is no longer in the catalog.
            None => Ok(true),
        }
    }

    fn is_in_ban_storm(&self, rules: &RuleSet, id: catraca_core::policy::PolicyId) -> bool {
        let policy = rules.catalog.policy(id);
        // Reads no clock and takes no lock for policies without `ban_storm`.
        policy.ban_storm.is_some() && {
            let now = self.clock.now();
            self.ban_storms.lock().get(&policy.name).is_some_and(|storm| storm.is_active(now))
        }
    }

    fn emit_settle_events(
        &self,
        rules: &RuleSet,
        applied: &AppliedSettle<'_>,
        reply: &SettleReply,
        settlement: &Settlement,
    ) {
        let AppliedSettle { namespace, ticket, plan } = *applied;
        if plan.failed_conditions > 0 {
            self.emit(&Event::ConditionsFailed { count: plan.failed_conditions });
        }
        let SettleReply::Settled { now, rows, .. } = reply else { return };
        // Policies that are no longer in the catalog are not planned, so `index` is the row's
        // position in the ticket, not in the batch.
        for (((id, index), planned), result) in plan.rows.iter().zip(&plan.batch.rows).zip(rows) {
            let policy = rules.catalog.policy(*id);
            let row = &ticket.body.rows[*index];
            let epoch = rules.epoch(&policy.name);
            let settled =
                AppliedSettleRow { namespace, policy, row, planned, result, epoch, at: *now };
            self.emit_block(&settled);
            self.emit_debt(&settled);
            self.emit_low_water_at_settle(policy, row, result, *now);
            if let Some(watch) = &planned.watch {
                let in_part = watch.in_part;
                self.emit(&Event::RatioCounted { at: *now, policy: &policy.name, in_part });
            }
            if result.started == Some(Origin::Ban) {
                self.count_ban(policy, *now);
            }
        }
        self.emit(&Event::Settled(settlement));
    }

    fn emit_block(&self, settled: &AppliedSettleRow<'_>) {
        let AppliedSettleRow { namespace, policy, row, planned, result, epoch, at } = *settled;
        let Some(origin) = result.started else { return };
        self.emit(&Event::Blocked(BlockEvent {
            at,
            namespace: namespace.to_owned(),
            key: planned.key,
            epoch,
            policy: policy.name.to_string(),
            parts: row.parts.clone(),
            until: result.blocked_until.unwrap_or(at),
            origin,
            note: ban_note(planned, result),
            shadow: planned.shadow,
            forget: offence_memory(planned, result, origin),
        }));
    }

    fn emit_debt(&self, settled: &AppliedSettleRow<'_>) {
        let AppliedSettleRow { namespace, policy, row, planned, result, epoch, at } = *settled;
        let Limit::Bucket(terms) = &planned.limit else { return };
        let Some(after) = result.free else { return };
        if !planned.debt {
            return;
        }
        // The check charged `held`, the settle the difference to `charged`.
        let before = after + result.charged - planned.held;
        if after.min(before) < 0 {
            self.emit(&Event::Debt(DebtEvent {
                at,
                namespace: namespace.to_owned(),
                key: planned.key,
                epoch,
                policy: policy.name.to_string(),
                parts: row.parts.clone(),
                balance: after,
                terms: *terms,
            }));
        }
    }

    /// Emits the low-water event if the price took the balance across the mark. If the check itself
    /// crossed it, the check emitted the event.
    fn emit_low_water_at_settle(
        &self,
        policy: &Policy,
        row: &TicketRow,
        result: &RowSettlement,
        at: Time,
    ) {
        let limit = policy.terms_of(row.tier).and_then(|terms| terms.limit.capacity());
        let Some((share, limit)) = policy.low_water.zip(limit) else { return };
        let Some(after) = result.free else { return };
        let mark = share.of(limit);
        let before = after + result.charged - row.held;
        if after < mark && before >= mark {
            let remaining = after.max(0);
            self.emit(&Event::LowWater { at, policy: &policy.name, remaining, limit });
        }
    }

    fn count_ban(&self, policy: &Policy, now: Time) {
        let Some(limit) = policy.ban_storm else { return };
        let begins =
            self.ban_storms.lock().entry(policy.name.clone()).or_default().record_ban(limit, now);
        if begins {
            self.emit(&Event::BanStorm { at: now, policy: &policy.name });
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
pub(crate) fn settle_reply(reply: Reply) -> Result<SettleReply, Error> {
    match reply {
        Reply::Settle(SettleReply::Full) => Err(StoreError::full("settled-markers").into()),
        Reply::Settle(reply) => Ok(reply),
        _ => Err(StoreError::mismatched_reply().into()),
    }
}

/// The note of the rule that started the ban. Rule numbers of `bans` come first; any other number
/// is the watched ratio.
pub(crate) fn ban_note(planned: &SettleRow, result: &RowSettlement) -> BlockNote {
    let Some(rule) = result.rule.filter(|_| result.started == Some(Origin::Ban)) else {
        return BlockNote::default();
    };
    let ban = planned.bans.iter().find(|ban| ban.rule == rule).map(|ban| &ban.proposal);
    let act = ban.or_else(|| planned.watch.as_ref().map(|watch| &watch.proposal));
    act.map(|act| act.note.clone()).unwrap_or_default()
}

/// How long the offence that started a block is remembered for escalation.
fn offence_memory(planned: &SettleRow, result: &RowSettlement, origin: Origin) -> Span {
    let rule =
        planned.bans.iter().find(|ban| Some(ban.rule) == result.rule).map(|ban| &ban.proposal);
    let penalty = match origin {
        Origin::Excess => planned.penalty,
        Origin::Ban => {
            rule.or(planned.watch.as_ref().map(|watch| &watch.proposal)).map(|act| act.penalty)
        }
        Origin::Operator | Origin::Upstream => None,
    };
    penalty.map_or(Span::ZERO, |penalty| penalty.forget)
}

fn ticket_from_reference(recalled: &StoredReference) -> Option<Ticket> {
    let body = TicketBody::from_bytes(&recalled.ticket)?;
    // The stored reference has no expiry: it is computed from the latest instant of its rows.
    let checked = recalled.instants.iter().flatten().max().copied()?;
    let expires = checked.after(body.hold);
    Some(Ticket { body, instants: recalled.instants.clone(), expires })
}

/// Policies are named by the ticket, so that a second settle returns the same rows even if the
/// catalog has changed.
fn settlement_of(rules: &RuleSet, ticket: &Ticket, reply: &SettleReply) -> Settlement {
    match reply {
        SettleReply::Settled { now, already_settled: again, rows } => {
            let state = if *again { SettleState::Again } else { SettleState::Applied };
            let named = |result: &RowSettlement| {
                let row = ticket.body.rows.get(usize::from(result.ticket_index))?;
                Some(settled_row(rules, &row.policy, result, *now))
            };
            let rows = rows.iter().filter_map(named).collect();
            Settlement { state, at: *now, rows, body_truncated: false }
        }
        SettleReply::Expired { now } => expired_settlement(*now),
        // Not reached: `settle_reply` has turned it into an error.
        SettleReply::Full => expired_settlement(Time::ZERO),
    }
}

fn expired_settlement(at: Time) -> Settlement {
    Settlement { state: SettleState::Expired, at, rows: Vec::new(), body_truncated: false }
}

fn settled_row(rules: &RuleSet, name: &str, result: &RowSettlement, now: Time) -> SettledRow {
    let policy = rules.catalog.find(name).map(|(_, policy)| policy);
    let ban = policy.zip(result.rule).and_then(|(policy, rule)| policy.bans.get(usize::from(rule)));
    let wait =
        result.blocked_until.filter(|until| !until.is_forever()).map(|until| until.since(now));
    let message = ban.and_then(|ban| ban.message.as_ref());
    SettledRow {
        policy: policy.map_or_else(|| name.into(), |policy| policy.name.clone()),
        charged: result.charged,
        balance: result.free,
        blocked_until: result.blocked_until.filter(|until| !until.is_forever()),
        blocked_by: result.started,
        reason: ban.map(|ban| ban.reason.clone()),
        status: ban.and_then(|ban| ban.status),
        message: message.map(|text| render(text, wait, rules.catalog.language)),
    }
}

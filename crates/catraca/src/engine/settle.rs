//! Settling: the outcome turns the reservation into the real cost, and may ban.

use catraca_core::batch::{Batch, Recalled, Reply, RowSettled, SettleReply, SettleRow};
use catraca_core::cell::block::{Note, Origin};
use catraca_core::conclude::render;
use catraca_core::credit::owns;
use catraca_core::digest::Key;
use catraca_core::limit::Limit;
use catraca_core::outcome::Outcome;
use catraca_core::plan::Scope;
use catraca_core::policy::Policy;
use catraca_core::refusal::Refusal;
use catraca_core::request::name_in_bounds;
use catraca_core::settle::{SettlePlan, settle};
use catraca_core::subject::Subject;
use catraca_core::ticket::{Body, Ticket, TicketRow};
use catraca_core::time::{Span, Time};

use super::Engine;
use crate::error::Error;
use crate::event::{Blocked, Event, Owed};
use crate::settlement::{Settled, SettledRow, Settlement};
use crate::store::{Store, StoreError, When};
use crate::world::World;

/// A check to settle, with what happened.
#[derive(Clone, Debug)]
pub struct Settle<'a> {
    /// The namespace of the check.
    pub namespace: &'a str,
    /// Which check.
    pub stub: Stub<'a>,
    /// What happened.
    pub outcome: &'a Outcome,
}

/// How a check is named afterwards.
#[derive(Clone, Debug)]
pub enum Stub<'a> {
    /// By the ticket of its decision.
    Ticket(&'a str),
    /// By its reference, and the same subject.
    Reference(&'a str, Subject<'a>),
}

impl<'a> Settle<'a> {
    /// Settles a ticket in the default namespace.
    pub fn ticket(ticket: &'a str, outcome: &'a Outcome) -> Self {
        let namespace = super::default_namespace();
        Self { namespace, stub: Stub::Ticket(ticket), outcome }
    }
}

/// A check as its caller names it afterwards.
pub(crate) enum Opened {
    /// With all that a settle needs.
    Ticket(Box<Ticket>),
    /// By what the store remembers.
    Reference(Key),
}

/// A settle on its way to the events.
struct Settling<'a> {
    namespace: &'a str,
    ticket: &'a Ticket,
    plan: &'a SettlePlan,
}

/// One row of it.
struct SettlingRow<'a> {
    namespace: &'a str,
    policy: &'a Policy,
    row: &'a TicketRow,
    asked: &'a SettleRow,
    done: &'a RowSettled,
    epoch: Time,
    at: Time,
}

impl<S: Store> Engine<S> {
    /// Applies the outcome of an admitted check, once.
    pub fn settle(&self, call: &Settle<'_>) -> Result<Settlement, Error> {
        let world = self.world.load();
        let ticket = match self.opened(&world, call)? {
            Opened::Ticket(ticket) => *ticket,
            Opened::Reference(key) => {
                let recalled = recalled(self.store.apply(&Batch::Recall(key), When::Store)?)?;
                self.owned_ticket(&world, call, recalled)?
            }
        };
        let plan = self.plan_settle(&world, call, &ticket)?;
        let reply = settled(self.store.apply(&Batch::Settle(plan.batch.clone()), When::Store)?)?;
        Ok(self.conclude_settle(&world, call, (&ticket, &plan), &reply))
    }
}

impl<S> Engine<S> {
    /// The ticket that a call brings, or the reference to ask the store for.
    pub(crate) fn opened(&self, world: &World, call: &Settle<'_>) -> Result<Opened, Error> {
        match &call.stub {
            Stub::Ticket(token) => {
                Ok(Opened::Ticket(Box::new(self.sealer.open(token, call.namespace)?)))
            }
            Stub::Reference(name, subject) => {
                name_in_bounds("the reference", name)?;
                let scope = self.scope(world, call.namespace);
                Ok(Opened::Reference(scope.find_reference(&world.catalog, name, subject)?))
            }
        }
    }

    /// What the outcome means for each row of the ticket.
    pub(crate) fn plan_settle(
        &self,
        world: &World,
        call: &Settle<'_>,
        ticket: &Ticket,
    ) -> Result<SettlePlan, Error> {
        let (scope, outcome) = (self.scope(world, call.namespace), call.outcome);
        let storms = |id| self.storms(world, id);
        Ok(settle(&world.selector(), &scope, ticket, outcome, storms)?)
    }

    /// The store's answer becomes the settlement and its events.
    pub(crate) fn conclude_settle(
        &self,
        world: &World,
        call: &Settle<'_>,
        (ticket, plan): (&Ticket, &SettlePlan),
        reply: &SettleReply,
    ) -> Settlement {
        let mut settlement = settlement(world, ticket, reply);
        settlement.body_truncated = plan.body_truncated && settlement.state != Settled::Expired;
        if settlement.state == Settled::Applied {
            let settling = Settling { namespace: call.namespace, ticket, plan };
            self.after_settle(world, &settling, reply, &settlement);
        } else {
            self.record(&Event::NotSettled(settlement.state));
        }
        settlement
    }

    /// The ticket that a reference remembers, if it is of this subject.
    pub(crate) fn owned_ticket(
        &self,
        world: &World,
        call: &Settle<'_>,
        recalled: Option<Recalled>,
    ) -> Result<Ticket, Error> {
        let Stub::Reference(_, subject) = &call.stub else {
            return Err(Refusal::UnknownReference.into());
        };
        let recalled = recalled.ok_or(Refusal::UnknownReference)?;
        let ticket = ticket_from(&recalled).ok_or(Refusal::UnknownReference)?;
        let unlisted = ticket.body.unlisted.then_some(&*ticket.body.gate);
        let scope = Scope { unlisted, ..self.scope(world, call.namespace) };
        for row in &ticket.body.rows {
            if !self.is_of(world, &scope, row, subject)? {
                return Err(Refusal::OtherSubject.into());
            }
        }
        Ok(ticket)
    }

    fn is_of(
        &self,
        world: &World,
        scope: &Scope<'_>,
        row: &TicketRow,
        subject: &Subject<'_>,
    ) -> Result<bool, Refusal> {
        match world.catalog.find(&row.policy) {
            Some((id, _)) => owns(&world.selector(), scope, id, row, subject),
            None => Ok(true),
        }
    }

    fn storms(&self, world: &World, id: catraca_core::policy::PolicyId) -> bool {
        let policy = world.catalog.policy(id);
        policy.ban_storm.is_some() && {
            let now = self.clock.now();
            self.storms.lock().get(&policy.name).is_some_and(|storm| storm.rages(now))
        }
    }

    fn after_settle(
        &self,
        world: &World,
        settling: &Settling<'_>,
        reply: &SettleReply,
        settlement: &Settlement,
    ) {
        let Settling { namespace, ticket, plan } = *settling;
        if plan.failed > 0 {
            self.record(&Event::ConditionsFailed { count: plan.failed });
        }
        let SettleReply::Settled { now, rows, .. } = reply else { return };
        for (((id, place), asked), done) in plan.rows.iter().zip(&plan.batch.rows).zip(rows) {
            let (policy, row) = (world.catalog.policy(*id), &ticket.body.rows[*place]);
            let epoch = world.epoch(&policy.name);
            let settled = SettlingRow { namespace, policy, row, asked, done, epoch, at: *now };
            self.record_block(&settled);
            self.record_debt(&settled);
            self.record_sinking(policy, row, done, *now);
            if let Some(watch) = &asked.watch {
                let (policy, in_part) = (&*policy.name, watch.in_part);
                self.record(&Event::Watched { at: *now, policy, in_part });
            }
            if done.started == Some(Origin::Ban) {
                self.count_ban(policy, *now);
            }
        }
        self.record(&Event::Settled(settlement));
    }

    fn record_block(&self, settled: &SettlingRow<'_>) {
        let SettlingRow { namespace, policy, row, asked, done, epoch, at } = *settled;
        let Some(origin) = done.started else { return };
        self.record(&Event::Blocked(Blocked {
            at,
            namespace: namespace.to_owned(),
            key: asked.key,
            epoch,
            policy: policy.name.to_string(),
            parts: row.parts.clone(),
            until: done.blocked_until.unwrap_or(at),
            origin,
            note: note_of(asked, done),
            shadow: asked.shadow,
            forget: forget_of(asked, done, origin),
        }));
    }

    fn record_debt(&self, settled: &SettlingRow<'_>) {
        let SettlingRow { namespace, policy, row, asked, done, epoch, at } = *settled;
        let (Limit::Bucket(terms), Some(after), true) = (&asked.limit, done.free, asked.debt)
        else {
            return;
        };
        let before = after + done.charged - asked.held;
        if after.min(before) < 0 {
            self.record(&Event::Owed(Owed {
                at,
                namespace: namespace.to_owned(),
                key: asked.key,
                epoch,
                policy: policy.name.to_string(),
                parts: row.parts.clone(),
                balance: after,
                terms: *terms,
            }));
        }
    }

    /// The price may take the balance across the mark that the check left it above.
    fn record_sinking(&self, policy: &Policy, row: &TicketRow, done: &RowSettled, at: Time) {
        let limit = policy.terms_of(row.tier).and_then(|terms| terms.limit.capacity());
        let Some((share, limit)) = policy.low_water.zip(limit) else { return };
        let Some(after) = done.free else { return };
        let (mark, before) = (share.of(limit), after + done.charged - row.held);
        if after < mark && before >= mark {
            let (policy, remaining) = (&*policy.name, after.max(0));
            self.record(&Event::LowWater { at, policy, remaining, limit });
        }
    }

    fn count_ban(&self, policy: &Policy, now: Time) {
        let Some(limit) = policy.ban_storm else { return };
        let begins = self.storms.lock().entry(policy.name.clone()).or_default().count(limit, now);
        if begins {
            self.record(&Event::Storm { at: now, policy: &policy.name });
        }
    }
}

/// What is remembered, if that was the question.
pub(crate) fn recalled(reply: Reply) -> Result<Option<Recalled>, Error> {
    match reply {
        Reply::Recall(recalled) => Ok(recalled),
        _ => Err(StoreError::odd_reply().into()),
    }
}

/// The result of a settle that the store had room to remember.
pub(crate) fn settled(reply: Reply) -> Result<SettleReply, Error> {
    match reply {
        Reply::Settle(SettleReply::Full) => Err(StoreError::full("settled-markers").into()),
        Reply::Settle(reply) => Ok(reply),
        _ => Err(StoreError::odd_reply().into()),
    }
}

/// What the rule that banned tells; the watched ratio comes after the rules.
pub(crate) fn note_of(asked: &SettleRow, done: &RowSettled) -> Note {
    let Some(rule) = done.rule.filter(|_| done.started == Some(Origin::Ban)) else {
        return Note::default();
    };
    let ban = asked.bans.iter().find(|ban| ban.rule == rule).map(|ban| &ban.act);
    let act = ban.or_else(|| asked.watch.as_ref().map(|watch| &watch.act));
    act.map(|act| act.note.clone()).unwrap_or_default()
}

/// How long the offence is remembered that started a block.
fn forget_of(asked: &SettleRow, done: &RowSettled, origin: Origin) -> Span {
    let rule = asked.bans.iter().find(|ban| Some(ban.rule) == done.rule).map(|ban| &ban.act);
    let penalty = match origin {
        Origin::Excess => asked.penalty,
        Origin::Ban => rule.or(asked.watch.as_ref().map(|watch| &watch.act)).map(|act| act.penalty),
        Origin::Operator | Origin::Upstream => None,
    };
    penalty.map_or(Span::ZERO, |penalty| penalty.forget)
}

fn ticket_from(recalled: &Recalled) -> Option<Ticket> {
    let body = Body::from_bytes(&recalled.ticket)?;
    let checked = recalled.instants.iter().flatten().max().copied()?;
    let expires = checked.after(body.hold);
    Some(Ticket { body, instants: recalled.instants.clone(), expires })
}

/// Rows are named by the ticket, so that a second settle repeats the first whatever the catalog.
fn settlement(world: &World, ticket: &Ticket, reply: &SettleReply) -> Settlement {
    match reply {
        SettleReply::Settled { now, again, rows } => {
            let state = if *again { Settled::Again } else { Settled::Applied };
            let named = |done: &RowSettled| {
                let row = ticket.body.rows.get(usize::from(done.place))?;
                Some(self::row(world, &row.policy, done, *now))
            };
            let rows = rows.iter().filter_map(named).collect();
            Settlement { state, at: *now, rows, body_truncated: false }
        }
        SettleReply::Expired { now } => expired(*now),
        SettleReply::Full => expired(Time::ZERO),
    }
}

fn expired(at: Time) -> Settlement {
    Settlement { state: Settled::Expired, at, rows: Vec::new(), body_truncated: false }
}

fn row(world: &World, name: &str, done: &RowSettled, now: Time) -> SettledRow {
    let policy = world.catalog.find(name).map(|(_, policy)| policy);
    let ban = policy.zip(done.rule).and_then(|(policy, rule)| policy.bans.get(usize::from(rule)));
    let wait = done.blocked_until.filter(|until| !until.is_forever()).map(|until| until.since(now));
    let message = ban.and_then(|ban| ban.message.as_ref());
    SettledRow {
        policy: policy.map_or_else(|| name.into(), |policy| policy.name.clone()),
        charged: done.charged,
        balance: done.free,
        blocked_until: done.blocked_until.filter(|until| !until.is_forever()),
        blocked_by: done.started,
        reason: ban.map(|ban| ban.reason.clone()),
        status: ban.and_then(|ban| ban.status),
        message: message.map(|text| render(text, wait, world.catalog.language)),
    }
}

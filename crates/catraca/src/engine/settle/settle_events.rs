//! The events of an applied settle: blocks, debts, low-water marks, watched ratios and ban storms.

use catraca_core::batch::{RowSettlement, SettleReply, SettleRow};
use catraca_core::cell::block::{BlockNote, Origin};
use catraca_core::limit::Limit;
use catraca_core::policy::Policy;
use catraca_core::ticket::TicketRow;
use catraca_core::time::{Span, Time};

use super::{PlannedSettle, SettleExchange};
use crate::engine::exchange::Events;
use crate::event::{BlockEvent, DebtEvent, Event, SubjectKey};

/// One row of an applied settle.
struct AppliedRow<'a> {
    namespace: &'a str,
    policy: &'a Policy,
    row: &'a TicketRow,
    planned: &'a SettleRow,
    result: &'a RowSettlement,
    epoch: Time,
    at: Time,
}

impl<S> SettleExchange<'_, '_, S> {
    pub(super) fn push_events(
        &self,
        settle: &PlannedSettle,
        reply: &SettleReply,
        events: &mut Events,
    ) {
        if settle.failed_conditions > 0 {
            events.push(Event::ConditionsFailed { count: settle.failed_conditions });
        }
        let SettleReply::Settled { now, rows, .. } = reply else { return };
        let planned_rows = &settle.settle_batch().rows;
        // Policies that are no longer in the catalog are not planned, so `index` is the row's
        // position in the ticket, not in the batch.
        for (((id, index), planned), result) in settle.rows.iter().zip(planned_rows).zip(rows) {
            let policy = self.rules.catalog.policy(*id);
            let row = AppliedRow {
                namespace: self.namespace,
                policy,
                row: &settle.ticket.body.rows[*index],
                planned,
                result,
                epoch: self.rules.epoch(&policy.name),
                at: *now,
            };
            row.push_block(events);
            row.push_debt(events);
            row.push_low_water(events);
            row.push_watched_ratio(events);
            if result.started == Some(Origin::Ban) {
                self.count_ban(policy, *now, events);
            }
        }
    }

    fn count_ban(&self, policy: &Policy, now: Time, events: &mut Events) {
        let Some(limit) = policy.ban_storm else { return };
        let mut storms = self.engine.ban_storms.lock();
        let begins = storms.entry(policy.name.clone()).or_default().record_ban(limit, now);
        if begins {
            events.push(Event::BanStorm { at: now, policy: policy.name.clone() });
        }
    }
}

impl AppliedRow<'_> {
    fn subject(&self) -> SubjectKey {
        SubjectKey {
            key: self.planned.key,
            namespace: self.namespace.to_owned(),
            policy: self.policy.name.to_string(),
            parts: self.row.parts.clone(),
        }
    }

    fn push_block(&self, events: &mut Events) {
        let Some(origin) = self.result.started else { return };
        let block = BlockEvent {
            subject: self.subject(),
            epoch: self.epoch,
            until: self.result.blocked_until.unwrap_or(self.at),
            origin,
            note: ban_note(self.planned, self.result),
            shadow: self.planned.shadow,
            forget: offence_memory(self.planned, self.result, origin),
        };
        events.push(Event::Blocked { at: self.at, block: Box::new(block) });
    }

    fn push_debt(&self, events: &mut Events) {
        let Limit::Bucket(terms) = &self.planned.limit else { return };
        let Some(after) = self.result.free else { return };
        if !self.planned.debt {
            return;
        }
        // The check charged `held`, the settle the difference to `charged`.
        let before = after + self.result.charged - self.planned.held;
        if after.min(before) < 0 {
            let subject = self.subject();
            let debt = DebtEvent { subject, epoch: self.epoch, balance: after, terms: *terms };
            events.push(Event::Debt { at: self.at, debt: Box::new(debt) });
        }
    }

    /// Pushes the low-water event if the price took the balance across the mark. If the check
    /// itself crossed it, the check has reported it.
    fn push_low_water(&self, events: &mut Events) {
        let limit = self.policy.terms_of(self.row.tier).and_then(|terms| terms.limit.capacity());
        let Some((share, limit)) = self.policy.low_water.zip(limit) else { return };
        let Some(after) = self.result.free else { return };
        let mark = share.of(limit);
        let before = after + self.result.charged - self.row.held;
        if after < mark && before >= mark {
            let remaining = after.max(0);
            let policy = self.policy.name.clone();
            events.push(Event::LowWater { at: self.at, policy, remaining, limit });
        }
    }

    fn push_watched_ratio(&self, events: &mut Events) {
        if let Some(watch) = &self.planned.watch {
            let policy = self.policy.name.clone();
            let in_part = watch.in_part;
            events.push(Event::RatioCounted { at: self.at, policy, in_part });
        }
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

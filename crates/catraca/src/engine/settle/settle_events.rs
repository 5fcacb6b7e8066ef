//! The events of an applied settle: blocks, debts, low-water marks, watched ratios and ban storms.

use catraca_core::batch::{RowSettlement, SettleReply, SettleRow};
use catraca_core::cell::block::{Block, Origin};
use catraca_core::digest::Key;
use catraca_core::limit::Limit;
use catraca_core::policy::Policy;
use catraca_core::ticket::TicketRow;
use catraca_core::time::Time;

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
    /// The block that the settle started or extended.
    block: Option<&'a Block>,
    /// The first of the keys that the same ban blocked, if it blocked several.
    first_of_act: Option<Key>,
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
        let SettleReply::Settled { now, rows, blocks, .. } = reply else { return };
        let planned_rows = &settle.settle_batch().rows;
        // Policies that are no longer in the catalog are not planned, so `index` is the row's
        // position in the ticket, not in the batch.
        for (((id, index), planned), result) in settle.rows.iter().zip(planned_rows).zip(rows) {
            let policy = self.rules.catalog.policy(*id);
            let block = blocks.iter().find(|(index, _)| *index == result.ticket_index);
            let row = AppliedRow {
                namespace: self.namespace,
                policy,
                row: &settle.ticket.body.rows[*index],
                planned,
                result,
                block: block.map(|(_, block)| block),
                first_of_act: first_of_ban(planned, planned_rows, rows, blocks),
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
        let Some(block) = self.block.cloned() else { return };
        let first_of_act = self.first_of_act;
        let epoch = self.epoch;
        let block = BlockEvent { subject: self.subject(), epoch, first_of_act, block };
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
            // The records restore a debt at this key, so it is that of the counter.
            let subject = SubjectKey { key: self.planned.counter().key, ..self.subject() };
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

/// The first of the keys that the ban of this row's policy blocked, if it blocked several. A ban
/// acts on all rows of its policy, which have the same family.
fn first_of_ban(
    row: &SettleRow,
    rows: &[SettleRow],
    results: &[RowSettlement],
    blocks: &[(u8, Block)],
) -> Option<Key> {
    let is_banned = |result: &RowSettlement| {
        let block = blocks.iter().find(|(index, _)| *index == result.ticket_index);
        block.is_some_and(|(_, block)| block.origin == Origin::Ban)
    };
    let of_policy = rows.iter().zip(results).filter(|(other, _)| other.family == row.family);
    let mut banned = of_policy.filter(|(_, result)| is_banned(result)).map(|(row, _)| row.key);
    let first = banned.next()?;
    let is_member = first == row.key || banned.clone().any(|key| key == row.key);
    (is_member && banned.next().is_some()).then_some(first)
}

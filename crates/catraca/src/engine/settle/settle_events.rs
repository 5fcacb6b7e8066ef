//! The events of an applied settle: blocks, debts, low-water marks, watched ratios and ban storms.

use catraca_core::batch::{RowSettlement, SettleReply, SettleRow};
use catraca_core::cell::block::{Block, Origin};
use catraca_core::digest::Key;
use catraca_core::limit::Limit;
use catraca_core::policy::{Policy, PolicyId};
use catraca_core::ticket::TicketRow;
use catraca_core::time::Time;
use smallvec::SmallVec;

use super::{PlannedSettle, SettleExchange, SettleProgress};
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
    /// The first of the keys that the settle blocked, if it blocked several.
    first_of_act: Option<Key>,
    epoch: Time,
    at: Time,
}

/// The policies under which a settle has banned.
type BanningPolicies = SmallVec<[PolicyId; 1]>;

impl<S> SettleExchange<'_, '_, S> {
    /// Pushes the events of the rows. Returns the policies under which the settle has banned.
    pub(super) fn push_events(
        &self,
        settle: &PlannedSettle<'_>,
        reply: &SettleReply,
        events: &mut Events,
    ) -> BanningPolicies {
        let mut banning = BanningPolicies::new();
        for (id, count) in &settle.failed_conditions {
            let at = self.engine.now();
            let policy = self.rules.catalog.policy(*id).name.clone();
            events.push(Event::ConditionsFailed { at, policy, count: *count });
        }
        let SettleReply::Settled { now, rows, blocks, .. } = reply else { return banning };
        let planned_rows = &settle.settle_batch().rows;
        // The blocks of one settle are one act, as those of one check are: bans, excess blocks and
        // those that the upstream asks for. Who releases one of them releases the caller.
        let is_blocked =
            |result: &&RowSettlement| blocks.iter().any(|(index, _)| *index == result.ticket_index);
        let first = planned_rows.iter().zip(rows).find(|(_, result)| is_blocked(result));
        let first_of_act = first.filter(|_| blocks.len() > 1).map(|(row, _)| row.key);
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
                first_of_act,
                epoch: self.rules.epoch(&policy.name),
                at: *now,
            };
            row.push_block(events);
            row.push_debt(events);
            row.push_low_water(events);
            row.push_watched_ratio(events);
            // One act, however many keys of an `each` policy it blocks.
            if result.started == Some(Origin::Ban) && !banning.contains(id) {
                banning.push(*id);
            }
        }
        banning
    }

    /// Gives back the places that did not become bans: the exchange can outlive its answer.
    pub(super) fn give_back_places(&mut self) {
        if let SettleProgress::Settling(settle) = &mut self.progress {
            settle.ban_places.give_back();
        }
    }

    /// Counts the bans of the settle towards `ban_storm`.
    pub(super) fn count_bans(&mut self, banning: &[PolicyId], now: Time, events: &mut Events) {
        let SettleProgress::Settling(settle) = &mut self.progress else { return };
        for id in banning {
            let policy = self.rules.catalog.policy(*id);
            if settle.ban_places.record_ban(policy, now) {
                events.push(Event::BanStorm { at: now, policy: policy.name.clone() });
            }
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

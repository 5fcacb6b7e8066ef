//! Settle and credit over a shared store. A check of the local fallback is settled on this node.
//!
//! While the store is unavailable, settles of its tickets are refused and can be repeated later.

use catraca_core::batch::{Batch, RowSettlement, SettleReply, SettleRow, StoredReference};
use catraca_core::digest::Key;
use catraca_core::settle_plan::SettlePlan;
use catraca_core::subject::Subject;
use catraca_core::ticket::Ticket;
use catraca_core::time::Time;

use super::SharedEngine;
use super::unsynced_blocks::UnsyncedBlock;
use crate::engine::{
    CreditCall, Settle, SettleTarget, ban_note, credit_result, recall_reply, settle_reply,
};
use crate::error::Error;
use crate::settlement::{CreditResult, Settlement};
use crate::store::{SharedStore, StoreError};

/// Which store has a reference.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReferenceSource {
    Shared,
    Local,
}

impl<S: SharedStore> SharedEngine<S> {
    /// Applies the outcome of an admitted check, once. A second settle returns the first result.
    pub async fn settle(&self, call: &Settle<'_>) -> Result<Settlement, Error> {
        let rules = self.engine.rules_snapshot();
        let ticket = match self.engine.resolve_settle_target(&rules, call)? {
            SettleTarget::Ticket(ticket) => *ticket,
            SettleTarget::Reference(key) => {
                let (found, _) = self.recall(key).await?;
                self.engine.owned_ticket(&rules, call, found)?
            }
        };
        let plan = self.engine.plan_settle(&rules, call, &ticket)?;
        let reply = self.apply_settle(&ticket, &plan).await?;
        self.update_from_settle(&ticket, &plan, &reply);
        Ok(self.engine.conclude_settle(&rules, call, &ticket, &plan, &reply))
    }

    /// Gives units back for a later event, once per reference and event.
    pub async fn credit(
        &self,
        namespace: &str,
        reference: &str,
        event: &str,
        subject: &Subject<'_>,
    ) -> Result<CreditResult, Error> {
        let rules = self.engine.rules_snapshot();
        let call = CreditCall { namespace, reference, event, subject };
        let key = self.engine.credit_key(&rules, &call)?;
        let (found, source) = self.recall(key).await?;
        let credited = match self.engine.plan_credit(&rules, &call, key, found.as_ref())? {
            Ok(plan) => {
                let batch = Batch::Credit(plan.batch);
                let reply = match source {
                    ReferenceSource::Shared => self.call_store(&batch).await?,
                    ReferenceSource::Local => self.apply_locally(&batch)?,
                };
                credit_result(&rules, &plan.policies, reply)?
            }
            Err(reason) => Err(reason),
        };
        self.engine.emit_credit(event, &credited);
        Ok(credited)
    }

    async fn apply_settle(&self, ticket: &Ticket, plan: &SettlePlan) -> Result<SettleReply, Error> {
        if !ticket.body.local {
            return settle_reply(self.call_store(&Batch::Settle(plan.batch.clone())).await?);
        }
        let mut batch = plan.batch.clone();
        batch.rows.iter_mut().for_each(|row| row.limit = row.limit.share(self.nodes()));
        settle_reply(self.apply_locally(&Batch::Settle(batch))?)
    }

    /// Reads a reference from the shared store, or from this node if a local fallback wrote it.
    async fn recall(&self, key: Key) -> Result<(Option<StoredReference>, ReferenceSource), Error> {
        let batch = Batch::Recall(key);
        let shared_reply = self.call_store(&batch).await;
        if let Ok(reply) = shared_reply {
            if let Some(found) = recall_reply(reply)? {
                return Ok((Some(found), ReferenceSource::Shared));
            }
            return Ok((recall_reply(self.apply_locally(&batch)?)?, ReferenceSource::Local));
        }
        match recall_reply(self.apply_locally(&batch)?)? {
            Some(found) => Ok((Some(found), ReferenceSource::Local)),
            None => Err(shared_reply.err().unwrap_or_else(StoreError::mismatched_reply).into()),
        }
    }

    fn update_from_settle(&self, ticket: &Ticket, plan: &SettlePlan, reply: &SettleReply) {
        let SettleReply::Settled { now, rows, already_settled: false } = reply else { return };
        if !ticket.body.local {
            self.charge_locally(plan);
        }
        for (planned, result) in plan.batch.rows.iter().zip(rows).filter(|(row, _)| !row.shadow) {
            self.store_ban(ticket, planned, result, *now);
        }
    }

    fn store_ban(&self, ticket: &Ticket, planned: &SettleRow, result: &RowSettlement, now: Time) {
        let Some((origin, until)) = result.started.zip(result.blocked_until) else { return };
        let ban = UnsyncedBlock {
            key: planned.key,
            until: self.to_local_time(until, now),
            origin,
            shadow: false,
            note: ban_note(planned, result),
        };
        match ticket.body.local {
            true => self.unsynced.add(ban),
            false => self.store_block_locally(ban),
        }
    }

    /// Charges the real cost to this node's share too. Bans and other blocks come from the shared
    /// store only.
    fn charge_locally(&self, plan: &SettlePlan) {
        let mut batch = plan.batch.clone();
        for row in &mut batch.rows {
            row.limit = row.limit.share(self.nodes());
            row.penalty = None;
            row.upstream = None;
            row.watch = None;
            row.bans.clear();
        }
        batch.reference = None;
        self.mirror(&Batch::Settle(batch));
    }
}

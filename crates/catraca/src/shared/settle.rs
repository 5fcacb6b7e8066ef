//! Settles over a shared store, and references, which the store or this node has.
//!
//! A check of the local fallback is settled on this node. While the store is unavailable, settles
//! of its tickets are refused and can be repeated later.

use catraca_core::batch::{Batch, Reply, SettleBatch, SettleReply, StoredReference};
use catraca_core::cell::Block;

use super::SharedDriver;
use crate::engine::{BatchTarget, Exchange, StoreReply, recall_reply};
use crate::error::Error;
use crate::store::StoreError;

impl SharedDriver {
    pub(super) async fn apply_settle<X: Exchange>(
        &self,
        exchange: &mut X,
    ) -> Result<StoreReply, Error> {
        let target = exchange.target();
        if target == BatchTarget::Local {
            exchange.localize(self.nodes());
        }
        let batch = exchange.batch().ok_or_else(StoreError::mismatched_reply)?;
        let reply = match target {
            BatchTarget::Shared => StoreReply::from_store(self.call_store(batch).await?),
            BatchTarget::Local => StoreReply::from_memory(self.apply_locally(batch)?),
        };
        if let (Batch::Settle(settle), Reply::Settle(result)) = (batch, &reply.reply) {
            self.update_from_settle(target, settle, result);
        }
        Ok(reply)
    }

    /// Reads a reference from the shared store, or from this node if the local fallback wrote it.
    pub(super) async fn apply_recall(&self, batch: &Batch) -> Result<StoreReply, Error> {
        let shared_reply = self.call_store(batch).await;
        let local = |found: Option<StoredReference>| StoreReply::from_memory(Reply::Recall(found));
        if let Ok(reply) = shared_reply {
            if let Some(found) = recall_reply(reply)? {
                return Ok(StoreReply::from_store(Reply::Recall(Some(found))));
            }
            return Ok(local(recall_reply(self.apply_locally(batch)?)?));
        }
        match recall_reply(self.apply_locally(batch)?)? {
            Some(found) => Ok(local(Some(found))),
            None => Err(shared_reply.err().unwrap_or_else(StoreError::mismatched_reply).into()),
        }
    }

    fn update_from_settle(&self, target: BatchTarget, settle: &SettleBatch, reply: &SettleReply) {
        let SettleReply::Settled { now, blocks, already_settled: false, .. } = reply else {
            return;
        };
        if target == BatchTarget::Shared {
            self.charge_locally(settle);
        }
        for row in settle.rows.iter().filter(|row| !row.shadow) {
            let started = blocks.iter().find(|(index, _)| *index == row.ticket_index);
            // A ban storm turns the bans of an enforcing row to shadow; those are not shared.
            let started = started.filter(|(_, block)| !block.shadow);
            let Some((_, block)) = started else { continue };
            let block = Block { until: self.to_local_time(block.until, *now), ..block.clone() };
            match target {
                BatchTarget::Local => {
                    self.add_unsynced(row.key, block, false);
                    // The store may be in use again since the check.
                    let why = "a ban was started without the store and is written to it first";
                    self.open_for_sync(&[row.key], why);
                }
                BatchTarget::Shared => self.store_block_locally(row.key, block),
            }
        }
    }

    /// Charges the real cost to this node's share too. Bans and other blocks come from the shared
    /// store only.
    fn charge_locally(&self, settle: &SettleBatch) {
        let mut batch = settle.clone();
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

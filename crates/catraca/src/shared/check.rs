//! Checks over a shared store: from the block cache, else by one call, else by the local fallback.

use std::sync::atomic::Ordering;

use catraca_core::batch::{Batch, CheckBatch, CheckReply, Reply};
use catraca_core::cell::Block;
use catraca_core::time::Span;

use super::SharedDriver;
use crate::engine::{Exchange, FailureModes, ReplySource, StoreReply, local_charge};
use crate::error::Error;
use crate::store::StoreError;

/// A block that a node wrote to the store again is ended within this time after its release. Until
/// then no node keeps it from a reply.
const RELEASE_SETTLES: Span = Span::from_secs(5);

impl SharedDriver {
    pub(super) async fn apply_check<X: Exchange>(
        &self,
        exchange: &mut X,
    ) -> Result<StoreReply, Error> {
        let Some(batch) = exchange.batch() else { return Err(no_batch()) };
        if let Some(cached) = self.find_cached_block(batch) {
            return Ok(cached);
        }
        match self.call_store_with_doubt(batch).await {
            Ok((reply, is_doubtful)) => {
                self.update_from_check(batch, &exchange.failure_modes(), &reply);
                Ok(StoreReply { is_doubtful, ..StoreReply::from_store(reply) })
            }
            Err(error) => {
                // Invalid input was refused before the first batch, so any error is the store's.
                if !exchange.localize(self.nodes()) {
                    return Err(error.into());
                }
                let Some(batch) = exchange.batch() else { return Err(no_batch()) };
                let reply = self.apply_locally(batch)?;
                let is_moving = matches!(error, StoreError::Moving { .. });
                self.note_unsynced(batch, &reply, is_moving);
                Ok(StoreReply::from_memory(reply))
            }
        }
    }

    /// The denial of the first row with a fresh cached block; the other rows are not evaluated.
    fn find_cached_block(&self, batch: &Batch) -> Option<StoreReply> {
        let Batch::Check(check) = batch else { return None };
        if !self.options.deny_cache || check.peek {
            return None;
        }
        let here = self.engine.now();
        let (index, (row, now)) = check
            .rows
            .iter()
            .enumerate()
            .find_map(|(index, row)| Some((index, self.block_cache.get_fresh(row, here)?)))?;
        self.cached_denials.fetch_add(1, Ordering::Relaxed);
        let rows = [row].into_iter().collect();
        let reply = CheckReply { now, passed: false, remembered: false, rows };
        let source = ReplySource::BlockCache { row: index };
        Some(StoreReply { reply: Reply::Check(reply), source, is_doubtful: false })
    }

    /// Updates the block cache, the fallback's blocks and its counters from a reply of the store.
    fn update_from_check(&self, batch: &Batch, failure_modes: &FailureModes, reply: &Reply) {
        let (Batch::Check(check), Reply::Check(reply)) = (batch, reply) else { return };
        if check.peek {
            return;
        }
        self.update_blocks(check, reply);
        // Admissions are charged to the fallback too, so that it does not start with full limits.
        if reply.passed
            && let Some(charge) = local_charge(check, failure_modes, self.nodes())
        {
            self.mirror(&Batch::Check(charge));
        }
    }

    fn update_blocks(&self, check: &CheckBatch, reply: &CheckReply) {
        let here = self.engine.now();
        let settled = reply.now.before(RELEASE_SETTLES);
        for (row, row_reply) in check.rows.iter().zip(&reply.rows).filter(|(row, _)| !row.shadow) {
            match &row_reply.block {
                // Perhaps another node wrote it again, and is about to end it.
                Some(_) if self.notices.is_released_since(row.key, settled) => {}
                Some(block) => {
                    if self.block_cache.insert(row, row_reply, here, reply.now) {
                        let until = self.to_local_time(block.until, reply.now);
                        self.store_block_locally(row.key, Block { until, ..Block::clone(block) });
                    }
                }
                None => self.remove_block_locally(row.key),
            }
        }
    }

    /// Notes the blocks that the local fallback has started: the store must get them before it is
    /// used again. Keys that are being moved do not keep it from being used for others.
    fn note_unsynced(&self, batch: &Batch, reply: &Reply, is_moving: bool) {
        let (Batch::Check(check), Reply::Check(reply)) = (batch, reply) else { return };
        let rows = check.rows.iter().zip(&reply.rows);
        for (row, row_reply) in rows.filter(|(_, row_reply)| row_reply.started) {
            if let Some(block) = &row_reply.block {
                self.add_unsynced(row.key, Block::clone(block), is_moving);
                if is_moving {
                    continue;
                }
                let why = "a block was started without the store and is written to it first";
                self.open_for_sync(&[row.key], why);
            }
        }
    }
}

/// Not reached: the driver asks for a reply only while there is a batch.
fn no_batch() -> Error {
    StoreError::mismatched_reply().into()
}

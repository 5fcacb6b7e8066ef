//! Operators' acts over a shared store: applied to the store, then to this node's fallback.
//!
//! While the store is unavailable a release or a reset is refused: the store would still have the
//! block. A block is accepted: it denies on this node at once, and is written to the store first
//! when that is back.

use std::sync::atomic::Ordering;

use catraca_core::batch::{Batch, Reply};
use catraca_core::cell::Block;
use catraca_core::digest::Key;

use super::SharedDriver;
use super::unsynced_blocks::blocks_to_batch;
#[cfg(feature = "records")]
use crate::engine::SWEEP_BATCH;
use crate::engine::StoreReply;
use crate::error::Error;
use crate::store::StoreError;

impl SharedDriver {
    /// Applies a block, an unblock or a reset. If an unblock or a reset times out, it is refused,
    /// but the store may have applied it; the next successful heartbeat undoes it.
    pub(super) async fn apply_act(&self, batch: &Batch) -> Result<StoreReply, Error> {
        let mut keys = Vec::new();
        batch.each_key(|key| keys.push(key));
        let is_block = matches!(batch, Batch::Block(_));
        let permitted = self.permit(batch);
        if is_block && permitted.is_err() {
            return self.block_locally(batch, false);
        }
        permitted?;
        let reply = self.call_store(batch).await;
        if is_block && let Err(StoreError::Unavailable { .. } | StoreError::Moving { .. }) = &reply
        {
            // Whether or not the store has applied it: writing a block twice changes nothing.
            let is_moving = matches!(reply, Err(StoreError::Moving { .. }));
            return self.block_locally(batch, is_moving);
        }
        if let Err(StoreError::Unavailable { .. }) = &reply {
            self.uncertain_keys.lock().extend(&keys);
            let why = "an operator's act timed out and may have been applied; it is undone first";
            self.open_for_sync(&keys, why);
        }
        let reply: Reply = reply?;
        self.mirror(batch);
        match (batch, &reply) {
            // A new block is not forgotten here: it may have been started without the store before,
            // and the later end wins.
            (Batch::Block(_), _) => {}
            // A block that is not the one to release stays.
            (Batch::Unblock(rows), Reply::Unblock(released)) => {
                let rows = rows.iter().zip(released);
                let freed = rows.filter(|(row, released)| **released || row.only_until.is_none());
                let freed: Vec<Key> = freed.map(|(row, _)| row.key).collect();
                self.unsynced.forget(&freed);
            }
            _ => self.unsynced.forget(&keys),
        }
        self.forget(keys);
        Ok(StoreReply::from_store(reply))
    }

    /// Blocks on this node alone. The store gets the block before it is used again, and the records
    /// carry it to other nodes if they share them. Keys that are being moved do not keep the store
    /// from being used for others.
    fn block_locally(&self, batch: &Batch, is_moving: bool) -> Result<StoreReply, Error> {
        let reply = self.apply_locally(batch)?;
        if let (Batch::Block(rows), Reply::Block(replies)) = (batch, &reply) {
            let blocked = rows.iter().zip(replies);
            for ((key, _), reply) in blocked {
                if let Some(reply) = reply {
                    self.add_unsynced(*key, reply.block.clone(), is_moving);
                }
            }
        }
        if !is_moving {
            let mut keys = Vec::new();
            batch.each_key(|key| keys.push(key));
            let why =
                "an operator blocked a key without the store; the block is written to it first";
            self.open_for_sync(&keys, why);
        }
        Ok(StoreReply::from_memory(reply))
    }

    /// Adds a block that the store does not have yet. If there are too many, the primary of the one
    /// that is dropped gets all blocks of this node before it is used again.
    pub(super) fn add_unsynced(&self, key: Key, block: Block, is_moving: bool) {
        let dropped = self.unsynced.add(key, block, is_moving, self.engine.now());
        let Some(dropped) = dropped else { return };
        self.dropped_unsynced.fetch_add(1, Ordering::Relaxed);
        // If it is not known which one has the key, each gets them.
        let of_key = self.store.primary_of(dropped);
        for (id, primary) in self.primaries.all() {
            if of_key.is_none_or(|of_key| of_key == id) {
                primary.needs_all_blocks.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Frees the memory of blocks from before a policy reset, on the store and on this node.
    #[cfg(feature = "records")]
    pub async fn sweep(&self, keys: &[Key]) -> Result<(), Error> {
        for chunk in keys.chunks(SWEEP_BATCH) {
            let batch = Batch::Reset(chunk.to_vec());
            self.mirror(&batch);
            self.unsynced.forget(chunk);
            self.forget(chunk.iter().copied());
            self.call_store(&batch).await?;
        }
        Ok(())
    }

    fn forget(&self, keys: impl IntoIterator<Item = Key>) {
        for key in keys {
            self.block_cache.forget(key);
        }
    }

    /// Stores a block in the local fallback, so that it denies while the store is unavailable.
    pub(super) fn store_block_locally(&self, key: Key, block: Block) {
        self.mirror(&blocks_to_batch(&[(key, block)], self.engine.now()));
    }

    /// The store's reply shows no block for this key: removes it from the cache and the fallback.
    pub(super) fn remove_block_locally(&self, key: Key) {
        if self.block_cache.forget(key) {
            self.mirror(&Batch::Unblock(vec![key.into()]));
        }
    }
}

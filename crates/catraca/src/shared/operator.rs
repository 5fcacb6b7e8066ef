//! Operators' acts over a shared store: applied to the store, then to this node's fallback.
//!
//! While the store is unavailable an act is refused: an acknowledged act is effective on every
//! node.

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
    /// Applies a block, an unblock or a reset. If it times out, the act is refused, but the store
    /// may have applied it; the next successful heartbeat undoes it.
    pub(super) async fn apply_act(&self, batch: &Batch) -> Result<StoreReply, Error> {
        let mut keys = Vec::new();
        batch.each_key(|key| keys.push(key));
        self.breaker.permit()?;
        let reply = self.call_store(batch).await;
        if let Err(StoreError::Unavailable { .. }) = &reply {
            self.uncertain_keys.lock().extend(&keys);
            self.breaker.open_for_sync(
                "an operator's act timed out and may have been applied; it is undone first",
            );
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

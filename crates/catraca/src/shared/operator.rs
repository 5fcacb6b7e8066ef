//! Operators' acts over a shared store: applied to the store, then to this node's fallback.
//!
//! While the store is unavailable an act is refused: an acknowledged act is effective on every
//! node.

use catraca_core::batch::{Batch, Reply};
use catraca_core::digest::Key;
use catraca_core::subject::Subject;

use super::SharedEngine;
use super::unsynced_blocks::{UnsyncedBlock, blocks_to_batch};
use crate::engine::{BlockOrder, SWEEP_BATCH, block_batch, keys_only};
use crate::error::Error;
use crate::settlement::BlockedKey;
use crate::store::{SharedStore, StoreError};

impl<S: SharedStore> SharedEngine<S> {
    /// Blocks a subject under one policy. For an `each` policy, blocks every key of the subject.
    pub async fn block(&self, order: &BlockOrder<'_>) -> Result<Vec<BlockedKey>, Error> {
        let (keys, epoch) = self.engine.block_targets(&self.engine.rules_snapshot(), order)?;
        let batch = block_batch(order, &keys);
        let reply = self.apply_act(&batch, &keys_only(&keys)).await?;
        self.mirror(&batch);
        self.forget(keys.iter().map(|(key, _)| *key));
        self.engine.conclude_block(order, keys, epoch, reply)
    }

    /// Ends the blocks of a subject under one policy. Returns whether any was active.
    pub async fn unblock(
        &self,
        namespace: &str,
        policy: &str,
        subject: &Subject<'_>,
    ) -> Result<bool, Error> {
        let keys =
            self.engine.resolve_keys(&self.engine.rules_snapshot(), namespace, policy, subject)?;
        let reply = self.apply_release(Batch::Unblock(keys_only(&keys))).await?;
        self.engine.conclude_unblock(namespace, policy, keys, reply)
    }

    /// Ends one block that was found in the records. Returns whether it was active.
    #[cfg(feature = "records")]
    pub async fn release(&self, block: &crate::records::BlockRow) -> Result<bool, Error> {
        let reply = self.apply_release(Batch::Unblock(vec![block.key])).await?;
        self.engine.conclude_release(block, reply)
    }

    /// Clears counters, block, level and ban counts of a subject under one policy.
    pub async fn reset(
        &self,
        namespace: &str,
        policy: &str,
        subject: &Subject<'_>,
    ) -> Result<(), Error> {
        let keys =
            self.engine.resolve_keys(&self.engine.rules_snapshot(), namespace, policy, subject)?;
        self.apply_release(Batch::Reset(keys_only(&keys))).await?;
        self.engine.emit_reset(namespace, policy, keys);
        Ok(())
    }

    /// Frees the memory of blocks from before a policy reset, on the store and on this node.
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

    /// Applies an unblock or a reset to the store and to this node. Other nodes notice at their
    /// next heartbeat.
    async fn apply_release(&self, batch: Batch) -> Result<Reply, Error> {
        let keys = match &batch {
            Batch::Unblock(keys) | Batch::Reset(keys) => keys.clone(),
            _ => Vec::new(),
        };
        let reply = self.apply_act(&batch, &keys).await?;
        self.mirror(&batch);
        if let Batch::Unblock(keys) | Batch::Reset(keys) = batch {
            self.unsynced.forget(&keys);
            self.forget(keys);
        }
        self.publish_change().await;
        Ok(reply)
    }

    /// Applies an act to the store. If it times out, the act is refused, but the store may have
    /// applied it; the next successful heartbeat undoes it.
    async fn apply_act(&self, batch: &Batch, keys: &[Key]) -> Result<Reply, Error> {
        self.breaker.permit()?;
        let reply = self.call_store(batch).await;
        if let Err(StoreError::Unavailable { .. }) = &reply {
            self.uncertain_keys.lock().extend(keys);
            self.breaker.open_for_sync(
                "an operator's act timed out and may have been applied; it is undone first",
            );
        }
        Ok(reply?)
    }

    fn forget(&self, keys: impl IntoIterator<Item = Key>) {
        for key in keys {
            self.block_cache.forget(key);
        }
    }

    /// Stores a block in the local fallback, so that it denies while the store is unavailable.
    pub(super) fn store_block_locally(&self, block: UnsyncedBlock) {
        self.mirror(&blocks_to_batch(&[block], self.engine.now()));
    }

    /// The store's reply shows no block for this key: removes it from the cache and the fallback.
    pub(super) fn remove_block_locally(&self, key: Key) {
        if self.block_cache.forget(key) {
            self.mirror(&Batch::Unblock(vec![key]));
        }
    }
}

//! Operators' acts with other nodes: on the store, then on this node, which may be alone later.
//!
//! While the store is away an act is refused: what is acknowledged is in force everywhere.

use catraca_core::batch::{Batch, Reply};
use catraca_core::digest::Key;
use catraca_core::subject::Subject;

use super::SharedEngine;
use super::owing::{Owed, telling};
use crate::engine::{BlockOrder, SWEPT, bare, ordering};
use crate::error::Error;
use crate::settlement::BlockedKey;
use crate::store::{SharedStore, StoreError};

impl<S: SharedStore> SharedEngine<S> {
    /// Blocks a subject under one policy; every key of an `each` policy.
    pub async fn block(&self, order: &BlockOrder<'_>) -> Result<Vec<BlockedKey>, Error> {
        let (keys, epoch) = self.engine.ordered(&self.engine.world_now(), order)?;
        let batch = ordering(order, &keys);
        let reply = self.act(&batch, &bare(&keys)).await?;
        self.mirror(&batch);
        self.forget(keys.iter().map(|(key, _)| *key));
        self.engine.blocked(order, (keys, epoch), reply)
    }

    /// Ends the blocks of a subject under one policy; says whether any stood.
    pub async fn unblock(
        &self,
        namespace: &str,
        policy: &str,
        subject: &Subject<'_>,
    ) -> Result<bool, Error> {
        let keys = self.engine.keys(&self.engine.world_now(), namespace, policy, subject)?;
        let reply = self.end(Batch::Unblock(bare(&keys))).await?;
        self.engine.unblocked((namespace, policy), keys, reply)
    }

    /// Ends one block, as the records name it; says whether it stood.
    #[cfg(feature = "records")]
    pub async fn release(&self, block: &crate::records::BlockRow) -> Result<bool, Error> {
        let reply = self.end(Batch::Unblock(vec![block.key])).await?;
        self.engine.released(block, reply)
    }

    /// Forgets counters, block, level and ban counts of a subject under one policy.
    pub async fn reset(
        &self,
        namespace: &str,
        policy: &str,
        subject: &Subject<'_>,
    ) -> Result<(), Error> {
        let keys = self.engine.keys(&self.engine.world_now(), namespace, policy, subject)?;
        self.end(Batch::Reset(bare(&keys))).await?;
        self.engine.record_reset((namespace, policy), keys);
        Ok(())
    }

    /// Gives back the room that blocks from before a whole reset still take, on the store and here.
    pub async fn sweep(&self, keys: &[Key]) -> Result<(), Error> {
        for some in keys.chunks(SWEPT) {
            let batch = Batch::Reset(some.to_vec());
            self.mirror(&batch);
            self.owing.forget(some);
            self.forget(some.iter().copied());
            self.ask(&batch).await?;
        }
        Ok(())
    }

    /// An act that frees keys, on the store and here; other nodes hear of it by the next beat.
    async fn end(&self, batch: Batch) -> Result<Reply, Error> {
        let keys = match &batch {
            Batch::Unblock(keys) | Batch::Reset(keys) => keys.clone(),
            _ => Vec::new(),
        };
        let reply = self.act(&batch, &keys).await?;
        self.mirror(&batch);
        if let Batch::Unblock(keys) | Batch::Reset(keys) = batch {
            self.owing.forget(&keys);
            self.forget(keys);
        }
        self.stir().await;
        Ok(reply)
    }

    /// Asks the store. An act without an answer is refused, but the store may have done it, or may
    /// do it later: the next beat that finds it puts that right.
    async fn act(&self, batch: &Batch, keys: &[Key]) -> Result<Reply, Error> {
        self.breaker.permit()?;
        let asked = self.ask(batch).await;
        if let Err(StoreError::Unavailable { .. }) = &asked {
            self.doubted.lock().extend(keys);
            self.breaker.hold("an act was given up, and it may have done it");
        }
        Ok(asked?)
    }

    fn forget(&self, keys: impl IntoIterator<Item = Key>) {
        for key in keys {
            self.known.forget(key);
        }
    }

    /// Takes note of a block here, so that it stands when the store does not.
    pub(super) fn note_block(&self, block: Owed) {
        self.mirror(&telling(&[block], self.engine.now()));
    }

    /// The store no longer shows a block that this node knew of.
    pub(super) fn note_free(&self, key: Key) {
        if self.known.forget(key) {
            self.mirror(&Batch::Unblock(vec![key]));
        }
    }
}

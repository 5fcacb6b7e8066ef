//! Calls to the primaries of the store: each has a circuit breaker of its own, and a batch with
//! keys on several primaries is sent in parts.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use catraca_core::batch::{Batch, Reply};
use catraca_core::digest::Key;

use super::SharedDriver;
use super::primaries::PrimaryState;
use crate::engine::{ReplySource, StoreReply};
use crate::event::Event;
use crate::store::{BatchPart, PrimaryId, StoreError, When, first_key, merge, split_by};

impl SharedDriver {
    /// The primary that has a key. Absent while no server has it; a call then fails at once,
    /// without a circuit breaker.
    pub(super) fn primary_state(&self, key: Key) -> Option<Arc<PrimaryState>> {
        self.store.primary_of(key).map(|id| self.primaries.get(id))
    }

    /// Whether a primary has a key.
    pub(super) fn is_on(&self, primary: PrimaryId, key: Key) -> bool {
        self.store.primary_of(key) == Some(primary)
    }

    /// An error if the circuit breaker of a key's primary is open.
    pub(super) fn permit(&self, batch: &Batch) -> Result<(), StoreError> {
        let mut permitted = Ok(());
        batch.each_key(|key| {
            if permitted.is_ok()
                && let Some(primary) = self.primary_state(key)
            {
                permitted = primary.breaker.permit();
            }
        });
        permitted
    }

    /// Closes the way to the primaries of some keys until the next heartbeat has brought them up to
    /// date.
    pub(super) fn open_for_sync(&self, keys: &[Key], why: &str) {
        for primary in keys.iter().filter_map(|key| self.primary_state(*key)) {
            self.count_opening(primary.breaker.open_for_sync(why));
        }
    }

    pub(super) fn count_opening(&self, has_opened: bool) {
        self.breaker_opened.fetch_add(u64::from(has_opened), Ordering::Relaxed);
    }

    /// The parts of a batch that has keys on several primaries.
    pub(super) fn split_by_primary(&self, batch: &Batch) -> Option<Vec<BatchPart>> {
        if !self.store.is_sharded() {
            return None;
        }
        split_by(batch, |key| self.store.primary_of(key))
    }

    /// Applies a batch to the shared store, unless the circuit breaker of one of its primaries is
    /// open.
    pub(super) async fn call_store(&self, batch: &Batch) -> Result<Reply, StoreError> {
        Ok(self.call_store_with_doubt(batch).await?.0)
    }

    /// Applies a batch as [`Self::call_store`] does, and returns whether a server that has answered
    /// may have been replaced by then.
    pub(super) async fn call_store_with_doubt(
        &self,
        batch: &Batch,
    ) -> Result<(Reply, bool), StoreError> {
        let Some(parts) = self.split_by_primary(batch) else {
            return self.call_primary(batch).await;
        };
        self.permit(batch)?;
        let mut replies = Vec::with_capacity(parts.len());
        let mut any_doubtful = false;
        for (rows, part) in parts {
            let reply = self.call_primary(&part).await;
            let is_first = replies.is_empty();
            let reply =
                reply.map_err(|error| if is_first { error } else { error.after_other_parts() });
            let (reply, is_doubtful) = reply?;
            any_doubtful |= is_doubtful;
            replies.push((rows, reply));
        }
        let reply = merge(replies).ok_or_else(StoreError::mismatched_reply)?;
        Ok((reply, any_doubtful))
    }

    /// Applies a batch whose keys are all on one primary.
    async fn call_primary(&self, batch: &Batch) -> Result<(Reply, bool), StoreError> {
        let primary = first_key(batch).and_then(|key| self.primary_state(key));
        if let Some(primary) = &primary {
            primary.breaker.permit()?;
        }
        let from = self.engine.now();
        let reply = self.store.apply_with_doubt(batch, When::Store).await;
        let took = self.engine.now().since(from);
        self.engine.emit(&Event::StoreCalled { took, failed: reply.is_err() });
        if let Some(primary) = primary {
            match &reply {
                Err(StoreError::Unavailable { reason }) => {
                    self.count_opening(primary.breaker.on_failure(reason));
                }
                Err(other) => primary.breaker.on_error_reply(&other.to_string()),
                Ok(_) => primary.breaker.on_success(),
            }
        }
        reply
    }
}

impl StoreReply {
    pub(super) fn from_store(reply: Reply) -> Self {
        Self { reply, source: ReplySource::Store, is_doubtful: false }
    }

    pub(super) fn from_memory(reply: Reply) -> Self {
        Self { reply, source: ReplySource::Local, is_doubtful: false }
    }
}

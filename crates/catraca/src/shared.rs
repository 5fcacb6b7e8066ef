//! The driver for a store that several nodes share: carries the batches of an operation to the
//! store, and gives an answer in time even if the store is unavailable.
//!
//! The steps and rules of an operation are in its exchange (`engine`). This module adds what the
//! network needs: a circuit breaker, a cache of blocks, heartbeats, and the memory of this node as
//! the local fallback, according to each policy's `on_failure`. When the store fails, nothing that
//! a caller sent may choose the outcome, and no block may be lifted.

mod block_cache;
mod breaker;
mod check;
mod heartbeat;
mod operator;
#[cfg(feature = "records")]
mod resume;
mod settle;
mod unsynced_blocks;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwapOption;
use catraca_core::batch::{Batch, Reply, SettleReply};
use catraca_core::digest::Key;
use catraca_core::time::Time;
use parking_lot::Mutex;

use crate::engine::{BatchTarget, Builder, Engine, Events, Exchange, ReplySource, StoreReply};
use crate::error::Error;
use crate::event::Event;
use crate::store::{SharedStore, Store, StoreError, StoreStatus, When};
use block_cache::BlockCache;
use breaker::Breaker;
use unsynced_blocks::UnsyncedBlocks;

pub use heartbeat::HeartbeatReport;
pub(crate) use heartbeat::run_heartbeat;

/// Drives operations over a store that other nodes use too, with a local fallback.
pub(crate) struct SharedDriver {
    /// The rules, and the memory store of the local fallback.
    engine: Arc<Engine>,
    store: Arc<dyn SharedStore>,
    options: SharedOptions,
    breaker: Breaker,
    block_cache: BlockCache,
    /// Blocks that this node started without the store and must still write to it.
    unsynced: UnsyncedBlocks,
    /// The last status of the store, and the offset of its clock to this node's, in microseconds.
    last_status: Mutex<Option<(StoreStatus, i64)>>,
    cached_denials: AtomicU64,
    /// Changes that the local fallback could not apply.
    failed_mirrors: AtomicU64,
    /// Why the store's change counter does not include the last change yet, if so.
    publish_error: ArcSwapOption<String>,
    /// Keys of operators' acts that timed out: the store may have applied them.
    uncertain_keys: Mutex<Vec<Key>>,
    #[cfg(feature = "records")]
    records: std::sync::OnceLock<resume::RecordsFollower>,
}

/// Options of a node of several that share a store.
///
/// ```
/// use catraca::SharedOptions;
///
/// let options = SharedOptions { nodes: 3, ..SharedOptions::default() };
/// assert!(options.deny_cache);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct SharedOptions {
    /// How many nodes use the store. In the local fallback each node applies its share of a limit.
    pub nodes: u32,
    /// Whether a cached block denies without a call to the store, for at most a second.
    pub deny_cache: bool,
}

/// Statistics of the connection to the shared store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedStats {
    /// Whether the store is in use, that is, the circuit breaker is closed.
    pub up: bool,
    /// The last error of the store.
    pub error: Option<String>,
    /// A setting of the store that may lose blocks, and how to fix it.
    pub config_warning: Option<String>,
    /// How many times the circuit breaker has opened.
    pub breaker_opened: u64,
    /// Why a task of the store in the background fails, and the consequence.
    pub background_error: Option<String>,
    /// Changes of the store that this node could not apply to its local fallback.
    pub failed_mirrors: u64,
    /// Denials from the block cache.
    pub cached_denials: u64,
    /// Blocks in the block cache.
    pub cached_blocks: usize,
    /// Blocks that this node must still write to the store.
    pub unsynced_blocks: usize,
    /// How far the store's clock is ahead of this node's, in microseconds.
    pub clock_offset: Option<i64>,
}

/// The builder has no secret. Keys and tickets must be the same on every node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nodes that share a store must share a secret: set the same one on every node")]
pub struct NoSecret;

impl Default for SharedOptions {
    fn default() -> Self {
        Self { nodes: 1, deny_cache: true }
    }
}

impl SharedDriver {
    /// A driver over a store. The memory store that the builder sets up decides while the shared
    /// store is unavailable.
    pub fn new(
        builder: Builder,
        store: Arc<dyn SharedStore>,
        options: SharedOptions,
    ) -> Result<Self, NoSecret> {
        if !builder.has_secret() {
            return Err(NoSecret);
        }
        Ok(Self {
            engine: Arc::new(builder.shard_keys(store.is_sharded()).build()),
            store,
            options,
            breaker: Breaker::default(),
            block_cache: BlockCache::default(),
            unsynced: UnsyncedBlocks::default(),
            last_status: Mutex::default(),
            cached_denials: AtomicU64::new(0),
            failed_mirrors: AtomicU64::new(0),
            publish_error: ArcSwapOption::empty(),
            uncertain_keys: Mutex::default(),
            #[cfg(feature = "records")]
            records: std::sync::OnceLock::new(),
        })
    }

    /// The rules, and the memory of the local fallback. Its own operations do not use the shared
    /// store.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Carries batches to the store and replies back until the operation has its answer.
    pub async fn drive<X: Exchange>(
        &self,
        exchange: &mut X,
        events: &mut Events,
    ) -> Result<X::Answer, Error> {
        while let Some(batch) = exchange.batch() {
            let reply = match batch {
                Batch::Check(_) => self.apply_check(exchange).await?,
                Batch::Settle(_) => self.apply_settle(exchange).await?,
                Batch::Recall(_) => self.apply_recall(batch).await?,
                Batch::Credit(_) if exchange.target() == BatchTarget::Local => {
                    StoreReply::from_memory(self.apply_locally(batch)?)
                }
                Batch::Credit(_) | Batch::Reconcile(_) => {
                    StoreReply::from_store(self.call_store(batch).await?)
                }
                Batch::Block(_) | Batch::Unblock(_) | Batch::Reset(_) => {
                    self.apply_act(batch).await?
                }
            };
            exchange.on_reply(reply)?;
        }
        exchange.conclude(events)
    }

    /// Statistics of the connection to the shared store.
    pub fn stats(&self) -> SharedStats {
        let (up, breaker_opened, error) = self.breaker.state();
        let status = *self.last_status.lock();
        SharedStats {
            up,
            error,
            config_warning: self.store.config_warning(),
            breaker_opened,
            background_error: self.background_error(),
            failed_mirrors: self.failed_mirrors.load(Ordering::Relaxed),
            cached_denials: self.cached_denials.load(Ordering::Relaxed),
            cached_blocks: self.block_cache.len(),
            unsynced_blocks: self.unsynced.len(),
            clock_offset: status.map(|(_, clock_offset)| clock_offset),
        }
    }

    /// Makes every node read lists, facts and modes again. If the store is unavailable, the next
    /// successful heartbeat does it.
    pub async fn publish_change(&self) {
        let published = self.store.publish_change().await;
        self.publish_error.store(published.err().map(|error| Arc::new(error.to_string())));
    }

    /// Why a task in the background fails, and the consequence.
    fn background_error(&self) -> Option<String> {
        let unpublished = self.publish_error.load();
        let unpublished = unpublished.as_deref().map(|why| {
            format!("other nodes do not learn of a change of lists, facts, modes or blocks: {why}")
        });
        unpublished.or_else(|| self.store.background_error())
    }

    /// Applies a batch to the shared store, unless the circuit breaker is open.
    async fn call_store(&self, batch: &Batch) -> Result<Reply, StoreError> {
        self.breaker.permit()?;
        let from = self.engine.now();
        let reply = self.store.apply(batch, When::Store).await;
        let took = self.engine.now().since(from);
        self.engine.emit(&Event::StoreCalled { took, failed: reply.is_err() });
        match &reply {
            Err(StoreError::Unavailable { reason }) => self.breaker.on_failure(reason),
            Err(other) => self.breaker.on_error_reply(&other.to_string()),
            Ok(_) => self.breaker.on_success(),
        }
        reply
    }

    /// Applies a batch to the memory store of this node.
    fn apply_locally(&self, batch: &Batch) -> Result<Reply, StoreError> {
        self.engine.store().apply(batch, When::Store)
    }

    /// Applies a batch to the local fallback that the store has applied. The store has the state,
    /// so an error is only counted: the local fallback would then allow more than its share.
    fn mirror(&self, batch: &Batch) {
        match self.apply_locally(batch) {
            Err(_) | Ok(Reply::Settle(SettleReply::Full)) => {
                self.failed_mirrors.fetch_add(1, Ordering::Relaxed);
            }
            Ok(_) => {}
        }
    }

    fn nodes(&self) -> i64 {
        i64::from(self.options.nodes.max(1))
    }

    /// Converts an instant of the store's clock into one of this node's, so that the remaining time
    /// is the same.
    fn to_local_time(&self, at: Time, store_now: Time) -> Time {
        if at.is_forever() { at } else { self.engine.now().after(at.since(store_now)) }
    }
}

impl StoreReply {
    fn from_store(reply: Reply) -> Self {
        Self { reply, source: ReplySource::Store }
    }

    fn from_memory(reply: Reply) -> Self {
        Self { reply, source: ReplySource::Local }
    }
}

impl std::fmt::Debug for SharedDriver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedDriver").field("engine", &self.engine).finish_non_exhaustive()
    }
}

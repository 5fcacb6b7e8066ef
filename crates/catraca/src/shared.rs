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
#[cfg(feature = "records")]
mod erasures;
mod exchange_notices;
#[cfg(feature = "records")]
mod follow_records;
mod heartbeat;
#[cfg(feature = "records")]
mod known_rules;
#[cfg(feature = "records")]
mod node_scope;
mod notice;
mod notice_board;
mod operator;
mod peers;
mod primaries;
mod primary_calls;
#[cfg(feature = "records")]
mod recent_modes;
#[cfg(feature = "records")]
mod record_notices;
#[cfg(feature = "records")]
mod resume;
#[cfg(feature = "records")]
mod rule_changes;
#[cfg(feature = "records")]
mod rule_item;
mod settle;
mod stale_blocks;
mod stats;
mod unsynced_blocks;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwapOption;
use catraca_core::batch::{Batch, Reply, SettleReply, UnblockRow};
use catraca_core::digest::Key;
#[cfg(feature = "records")]
use catraca_core::ticket::MessageSealer;
use parking_lot::Mutex;

use crate::engine::{BatchTarget, Builder, Engine, Events, Exchange, StoreReply, random_bytes};
use crate::error::Error;
use crate::store::{PrimaryId, SharedStore, Store, StoreError, When};
use block_cache::BlockCache;
use exchange_notices::Agreement;
use notice_board::NoticeBoard;
use peers::Peers;
use primaries::{Primaries, PrimaryState};
use unsynced_blocks::UnsyncedBlocks;

pub use heartbeat::HeartbeatReport;
pub(crate) use heartbeat::run_heartbeat;
pub use primaries::UnavailablePrimary;
pub use stats::SharedStats;

/// Drives operations over a store that other nodes use too, with a local fallback.
pub(crate) struct SharedDriver {
    /// The rules, and the memory store of the local fallback.
    engine: Arc<Engine>,
    store: Arc<dyn SharedStore>,
    options: SharedOptions,
    primaries: Primaries,
    block_cache: BlockCache,
    /// Blocks that this node started without the store and must still write to it.
    unsynced: UnsyncedBlocks,
    /// The change counter up to which this node has read lists, facts and modes.
    changes_read: Mutex<Option<u64>>,
    cached_denials: AtomicU64,
    /// How many times the circuit breaker of a primary has opened.
    breaker_opened: AtomicU64,
    /// Blocks that did not fit into `unsynced`.
    dropped_unsynced: AtomicU64,
    /// Changes that the local fallback could not apply.
    failed_mirrors: AtomicU64,
    /// Why the store's change counter does not include the last change yet, if so.
    publish_error: ArcSwapOption<String>,
    /// Keys of operators' acts that timed out: the store may have applied them.
    uncertain_keys: Mutex<Vec<Key>>,
    /// A random id of this process.
    node_id: String,
    /// How operators call this node.
    node_name: OnceLock<String>,
    /// The notices to and from other nodes.
    notices: NoticeBoard,
    /// Held while notices are taken and sent, so that they arrive in their order.
    publishing: tokio::sync::Mutex<()>,
    /// Why notices could not be exchanged, if so.
    notice_error: ArcSwapOption<String>,
    /// Notices since the start that this node cannot read.
    unreadable_notices: AtomicU64,
    /// Why the blocks of the records could not be compared with those of the store, if so.
    agreement_error: ArcSwapOption<String>,
    heartbeats: heartbeat::LastHeartbeat,
    /// Since a loss of data, until blocks were compared with those of the store.
    agreement: Mutex<Option<Agreement>>,
    /// The blocks that this node wrote to the store again.
    written_blocks: Mutex<stale_blocks::WrittenBlocks>,
    /// Blocks that this node has written although another one had released them.
    stale_blocks: Mutex<Vec<UnblockRow>>,
    /// Such blocks for which that list had no room.
    dropped_stale: AtomicU64,
    peers: Peers,
    #[cfg(feature = "records")]
    records: OnceLock<follow_records::RecordsFollower>,
    #[cfg(feature = "records")]
    reads: follow_records::RecordsReads,
    /// With records of this node alone: the rules that all nodes share through the store.
    #[cfg(feature = "records")]
    node_scope: OnceLock<node_scope::NodeScope>,
    #[cfg(feature = "records")]
    sealer: MessageSealer,
    /// The modes that operators of any node set within the last minute, and those of the records.
    #[cfg(feature = "records")]
    recent_modes: Mutex<recent_modes::RecentModes>,
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
    /// Whether all nodes share their records.
    pub records: RecordsScope,
}

/// Which nodes write to the same records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecordsScope {
    /// All nodes that share the store, or the only one.
    #[default]
    Shared,
    /// Each node has records of its own: the store is the authority for blocks, lists, facts and
    /// modes, and the records have the history and the audit of one node. Only Redis can be that
    /// authority, and the feature `settle` is needed to encrypt the values.
    Node,
}

/// The builder has no secret. Keys and tickets must be the same on every node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nodes that share a store must share a secret: set the same one on every node")]
pub struct NoSecret;

impl Default for SharedOptions {
    fn default() -> Self {
        Self { nodes: 1, deny_cache: true, records: RecordsScope::Shared }
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
        #[cfg(feature = "records")]
        let sealer = builder.message_sealer();
        Ok(Self {
            engine: Arc::new(builder.shard_keys(store.is_sharded()).build()),
            store,
            options,
            primaries: Primaries::default(),
            block_cache: BlockCache::default(),
            unsynced: UnsyncedBlocks::default(),
            changes_read: Mutex::default(),
            cached_denials: AtomicU64::new(0),
            breaker_opened: AtomicU64::new(0),
            dropped_unsynced: AtomicU64::new(0),
            failed_mirrors: AtomicU64::new(0),
            publish_error: ArcSwapOption::empty(),
            uncertain_keys: Mutex::default(),
            node_id: format!("{:016x}", u64::from_le_bytes(random_bytes())),
            node_name: OnceLock::new(),
            notices: NoticeBoard::default(),
            notice_error: ArcSwapOption::empty(),
            unreadable_notices: AtomicU64::new(0),
            agreement_error: ArcSwapOption::empty(),
            heartbeats: Default::default(),
            agreement: Mutex::default(),
            publishing: tokio::sync::Mutex::default(),
            written_blocks: Mutex::default(),
            stale_blocks: Mutex::default(),
            dropped_stale: AtomicU64::new(0),
            peers: Peers::default(),
            #[cfg(feature = "records")]
            records: OnceLock::new(),
            #[cfg(feature = "records")]
            reads: Default::default(),
            #[cfg(feature = "records")]
            node_scope: OnceLock::new(),
            #[cfg(feature = "records")]
            sealer,
            #[cfg(feature = "records")]
            recent_modes: Mutex::default(),
        })
    }

    /// The rules, and the memory of the local fallback. Its own operations do not use the shared
    /// store.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Names this node for operators; the first call counts.
    pub fn set_node_name(&self, name: &str) {
        let _ = self.node_name.set(name.to_owned());
    }

    fn node_name(&self) -> &str {
        self.node_name.get().unwrap_or(&self.node_id)
    }

    /// The other nodes that were alive when the store last answered.
    #[cfg(feature = "records")]
    pub fn node_names(&self) -> Vec<String> {
        self.peers.names()
    }

    /// Whether the store is in use.
    pub fn is_up(&self) -> bool {
        self.unavailable_primaries().is_empty()
    }

    /// Carries batches to the store and replies back until the operation has its answer.
    pub async fn drive<X: Exchange>(
        &self,
        exchange: &mut X,
        events: &mut Events,
    ) -> Result<X::Answer, Error> {
        while let Some(batch) = exchange.batch() {
            #[cfg(feature = "records")]
            let is_read = matches!(batch, Batch::Check(_) | Batch::Recall(_));
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
            #[cfg(feature = "records")]
            if !is_read && reply.source.is_local() {
                events.set_local();
            }
            exchange.on_reply(reply)?;
        }
        exchange.conclude(events)
    }

    /// The primaries whose circuit breaker is open.
    fn unavailable_primaries(&self) -> Vec<UnavailablePrimary> {
        let unavailable = |(id, state): (PrimaryId, Arc<PrimaryState>)| {
            let error = state.breaker.permit().err()?;
            let error = match error {
                StoreError::Unavailable { reason } => reason,
                other => other.to_string(),
            };
            Some(UnavailablePrimary { name: self.store.primary_name(id), error })
        };
        self.primaries.all().into_iter().filter_map(unavailable).collect()
    }

    /// Makes every node read lists, facts and modes again. If the store is unavailable, the next
    /// successful heartbeat does it.
    pub async fn publish_change(&self) {
        let published = self.store.publish_change().await;
        self.publish_error.store(published.err().map(|error| Arc::new(error.to_string())));
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
}

impl std::fmt::Debug for SharedDriver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedDriver").field("engine", &self.engine).finish_non_exhaustive()
    }
}

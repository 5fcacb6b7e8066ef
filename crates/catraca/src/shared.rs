//! The engine over a store that nodes share: the same verbs, awaited, and an answer in time
//! whatever becomes of the store.
//!
//! The rules are the engine's: each verb is its two halves around one trip. What is here is what a
//! trip adds: a breaker, blocks that this node knows of, and a store in process that takes over by
//! each policy's `on_failure`. Must not decide by anything that a caller sent when the store
//! fails, nor lift a block.

mod acts;
mod alone;
mod beat;
mod breaker;
mod check;
mod known;
mod owing;
#[cfg(feature = "records")]
mod resume;
mod settle;
mod states;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use catraca_core::batch::{Batch, Reply};
use catraca_core::digest::Key;
use catraca_core::time::Time;
use parking_lot::Mutex;

use crate::engine::{Builder, Engine};
use crate::event::Event;
use crate::store::{Pulse, SharedStore, Store, StoreError, When};
use breaker::Breaker;
use known::Known;
use owing::Owing;

pub use beat::{Beat, tend};

/// Decides with other nodes, and alone when it must.
pub struct SharedEngine<S> {
    /// The rules, and the store in process that stands in.
    engine: Arc<Engine>,
    store: S,
    options: SharedOptions,
    breaker: Breaker,
    known: Known,
    /// Blocks that were started alone, for the store when it is back.
    owing: Owing,
    /// The last sign of life, and how far the store's clock was ahead, in microseconds.
    heard: Mutex<Option<(Pulse, i64)>>,
    cached: AtomicU64,
    /// Whether other nodes have still to be told of a change.
    untold: AtomicBool,
    /// Keys of acts that were refused because no answer came.
    doubted: Mutex<Vec<Key>>,
    #[cfg(feature = "records")]
    records: std::sync::OnceLock<resume::Kept>,
}

/// How an engine shares.
#[derive(Clone, Copy, Debug)]
pub struct SharedOptions {
    /// How many nodes share the store: alone, each gives its part of a limit.
    pub nodes: u32,
    /// Whether a block that this node knows of denies without a trip, for at most a second.
    pub deny_cache: bool,
}

/// What sharing has come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedStats {
    /// Whether the store is asked at all.
    pub up: bool,
    /// Why it is not, or was not last.
    pub trouble: Option<String>,
    /// What is set there that puts blocks in danger, and what helps.
    pub danger: Option<String>,
    /// How often the breaker has opened.
    pub opened: u64,
    /// Denials without a trip.
    pub cached: u64,
    /// Blocks that this node knows of.
    pub known: usize,
    /// Blocks that the store has not yet been told of.
    pub owing: usize,
    /// How far the store's clock is ahead of this node's, in microseconds.
    pub ahead: Option<i64>,
}

/// Digests and tickets must be the same on every node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nodes that share a store must share a secret: give the same one to each")]
pub struct NoSecret;

impl Default for SharedOptions {
    fn default() -> Self {
        Self { nodes: 1, deny_cache: true }
    }
}

impl Builder {
    /// The engine over a store that several nodes share. The memory set up here is what decides
    /// while the store cannot be reached.
    pub fn share<S: SharedStore>(
        self,
        store: S,
        options: SharedOptions,
    ) -> Result<SharedEngine<S>, NoSecret> {
        if !self.has_secret() {
            return Err(NoSecret);
        }
        Ok(SharedEngine {
            engine: Arc::new(self.spread(store.spreads()).build()),
            store,
            options,
            breaker: Breaker::default(),
            known: Known::default(),
            owing: Owing::default(),
            heard: Mutex::default(),
            cached: AtomicU64::new(0),
            untold: AtomicBool::new(false),
            doubted: Mutex::default(),
            #[cfg(feature = "records")]
            records: std::sync::OnceLock::new(),
        })
    }
}

impl<S> SharedEngine<S> {
    /// The rules in force: catalog, lists, facts and modes are read and changed there. Its own
    /// verbs decide alone.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// The store.
    pub fn store(&self) -> &S {
        &self.store
    }
}

impl<S: SharedStore> SharedEngine<S> {
    /// What sharing has come to.
    pub fn stats(&self) -> SharedStats {
        let (up, opened, trouble) = self.breaker.state();
        let heard = *self.heard.lock();
        SharedStats {
            up,
            trouble,
            danger: self.store.danger(),
            opened,
            cached: self.cached.load(Ordering::Relaxed),
            known: self.known.len(),
            owing: self.owing.len(),
            ahead: heard.map(|(_, ahead)| ahead),
        }
    }

    /// Tells every node to look for lists, facts and modes again; through a store that is away, as
    /// soon as a beat finds it.
    pub async fn stir(&self) {
        let told = self.store.stir().await.is_ok();
        self.untold.store(!told, Ordering::Relaxed);
    }

    /// One trip, unless the breaker spares it.
    async fn ask(&self, batch: &Batch) -> Result<Reply, StoreError> {
        self.breaker.permit()?;
        let from = self.engine.now();
        let reply = self.store.apply(batch, When::Store).await;
        let took = self.engine.now().since(from);
        self.engine.record(&Event::Asked { took, failed: reply.is_err() });
        match &reply {
            Err(StoreError::Unavailable { reason }) => self.breaker.failed(reason),
            Err(other) => self.breaker.refused(&other.to_string()),
            Ok(_) => self.breaker.succeeded(),
        }
        reply
    }

    /// The same batch on the store in process; it is never away.
    fn apply_alone(&self, batch: &Batch) -> Result<Reply, StoreError> {
        self.engine.store().apply(batch, When::Store)
    }

    /// An instant of the store as one of this node, so that what is left of it is the same.
    fn here(&self, at: Time, store_now: Time) -> Time {
        if at.is_forever() { at } else { self.engine.now().after(at.since(store_now)) }
    }
}

impl<S> std::fmt::Debug for SharedEngine<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SharedEngine").field("engine", &self.engine).finish_non_exhaustive()
    }
}

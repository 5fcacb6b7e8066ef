//! What every front end works with: the engine, locks, records, and the configuration that a
//! reload replaces.
//!
//! No type of a protocol belongs here.

mod debug_log;
pub mod engine_calls;

use std::sync::Arc;

use arc_swap::ArcSwap;
use catraca::Engine;
use catraca::engine::ResumeSummary;
use catraca::records::Records;
use tokio::sync::Semaphore;

use crate::auth::{AuthError, Caller};
use crate::config::ReloadableConfig;
use crate::feed::Feed;
use crate::listener::Connections;
use crate::listener::tls::Tls;
use crate::lock_service::LockService;
use crate::observe::Observer;
use crate::observe::call_metrics::CallMetrics;
use crate::observe::traces::Traces;
use crate::reload::Reloader;
use crate::shared_store::SharedEngine;

pub use engine_calls::CheckMode;

/// What the handlers of requests work with.
pub struct ServerContext {
    /// The engine of this process; decides when `shared` is none, and always holds the catalog.
    pub engine: Arc<Engine>,
    /// The engine over a store that nodes share, with the same catalog; decides when it is there.
    pub shared: Option<Arc<SharedEngine>>,
    /// Locks and slots, in this process or in the shared store.
    pub locks: Arc<LockService>,
    /// Durable records, unless `[records] url` is `none`.
    pub records: Option<Arc<Records>>,
    /// The live feed of events.
    pub feed: Arc<Feed>,
    /// The keys and the settings that a reload replaces.
    pub reloadable: Arc<ArcSwap<ReloadableConfig>>,
    /// Applies changed catalogs.
    pub reloader: Arc<Reloader>,
    /// The current certificate, if connections are encrypted.
    pub tls: Option<Arc<Tls>>,
    /// Sends spans to the collector of `[server] traces`, if there is one.
    pub traces: Option<Arc<Traces>>,
    /// All connections, of every front end.
    pub connections: Arc<Connections>,
    /// Counts and latencies of responses, of every front end.
    pub calls: CallMetrics,
    /// Metrics and log lines.
    pub observer: Arc<Observer>,
    /// What was restored from the records at the start.
    pub restored: ResumeSummary,
    /// Permits for settles that run on threads for blocking work; see `offload_permits`.
    pub offload_permits: Arc<Semaphore>,
}

impl ServerContext {
    /// The caller of the key that a request presents, by the current keys.
    pub fn find_caller(&self, key: Option<&[u8]>) -> Result<Arc<Caller>, AuthError> {
        self.reloadable.load().guard.caller(key)
    }

    /// Blocks that were not restored at the start because their memory pool was full; zero after
    /// the last of them has expired.
    pub fn blocks_not_restored(&self) -> u64 {
        let over = self.engine.now() >= self.restored.left_out_until;
        if over { 0 } else { self.restored.blocks_left_out }
    }
}

/// Permits for settles that run off the async workers at once: half of the cores, so that the
/// workers keep the other half.
pub fn offload_permits() -> Arc<Semaphore> {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Arc::new(Semaphore::new((cores / 2).max(1)))
}

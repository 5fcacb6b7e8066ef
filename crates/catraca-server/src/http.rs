//! The HTTP front end: from accepted sockets to engine calls and JSON responses.
//!
//! A connection is admitted by `admission`, tracked by `connections` and served by `dispatch`,
//! which authenticates each request (`auth`) and sends it to `check` or to the `router`. `wire`
//! holds the request bodies; `check`, `settle`, `credit_and_buckets`, `authorize`, `locks` and
//! `admin` turn them into engine calls. `roles` lists every call with its role; `openapi` describes
//! them. No rule of rate limiting is here: the engine decides.

mod admin;
mod auth;
mod authorize;
mod check;
mod connection;
mod credit_and_buckets;
mod debug_log;
mod dispatch;
mod engine_calls;
mod feed;
mod http_metrics;
mod locks;
mod openapi;
mod ready;
mod reloadable;
mod request;
mod response;
mod router;
mod settings;
mod settle;

use std::sync::Arc;

use arc_swap::ArcSwap;
use catraca::engine::ResumeSummary;
use catraca::records::Records;
use catraca::{Engine, Locks};
use tokio::sync::Semaphore;

use crate::observe::Observer;
use crate::observe::traces::Traces;
use crate::reload::Reloader;
use crate::shared_store::SharedEngine;

pub use auth::{Guard, hash, plain_name};
pub use connection::listen::{ListenerView, bind};
pub use connection::table::CONNECTION_LIMITS;
pub use connection::tls::Tls;
pub use feed::Feed;
pub use http_metrics::{HistogramSnapshot, LatencyHistogram};
pub use openapi::document_text as openapi;
pub use reloadable::ReloadableConfig;
pub use settings::Settings;
pub use settle::offloaded_max;

/// What the handlers of requests work with. Cheap to clone: all fields are shared.
#[derive(Clone)]
pub struct App {
    /// The engine of this process; decides when `shared` is none, and always holds the catalog.
    pub engine: Arc<Engine>,
    /// The engine over a store that nodes share, with the same catalog; decides when it is there.
    pub shared: Option<Arc<SharedEngine>>,
    /// Locks and slots, in this process or in the shared store.
    pub locks: Arc<Locks>,
    /// Durable records, unless `[records] url` is `none`.
    pub records: Option<Arc<Records>>,
    /// The live feed of `GET /v1/events`.
    pub feed: Arc<Feed>,
    /// The keys and the settings that a reload replaces.
    pub reloadable: Arc<ArcSwap<ReloadableConfig>>,
    /// Applies changed catalogs.
    pub reloader: Arc<Reloader>,
    /// The current certificate, if connections are encrypted.
    pub tls: Option<Arc<Tls>>,
    /// Sends spans to the collector of `[server] traces`, if there is one.
    pub traces: Option<Arc<Traces>>,
    /// Metrics and log lines.
    pub observer: Arc<Observer>,
    /// What was restored from the records at the start.
    pub restored: ResumeSummary,
    /// Permits for settles that run on threads for blocking work; see `settle::offloaded_max`.
    pub offload_permits: Arc<Semaphore>,
}

impl App {
    /// Blocks that were not restored at the start because their memory pool was full; zero after
    /// the last of them has expired.
    pub fn blocks_not_restored(&self) -> u64 {
        let over = self.engine.now() >= self.restored.left_out_until;
        if over { 0 } else { self.restored.blocks_left_out }
    }
}

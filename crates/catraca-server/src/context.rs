//! What every front end works with: the application, and the configuration that a reload replaces.
//!
//! No type of a protocol belongs here.

mod caller_counts;
mod debug_log;

use std::sync::Arc;

use arc_swap::ArcSwap;
use catraca::engine::ResumeSummary;
use catraca::{App, AppError, Check, CheckMode, Decision, Error};
use tracing::{Level, enabled};

use crate::auth::{AuthError, Caller};
use crate::config::ReloadableConfig;
use crate::feed::Feed;
use crate::listener::Connections;
use crate::listener::tls::Tls;
use crate::observe::Observer;
use crate::observe::call_metrics::CallMetrics;
use crate::observe::proxy_metrics::ProxyMetrics;
use crate::observe::traces::Traces;
use crate::reload::Reloader;

pub use caller_counts::{CallerCounts, CallerGate};

/// What follows from a failed maintenance of the records, for the log and `/readyz`.
pub const RECORDS_NOT_MAINTAINED: &str = "the maintenance of the records fails, and is tried \
     again; their write-ahead log grows meanwhile: make room on the disk, or end what locks the \
     database";

/// The records are older than the snapshot: for the log and `/readyz`.
pub const ROWS_MISSING: &str = "acknowledged blocks, list entries or audited acts are missing from \
     the records: they have fewer rows than when the snapshot was written, because catraca.db-wal \
     was lost or an older copy was restored; repeat the missing acts, or restore a newer backup";

/// What the handlers of requests work with.
pub struct ServerContext {
    /// Every operation that a front end may offer.
    pub app: App,
    /// The live feed of `GET /v1/events`.
    pub feed: Arc<Feed>,
    /// The keys and the settings that a reload replaces.
    pub reloadable: Arc<ArcSwap<ReloadableConfig>>,
    /// Applies changed catalogs.
    pub reloader: Arc<Reloader>,
    /// The current certificate, if connections are encrypted.
    pub tls: Option<Arc<Tls>>,
    /// The same for the connections of the proxy.
    pub proxy_tls: Option<Arc<Tls>>,
    /// Sends spans to the collector of `[server] traces`, if there is one.
    pub traces: Option<Arc<Traces>>,
    /// All connections, of every front end.
    pub connections: Arc<Connections>,
    /// Counts and latencies of responses, of every front end.
    pub calls: CallMetrics,
    /// Counts of the reverse proxy.
    pub proxy_metrics: ProxyMetrics,
    /// Checks by the programs that send them.
    pub callers: CallerCounts,
    /// Metrics and log lines.
    pub observer: Arc<Observer>,
    /// What was restored from the records at the start.
    pub restored: ResumeSummary,
}

impl ServerContext {
    /// Checks or peeks, and logs the decision at the level `debug`.
    #[inline]
    pub async fn decide(&self, check: &Check<'_>, mode: CheckMode) -> Result<Decision, Error> {
        let decision = self.app.decide(check, mode).await;
        // One load of an atomic while the level is INFO.
        if enabled!(Level::DEBUG) {
            debug_log::log_decision(self, check, &decision);
        }
        decision
    }

    /// Decides a list of checks, one after the other, and logs as `decide` does.
    pub async fn check_batch(
        &self,
        checks: &[Check<'_>],
    ) -> Result<Vec<Result<Decision, Error>>, AppError> {
        let decisions = self.app.check_batch(checks).await?;
        if enabled!(Level::DEBUG) {
            let pairs = checks.iter().zip(&decisions);
            pairs.for_each(|(check, decision)| debug_log::log_decision(self, check, decision));
        }
        Ok(decisions)
    }

    /// The caller of the key that a request presents, by the current keys.
    pub fn find_caller(&self, key: Option<&[u8]>) -> Result<Arc<Caller>, AuthError> {
        self.reloadable.load().guard.caller(key)
    }

    /// Blocks that were not restored at the start because their memory pool was full; zero after
    /// the last of them has expired.
    pub fn blocks_not_restored(&self) -> u64 {
        let over = self.app.now() >= self.restored.left_out_until;
        if over { 0 } else { self.restored.blocks_left_out }
    }
}

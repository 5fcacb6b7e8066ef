//! Other nodes: the state at start, heartbeats, and notices of changes.

#[cfg(feature = "records")]
use std::sync::Arc;
#[cfg(feature = "records")]
use std::sync::atomic::Ordering;

use tokio::task::JoinHandle;

use super::App;
use crate::event::Event;
use crate::shared::{HeartbeatReport, SharedStats, run_heartbeat};
#[cfg(feature = "records")]
use crate::store::StoreError;

impl App {
    /// Statistics of the connection to the shared store, if there is one.
    pub fn shared_stats(&self) -> Option<SharedStats> {
        self.parts.shared.as_ref().map(|shared| shared.stats())
    }

    /// Names this node for operators, with a shared store; the first call counts.
    pub fn set_node_name(&self, name: &str) {
        if let Some(shared) = &self.parts.shared {
            shared.set_node_name(name);
        }
    }

    /// Whether the records are those of this node alone, and other nodes have others.
    #[cfg(feature = "records")]
    pub fn has_own_records(&self) -> bool {
        self.node_scope().is_some()
    }

    /// Runs heartbeats to the shared store on the current tokio runtime, until the application is
    /// dropped; calls `on_report` with each report. Without a shared store there are none.
    pub fn start_heartbeat(
        &self,
        on_report: impl Fn(&HeartbeatReport) + Send + 'static,
    ) -> Option<JoinHandle<()>> {
        self.parts.shared.as_ref().map(|shared| run_heartbeat(shared, on_report))
    }

    /// One heartbeat. [`App::start_heartbeat`] calls it; tests may call it themselves.
    pub async fn heartbeat(&self) -> Option<HeartbeatReport> {
        match &self.parts.shared {
            Some(shared) => Some(shared.heartbeat().await),
            None => None,
        }
    }

    /// Publishes a block, a release or a reset to other nodes.
    pub(super) fn notify_nodes(&self, event: &Event<'_>) {
        if let Some(shared) = &self.parts.shared {
            shared.notify(event);
        }
    }

    /// Makes other nodes read lists, facts and modes from the records, and drop released keys from
    /// their caches.
    pub(super) async fn publish_change(&self) {
        if let Some(shared) = &self.parts.shared {
            shared.publish_change().await;
        }
    }

    /// Writes a snapshot of the store of this process, with what the records have acknowledged: the
    /// next start notices if that is missing. If that cannot be read, the snapshot contains what
    /// was last known, and the summary has the error. Waits for the disk.
    #[cfg(feature = "records")]
    pub fn snapshot(
        &self,
        path: &std::path::Path,
    ) -> Result<crate::memory::SnapshotSummary, crate::memory::SnapshotError> {
        let last = &self.parts.last_sequence;
        let read = self.parts.records.as_ref().map(|records| records.sequence());
        let mut sequence_error = None;
        match read {
            Some(Ok(sequence)) => last.store(sequence, Ordering::Relaxed),
            // No reason to lose the counters.
            Some(Err(error)) => sequence_error = Some(error.to_string()),
            None => {}
        }
        let sequence = last.load(Ordering::Relaxed);
        let written = self.engine().store().snapshot_with_sequence(path, sequence)?;
        Ok(crate::memory::SnapshotSummary { sequence_error, ..written })
    }

    /// Applies what the records contain to the store; call it before the first check. `snapshot` is
    /// the instant at which the snapshot was begun from which the store of this process was
    /// restored, if any.
    #[cfg(feature = "records")]
    pub async fn resume(
        &self,
        snapshot: Option<std::time::SystemTime>,
    ) -> Result<crate::engine::ResumeSummary, crate::engine::ResumeError> {
        let Some(records) = &self.parts.records else { return Ok(Default::default()) };
        let records = Arc::clone(records);
        if let Some(shared) = &self.parts.shared {
            return shared.resume(records).await;
        }
        let engine = Arc::clone(self.engine());
        // Records in PostgreSQL have a runtime of their own, which must not run on an async worker.
        let resumed = tokio::task::spawn_blocking(move || engine.resume(&records, snapshot)).await;
        resumed.map_err(|error| StoreError::unavailable(error.to_string()))?
    }
}

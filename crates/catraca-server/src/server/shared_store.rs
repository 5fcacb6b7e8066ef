//! Opens the shared store, restores the records into it, and logs the changes of its status.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::Context;
use catraca::engine::{ResumeError, ResumeSummary};
use catraca::records::redact;
use catraca::shared::HeartbeatReport;
use catraca::store::{self, OpenOptions, SharedStores};
use catraca::{App, Catalog};
use parking_lot::Mutex;
use tokio::runtime::Runtime;
use tracing::{info, warn};

use crate::config::SharedStoreConfig;

/// Attempts to reach the store at the start, and the pause between them.
const ATTEMPTS: u32 = 5;
const RETRY_PAUSE: Duration = Duration::from_millis(200);

/// Connects to the store of `[store] url`, for decisions and for locks.
pub async fn open(config: &SharedStoreConfig, catalog: &Catalog) -> anyhow::Result<SharedStores> {
    let options = OpenOptions {
        deadline: config.deadline,
        ca_file: config.ca_file.clone(),
        lock_replicas: catalog.locks.replicas,
    };
    store::open(&config.url, &options).await?.context("[store] url names no shared store")
}

/// Restores the records into the store. Retries for a while, because a store that was started
/// together with this machine may not accept connections yet.
pub async fn resume(app: &App) -> Result<ResumeSummary, ResumeError> {
    for _ in 1..ATTEMPTS {
        match app.resume(None).await {
            Err(ResumeError::Store(error)) => {
                warn!(%error, "shared store not available yet; retrying");
                tokio::time::sleep(RETRY_PAUSE).await;
            }
            result => return result,
        }
    }
    app.resume(None).await
}

/// How operators call this node: its host and process.
pub fn node_name() -> String {
    let host = std::fs::read_to_string("/etc/hostname").ok();
    let host = std::env::var("HOSTNAME").ok().or(host).unwrap_or_default();
    let host = host.trim();
    let host = if host.is_empty() { "host" } else { host };
    format!("{host}/{}", std::process::id())
}

/// A sentence about the store for the banner.
pub fn describe(config: &SharedStoreConfig) -> String {
    let nodes = match config.nodes {
        1 => "one node".to_owned(),
        nodes => format!("{nodes} nodes"),
    };
    format!("Counters and blocks are in {}, for {nodes}.", redact(&config.url))
}

/// Starts the heartbeat to the store, which runs until the application is dropped; logs changes of
/// its status.
pub fn start_heartbeat(app: &App, runtime: &Runtime) {
    let log = HeartbeatLog::default();
    let _entered = runtime.enter();
    // Dropping the handle does not stop the task: it ends with the application.
    drop(app.start_heartbeat(move |report| log.write(report)));
}

/// The status that was logged last, so that only changes are logged.
#[derive(Default)]
struct HeartbeatLog {
    /// The names of the primaries that are not in use; empty for the only one of a store.
    unavailable: Mutex<BTreeSet<String>>,
    skewed: AtomicBool,
    failing: AtomicBool,
    unsafe_config: AtomicBool,
    config_notice: AtomicBool,
    other_revisions: AtomicBool,
    doubtful: AtomicBool,
}

impl HeartbeatLog {
    fn write(&self, report: &HeartbeatReport) {
        let why = report.error.as_deref().unwrap_or("no response");
        self.write_unavailable(report);
        if report.restarted {
            warn!("shared store may have lost counters; all blocks were written to it again");
        }
        let failing = report.up && report.error.is_some();
        if !self.failing.swap(failing, Ordering::Relaxed) && failing {
            warn!(why, "shared store or records reachable but failing");
        }
        let config_warning = report.config_warning.as_deref();
        if !self.unsafe_config.swap(config_warning.is_some(), Ordering::Relaxed)
            && let Some(why) = config_warning
        {
            warn!(why, "the settings of the shared store allow it to lose blocks");
        }
        let notice = report.config_notice.as_deref();
        if !self.config_notice.swap(notice.is_some(), Ordering::Relaxed)
            && let Some(why) = notice
        {
            warn!(why, "a setting of the shared store should be changed");
        }
        let revisions = report.revision_problem.as_deref();
        if !self.other_revisions.swap(revisions.is_some(), Ordering::Relaxed)
            && let Some(why) = revisions
        {
            warn!(why, "nodes of one store use different catalogs");
        }
        self.write_doubt(report);
        if !self.skewed.swap(report.clock_skewed, Ordering::Relaxed) && report.clock_skewed {
            warn!("clocks of the shared store and this node differ by two seconds or more");
        }
    }

    fn write_doubt(&self, report: &HeartbeatReport) {
        let was_doubtful = self.doubtful.swap(report.doubt.is_some(), Ordering::Relaxed);
        match &report.doubt {
            Some(why) if !was_doubtful => warn!(why, "shared store may have been replaced"),
            None if was_doubtful && report.up => info!("primary of the shared store confirmed"),
            Some(_) | None => {}
        }
    }

    /// Logs each primary that is not in use any more, and each that is in use again.
    fn write_unavailable(&self, report: &HeartbeatReport) {
        let mut logged = self.unavailable.lock();
        let name = |name: &Option<String>| name.clone().unwrap_or_default();
        for primary in &report.unavailable {
            let why = &primary.error;
            if !logged.insert(name(&primary.name)) {
                continue;
            }
            match &primary.name {
                None => warn!(
                    why,
                    "shared store unreachable: deciding by the `on_failure` of each policy"
                ),
                Some(primary) => warn!(
                    why,
                    primary,
                    "primary of the shared store unreachable: deciding its keys by the \
                     `on_failure` of each policy"
                ),
            }
        }
        logged.retain(|primary| {
            let is_unavailable =
                report.unavailable.iter().any(|other| name(&other.name) == *primary);
            if !is_unavailable && primary.is_empty() {
                info!("shared store reachable again");
            } else if !is_unavailable {
                info!(primary, "primary of the shared store in use again, or replaced");
            }
            is_unavailable
        });
    }
}

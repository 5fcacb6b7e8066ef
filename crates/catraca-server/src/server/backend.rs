//! The backend of the server: engine, records, locks and event feed; opened with the stored state
//! restored, maintained by a thread, and closed with everything on disk.
//!
//! The listener starts after the backend is open, so that no request is decided before stored
//! blocks are restored.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use catraca::engine::ResumeSummary;
use catraca::memory::RestoreOutcome;
use catraca::records::{Options, Record, RecordKind, Records, Revision};
use catraca::{App, Builder, Catalog, Engine, Locks, MemoryOptions, Secret};
use tokio::runtime::Runtime;
use tracing::{error, warn};

use super::keys::StartKeys;
use super::lock_setup;
use super::records_log::{self, RecordsLog};
use super::secret;
use super::shared_store;
use crate::config::{SharedStoreConfig, StorageConfig};
use crate::context::ROWS_MISSING;
use crate::feed::Feed;
use crate::observe::Observer;
use crate::observe::background_tasks::BackgroundTask;
use crate::reload::FACTS_IGNORED;
use crate::render::count_noun;

/// The engine and everything that stores or publishes its state.
pub struct Backend {
    /// Engine, locks, records and the connection to other nodes. Without records with
    /// `[records] url = "none"`, and in the demo.
    pub app: App,
    /// The event stream of `/v1/events`.
    pub feed: Arc<Feed>,
    /// A sentence for the banner about the stored state.
    pub description: String,
    /// What was restored from the records.
    pub restored: ResumeSummary,
    maintenance: Option<MaintenanceThread>,
}

/// How often the health of the records is checked, for the log.
const HEALTH_INTERVAL: Duration = Duration::from_secs(1);

/// The thread that writes the snapshot and purges records.
struct MaintenanceThread {
    /// The snapshot file, if counters are in memory.
    snapshot: Option<PathBuf>,
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl Backend {
    /// A backend that stores nothing.
    pub fn open_volatile(
        catalog: Catalog,
        memory: MemoryOptions,
        namespaces: Vec<String>,
        observer: &Arc<Observer>,
    ) -> Self {
        let feed = Arc::new(Feed::default());
        let listener_feed = Arc::clone(&feed);
        let listener_observer = Arc::clone(observer);
        let builder = Engine::builder(catalog).memory(memory).namespaces(namespaces);
        let builder = builder.listener(move |event| {
            listener_feed.publish(event);
            listener_observer.on_event(event);
        });
        Self {
            app: App::local(builder.build()).build(),
            feed,
            description: "Nothing is stored: blocks and counters end with the process.".to_owned(),
            restored: ResumeSummary::default(),
            maintenance: None,
        }
    }

    /// A backend with counters in memory and a snapshot on disk.
    pub fn open_local(
        catalog: Catalog,
        config: &StorageConfig,
        keys: StartKeys,
        observer: &Arc<Observer>,
    ) -> Result<Self> {
        refuse_missing_folder(config)?;
        refuse_lost_records(config)?;
        let durability = catalog.locks.durability;
        let secret = secret::open(&config.secret, config.file.as_deref())?;
        let setup = EngineSetup::new(catalog, config, secret.clone(), observer)?;
        keys.check(&setup.records)?;
        let (engine, outcome) = setup.builder.restore(&config.snapshot)?;
        let (since, sequence) = match outcome {
            RestoreOutcome::Read { created_at, sequence, .. } => {
                (Some(created_at.into()), sequence)
            }
            RestoreOutcome::Missing => (None, 0),
        };
        // Read first: a resume may write.
        let recorded = setup.records.sequence()?;
        let rows_missing = sequence.saturating_sub(recorded);
        // Applies what the records contain beyond the snapshot.
        let restored = engine.resume(&setup.records, since)?;
        let restored = ResumeSummary { rows_missing, ..restored };
        let locks = lock_setup::open(&secret, &setup.records, durability)?;
        let app = App::local(engine).records(Arc::clone(&setup.records)).sequence(recorded);
        let app = app.locks(Arc::new(locks)).build();
        let snapshot = Some(config.snapshot.as_path());
        let maintenance =
            MaintenanceThread::start(&app, &setup.records, config, snapshot, observer)?;
        record_revision(&setup.records, &app, setup.revision);
        keys.remember(&setup.records, app.now());
        Ok(Self {
            app,
            feed: setup.feed,
            description: describe(config, &restored),
            restored,
            maintenance: Some(maintenance),
        })
    }

    /// A backend with counters and blocks in a shared store.
    pub fn open_shared(
        catalog: Catalog,
        config: &StorageConfig,
        shared_config: &SharedStoreConfig,
        keys: StartKeys,
        observer: &Arc<Observer>,
        runtime: &Runtime,
    ) -> Result<Self> {
        // All nodes must compute the same digests, so the secret is never created here.
        let secret = secret::open(&config.secret, None)?;
        let store = runtime.block_on(shared_store::open(shared_config, &catalog))?;
        let locks = runtime.block_on(async { Locks::new(store.locks, &secret) });
        let setup = EngineSetup::new(catalog, config, secret, observer)?;
        keys.check(&setup.records)?;
        let app = App::over_store(setup.builder, store.decisions, shared_config.options())?
            .records(Arc::clone(&setup.records))
            .locks(Arc::new(locks))
            .build();
        app.set_node_name(&shared_store::node_name());
        let restored = runtime.block_on(shared_store::resume(&app))?;
        shared_store::start_heartbeat(&app, runtime);
        let maintenance = MaintenanceThread::start(&app, &setup.records, config, None, observer)?;
        let store_text = shared_store::describe(shared_config);
        record_revision(&setup.records, &app, setup.revision);
        keys.remember(&setup.records, app.now());
        Ok(Self {
            app,
            feed: setup.feed,
            description: format!("{store_text} {}", describe(config, &restored)),
            restored,
            maintenance: Some(maintenance),
        })
    }

    /// Writes all state to disk; called after the last response.
    pub fn close(self) -> Result<()> {
        lock_setup::close(self.app.locks());
        // Before the maintenance thread is joined: a purge waiting for an unavailable database then
        // fails at once.
        let unwritten = self.app.records().map_or(0, |records| records.stop());
        if let Some(records) = self.app.records() {
            records_log::rescue(records);
        }
        if let Some(maintenance) = self.maintenance {
            drop(maintenance.stop);
            // The thread catches panics of its work; the snapshot is written anyway.
            let _ = maintenance.thread.join();
            if let Some(snapshot) = &maintenance.snapshot {
                self.app.snapshot(snapshot)?;
            }
        }
        ensure!(
            unwritten == 0,
            "{unwritten} records could not be written: these acts will be missing after the next \
             start"
        );
        Ok(())
    }
}

/// Open records, and an engine builder whose events go to records, feed and metrics.
struct EngineSetup {
    builder: Builder,
    records: Arc<Records>,
    feed: Arc<Feed>,
    revision: Revision,
}

impl EngineSetup {
    fn new(
        catalog: Catalog,
        config: &StorageConfig,
        secret: Secret,
        observer: &Arc<Observer>,
    ) -> Result<Self> {
        let keys_per_minute = config.keys_per_minute;
        let options = Options { retention: config.retention, keys_per_minute };
        let records = Arc::new(Records::open(&config.records, options)?);
        let feed = Arc::new(Feed::default());
        let listener_feed = Arc::clone(&feed);
        let listener_observer = Arc::clone(observer);
        let revision = revision(&catalog);
        let builder = Engine::builder(catalog).secret(secret).memory(config.memory);
        let builder = builder.report_keys(keys_per_minute > 0);
        let builder = builder.namespaces(config.namespaces.clone()).listener(move |event| {
            listener_feed.publish(event);
            listener_observer.on_event(event);
        });
        Ok(Self { builder, records, feed, revision })
    }
}

/// Refuses to start if the records have no folder. Asked before anything is created in it: the
/// secret is in the same folder by default, and would fail first, under its own name.
fn refuse_missing_folder(config: &StorageConfig) -> Result<()> {
    let Some(file) = config.file.as_deref() else { return Ok(()) };
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    let Some(folder) = folder.filter(|folder| !folder.is_dir()) else { return Ok(()) };
    bail!(
        "the folder {} of the records {} does not exist: create it, writable by the user that \
         runs catraca, or name another file in `[records] url`",
        folder.display(),
        file.display()
    )
}

/// Refuses to start with a snapshot but without records: the records always exist before the first
/// snapshot, so they were lost.
fn refuse_lost_records(config: &StorageConfig) -> Result<()> {
    let lost = config.file.as_deref().filter(|file| !file.exists() && config.snapshot.is_file());
    ensure!(
        lost.is_none(),
        "the records {} are missing, but the snapshot {} exists: restore them, for example with \
         `catraca restore`, or delete the snapshot to start without blocks, lists and audit",
        lost.unwrap_or(Path::new("")).display(),
        config.snapshot.display()
    );
    Ok(())
}

/// Records the active revision. Its write is not awaited, because no decision depends on it.
fn record_revision(records: &Records, app: &App, revision: Revision) {
    drop(records.record(vec![Record::automatic(app.now(), RecordKind::Catalog(revision))]));
}

fn describe(config: &StorageConfig, restored: &ResumeSummary) -> String {
    if restored.blocks_left_out > 0 {
        let blocks = restored.blocks_left_out;
        warn!(blocks, "blocks not restored: memory limit reached; raise [store] block_mib");
    }
    if restored.facts_left_out > 0 {
        let facts = restored.facts_left_out;
        warn!(facts, "{FACTS_IGNORED}");
    }
    if restored.rows_missing > 0 {
        let rows = restored.rows_missing;
        let records = &config.records;
        error!(rows, records, "{ROWS_MISSING}");
    }
    format!(
        "Records are in {}: {}, {} and {} are active.",
        config.records_text(),
        count_noun(restored.blocks as usize, "block", "blocks"),
        count_noun(restored.lists as usize, "list entry", "list entries"),
        count_noun(restored.facts as usize, "fact", "facts")
    )
}

impl MaintenanceThread {
    fn start(
        app: &App,
        records: &Arc<Records>,
        config: &StorageConfig,
        snapshot: Option<&Path>,
        observer: &Arc<Observer>,
    ) -> Result<Self> {
        let mut task = MaintenanceTask {
            app: app.clone(),
            observer: Arc::clone(observer),
            records: Arc::clone(records),
            snapshot: snapshot.map(Path::to_owned),
            interval: config.interval,
            // Purges in the first round, too.
            since_purge: config.purge_interval,
            purge_interval: config.purge_interval,
            since_round: Duration::ZERO,
            records_log: RecordsLog::default(),
        };
        let step = config.interval.min(HEALTH_INTERVAL);
        let (stop, stopped) = mpsc::channel();
        let thread = thread::Builder::new().name("catraca-upkeep".to_owned()).spawn(move || {
            // Dropping the sender ends the wait at once.
            while stopped.recv_timeout(step) == Err(RecvTimeoutError::Timeout) {
                task.run_step(step);
            }
        })?;
        Ok(Self { snapshot: snapshot.map(Path::to_owned), stop, thread })
    }
}

/// The periodic work: writes the snapshot, and purges expired records less often.
struct MaintenanceTask {
    app: App,
    observer: Arc<Observer>,
    records: Arc<Records>,
    /// The snapshot file, if counters are in memory.
    snapshot: Option<PathBuf>,
    /// The time between two rounds.
    interval: Duration,
    /// The time since the last purge, in whole rounds.
    since_purge: Duration,
    purge_interval: Duration,
    /// The time since the last round, in whole steps.
    since_round: Duration,
    records_log: RecordsLog,
}

impl MaintenanceTask {
    fn run_step(&mut self, step: Duration) {
        let observer = Arc::clone(&self.observer);
        observer.background.run(BackgroundTask::RecordsHealth, || {
            self.records_log.check(&self.records.health());
            Ok(())
        });
        self.since_round += step;
        if self.since_round >= self.interval {
            self.since_round = Duration::ZERO;
            self.run_round();
        }
    }

    fn run_round(&mut self) {
        self.observer.wall_clock.check();
        let background = &self.observer.background;
        if let Some(path) = &self.snapshot {
            background.run(BackgroundTask::Snapshot, || write_snapshot(&self.app, path));
        }
        self.since_purge += self.interval;
        if self.since_purge >= self.purge_interval {
            self.since_purge = Duration::ZERO;
            background.run(BackgroundTask::Purge, || {
                self.records.purge(self.app.now()).map_err(|error| error.to_string())
            });
        }
    }
}

fn write_snapshot(app: &App, path: &Path) -> std::result::Result<(), String> {
    let written = app.snapshot(path).map_err(|error| error.to_string())?;
    written.sequence_error.map_or(Ok(()), |why| {
        Err(format!("the number of records cannot be read: {why}; the last known one was written"))
    })
}

fn revision(catalog: &Catalog) -> Revision {
    let policies = u32::try_from(catalog.policies.len()).ok();
    Revision { revision: catalog.revision.to_string(), policies }
}

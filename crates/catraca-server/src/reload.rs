//! Hot reload: watches the catalog's files, and applies a changed catalog if it is valid.
//!
//! Files are compared by content, so that a write in place, a rename over the file and a swapped
//! symlink are all the same. A change is applied when two looks in a row see the same content, so
//! that a half-written file is not read. A catalog is applied as a whole or not at all, and only if
//! the server could have been started with it.

mod certificates;
mod changes;
mod files;
mod policy_changes;
mod reload_error;
mod watch_files;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use catraca::app::{CatalogChange, OrphanedBlocks};
use catraca::records::Operator;
use catraca::{App, AppError, Catalog, Time};
use parking_lot::Mutex;
use tracing::{error, info, warn};

use crate::config::{LoadedCatalog, ProcessConfig, ReloadableConfig};
use crate::listener::tls::Tls;
use crate::observe::Observer;
use certificates::NewCertificates;
use changes::{changes, orphans_texts};
use files::CatalogFiles;

pub use reload_error::ReloadError;
pub use watch_files::watch;

/// The most errors, or changes, of one catalog that are logged.
const LOGGED_MAX: usize = 20;

/// The catalog, or facts of all namespaces, take the names of facts: for the log and `/readyz`.
pub const FACTS_IGNORED: &str = "facts that operators set are ignored, because the catalog or a \
     fact of all namespaces uses their names for another attribute, or the catalog for one that \
     callers send; rename one of the two";

/// Applies changed catalogs.
pub struct Reloader {
    /// The catalog's file; the built-in demo has none.
    path: Option<PathBuf>,
    targets: ReloadTargets,
    /// The catalog of the start: some settings are read only once.
    started: Arc<Catalog>,
    /// The configuration of the start, for the same reason.
    started_process: ProcessConfig,
    state: Mutex<CatalogFilesState>,
    /// Why the files on disk are not applied. A lock of its own, so that `/readyz` does not wait
    /// for a reload that reads the disk under `state`.
    error: Mutex<Option<Arc<ReloadError>>>,
    /// Settings that differ from those of the start and take effect after a restart.
    after_restart: Mutex<Vec<String>>,
}

/// What a reload changes.
pub struct ReloadTargets {
    /// The application, whose catalog is replaced.
    pub app: App,
    /// The keys and settings of the HTTP server.
    pub reloadable: Arc<ArcSwap<ReloadableConfig>>,
    /// The current certificate, if connections are encrypted.
    pub tls: Option<Arc<Tls>>,
    /// The certificate of the proxy, if its connections are encrypted.
    pub proxy_tls: Option<Arc<Tls>>,
    /// Metrics and log lines.
    pub observer: Arc<Observer>,
}

/// What caused a reload.
#[derive(Clone, Copy, Debug)]
pub enum ReloadCause<'a> {
    /// The files have changed.
    Files,
    /// SIGHUP.
    Signal,
    /// A call of the admin API, by the name of its key, with the reason given.
    Operator(&'a str, Option<&'a str>),
}

/// The result of a reload.
#[derive(Debug)]
pub struct ReloadReport {
    /// The previous revision.
    pub before: String,
    /// The current revision.
    pub revision: String,
    /// What differs, as text.
    pub changes: Vec<String>,
    /// The blocks in force that deny no request any more; absent if the records cannot be read.
    pub orphaned: Option<OrphanedBlocks>,
    /// Settings that differ from those of the start and take effect after a restart.
    pub after_restart: Vec<String>,
    /// Since when the revision is in force, if it was applied before this reload.
    pub in_force_since: Option<Time>,
    /// Whether the change is in the records.
    pub durable: bool,
}

/// Hashes of the files' contents.
struct CatalogFilesState {
    files: CatalogFiles,
    /// As applied last.
    applied: Option<blake3::Hash>,
    /// As tried last, whether applied or refused.
    tried: Option<blake3::Hash>,
    /// As seen by the last look.
    seen: Option<blake3::Hash>,
}

impl Reloader {
    /// A reloader of the catalog that the process was started with.
    pub fn new(path: Option<PathBuf>, targets: ReloadTargets) -> Self {
        let mut files = CatalogFiles::default();
        // Reads the catalog again, to learn its included files. If it has changed since the start
        // read it, the hash does not count as applied, and the first look reloads it.
        let applied = path.as_ref().and_then(|path| {
            let (loaded, hash) = files.load(path);
            let current = targets.app.catalog();
            let same = loaded.is_ok_and(|loaded| loaded.catalog.revision == current.revision);
            same.then_some(hash)
        });
        let state = CatalogFilesState { files, applied, tried: applied, seen: applied };
        let state = Mutex::new(state);
        let started = targets.app.catalog();
        let started_process = targets.reloadable.load().process.clone();
        Self {
            path,
            targets,
            started,
            started_process,
            state,
            error: Mutex::default(),
            after_restart: Mutex::default(),
        }
    }

    /// Looks at the files once; a change that the previous look saw too is applied. Returns whether
    /// another look is due soon.
    pub fn poll_files(&self) -> bool {
        let mut state = self.state.lock();
        let now = Some(state.files.hash());
        let unchanged = state.seen == now;
        state.seen = now;
        if state.tried == now {
            return !unchanged;
        }
        if !unchanged {
            return true;
        }
        // An invalid change was reverted: the files are the applied ones again.
        if state.applied == now {
            state.tried = now;
            self.clear_error();
            return false;
        }
        // An error is in the log, in `/readyz` and in the metrics.
        let _ = self.load_and_apply(&mut state, ReloadCause::Files);
        false
    }

    /// Applies the files as they are now.
    pub fn reload(&self, cause: ReloadCause<'_>) -> Result<ReloadReport, Arc<ReloadError>> {
        self.load_and_apply(&mut self.state.lock(), cause)
    }

    /// Applies the files as they are now, on a thread for blocking work.
    pub async fn reload_by_operator(
        self: &Arc<Self>,
        name: String,
        why: Option<String>,
    ) -> Result<Result<ReloadReport, Arc<ReloadError>>, AppError> {
        Operator { name: &name, why: why.as_deref() }.validate()?;
        let reloader = Arc::clone(self);
        let reload = move || {
            let why = why.as_deref().filter(|why| !why.is_empty());
            reloader.reload(ReloadCause::Operator(&name, why))
        };
        Ok(tokio::task::spawn_blocking(reload).await?)
    }

    /// What a reload would do, on a thread for blocking work. Changes nothing.
    pub async fn preview_by_operator(
        self: &Arc<Self>,
    ) -> Result<Result<ReloadReport, Arc<ReloadError>>, AppError> {
        let reloader = Arc::clone(self);
        Ok(tokio::task::spawn_blocking(move || reloader.preview()).await?)
    }

    /// The files of the catalog.
    fn files(&self) -> Vec<PathBuf> {
        self.state.lock().files.paths().to_vec()
    }

    /// Whether there is a file to reload.
    pub fn has_file(&self) -> bool {
        self.path.is_some()
    }

    /// The folder of the catalog, to which the names of files are relative.
    pub fn folder(&self) -> &Path {
        self.path.as_deref().and_then(Path::parent).unwrap_or(Path::new(""))
    }

    /// Why the files on disk are not applied, if they are not.
    pub fn error(&self) -> Option<Arc<ReloadError>> {
        self.error.lock().clone()
    }

    /// Settings that differ from those of the start and take effect after a restart.
    pub fn after_restart(&self) -> Vec<String> {
        self.after_restart.lock().clone()
    }

    /// Loads the files and applies them.
    fn load_and_apply(
        &self,
        state: &mut CatalogFilesState,
        cause: ReloadCause<'_>,
    ) -> Result<ReloadReport, Arc<ReloadError>> {
        let Some(path) = &self.path else { return Err(Arc::new(ReloadError::no_file())) };
        let (loaded, hash) = state.files.load(path);
        let result = loaded.and_then(|loaded| {
            let applied = self.apply(loaded, cause);
            applied.map_err(|error| ReloadError::of_settings(path, &error))
        });
        state.tried = Some(hash);
        state.seen = Some(hash);
        match result {
            Ok(report) => {
                state.applied = Some(hash);
                self.clear_error();
                Ok(report)
            }
            Err(error) => Err(self.set_error(error)),
        }
    }

    /// Applies a catalog with its keys. All steps that can fail come first.
    fn apply(&self, loaded: LoadedCatalog, cause: ReloadCause<'_>) -> anyhow::Result<ReloadReport> {
        let config = ReloadableConfig::new(&loaded, self.folder())?;
        let LoadedCatalog { catalog, process, .. } = loaded;
        let before = self.targets.app.catalog();
        self.refuse_mistakes(&catalog, &config)?;
        let certificates = NewCertificates::read(&self.targets, &process, self.folder())?;
        let section_changes = process.changes(&self.targets.reloadable.load().process);
        let mut changes = changes(&before, &catalog, section_changes);
        let orphaned = self.targets.app.orphaned_by(&catalog);
        changes.extend(orphans_texts(&orphaned));
        let after_restart = self.note_restart_settings(&catalog, &process);
        let revision = catalog.revision.to_string();
        let requires_keys = config.guard.has_keys();
        self.targets.reloadable.store(Arc::new(config));
        certificates.apply();
        self.note_changes(&catalog, &before, &changes);
        let (by, why) = cause.author_and_reason();
        let change = CatalogChange { catalog, changes: &changes, requires_keys, by, why };
        let reloaded = self.targets.app.reload(change);
        let facts = self.targets.app.engine().ignored_facts();
        if facts > 0 {
            warn!(facts, "{FACTS_IGNORED}");
        }
        let before = before.revision.to_string();
        Ok(ReloadReport {
            before,
            revision,
            changes,
            orphaned: orphaned.ok(),
            after_restart,
            in_force_since: reloaded.in_force_since,
            durable: reloaded.durable,
        })
    }

    /// What a reload would do with the files as they are now. Changes nothing.
    fn preview(&self) -> Result<ReloadReport, Arc<ReloadError>> {
        let Some(path) = &self.path else { return Err(Arc::new(ReloadError::no_file())) };
        let (loaded, _) = CatalogFiles::default().load(path);
        let previewed = loaded.and_then(|loaded| {
            let config = ReloadableConfig::new(&loaded, self.folder());
            let config = config.map_err(|error| ReloadError::of_settings(path, &error))?;
            let LoadedCatalog { catalog, process, .. } = loaded;
            let refused = self.refuse_mistakes(&catalog, &config);
            refused.map_err(|error| ReloadError::of_settings(path, &error))?;
            let before = self.targets.app.catalog();
            let section_changes = process.changes(&self.targets.reloadable.load().process);
            let mut changes = changes(&before, &catalog, section_changes);
            let orphaned = self.targets.app.orphaned_by(&catalog);
            changes.extend(orphans_texts(&orphaned));
            Ok(ReloadReport {
                before: before.revision.to_string(),
                revision: catalog.revision.to_string(),
                changes,
                orphaned: orphaned.ok(),
                after_restart: self.settings_awaiting_restart(&catalog, &process),
                in_force_since: None,
                durable: false,
            })
        });
        previewed.map_err(Arc::new)
    }

    /// Settings of this catalog that need a restart. Compared with the start and not with the
    /// current catalog: what needed a restart before the last reload still does.
    fn settings_awaiting_restart(&self, catalog: &Catalog, process: &ProcessConfig) -> Vec<String> {
        let mut settings = process.settings_awaiting_restart(&self.started_process);
        // The only such field of a section that core reads.
        if catalog.locks.replicas != self.started.locks.replicas {
            settings.push("[locks] replicas".to_owned());
        }
        let started = self.started_process.namespaces();
        let mut new = process.namespaces();
        new.retain(|namespace| !started.contains(namespace));
        settings.extend(new.iter().map(|namespace| {
            format!("the part of the memory that only the namespace `{namespace}` can use")
        }));
        settings
    }

    /// Notes and logs the settings that need a restart.
    fn note_restart_settings(&self, catalog: &Catalog, process: &ProcessConfig) -> Vec<String> {
        let settings = self.settings_awaiting_restart(catalog, process);
        let before = std::mem::replace(&mut *self.after_restart.lock(), settings.clone());
        for setting in settings.iter().filter(|setting| !before.contains(setting)) {
            warn!(setting, "this setting has changed and takes effect after a restart");
        }
        settings
    }

    /// Refuses catalogs that are most likely mistakes: without policies, without keys, or with all
    /// state under other keys.
    fn refuse_mistakes(&self, catalog: &Catalog, config: &ReloadableConfig) -> anyhow::Result<()> {
        let now = self.targets.app.catalog().policies.len();
        anyhow::ensure!(
            !catalog.policies.is_empty() || now == 0,
            "the catalog has no policies, but the current one has {now}; if that is intended, \
             restart"
        );
        let before = &self.started.shard_by;
        let now = &catalog.shard_by;
        anyhow::ensure!(
            before == now,
            "[store] shard_by was {before:?} at the start and is {now:?} now, which would move \
             every key to another server; restore it, or restart with other records"
        );
        anyhow::ensure!(
            config.guard.has_keys() || !self.targets.reloadable.load().guard.has_keys(),
            "the catalog has no keys, but callers of this server need one: restore [[auth.key]] \
             (an included file may be empty), or restart with `catraca serve --allow-no-keys`"
        );
        Ok(())
    }

    /// Counts and logs a reload.
    fn note_changes(&self, catalog: &Catalog, before: &Catalog, changes: &[String]) {
        let metrics = &self.targets.observer.metrics;
        metrics.note_reload(true);
        if catalog.revision == before.revision {
            return;
        }
        metrics.prepare_catalog(catalog);
        for change in changes.iter().take(LOGGED_MAX) {
            info!(change, "catalog changed");
        }
    }

    /// Clears the error: the files on disk are applied.
    fn clear_error(&self) {
        if self.error.lock().take().is_some() {
            info!("the catalog on disk is valid and applied again");
        }
    }

    /// Logs, counts and stores an error.
    fn set_error(&self, error: ReloadError) -> Arc<ReloadError> {
        for line in error.why.lines().take(LOGGED_MAX) {
            error!(why = line, "the catalog on disk is not applied; the previous one stays");
        }
        self.targets.observer.metrics.note_reload(false);
        let error = Arc::new(error);
        *self.error.lock() = Some(Arc::clone(&error));
        error
    }
}

impl<'a> ReloadCause<'a> {
    /// The author and the reason in the audit log.
    fn author_and_reason(self) -> (Option<&'a str>, &'a str) {
        match self {
            Self::Files => (None, "the files changed"),
            Self::Signal => (None, "SIGHUP"),
            Self::Operator(name, why) => (Some(name), why.unwrap_or("POST /v1/config/reload")),
        }
    }
}

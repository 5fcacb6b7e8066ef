//! Another catalog while running: the files are watched, and what is right is put in force.
//!
//! Files are compared by their contents, so that a rewrite in place, a rename over the file and a
//! swapped symlink are all the same: a change. It is believed when two looks agree, so that half a
//! file is not taken for a whole one. Must not put anything in force that could not have been
//! started with, nor anything by halves.

mod changes;
mod files;
mod restart;
mod trouble;
mod watch;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use catraca::records::{Deed, Noted, Record, Records};
use catraca::{Catalog, Engine};
use parking_lot::Mutex;
use tracing::{error, info, warn};

use crate::http::{Live, Tls};
use crate::observe::Observer;
use changes::changes;
use files::Files;

pub use trouble::Trouble;
pub use watch::watch;

/// The most mistakes of one catalog that are logged.
const LOGGED_MAX: usize = 20;
/// The act of a single change in the audit.
const CHANGE: &str = "change";

/// Puts other catalogs in force.
pub struct Reloader {
    /// The catalog's file; the demo has none.
    path: Option<PathBuf>,
    rooms: Rooms,
    /// What the process was made with: some settings are obeyed once.
    started: Arc<Catalog>,
    state: Mutex<State>,
    /// Why the files are not in force. Apart, so that whoever asks does not wait for a disk.
    trouble: Mutex<Option<Arc<Trouble>>>,
    /// Settings in force on paper only, until the next start.
    waiting: Mutex<Vec<String>>,
}

/// What a catalog is put in force in.
pub struct Rooms {
    /// Decides.
    pub engine: Arc<Engine>,
    /// Remembers, unless nothing is kept.
    pub records: Option<Arc<Records>>,
    /// Lets requests in.
    pub live: Arc<ArcSwap<Live>>,
    /// The certificate in force, if connections are encrypted.
    pub tls: Option<Arc<Tls>>,
    /// Counts and logs.
    pub observer: Arc<Observer>,
}

/// Who wants another catalog.
#[derive(Clone, Copy, Debug)]
pub enum Wish<'a> {
    /// The files have changed.
    Files,
    /// The process was told to.
    Signal,
    /// A caller, by the name of their key, with a motive.
    Operator(&'a str, Option<&'a str>),
}

/// What came of it.
#[derive(Debug)]
pub struct Reloaded {
    /// The revision that was in force.
    pub before: String,
    /// The revision that is now.
    pub revision: String,
    /// What differs, in words.
    pub changes: Vec<String>,
    /// Settings that differ from the start's and wait for the next one.
    pub after_restart: Vec<String>,
    /// Whether all of it is in the records.
    pub durable: bool,
}

/// What is known of the files.
struct State {
    files: Files,
    /// As they are in force, were tried last, and were seen last.
    good: Option<blake3::Hash>,
    tried: Option<blake3::Hash>,
    seen: Option<blake3::Hash>,
}

impl Reloader {
    /// Watches what was started with.
    pub fn new(path: Option<PathBuf>, rooms: Rooms) -> Self {
        let mut files = Files::default();
        // What it includes; it was read a moment ago, and a change since then is seen as one.
        let now = path.as_ref().and_then(|path| {
            let (read, hash) = files.load(path);
            let same = read.is_ok_and(|read| read.revision == rooms.engine.catalog().revision);
            same.then_some(hash)
        });
        let state = Mutex::new(State { files, good: now, tried: now, seen: now });
        let started = rooms.engine.catalog();
        let (trouble, waiting) = Default::default();
        Self { path, rooms, started, state, trouble, waiting }
    }

    /// Looks at the files once; a change that was there at the last look too is tried. Says whether
    /// another look is due soon.
    pub fn look(&self) -> bool {
        let mut state = self.state.lock();
        let now = Some(state.files.hash());
        let settled = state.seen == now;
        state.seen = now;
        if state.tried == now {
            return !settled;
        }
        if !settled {
            return true;
        }
        if state.good == now {
            state.tried = now;
            self.well();
            return false;
        }
        // Why not is in the log, in `/readyz` and in the metrics.
        let _ = self.attempt(&mut state, Wish::Files);
        false
    }

    /// Tries the files as they are now.
    pub fn now(&self, wish: Wish<'_>) -> Result<Reloaded, Arc<Trouble>> {
        self.attempt(&mut self.state.lock(), wish)
    }

    /// The files that are looked at.
    fn files(&self) -> Vec<PathBuf> {
        self.state.lock().files.names().to_vec()
    }

    /// Whether there is a file to read again.
    pub fn has_file(&self) -> bool {
        self.path.is_some()
    }

    /// Why the files are not what is in force, if they are not.
    pub fn trouble(&self) -> Option<Arc<Trouble>> {
        self.trouble.lock().clone()
    }

    /// The settings that differ from what was started with, and wait for the next start.
    pub fn after_restart(&self) -> Vec<String> {
        self.waiting.lock().clone()
    }

    fn attempt(&self, state: &mut State, wish: Wish<'_>) -> Result<Reloaded, Arc<Trouble>> {
        let Some(path) = &self.path else { return Err(Arc::new(Trouble::no_file())) };
        let (read, hash) = state.files.load(path);
        let done = read.and_then(|catalog| {
            let put = self.put(catalog, wish);
            put.map_err(|error| Trouble::of_settings(path, &error))
        });
        (state.tried, state.seen) = (Some(hash), Some(hash));
        match done {
            Ok(reloaded) => {
                state.good = Some(hash);
                self.well();
                Ok(reloaded)
            }
            Err(trouble) => Err(self.unwell(trouble)),
        }
    }

    /// Puts a catalog in force, with its keys.
    fn put(&self, catalog: Catalog, wish: Wish<'_>) -> anyhow::Result<Reloaded> {
        let live = Live::read(&catalog)?;
        let before = self.rooms.engine.catalog();
        self.refuse(&catalog, &live)?;
        let certificate = self.certificate(&live)?;
        let changes = changes(&before, &catalog);
        let after_restart = self.waits(&catalog);
        let revision = catalog.revision.to_string();
        let requires_keys = live.guard.has_keys();
        self.rooms.live.store(Arc::new(live));
        if let Some((tls, certificate)) = self.rooms.tls.as_ref().zip(certificate) {
            tls.swap(certificate);
        }
        let durable = self.enforce(catalog, &before, &changes, wish);
        let durable = self.remember_keys(requires_keys, wish) && durable;
        let before = before.revision.to_string();
        Ok(Reloaded { before, revision, changes, after_restart, durable })
    }

    /// What this catalog changes that was made at the start. Compared with the start and not with
    /// the catalog in force: what waited for a restart before the last reload still does.
    fn waits(&self, catalog: &Catalog) -> Vec<String> {
        let settings = restart::waiting(&self.started, catalog);
        let before = std::mem::replace(&mut *self.waiting.lock(), settings.clone());
        for setting in settings.iter().filter(|setting| !before.contains(setting)) {
            warn!(setting, "this setting has changed and counts from the next start on");
        }
        settings
    }

    /// The certificate as it is on disk now. Whether there is one at all was decided at the start.
    fn certificate(&self, live: &Live) -> anyhow::Result<Option<Arc<rustls::ServerConfig>>> {
        let folder = self.path.as_deref().and_then(Path::parent).unwrap_or(Path::new(""));
        let files = live.settings.certificate(folder)?;
        files.filter(|_| self.rooms.tls.is_some()).map(|files| files.config()).transpose()
    }

    /// What would leave the server worse off than it is.
    fn refuse(&self, catalog: &Catalog, live: &Live) -> anyhow::Result<()> {
        let now = self.rooms.engine.catalog().policies.len();
        anyhow::ensure!(
            !catalog.policies.is_empty() || now == 0,
            "the catalog has no policies, and the one in force has {now}; if that is meant, restart"
        );
        let (ours, theirs) = (self.started.shard_by(), catalog.shard_by());
        anyhow::ensure!(
            ours == theirs,
            "[store] shard_by was {ours:?} at the start and is {theirs:?} now: every key would be \
             somewhere else; write the old one, or restart with other records"
        );
        anyhow::ensure!(
            live.guard.has_keys() || !self.rooms.live.load().guard.has_keys(),
            "the catalog has no keys, and callers of this server need one: keep one [[auth.key]] \
             (an included file may be empty), or restart with `catraca serve --allow-no-keys`"
        );
        Ok(())
    }

    /// Changes what decides, and tells the records who wanted it and what differs.
    fn enforce(
        &self,
        catalog: Catalog,
        before: &Catalog,
        changes: &[String],
        wish: Wish<'_>,
    ) -> bool {
        let Rooms { engine, records, observer, .. } = &self.rooms;
        observer.meter.reloaded(true);
        if catalog.revision == before.revision {
            return true;
        }
        observer.meter.know(&catalog);
        for change in changes.iter().take(LOGGED_MAX) {
            info!(change, "the catalog has changed");
        }
        let Some(records) = records else {
            engine.reload(catalog);
            return false;
        };
        let (by, why) = wish.named();
        let ((), receipt) = records.acknowledged(by, Some(why), || engine.reload(catalog));
        let at = engine.now();
        let noted = changes.iter().map(|change| {
            let deed = Deed::Note(Noted { act: CHANGE.to_owned(), target: change.clone() });
            Record { at, by: by.map(str::to_owned), why: Some(why.to_owned()), deed }
        });
        let changed = records.record(noted.collect());
        receipt.wait().is_durable() && changed.wait().is_durable()
    }

    /// From the first key on, the next start needs one too. Says whether that is in the records,
    /// if there are any.
    fn remember_keys(&self, required: bool, wish: Wish<'_>) -> bool {
        let Some(records) = self.rooms.records.as_ref().filter(|_| required) else { return true };
        let (by, why) = wish.named();
        let (by, why) = (by.map(str::to_owned), Some(why.to_owned()));
        let (at, deed) = (self.rooms.engine.now(), Deed::RequireKeys(true));
        records.record(vec![Record { at, by, why, deed }]).wait().is_durable()
    }

    fn well(&self) {
        if self.trouble.lock().take().is_some() {
            info!("the catalog on disk is in force again");
        }
    }

    fn unwell(&self, trouble: Trouble) -> Arc<Trouble> {
        for line in trouble.why.lines().take(LOGGED_MAX) {
            error!(why = line, "the catalog on disk is not in force");
        }
        self.rooms.observer.meter.reloaded(false);
        let trouble = Arc::new(trouble);
        *self.trouble.lock() = Some(Arc::clone(&trouble));
        trouble
    }
}

impl<'a> Wish<'a> {
    /// Who is named in the audit, and why.
    fn named(self) -> (Option<&'a str>, &'a str) {
        match self {
            Self::Files => (None, "the files changed"),
            Self::Signal => (None, "SIGHUP"),
            Self::Operator(name, why) => (Some(name), why.unwrap_or("POST /v1/config/reload")),
        }
    }
}

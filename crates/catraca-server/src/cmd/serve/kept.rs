//! An engine that remembers: opened with everything it knew, tended while it serves, closed with
//! everything on disk.
//!
//! Must not let anybody ask before all that was kept is in force.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Result, ensure};
use catraca::engine::Resumed;
use catraca::memory::Restored;
use catraca::records::{Deed, Options, Record, Records, Revision};
use catraca::{Builder, Catalog, Engine, MemoryOptions, Secret};
use tokio::runtime::Runtime;
use tracing::{info, warn};

use super::keep::Places;
use super::keys::StartKeys;
use super::locks;
use super::secret;
use super::share;
use super::sharing::Sharing;
use crate::http::Feed;
use crate::locks::Keeper;
use crate::observe::Observer;
use crate::shared::SharedEngine;

/// An engine, and what keeps its word.
pub struct Kept {
    /// Decides.
    pub engine: Arc<Engine>,
    /// Decides with other nodes, if there are any.
    pub shared: Option<Arc<SharedEngine>>,
    /// Leases and slots.
    pub locks: Arc<Keeper>,
    /// Remembers, unless nothing is kept.
    pub records: Option<Arc<Records>>,
    /// Tells whoever listens.
    pub feed: Arc<Feed>,
    /// One line about what was found.
    pub found: String,
    /// What the records brought back.
    pub resumed: Resumed,
    upkeep: Option<Upkeep>,
}

struct Upkeep {
    /// Where counters are written, if they are in this process.
    snapshot: Option<PathBuf>,
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

impl Kept {
    /// An engine that forgets everything with the process.
    pub fn nothing(catalog: Catalog, memory: MemoryOptions, observer: &Arc<Observer>) -> Self {
        let feed = Arc::new(Feed::default());
        let (told, seen) = (Arc::clone(&feed), Arc::clone(observer));
        let engine = Engine::builder(catalog).memory(memory).listener(move |event| {
            told.tell(event);
            seen.hear(event);
        });
        let engine = engine.build();
        let found = "Nothing is kept: blocks and counters end with the process.".to_owned();
        let (engine, resumed) = (Arc::new(engine), Resumed::default());
        let locks = Arc::new(Keeper::Here(locks::fleeting()));
        let (shared, records, upkeep) = (None, None, None);
        Self { engine, shared, locks, records, feed, found, resumed, upkeep }
    }

    /// An engine that knows what was kept in these places.
    pub fn open(
        catalog: Catalog,
        places: &Places,
        keys: StartKeys,
        observer: &Arc<Observer>,
    ) -> Result<Self> {
        all_there(places)?;
        let durability = catalog.locks.durability;
        let secret = secret::open(&places.secret, places.file.as_deref())?;
        let opened = Opened::new(catalog, places, secret.clone(), observer)?;
        keys.check(&opened.records)?;
        let (engine, restored) = opened.builder.restore(&places.snapshot)?;
        let since = match restored {
            Restored::Read { created_at, .. } => Some(created_at),
            Restored::Missing => None,
        };
        let resumed = engine.resume(&opened.records, since)?;
        let engine = Arc::new(engine);
        let locks = Arc::new(Keeper::Here(locks::open(&secret, &opened.records, durability)?));
        let upkeep = Upkeep::start(&engine, &opened.records, places, Some(&places.snapshot))?;
        let found = found(places, &resumed);
        let (records, feed) = (opened.records, opened.feed);
        keep_revision(&records, &engine, opened.revision);
        keys.remember(&records, engine.now());
        let (records, upkeep) = (Some(records), Some(upkeep));
        Ok(Self { engine, shared: None, locks, records, feed, found, resumed, upkeep })
    }

    /// An engine over a store that nodes share, which knows what was kept in these places.
    pub fn share(
        catalog: Catalog,
        (places, sharing): (&Places, &Sharing),
        keys: StartKeys,
        observer: &Arc<Observer>,
        runtime: &Runtime,
    ) -> Result<Self> {
        // What others share must be found by each of them, so a secret is never made here.
        let secret = secret::open(&places.secret, None)?;
        let store = runtime.block_on(share::connect(sharing))?;
        let locks = runtime.block_on(locks::share(sharing, &secret, &catalog))?;
        let opened = Opened::new(catalog, places, secret, observer)?;
        keys.check(&opened.records)?;
        let shared = Arc::new(opened.builder.share(store, sharing.options())?);
        let resumed = runtime.block_on(share::resume(&shared, &opened.records))?;
        share::tend(&shared, runtime);
        let engine = Arc::clone(shared.engine());
        let upkeep = Upkeep::start(&engine, &opened.records, places, None)?;
        let found = format!("{} {}", share::found(sharing), found(places, &resumed));
        let (records, feed) = (opened.records, opened.feed);
        keep_revision(&records, &engine, opened.revision);
        keys.remember(&records, engine.now());
        let (shared, records, upkeep) = (Some(shared), Some(records), Some(upkeep));
        let locks = Arc::new(Keeper::Shared(locks));
        Ok(Self { engine, shared, locks, records, feed, found, resumed, upkeep })
    }

    /// Puts everything on disk; call it when nothing is answered any more.
    pub fn close(self) -> Result<()> {
        locks::close(&self.locks);
        // First, so that nobody waits for a database that is away.
        let unwritten = self.records.map_or(0, |records| records.stop());
        if let Some(upkeep) = self.upkeep {
            drop(upkeep.stop);
            // A panic there was told already, and the last snapshot is still worth writing.
            let _ = upkeep.thread.join();
            if let Some(snapshot) = &upkeep.snapshot {
                self.engine.store().snapshot(snapshot)?;
            }
        }
        ensure!(
            unwritten == 0,
            "{unwritten} records could not be written: those acts will be missing after the next \
             start"
        );
        Ok(())
    }
}

/// Records that are open, and an engine in the making that is heard.
struct Opened {
    builder: Builder,
    records: Arc<Records>,
    feed: Arc<Feed>,
    revision: Revision,
}

impl Opened {
    fn new(
        catalog: Catalog,
        places: &Places,
        secret: Secret,
        observer: &Arc<Observer>,
    ) -> Result<Self> {
        let options = Options { retention: places.retention };
        let records = Arc::new(Records::open(&places.records, options)?);
        let feed = Arc::new(Feed::default());
        let (heard, told, seen) = (Arc::clone(&records), Arc::clone(&feed), Arc::clone(observer));
        let revision = revision(&catalog);
        let builder = Engine::builder(catalog).secret(secret).memory(places.memory);
        let builder = builder.listener(move |event| {
            heard.hear(event);
            told.tell(event);
            seen.hear(event);
        });
        Ok(Self { builder, records, feed, revision })
    }
}

/// A snapshot is never older than the records, so records that are not there have been lost.
fn all_there(places: &Places) -> Result<()> {
    let lost = places.file.as_deref().filter(|file| !file.exists() && places.snapshot.is_file());
    ensure!(
        lost.is_none(),
        "the records {} are not there, but the snapshot {} is: bring them back, such as with \
         `catraca restore`, or move the snapshot away to start without blocks, lists and audit",
        lost.unwrap_or(Path::new("")).display(),
        places.snapshot.display()
    );
    Ok(())
}

/// Nobody waits for it: it only says since when this catalog has been in force.
fn keep_revision(records: &Records, engine: &Engine, revision: Revision) {
    drop(records.record(vec![Record::automatic(engine.now(), Deed::Revise(revision))]));
}

fn found(places: &Places, resumed: &Resumed) -> String {
    if resumed.blocks_left_out + resumed.facts_left_out > 0 {
        let (blocks, facts) = (resumed.blocks_left_out, resumed.facts_left_out);
        warn!(blocks, facts, "no room for some blocks and facts of the records");
    }
    format!(
        "It keeps {}: {} blocks, {} list entries and {} facts are in force.",
        places.shown(),
        resumed.blocks,
        resumed.lists,
        resumed.facts
    )
}

impl Upkeep {
    fn start(
        engine: &Arc<Engine>,
        records: &Arc<Records>,
        places: &Places,
        snapshot: Option<&Path>,
    ) -> Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let (engine, records) = (Arc::clone(engine), Arc::clone(records));
        let (snapshot, interval) = (snapshot.map(Path::to_owned), places.interval);
        let purge_interval = places.purge_interval;
        let since_purge = purge_interval;
        let mut tending = Tending { engine, records, since_purge, purge_interval, failed: false };
        let path = snapshot.clone();
        let thread = thread::Builder::new().name("catraca-upkeep".to_owned()).spawn(move || {
            while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                tending.round(path.as_deref(), interval);
            }
        })?;
        Ok(Self { snapshot, stop, thread })
    }
}

struct Tending {
    engine: Arc<Engine>,
    records: Arc<Records>,
    since_purge: Duration,
    purge_interval: Duration,
    /// Whether the last round failed: one line says so, and one that it is over.
    failed: bool,
}

impl Tending {
    fn round(&mut self, snapshot: Option<&Path>, interval: Duration) {
        let written = snapshot.map(|snapshot| self.engine.store().snapshot(snapshot));
        let mut trouble = written.and_then(Result::err).map(|error| error.to_string());
        self.since_purge += interval;
        if self.since_purge >= self.purge_interval {
            self.since_purge = Duration::ZERO;
            let purged = self.records.purge(self.engine.now());
            trouble = trouble.or_else(|| purged.err().map(|error| error.to_string()));
        }
        match &trouble {
            Some(why) if !self.failed => warn!(why, "upkeep failed; it is tried again"),
            None if self.failed => info!("upkeep works again"),
            _ => {}
        }
        self.failed = trouble.is_some();
    }
}

fn revision(catalog: &Catalog) -> Revision {
    let policies = u32::try_from(catalog.policies.len()).ok();
    Revision { revision: catalog.revision.to_string(), policies }
}

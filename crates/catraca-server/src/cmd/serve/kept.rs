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
use catraca::memory::Restored;
use catraca::records::{Deed, Options, Record, Records, Revision};
use catraca::{Catalog, Engine, MemoryOptions};
use tracing::{info, warn};

use super::keep::Places;
use super::secret;
use crate::http::Feed;
use crate::observe::Observer;
use crate::shared::SharedEngine;

/// An engine, and what keeps its word.
pub struct Kept {
    /// Decides.
    pub engine: Arc<Engine>,
    /// Decides with other nodes, if there are any.
    pub shared: Option<Arc<SharedEngine>>,
    /// Remembers, unless nothing is kept.
    pub records: Option<Arc<Records>>,
    /// Tells whoever listens.
    pub feed: Arc<Feed>,
    /// One line about what was found.
    pub found: String,
    upkeep: Option<Upkeep>,
}

struct Upkeep {
    snapshot: PathBuf,
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
        Self { engine: Arc::new(engine), shared: None, records: None, feed, found, upkeep: None }
    }

    /// An engine that knows what was kept in these places.
    pub fn open(catalog: Catalog, places: &Places, observer: &Arc<Observer>) -> Result<Self> {
        let secret = secret::open(&places.secret, places.file.as_deref())?;
        let options = Options { retention: places.retention };
        let records = Arc::new(Records::open(&places.records, options)?);
        let feed = Arc::new(Feed::default());
        let (heard, told) = (Arc::clone(&records), Arc::clone(&feed));
        let seen = Arc::clone(observer);
        let revision = revision(&catalog);
        let builder = Engine::builder(catalog).secret(secret).memory(places.memory);
        let engine = builder.listener(move |event| {
            heard.hear(event);
            told.tell(event);
            seen.hear(event);
        });
        let (engine, restored) = engine.restore(&places.snapshot)?;
        let since = match restored {
            Restored::Read { created_at, .. } => Some(created_at),
            Restored::Missing => None,
        };
        let resumed = engine.resume(&records, since)?;
        // Nobody waits for it: it only says since when this catalog has been in force.
        drop(records.record(vec![Record::automatic(engine.now(), Deed::Revise(revision))]));
        let found = format!(
            "It keeps {}: {} blocks, {} list entries and {} facts are in force.",
            places.shown(),
            resumed.blocks,
            resumed.lists,
            resumed.facts
        );
        if resumed.blocks_left_out + resumed.facts_left_out > 0 {
            let (blocks, facts) = (resumed.blocks_left_out, resumed.facts_left_out);
            warn!(blocks, facts, "no room for some blocks and facts of the records");
        }
        let engine = Arc::new(engine);
        let upkeep = Upkeep::start(&engine, &records, places)?;
        Ok(Self { engine, shared: None, records: Some(records), feed, found, upkeep: Some(upkeep) })
    }

    /// Puts everything on disk; call it when nothing is answered any more.
    pub fn close(self) -> Result<()> {
        // First, so that nobody waits for a database that is away.
        let unwritten = self.records.map_or(0, |records| records.stop());
        if let Some(upkeep) = self.upkeep {
            drop(upkeep.stop);
            // A panic there was told already, and the last snapshot is still worth writing.
            let _ = upkeep.thread.join();
            self.engine.store().snapshot(&upkeep.snapshot)?;
        }
        ensure!(
            unwritten == 0,
            "{unwritten} records could not be written: those acts will be missing after the next \
             start"
        );
        Ok(())
    }
}

impl Upkeep {
    fn start(engine: &Arc<Engine>, records: &Arc<Records>, places: &Places) -> Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let (engine, records) = (Arc::clone(engine), Arc::clone(records));
        let (snapshot, interval) = (places.snapshot.clone(), places.interval);
        let purge_interval = places.purge_interval;
        let since_purge = purge_interval;
        let mut tending = Tending { engine, records, since_purge, purge_interval, failed: false };
        let path = snapshot.clone();
        let thread = thread::Builder::new().name("catraca-upkeep".to_owned()).spawn(move || {
            while stopped.recv_timeout(interval) == Err(RecvTimeoutError::Timeout) {
                tending.round(&path, interval);
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
    fn round(&mut self, snapshot: &Path, interval: Duration) {
        let mut trouble = self.engine.store().snapshot(snapshot).err().map(|e| e.to_string());
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

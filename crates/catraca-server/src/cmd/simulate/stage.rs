//! One catalog with an engine and a clock of its own, through which a history is replayed.
//!
//! Must not read files or print.

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread::ScopedJoinHandle;

use anyhow::{Result, anyhow};
use catraca::{Catalog, Engine, ManualClock, MemoryOptions};

use super::super::secret::secret;
use super::log::Reader;
use super::run::{Ended, Run};
use super::sink::Sink;
use super::source::Batch;
use super::summary::{Heard, Summary};

/// A catalog to replay under.
pub struct Stage {
    /// The catalog.
    pub catalog: Arc<Catalog>,
    engine: Engine,
    clock: ManualClock,
    heard: Option<Heard>,
}

impl Stage {
    /// A stage for a catalog; a silent one tells nothing beside its decisions, and has no summary.
    pub fn new(catalog: Catalog, memory: MemoryOptions, silent: bool) -> Self {
        let clock = ManualClock::default();
        let builder = Engine::builder(catalog).memory(memory);
        let mut builder = builder.secret(secret()).clock(clock.clone());
        let heard = (!silent).then(Heard::default);
        if let Some(heard) = &heard {
            builder = builder.listener(heard.listener());
        }
        let engine = builder.build();
        Self { catalog: engine.catalog(), engine, clock, heard }
    }

    /// A summary of what will happen here.
    pub fn summary(&self) -> Summary {
        let heard = self.heard.clone().unwrap_or_default();
        Summary::new(Arc::clone(&self.catalog), secret(), heard)
    }

    /// Feeds every line, then what is still due; `after_batch` runs whenever a batch is done.
    pub fn replay<S: Sink>(
        &self,
        reader: &Reader<'_>,
        batches: Receiver<Arc<Batch>>,
        sink: &mut S,
        mut after_batch: impl FnMut(&mut S),
    ) -> Result<Ended> {
        let mut run = Run::new(reader, &self.engine, self.clock.clone(), sink);
        for batch in batches {
            for (number, line) in batch.lines() {
                run.feed(number, line)?;
            }
            after_batch(run.sink());
        }
        run.finish()
    }
}

/// What a thread returned.
pub fn joined<T>(thread: ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    // A panic has been reported where it happened.
    thread.join().unwrap_or_else(|_| Err(anyhow!("a thread of the run ended early")))
}

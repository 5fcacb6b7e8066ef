//! The engine and clock that a history is replayed with, for one catalog.

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::thread::ScopedJoinHandle;

use anyhow::{Result, anyhow};
use catraca::{Catalog, Engine, ManualClock, MemoryOptions, Secret};

use super::access_log::Reader;
use super::run::{ReplayResult, Run};
use super::sink::Sink;
use super::source::Batch;
use super::summary::{EventCounts, Summary};

/// An engine with its own virtual clock.
pub struct ReplayEngine {
    /// The catalog.
    pub catalog: Arc<Catalog>,
    engine: Engine,
    clock: ManualClock,
    secret: Secret,
    events: Option<EventCounts>,
}

impl ReplayEngine {
    /// An engine for a catalog; pseudonyms depend on the secret. A silent engine has no event
    /// listener, and so no summary.
    pub fn new(catalog: Catalog, memory: MemoryOptions, secret: Secret, silent: bool) -> Self {
        let clock = ManualClock::default();
        let builder = Engine::builder(catalog).memory(memory);
        let mut builder = builder.secret(secret.clone()).clock(clock.clone());
        let events = (!silent).then(EventCounts::default);
        if let Some(events) = &events {
            builder = builder.listener(events.listener());
        }
        let engine = builder.build();
        Self { catalog: engine.catalog(), engine, clock, secret, events }
    }

    /// An empty summary that also receives the events of this engine.
    pub fn summary(&self) -> Summary {
        let events = self.events.clone().unwrap_or_default();
        Summary::new(Arc::clone(&self.catalog), self.secret.clone(), events)
    }

    /// Executes all lines and the settlements still due; calls `after_batch` after each batch.
    pub fn replay<S: Sink>(
        &self,
        reader: &Reader<'_>,
        batches: Receiver<Arc<Batch>>,
        sink: &mut S,
        mut after_batch: impl FnMut(&mut S),
    ) -> Result<ReplayResult> {
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

/// Joins a thread.
pub fn join<T>(thread: ScopedJoinHandle<'_, Result<T>>) -> Result<T> {
    // The panic itself was printed by the panic hook.
    thread.join().unwrap_or_else(|_| Err(anyhow!("a thread of the run panicked")))
}

//! The engine and clock that a history is replayed with, for one catalog.

use std::sync::Arc;

use catraca::engine::{CheckPlan, RulesSnapshot};
use catraca::{Catalog, Check, Engine, Error, ManualClock, MemoryOptions, Secret};

use super::run::{Run, RunOptions};
use super::summary::{EventCounts, Summary};

/// An engine with its own virtual clock.
pub struct ReplayEngine {
    /// The catalog.
    pub catalog: Arc<Catalog>,
    engine: Engine,
    /// The rules of the whole run: nothing changes them.
    rules: RulesSnapshot,
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
        let catalog = engine.catalog();
        let rules = engine.current_rules();
        Self { catalog, engine, rules, clock, secret, events }
    }

    /// An empty summary that also receives the events of this engine.
    pub fn summary(&self) -> Summary {
        let events = self.events.clone().unwrap_or_default();
        Summary::new(Arc::clone(&self.catalog), self.secret.clone(), events)
    }

    /// Plans a check; any thread may, at any time.
    pub(super) fn plan<'b>(&'b self, check: Check<'b>) -> Result<Box<CheckPlan<'b, 'b>>, Error> {
        self.engine.plan_check(&self.rules, check)
    }

    /// A run that starts at the epoch. An engine keeps its state, so it is good for one run.
    pub(super) fn start_run(&self, options: RunOptions) -> Run<'_> {
        Run::new(&self.engine, self.clock.clone(), self.events.clone(), options)
    }
}

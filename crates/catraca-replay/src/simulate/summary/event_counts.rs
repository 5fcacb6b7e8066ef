//! Counts the engine's events: blocks, low water, ban storms, failed conditions.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use catraca::json::origin_name;
use catraca::{Event, Time};

/// Counts of the engine's events; clones share them.
#[derive(Clone, Default)]
pub struct EventCounts {
    totals: Arc<Mutex<EventTotals>>,
    /// Whether a block was started since the last [`Self::take_started`], which is called after
    /// every line and mostly finds none.
    has_started: Arc<AtomicBool>,
}

/// The counts.
#[derive(Default)]
pub struct EventTotals {
    /// Blocks started or lengthened, by policy and origin.
    pub blocks: BTreeMap<String, BTreeMap<&'static str, u64>>,
    /// How often a policy fell below its low-water mark.
    pub low_water: BTreeMap<String, u64>,
    /// How often a policy's bans were switched to shadow mode by the storm limit.
    pub storms: BTreeMap<String, u64>,
    /// Blocks since the last [`EventCounts::take_started`].
    pub started: Vec<(String, Time)>,
    /// Ban conditions that read a missing field or compared different types.
    pub failed: u64,
}

impl EventCounts {
    /// The listener for the engine.
    pub fn listener(&self) -> impl Fn(&Event<'_>) + Send + Sync + 'static {
        let counts = self.clone();
        move |event| counts.on_event(event)
    }

    /// Locks and returns the counts.
    pub fn lock(&self) -> MutexGuard<'_, EventTotals> {
        self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The blocks started since the last call, with their policies.
    pub fn take_started(&self) -> Vec<(String, Time)> {
        // The engine reports events on the thread that calls this.
        if !self.has_started.load(Ordering::Relaxed) {
            return Vec::new();
        }
        self.has_started.store(false, Ordering::Relaxed);
        std::mem::take(&mut self.lock().started)
    }

    fn on_event(&self, event: &Event<'_>) {
        match event {
            Event::Blocked { at, block } => {
                let mut totals = self.lock();
                let policy = &block.subject.policy;
                let by_origin = totals.blocks.entry(policy.clone()).or_default();
                *by_origin.entry(origin_name(block.block.origin)).or_default() += 1;
                totals.started.push((policy.clone(), *at));
                self.has_started.store(true, Ordering::Relaxed);
            }
            Event::LowWater { policy, .. } => {
                *self.lock().low_water.entry(policy.to_string()).or_default() += 1;
            }
            Event::BanStorm { policy, .. } => {
                *self.lock().storms.entry(policy.to_string()).or_default() += 1;
            }
            Event::ConditionsFailed { count, .. } => self.lock().failed += u64::from(*count),
            _ => {}
        }
    }
}

impl EventTotals {
    /// Blocks of one policy, of any origin.
    pub fn blocks_of(&self, policy: &str) -> u64 {
        self.blocks.get(policy).map_or(0, |by_origin| by_origin.values().sum())
    }
}

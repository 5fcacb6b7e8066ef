//! What the engine tells beside its answers: blocks, low water, storms of bans, failed conditions.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use catraca::shape::origin;
use catraca::{Event, Time};

/// Everything heard so far; clones hear together.
#[derive(Clone, Default)]
pub struct Heard(Arc<Mutex<Said>>);

/// What was said.
#[derive(Default)]
pub struct Said {
    /// Blocks started or lengthened, by policy and origin.
    pub blocks: BTreeMap<String, BTreeMap<&'static str, u64>>,
    /// How often a policy fell below its low-water mark.
    pub low_water: BTreeMap<String, u64>,
    /// How often a policy's bans turned to shadow.
    pub storms: BTreeMap<String, u64>,
    /// Blocks that nobody has put on a timeline yet.
    pub started: Vec<(String, Time)>,
    /// Ban conditions that read a missing field or compared unlike things.
    pub failed: u64,
}

impl Heard {
    /// What the engine should call.
    pub fn listener(&self) -> impl Fn(&Event<'_>) + Send + Sync + 'static {
        let heard = self.clone();
        move |event| heard.hear(event)
    }

    /// What was said so far.
    pub fn said(&self) -> MutexGuard<'_, Said> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hear(&self, event: &Event<'_>) {
        match event {
            Event::Blocked(blocked) => {
                let mut said = self.said();
                let by_origin = said.blocks.entry(blocked.policy.clone()).or_default();
                *by_origin.entry(origin(blocked.origin)).or_default() += 1;
                said.started.push((blocked.policy.clone(), blocked.at));
            }
            Event::LowWater { policy, .. } => {
                *self.said().low_water.entry((*policy).to_owned()).or_default() += 1;
            }
            Event::Storm { policy, .. } => {
                *self.said().storms.entry((*policy).to_owned()).or_default() += 1;
            }
            Event::ConditionsFailed { count } => self.said().failed += u64::from(*count),
            _ => {}
        }
    }
}

impl Said {
    /// Blocks of one policy, whatever started them.
    pub fn blocks_of(&self, policy: &str) -> u64 {
        self.blocks.get(policy).map_or(0, |by_origin| by_origin.values().sum())
    }
}

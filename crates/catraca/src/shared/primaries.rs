//! What a node knows of each primary of the store: its circuit breaker and its last status.
//!
//! A primary that is lost or has lost data concerns its own keys alone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use catraca_core::time::Time;
use parking_lot::{Mutex, RwLock};

use super::breaker::Breaker;
use crate::store::{PrimaryId, StoreStatus};

/// A primary that is not in use: its keys follow the `on_failure` of their policies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnavailablePrimary {
    /// Its address, if the store has several primaries.
    pub name: Option<String>,
    /// Why it is not in use.
    pub error: String,
}

impl std::fmt::Display for UnavailablePrimary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.name {
            None => write!(f, "{}", self.error),
            Some(name) => write!(
                f,
                "the primary {name} is unavailable, and its keys follow `on_failure`: {}",
                self.error
            ),
        }
    }
}

/// The primaries that the last heartbeat has found, or that a call has used since.
#[derive(Debug, Default)]
pub(super) struct Primaries(RwLock<BTreeMap<PrimaryId, Arc<PrimaryState>>>);

/// What is known of one primary.
#[derive(Debug, Default)]
pub(super) struct PrimaryState {
    pub breaker: Breaker,
    /// The last status, and the offset of the primary's clock to this node's, in microseconds.
    pub last_status: Mutex<Option<(StoreStatus, i64)>>,
    /// Whether unsynced blocks of its keys were dropped: it must get all blocks of this node.
    pub needs_all_blocks: AtomicBool,
}

/// When a call to a primary was sent and its reply was there, by this node's clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallTimes {
    pub sent: Time,
    pub received: Time,
}

impl CallTimes {
    /// How far the clock of a primary is ahead, if it was `now` there during this call: the offset
    /// before, unless that is impossible. While a primary is replaced, a call may take a second,
    /// and notices of this node must not be dated a second ahead by that.
    pub fn clock_offset(self, now: Time, before: Option<i64>) -> i64 {
        let largest = now.micros() - self.sent.micros();
        let least = now.micros() - self.received.micros();
        before.unwrap_or(largest).clamp(least.min(largest), largest)
    }
}

impl Primaries {
    /// The state of a primary; a new one is in use.
    pub fn get(&self, id: PrimaryId) -> Arc<PrimaryState> {
        if let Some(state) = self.0.read().get(&id) {
            return Arc::clone(state);
        }
        Arc::clone(self.0.write().entry(id).or_default())
    }

    /// Forgets the primaries that have left the store.
    pub fn retain(&self, present: &BTreeSet<PrimaryId>) {
        if self.0.read().keys().any(|id| !present.contains(id)) {
            self.0.write().retain(|id, _| present.contains(id));
        }
    }

    pub fn all(&self) -> Vec<(PrimaryId, Arc<PrimaryState>)> {
        self.0.read().iter().map(|(id, state)| (*id, Arc::clone(state))).collect()
    }

    /// Whether at least one primary is in use.
    #[cfg(feature = "records")]
    pub fn any_in_use(&self) -> bool {
        self.0.read().values().any(|state| state.breaker.is_closed())
    }

    /// The clock offset that is largest, in either direction.
    pub fn clock_offset(&self) -> Option<i64> {
        let offsets = self.all().into_iter().filter_map(|(_, state)| {
            let status = *state.last_status.lock();
            status.map(|(_, clock_offset)| clock_offset)
        });
        offsets.max_by_key(|offset| offset.unsigned_abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_an_answer_no_clock_offset_is_known() {
        let primaries = Primaries::default();
        primaries.get(PrimaryId::default());
        assert_eq!(primaries.clock_offset(), None, "0 would say that the clocks agree");
    }

    #[test]
    fn a_slow_call_does_not_move_the_clock_offset() {
        let offset = |sent, received, before| {
            let [sent, received, now] = [sent, received, 1_000].map(Time::from_micros);
            CallTimes { sent, received }.clock_offset(now, before)
        };
        assert_eq!(offset(990, 1_005, None), 10);
        assert_eq!(offset(200, 1_005, Some(3)), 3, "it took long");
        assert_eq!(offset(990, 1_005, Some(300)), 10, "a clock was set");
        assert_eq!(offset(990, 1_005, Some(-300)), -5);
        assert_eq!(offset(1_100, 900, Some(3)), -100, "this node's clock was set back meanwhile");
    }
}

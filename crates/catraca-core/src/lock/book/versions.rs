//! The highest version of each name that asked for monotonic ones.
//!
//! Kept a day after it was last raised. Must not grow without bound.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::lock::name::LockName;
use crate::lock::{VERSION_KEPT, VERSIONS_MAX};
use crate::time::Time;

#[derive(Debug, Default)]
pub(super) struct Versions {
    last: BTreeMap<Arc<LockName>, (i64, Time)>,
    due: BTreeSet<(Time, Arc<LockName>)>,
}

impl Versions {
    pub fn last(&self, name: &LockName, now: Time) -> Option<i64> {
        self.last.get(name).filter(|(_, until)| now < *until).map(|(version, _)| *version)
    }

    /// Whether so many more names fit.
    pub fn has_room(&self, more: usize) -> bool {
        self.last.len() + more <= VERSIONS_MAX
    }

    pub fn raise(&mut self, name: &Arc<LockName>, version: i64, now: Time) {
        let until = now.after(VERSION_KEPT);
        if let Some((_, before)) = self.last.insert(Arc::clone(name), (version, until)) {
            self.due.remove(&(before, Arc::clone(name)));
        }
        self.due.insert((until, Arc::clone(name)));
    }

    pub fn sweep(&mut self, now: Time, most: usize) {
        for _ in 0..most {
            let over = self.due.first().is_some_and(|(until, _)| *until <= now);
            let Some((_, name)) = over.then(|| self.due.pop_first()).flatten() else { return };
            self.last.remove(&*name);
        }
    }
}

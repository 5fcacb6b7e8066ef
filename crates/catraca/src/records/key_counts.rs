//! Attempts of single keys by minute, for operators who have asked for them.
//!
//! The number of keys in a minute is bounded, because callers choose the values of keys: attempts
//! of further keys are only counted together, as all attempts are. Values are as they may be shown.

use std::hash::RandomState;

use catraca_core::decision::{Decision, DecisionRow};
use catraca_core::digest::Key;
use hashbrown::{HashMap, HashSet};
use parking_lot::Mutex;

use super::minute_counts::{minute_of, outcome};
use super::record::KeyCount;
use crate::event::SubjectKey;

/// Counts that wait while the database is unavailable, in minutes; then the oldest are dropped.
const MINUTES_MAX: usize = 10;

/// Attempts by minute and key.
#[derive(Debug)]
pub(super) struct KeyCounts {
    /// The most keys in a minute; zero counts none.
    keys_max: usize,
    /// One lock: this is for sites that look at single callers, and off by default.
    state: Mutex<KeyCountState>,
}

#[derive(Debug, Default)]
struct KeyCountState {
    minute: i64,
    /// The keys of this minute, also those whose counts were taken.
    known: HashSet<Key, RandomState>,
    open: HashMap<Key, KeyCount, RandomState>,
    /// Complete minutes that were not taken, oldest first.
    closed: Vec<Vec<KeyCount>>,
}

impl KeyCounts {
    pub(super) fn new(keys_max: usize) -> Self {
        Self { keys_max, state: Mutex::default() }
    }

    /// Counts the rows of a decision by their keys. A row whose key is incomplete has none.
    pub(super) fn count(&self, decision: &Decision, subjects: &[Option<SubjectKey>]) {
        if self.keys_max == 0 || subjects.is_empty() {
            return;
        }
        let mut state = self.state.lock();
        state.roll_over(minute_of(decision.at));
        for (row, subject) in decision.rows.iter().zip(subjects) {
            if let Some(subject) = subject {
                state.add(self.keys_max, decision, row, subject);
            }
        }
    }

    /// Takes and clears all counts.
    pub(super) fn take(&self) -> Vec<KeyCount> {
        let mut state = self.state.lock();
        let mut counts: Vec<KeyCount> = state.closed.drain(..).flatten().collect();
        counts.extend(state.open.drain().map(|(_, count)| count));
        counts
    }
}

impl KeyCountState {
    fn roll_over(&mut self, minute: i64) {
        if minute == self.minute {
            return;
        }
        if self.closed.len() == MINUTES_MAX {
            self.closed.remove(0);
        }
        self.closed.push(self.open.drain().map(|(_, count)| count).collect());
        self.known.clear();
        self.minute = minute;
    }

    fn add(&mut self, most: usize, decision: &Decision, row: &DecisionRow, subject: &SubjectKey) {
        let key = subject.key;
        if !self.known.contains(&key) {
            if self.known.len() >= most {
                return;
            }
            self.known.insert(key);
        }
        let at = decision.at;
        let minute = self.minute;
        let new =
            || KeyCount { minute, subject: subject.clone(), outcomes: [0; 3], first: at, last: at };
        let count = self.open.entry(key).or_insert_with(new);
        count.outcomes[outcome(row.allowed, row.reason)] += 1;
        count.first = count.first.min(at);
        count.last = count.last.max(at);
    }
}

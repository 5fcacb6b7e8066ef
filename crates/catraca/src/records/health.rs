//! How the records fare: counters for metrics and alarms.
//!
//! Must not be waited for.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// How the records fare. Everything but `waiting` and `down` counts from the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Records on disk.
    pub written: u64,
    /// Transactions, each with one wait for the disk.
    pub commits: u64,
    /// Records that wait to be written.
    pub waiting: u64,
    /// Why nothing can be written, if so. Decisions go on; this is worth an alarm.
    pub down: Option<Arc<str>>,
    /// Commits that failed. What they held was kept, and tried again.
    pub failures: u64,
    /// Acts that were answered `durable: false`.
    pub refused: u64,
    /// Records that found the queue full; only the newest step of their key is written, later.
    pub postponed: u64,
    /// Records that were given up because nothing had room for them. Worth an alarm.
    pub lost: u64,
    /// Records that the database will never take. Worth an alarm.
    pub rejected: u64,
    /// Housekeeping that failed and will be tried again.
    pub untended: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) written: Counter,
    pub(super) commits: Counter,
    pub(super) failures: Counter,
    pub(super) refused: Counter,
    pub(super) postponed: Counter,
    pub(super) lost: Counter,
    pub(super) rejected: Counter,
    pub(super) untended: Counter,
}

impl Counters {
    pub(super) fn health(&self, (waiting, down): (u64, Option<Arc<str>>)) -> Health {
        Health {
            written: self.written.get(),
            commits: self.commits.get(),
            waiting,
            down,
            failures: self.failures.get(),
            refused: self.refused.get(),
            postponed: self.postponed.get(),
            lost: self.lost.get(),
            rejected: self.rejected.get(),
            untended: self.untended.get(),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Counter(AtomicU64);

impl Counter {
    pub(super) fn add(&self, number: u64) {
        self.0.fetch_add(number, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

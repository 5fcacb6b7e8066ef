//! Health of the records: counters for metrics and alerts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Health of the records. All fields but `waiting` and the texts count since the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// Records that were committed.
    pub written: u64,
    /// Transactions, each with one sync of the disk.
    pub commits: u64,
    /// Records in the queue.
    pub waiting: u64,
    /// Why the database is unavailable, if it is. Decisions continue; this deserves an alert.
    pub down: Option<Arc<str>>,
    /// Why what is written would not be found at the next start, if so: the file was deleted, moved
    /// or replaced. Decisions continue; this deserves an alert.
    pub file_fault: Option<Arc<str>>,
    /// Why the last maintenance failed, if it did; it is tried again. The write-ahead log grows
    /// meanwhile.
    pub maintenance_fault: Option<Arc<str>>,
    /// Why the database rejected the last record that it rejected for good.
    pub rejection: Option<Arc<str>>,
    /// Commits that failed, whose records stay queued and are written again; and losses of the
    /// file.
    pub failures: u64,
    /// Operator actions that were answered with `durable: false`.
    pub refused: u64,
    /// Records that found the queue full. Only the newest record of each key is written later.
    pub postponed: u64,
    /// Records that were dropped because the queue was full and they could not be postponed, or
    /// because the records are closed, and minutes of counts that were dropped while the database
    /// was unavailable. Deserves an alert.
    pub lost: u64,
    /// Records that the database rejects for good, such as a text that is too long. Deserves an
    /// alert.
    pub rejected: u64,
    /// Checkpoints, purges, sweeps and reads of the sequence that failed; they are tried again.
    pub maintenance_failures: u64,
}

#[derive(Debug, Default)]
pub(super) struct RecordsCounters {
    pub(super) written: RecordsCounter,
    pub(super) commits: RecordsCounter,
    pub(super) failures: RecordsCounter,
    pub(super) refused: RecordsCounter,
    pub(super) postponed: RecordsCounter,
    pub(super) lost: RecordsCounter,
    pub(super) rejected: RecordsCounter,
    pub(super) maintenance_failures: RecordsCounter,
}

impl RecordsCounters {
    pub(super) fn health(&self) -> Health {
        Health {
            written: self.written.get(),
            commits: self.commits.get(),
            failures: self.failures.get(),
            refused: self.refused.get(),
            postponed: self.postponed.get(),
            lost: self.lost.get(),
            rejected: self.rejected.get(),
            maintenance_failures: self.maintenance_failures.get(),
            ..Health::default()
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct RecordsCounter(AtomicU64);

impl RecordsCounter {
    pub(super) fn add(&self, number: u64) {
        self.0.fetch_add(number, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

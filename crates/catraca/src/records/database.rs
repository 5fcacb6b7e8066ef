//! The traits that a database dialect implements for the records, and their results.
//!
//! Each dialect has one module, which holds all of its SQL.

use std::path::Path;

use catraca_core::digest::Key;
use catraca_core::time::{Span, Time};

use super::error::{RecordsError, WriteError};
use super::lock_rows::RecordedLock;
use super::privacy::{ErasureCounts, SubjectExport};
use super::record::{AttributeValue, ListName, Record};
use super::row::{
    AuditQuery, AuditRow, BlockQuery, BlockRow, FactCursor, FactRow, HistoryRow, ListRow, Page,
    RestoreScope, RestoredItem, RevisionRow, TopBlocked, Totals,
};

/// The connection that writes; used by the writer thread only.
pub(super) trait DatabaseWriter: Send {
    /// Writes all records in one transaction, which is on disk when this returns.
    fn write(&mut self, records: &[&Record]) -> Result<(), WriteError>;

    /// Deletes data that is past its retention, a bounded number of rows. Returns how many.
    fn purge(&mut self, now: Time, retention: &Retention) -> Result<PurgeCounts, WriteError>;

    /// Ends blocks and deletes debts from before a reset of their policy, a bounded number. Returns
    /// the keys of the blocks.
    fn sweep(&mut self, now: Time) -> Result<SweepResult, WriteError>;

    /// Deletes the data about a subject, except active blocks, list entries and debts.
    fn erase(&mut self, about: &[AttributeValue], now: Time) -> Result<ErasureCounts, WriteError>;

    /// Stores the fingerprint of a secret if there is none yet. Returns the stored one.
    fn bind_secret(&mut self, id: &str) -> Result<String, WriteError>;

    /// Stores the identity of the records if there is none yet. Returns the stored one.
    fn identify(&mut self, id: &str) -> Result<String, WriteError>;

    /// Does maintenance while the writer is idle, such as checkpoints.
    fn maintain(&mut self) -> Result<(), WriteError>;

    /// Removes deleted data from the write-ahead log too.
    fn truncate_wal(&mut self) -> Result<(), WriteError>;
}

/// The connection that reads; it never waits for a write.
pub(super) trait DatabaseReader: Send + Sync {
    /// Calls `visit` with everything active at `now`, and with keys that were freed since `since`.
    fn restore(
        &self,
        scope: RestoreScope,
        now: Time,
        since: Time,
        visit: &mut dyn FnMut(RestoredItem),
    ) -> Result<(), RecordsError>;
    /// Active blocks, newest first.
    fn blocks(&self, query: &BlockQuery, now: Time) -> Result<Page<BlockRow>, RecordsError>;
    /// The block with this id, active or ended.
    fn block(&self, id: i64) -> Result<Option<BlockRow>, RecordsError>;
    /// The block of a key, active or ended.
    fn block_of(&self, key: Key) -> Result<Option<BlockRow>, RecordsError>;
    /// Active entries of a list, newest first.
    fn lists(
        &self,
        list: ListName,
        before: Option<i64>,
        limit: u32,
        now: Time,
    ) -> Result<Page<ListRow, i64>, RecordsError>;
    /// Facts in the order of attribute, value and name.
    fn facts(
        &self,
        after: Option<FactCursor>,
        limit: u32,
    ) -> Result<Page<FactRow, FactCursor>, RecordsError>;
    /// The history of one block, oldest first.
    fn history(&self, id: i64) -> Result<Vec<HistoryRow>, RecordsError>;
    /// Audited actions, newest first.
    fn audit(&self, query: &AuditQuery) -> Result<Page<AuditRow, i64>, RecordsError>;
    /// Loaded catalogs, newest first.
    fn revisions(&self, limit: u32) -> Result<Vec<RevisionRow>, RecordsError>;
    /// Whether callers needed an API key when that was last recorded.
    fn keys_required(&self) -> Result<bool, RecordsError>;
    /// Decisions by policy.
    fn policies(&self, from: Time, to: Time) -> Result<Vec<Totals>, RecordsError>;
    /// Decisions by action, most first.
    fn actions(&self, from: Time, to: Time) -> Result<Vec<Totals>, RecordsError>;
    /// Subjects by number of blocks, most first.
    fn top_blocked(&self, from: Time, limit: u32) -> Result<Vec<TopBlocked>, RecordsError>;
    /// Calls `visit` with every stored fence, lease and version.
    fn locks(&self, visit: &mut dyn FnMut(RecordedLock)) -> Result<(), RecordsError>;
    /// All data about a subject.
    fn export(&self, about: &[AttributeValue]) -> Result<SubjectExport, RecordsError>;
    /// Writes a copy to a new file, which appears complete or not at all.
    fn backup(&self, to: &Path) -> Result<(), RecordsError>;
    /// Checks every page. Returns the faults found.
    fn verify(&self) -> Result<Vec<String>, RecordsError>;
}

/// How long each class of data is stored after it has lost its effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Ended blocks and their history, and ended list entries.
    pub history: Span,
    /// Audited actions and catalog revisions.
    pub audit: Span,
    /// Counts by minute.
    pub counts: Span,
}

impl Default for Retention {
    fn default() -> Self {
        Self { history: days(180), audit: days(730), counts: days(90) }
    }
}

const fn days(number: i64) -> Span {
    Span::from_micros(number * 86_400 * 1_000_000)
}

/// The result of one sweep after policy resets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SweepResult {
    /// Keys of the blocks that were ended.
    pub blocks: Vec<Key>,
    /// Debts that were deleted.
    pub debts: u64,
    /// Whether another sweep may find more.
    pub more: bool,
}

/// Rows that a purge deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PurgeCounts {
    /// History entries of blocks.
    pub history: u64,
    /// Ended blocks.
    pub blocks: u64,
    /// Ended entries of lists.
    pub lists: u64,
    /// Audited actions and catalog revisions.
    pub audit: u64,
    /// Counts by minute.
    pub counts: u64,
    /// Subjects that no row refers to.
    pub subjects: u64,
}

impl PurgeCounts {
    /// Whether nothing was deleted.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub(super) fn add(&mut self, other: Self) {
        self.history += other.history;
        self.blocks += other.blocks;
        self.lists += other.lists;
        self.audit += other.audit;
        self.counts += other.counts;
        self.subjects += other.subjects;
    }
}

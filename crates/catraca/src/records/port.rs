//! The port to a database: what every dialect does for the records.
//!
//! One module per dialect implements the three traits and holds all of its SQL. Must not leak a
//! dialect's types.

use std::path::Path;

use catraca_core::digest::Key;
use catraca_core::time::{Span, Time};

use super::error::{RecordsError, WriteError};
use super::locks::KeptLock;
use super::privacy::{Erased, Exported};
use super::record::{About, ListName, Record};
use super::row::{
    AuditQuery, AuditRow, BlockQuery, BlockRow, Extent, FactPlace, FactRow, HistoryRow, ListRow,
    Page, RevisionRow, Standing, TopBlocked, Totals,
};

/// The one place that writes.
pub(super) trait Writes: Send {
    /// Writes all of it, or nothing; when it returns, it is on disk.
    fn write(&mut self, records: &[&Record]) -> Result<(), WriteError>;

    /// Deletes what is over its time, a bounded number of rows; says how many.
    fn purge(&mut self, now: Time, retention: &Retention) -> Result<Purged, WriteError>;

    /// Ends blocks and deletes debts from before whole resets of their policies, a bounded number
    /// of each; says whose.
    fn sweep(&mut self, now: Time) -> Result<Swept, WriteError>;

    /// Deletes what is known of a subject, unless it still protects somebody.
    fn erase(&mut self, about: &[About], now: Time) -> Result<Erased, WriteError>;

    /// Keeps the fingerprint of a secret, unless there is one; says which one is there.
    fn tie(&mut self, id: &str) -> Result<String, WriteError>;

    /// Keeps an identity, unless there is one; says which one is there.
    fn identify(&mut self, id: &str) -> Result<String, WriteError>;

    /// Does housekeeping that nobody waits for.
    fn tend(&mut self) -> Result<(), WriteError>;

    /// Takes what was deleted out of every file.
    fn scrub(&mut self) -> Result<(), WriteError>;
}

/// Reads that never wait for a write.
pub(super) trait Reads: Send + Sync {
    /// What is in force at the first of the times; keys freed since the second come too.
    fn standing(
        &self,
        extent: Extent,
        times: (Time, Time),
        visit: &mut dyn FnMut(Standing),
    ) -> Result<(), RecordsError>;
    /// Blocks that stand, newest first.
    fn blocks(&self, query: &BlockQuery, now: Time) -> Result<Page<BlockRow>, RecordsError>;
    /// The block of an id, whether it stands or not.
    fn block(&self, id: i64) -> Result<Option<BlockRow>, RecordsError>;
    /// The block of a key, whether it stands or not.
    fn block_of(&self, key: Key) -> Result<Option<BlockRow>, RecordsError>;
    /// Entries of a list that stand, newest first.
    fn lists(
        &self,
        list: ListName,
        before: Option<i64>,
        limit: u32,
        now: Time,
    ) -> Result<Page<ListRow, i64>, RecordsError>;
    /// Facts that were stated, in the order of attribute, value and name.
    fn facts(
        &self,
        after: Option<FactPlace>,
        limit: u32,
    ) -> Result<Page<FactRow, FactPlace>, RecordsError>;
    /// The acts of one block, oldest first.
    fn history(&self, id: i64) -> Result<Vec<HistoryRow>, RecordsError>;
    /// Audited acts, newest first.
    fn audit(&self, query: &AuditQuery) -> Result<Page<AuditRow, i64>, RecordsError>;
    /// Catalogs that were in force, newest first.
    fn revisions(&self, limit: u32) -> Result<Vec<RevisionRow>, RecordsError>;
    /// Whether callers needed a key when that was last recorded.
    fn keys_required(&self) -> Result<bool, RecordsError>;
    /// Decisions by policy.
    fn policies(&self, from: Time, to: Time) -> Result<Vec<Totals>, RecordsError>;
    /// Decisions by action, most first.
    fn actions(&self, from: Time, to: Time) -> Result<Vec<Totals>, RecordsError>;
    /// Who was blocked most often, most first.
    fn top_blocked(&self, from: Time, limit: u32) -> Result<Vec<TopBlocked>, RecordsError>;
    /// All that is kept of locks and slots.
    fn locks(&self, visit: &mut dyn FnMut(KeptLock)) -> Result<(), RecordsError>;
    /// All that is known of a subject.
    fn export(&self, about: &[About]) -> Result<Exported, RecordsError>;
    /// Writes a copy to a file that appears whole or not at all.
    fn backup(&self, to: &Path) -> Result<(), RecordsError>;
    /// Looks at every page; says what is wrong.
    fn verify(&self) -> Result<Vec<String>, RecordsError>;
}

/// How long each class of data is kept after it has lost its effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Ended blocks and their history, and ended list entries.
    pub history: Span,
    /// Audited acts and catalog revisions.
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

/// What whole resets had left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Keys of blocks that are ended now.
    pub blocks: Vec<Key>,
    /// Debts that are gone.
    pub debts: u64,
    /// Whether there may be more.
    pub more: bool,
}

/// What a purge deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Purged {
    /// Acts of blocks.
    pub history: u64,
    /// Ended blocks.
    pub blocks: u64,
    /// Ended entries of lists.
    pub lists: u64,
    /// Audited acts and revisions.
    pub audit: u64,
    /// Counts by minute.
    pub counts: u64,
    /// Subjects that nothing speaks of any more.
    pub subjects: u64,
}

impl Purged {
    /// Whether there was nothing to delete.
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

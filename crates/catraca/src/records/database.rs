//! The port of a database: one connection that runs the statements of `sql/`.
//!
//! The statements are PostgreSQL's. The driver of another dialect replaces the words that its
//! dialect writes differently, and holds everything that is not a statement: files, backups,
//! sessions, locks between nodes.

use std::path::Path;
use std::time::Duration;

use catraca_core::digest::Key;

use super::error::DatabaseError;
use super::record::Record;
use super::sql::value::{SqlRow, Value};

pub(super) type DatabaseResult<T> = Result<T, DatabaseError>;

/// Receives the rows of a query, one after the other.
pub(super) type RowVisitor<'v> = &'v mut dyn FnMut(&dyn SqlRow) -> DatabaseResult<()>;

/// What a transaction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Reads all tables as of one point in time.
    Read,
    /// Writes, one transaction of all nodes at a time.
    Write,
}

/// A connection to a database.
pub(super) trait Database: Send {
    /// Writes all records in one transaction, which is on disk when this returns.
    fn write(&mut self, records: &[&Record]) -> DatabaseResult<()>;

    /// Begins a transaction.
    fn begin(&mut self, access: Access) -> DatabaseResult<()>;

    /// Commits the transaction, which is on disk when this returns.
    fn commit(&mut self) -> DatabaseResult<()>;

    /// Rolls the transaction back, if it has not ended.
    fn rollback(&mut self);

    /// Runs a statement, at the latest before the next query or the commit: a server gets many of
    /// them in one round trip. Returns false if it has changed nothing, true if that is not known.
    fn add(&mut self, sql: &'static str, values: &[Value<'_>]) -> DatabaseResult<bool>;

    /// Runs a statement. Returns how many rows it changed.
    fn execute(&mut self, sql: &str, values: &[Value<'_>]) -> DatabaseResult<u64>;

    /// Calls `visit` with every row of a query.
    fn query(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        visit: RowVisitor<'_>,
    ) -> DatabaseResult<()>;

    /// As [`Self::query`], for any number of rows. Only in a transaction.
    fn scan(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        visit: RowVisitor<'_>,
    ) -> DatabaseResult<()> {
        self.query(sql, values, visit)
    }

    /// Deletes up to `limit` rows that only this dialect has and that are older than `bound`.
    fn purge_own_rows(&mut self, _bound: i64, _limit: i64) -> DatabaseResult<()> {
        Ok(())
    }

    /// Does the maintenance that the database does not do by itself, while the writer is idle.
    fn maintain(&mut self) -> DatabaseResult<()> {
        Ok(())
    }

    /// Why what was committed would not be found at the next start, if so: the file of the database
    /// was deleted, moved or replaced.
    fn file_fault(&mut self) -> Option<String> {
        None
    }

    /// Removes deleted data from the write-ahead log of the records too.
    fn truncate_wal(&mut self) -> DatabaseResult<()> {
        Ok(())
    }

    /// A number that grows with every row of blocks' history, lists, audit and revisions, and never
    /// shrinks; zero if this database has none.
    fn sequence(&mut self) -> DatabaseResult<u64> {
        Ok(0)
    }

    /// Writes a copy to a new file, which appears complete or not at all.
    fn backup(&mut self, to: &Path) -> DatabaseResult<()>;

    /// Checks every page. Returns the faults found.
    fn verify(&mut self) -> DatabaseResult<Vec<String>>;
}

/// Runs `work` in a transaction, which is committed, or rolled back if `work` fails.
pub(super) fn transaction<D: Database + ?Sized, R>(
    database: &mut D,
    access: Access,
    work: impl FnOnce(&mut D) -> DatabaseResult<R>,
) -> DatabaseResult<R> {
    database.begin(access)?;
    let done = work(database).and_then(|result| database.commit().map(|()| result));
    if done.is_err() {
        database.rollback();
    }
    done
}

/// The rows of a query.
pub(super) fn rows<T>(
    database: &mut dyn Database,
    sql: &str,
    values: &[Value<'_>],
    mut read: impl FnMut(&dyn SqlRow) -> DatabaseResult<T>,
) -> DatabaseResult<Vec<T>> {
    let mut found = Vec::new();
    database.query(sql, values, &mut |row| {
        found.push(read(row)?);
        Ok(())
    })?;
    Ok(found)
}

/// The last row of a query that has at most one.
pub(super) fn row<T>(
    database: &mut dyn Database,
    sql: &str,
    values: &[Value<'_>],
    read: impl FnMut(&dyn SqlRow) -> DatabaseResult<T>,
) -> DatabaseResult<Option<T>> {
    Ok(rows(database, sql, values, read)?.pop())
}

/// How long each class of data is stored after it has lost its effect.
/// [`Duration::MAX`] is forever.
///
/// ```
/// use std::time::Duration;
///
/// use catraca::records::{Options, Retention};
///
/// let history = Duration::from_secs(30 * 86_400);
/// let retention = Retention { history, audit: Duration::MAX, ..Retention::default() };
/// let options = Options { retention, ..Options::default() };
/// assert_eq!(options.retention.counts, Duration::from_secs(90 * 86_400));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Ended blocks and their history, and ended list entries.
    pub history: Duration,
    /// Audited actions and catalog revisions.
    pub audit: Duration,
    /// Counts by minute.
    pub counts: Duration,
}

impl Default for Retention {
    fn default() -> Self {
        Self { history: days(180), audit: days(730), counts: days(90) }
    }
}

const fn days(number: u64) -> Duration {
    Duration::from_secs(number * 86_400)
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

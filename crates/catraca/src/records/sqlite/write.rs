//! Writes records: the statements of each kind, one transaction per batch.
//!
//! Records may arrive out of order: an older one never undoes a newer one.

mod blocks;
mod lists_facts_modes;

use catraca_core::time::Time;
use rusqlite::{Transaction, TransactionBehavior, params};
use serde_json::Value;

use super::SqliteWriter;
use super::purge::purge;
use crate::records::database::{DatabaseWriter, PurgeCounts, Retention, SweepResult};
use crate::records::error::WriteError;
use crate::records::privacy::ErasureCounts;
use crate::records::record::{AttributeValue, Record, RecordKind};

/// Records after which the write-ahead log is checkpointed.
const CHECKPOINT_EVERY: usize = 2_000;
/// The operator in the audit of automatic actions.
const AUTOMATIC: &str = "catraca";

impl DatabaseWriter for SqliteWriter {
    fn write(&mut self, records: &[&Record]) -> Result<(), WriteError> {
        if self.since_checkpoint >= CHECKPOINT_EVERY {
            // Before the batch, not after it: callers of the last batch have been answered by now.
            // If it fails, commits still reach the disk; it is tried again after half as many
            // records, and by `maintain`, which counts the failure.
            self.since_checkpoint = self.checkpoint("PASSIVE").map_or(CHECKPOINT_EVERY / 2, |()| 0);
        }
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for record in records {
            SqliteRecordWriter { transaction: &transaction, record }.write()?;
        }
        transaction.commit()?;
        self.since_checkpoint += records.len();
        Ok(())
    }

    fn purge(&mut self, now: Time, retention: &Retention) -> Result<PurgeCounts, WriteError> {
        let purged = purge(&mut self.connection, now, retention)?;
        self.since_checkpoint += 1;
        Ok(purged)
    }

    fn sweep(&mut self, now: Time) -> Result<SweepResult, WriteError> {
        let swept = super::reset_sweep::sweep(&mut self.connection, now)?;
        self.since_checkpoint += swept.blocks.len();
        Ok(swept)
    }

    fn erase(&mut self, about: &[AttributeValue], now: Time) -> Result<ErasureCounts, WriteError> {
        let erased = super::erase::erase(&mut self.connection, about, now)?;
        self.since_checkpoint += 1;
        Ok(erased)
    }

    fn bind_secret(&mut self, id: &str) -> Result<String, WriteError> {
        let sql = "INSERT INTO secrets (id) SELECT ?1 WHERE NOT EXISTS (SELECT 1 FROM secrets)";
        self.connection.execute(sql, [id])?;
        self.since_checkpoint += 1;
        Ok(self.connection.query_row("SELECT id FROM secrets", [], |row| row.get(0))?)
    }

    fn identify(&mut self, id: &str) -> Result<String, WriteError> {
        let sql = "INSERT INTO identity (id) SELECT ?1 WHERE NOT EXISTS (SELECT 1 FROM identity)";
        self.connection.execute(sql, [id])?;
        Ok(self.connection.query_row("SELECT id FROM identity", [], |row| row.get(0))?)
    }

    fn maintain(&mut self) -> Result<(), WriteError> {
        if self.since_checkpoint > 0 {
            self.checkpoint("PASSIVE")?;
            self.since_checkpoint = 0;
        }
        Ok(())
    }

    fn truncate_wal(&mut self) -> Result<(), WriteError> {
        self.checkpoint("TRUNCATE")
    }
}

impl SqliteWriter {
    fn checkpoint(&self, mode: &str) -> Result<(), WriteError> {
        let sql = format!("PRAGMA wal_checkpoint({mode})");
        let busy: bool = self.connection.query_row(&sql, [], |row| row.get(0))?;
        if busy && mode == "TRUNCATE" {
            let why =
                "a backup or a long query uses the write-ahead log: try again when it has ended";
            return Err(WriteError::Down(why.to_owned()));
        }
        Ok(())
    }
}

/// Writes one record in a transaction.
pub(super) struct SqliteRecordWriter<'t> {
    transaction: &'t Transaction<'t>,
    record: &'t Record,
}

/// What an audit row refers to, so that export and erasure find it.
enum SqliteAuditLink<'a> {
    None,
    About(&'a str),
    Subject(i64),
}

pub(super) type SqliteWriteResult = rusqlite::Result<()>;

impl SqliteRecordWriter<'_> {
    fn write(&self) -> SqliteWriteResult {
        match &self.record.kind {
            RecordKind::Block(block) => self.write_block(block),
            RecordKind::Release(subject) => self.release(subject, "released"),
            RecordKind::Reset(subject) => self.release(subject, "reset"),
            RecordKind::ResetPolicy(reset) => self.reset_policy(reset),
            RecordKind::Debt(debt) => self.write_debt(debt),
            RecordKind::List(list, entry) => self.list(*list, entry),
            RecordKind::Unlist(list, what) => self.unlist(*list, what),
            RecordKind::SetFacts(about, facts) => self.set_facts(about, facts),
            RecordKind::ForgetFacts(about) => self.forget_facts(about),
            RecordKind::Mode(policy, mode) => self.set_mode(policy, mode.map(|mode| mode.as_str())),
            RecordKind::Catalog(revision) => self.write_revision(revision),
            RecordKind::RequireKeys(required) => self.require_keys(*required),
            RecordKind::Count(counts) => counts.iter().try_for_each(|count| self.add_count(count)),
            RecordKind::Lock(write) => self.write_lock(write),
            RecordKind::Note(note) => {
                self.audit(&note.act, &note.target, None, None, SqliteAuditLink::None)
            }
        }
    }

    pub(super) fn run(&self, sql: &str, values: impl rusqlite::Params) -> rusqlite::Result<usize> {
        self.transaction.prepare_cached(sql)?.execute(values)
    }

    fn at(&self) -> i64 {
        self.record.at.micros()
    }

    fn by(&self) -> Option<&str> {
        self.record.by.as_deref()
    }

    fn audit(
        &self,
        act: &str,
        target: &str,
        before: Option<Value>,
        after: Option<Value>,
        link: SqliteAuditLink<'_>,
    ) -> SqliteWriteResult {
        let (about, subject) = match link {
            SqliteAuditLink::None => (None, None),
            SqliteAuditLink::About(about) => (Some(about), None),
            SqliteAuditLink::Subject(subject) => (None, Some(subject)),
        };
        self.run(
            "INSERT INTO audit (at, by, act, target, why, before, after, about, subject)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            params![
                self.at(),
                self.by().unwrap_or(AUTOMATIC),
                act,
                target,
                self.record.why,
                before.map(|value| value.to_string()),
                after.map(|value| value.to_string()),
                about,
                subject,
            ],
        )?;
        Ok(())
    }
}

/// A time as RFC 3339.
fn rfc3339(micros: i64) -> String {
    Time::from_micros(micros).to_rfc3339()
}

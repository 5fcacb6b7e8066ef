//! Writing: each deed's statements, all of a batch in one transaction.
//!
//! Must not let a later-arriving earlier step undo a newer one.

mod blocks;
mod others;

use catraca_core::time::Time;
use rusqlite::{Transaction, TransactionBehavior, params};
use serde_json::Value;

use super::SqliteWriter;
use super::purge::purge;
use crate::records::error::WriteError;
use crate::records::port::{Purged, Retention, Swept, Writes};
use crate::records::privacy::Erased;
use crate::records::record::{About, Deed, Record};

/// Records after which the log is folded into the file.
const FOLD_EVERY: usize = 2_000;
/// In the audit, what nobody is named for.
const NOBODY: &str = "catraca";

impl Writes for SqliteWriter {
    fn write(&mut self, records: &[&Record]) -> Result<(), WriteError> {
        if self.since_fold >= FOLD_EVERY {
            // Before the batch, not after: those who wait for the last one have been answered.
            // If it fails, commits still reach the disk, and housekeeping tries again and counts.
            self.since_fold = self.fold("PASSIVE").map_or(FOLD_EVERY / 2, |()| 0);
        }
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        for record in records {
            Scribe { transaction: &transaction, record }.write()?;
        }
        transaction.commit()?;
        self.since_fold += records.len();
        Ok(())
    }

    fn purge(&mut self, now: Time, retention: &Retention) -> Result<Purged, WriteError> {
        let purged = purge(&mut self.connection, now, retention)?;
        self.since_fold += 1;
        Ok(purged)
    }

    fn sweep(&mut self, now: Time) -> Result<Swept, WriteError> {
        let swept = super::sweep::sweep(&mut self.connection, now)?;
        self.since_fold += swept.blocks.len();
        Ok(swept)
    }

    fn erase(&mut self, about: &[About], now: Time) -> Result<Erased, WriteError> {
        let erased = super::erase::erase(&mut self.connection, about, now)?;
        self.since_fold += 1;
        Ok(erased)
    }

    fn tie(&mut self, id: &str) -> Result<String, WriteError> {
        let new = "INSERT INTO secrets (id) SELECT ?1 WHERE NOT EXISTS (SELECT 1 FROM secrets)";
        self.connection.execute(new, [id])?;
        self.since_fold += 1;
        Ok(self.connection.query_row("SELECT id FROM secrets", [], |row| row.get(0))?)
    }

    fn identify(&mut self, id: &str) -> Result<String, WriteError> {
        let new = "INSERT INTO identity (id) SELECT ?1 WHERE NOT EXISTS (SELECT 1 FROM identity)";
        self.connection.execute(new, [id])?;
        Ok(self.connection.query_row("SELECT id FROM identity", [], |row| row.get(0))?)
    }

    fn tend(&mut self) -> Result<(), WriteError> {
        if self.since_fold > 0 {
            self.fold("PASSIVE")?;
            self.since_fold = 0;
        }
        Ok(())
    }

    fn scrub(&mut self) -> Result<(), WriteError> {
        self.fold("TRUNCATE")
    }
}

impl SqliteWriter {
    fn fold(&self, how: &str) -> Result<(), WriteError> {
        let sql = format!("PRAGMA wal_checkpoint({how})");
        let busy: bool = self.connection.query_row(&sql, [], |row| row.get(0))?;
        if busy && how == "TRUNCATE" {
            let why = "a backup or a long question holds the log: try again when it is done";
            return Err(WriteError::Down(why.to_owned()));
        }
        Ok(())
    }
}

/// Writes one record.
pub(super) struct Scribe<'t> {
    transaction: &'t Transaction<'t>,
    record: &'t Record,
}

/// By what an audited act is found again.
enum Trail<'a> {
    None,
    About(&'a str),
    Subject(i64),
}

pub(super) type Done = rusqlite::Result<()>;

impl Scribe<'_> {
    fn write(&self) -> Done {
        match &self.record.deed {
            Deed::Block(blocking) => self.block(blocking),
            Deed::Release(who) => self.free(who, "released"),
            Deed::Reset(who) => self.free(who, "reset"),
            Deed::ResetPolicy(reset) => self.reset_policy(reset),
            Deed::Owe(debt) => self.owe(debt),
            Deed::List(list, entry) => self.list(*list, entry),
            Deed::Unlist(list, what) => self.unlist(*list, what),
            Deed::State(about, facts) => self.state(about, facts),
            Deed::Forget(about) => self.forget(about),
            Deed::Mode(policy, mode) => self.mode(policy, mode.map(|mode| mode.as_str())),
            Deed::Revise(revision) => self.revise(revision),
            Deed::RequireKeys(required) => self.require_keys(*required),
            Deed::Count(counts) => counts.iter().try_for_each(|count| self.count(count)),
            Deed::Lock(deed) => self.lock(deed),
            Deed::Note(noted) => self.audit(&noted.act, &noted.target, None, None, Trail::None),
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
        trail: Trail<'_>,
    ) -> Done {
        let (about, subject) = match trail {
            Trail::None => (None, None),
            Trail::About(about) => (Some(about), None),
            Trail::Subject(subject) => (None, Some(subject)),
        };
        self.run(
            "INSERT INTO audit (at, by, act, target, why, before, after, about, subject)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
            params![
                self.at(),
                self.by().unwrap_or(NOBODY),
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

/// An instant for people to read.
fn shown(micros: i64) -> String {
    Time::from_micros(micros).to_rfc3339()
}

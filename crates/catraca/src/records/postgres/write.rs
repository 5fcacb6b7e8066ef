//! Writes records: the statements of each kind, one transaction per batch, mostly in one round
//! trip.
//!
//! Nodes write one after the other, under an advisory lock that ends with the transaction, so that
//! ids are in the order of commits. A commit without a response may have happened: the batch is
//! looked up before it is written again. Records may arrive out of order: an older one never undoes
//! a newer one.

mod blocks;
mod lists_facts_modes;

use catraca_core::digest::Key;
use catraca_core::time::Time;
use serde_json::Value as Json;
use tokio_postgres::Row;

use super::session::{RecordsStatement, SERVER_WRITE_TIMEOUT_MS, Session};
use super::value::{Value, values};
use super::{PostgresWriter, WRITE_LOCK};
use crate::postgres::failure::PostgresFailure;
use crate::records::database::{DatabaseWriter, PurgeCounts, Retention, SweepResult};
use crate::records::error::WriteError;
use crate::records::privacy::ErasureCounts;
use crate::records::record::{AttributeValue, Record, RecordKind};

/// The most statements in one round trip, so that none exceeds its timeout.
const STATEMENTS_MAX: usize = 256;
/// The operator in the audit of automatic actions.
const AUTOMATIC: &str = "catraca";

impl DatabaseWriter for PostgresWriter {
    fn write(&mut self, records: &[&Record]) -> Result<(), WriteError> {
        let written = self.attempt(records);
        // The commit may have happened. Stays set until an attempt succeeds.
        self.uncertain |= matches!(
            written,
            Err(PostgresFailure::ConnectionLost(_) | PostgresFailure::TimedOut(_))
        );
        written?;
        self.uncertain = false;
        self.batch += 1;
        Ok(())
    }

    fn purge(&mut self, now: Time, retention: &Retention) -> Result<PurgeCounts, WriteError> {
        Ok(transaction(&mut self.session, |session| super::purge::purge(session, now, retention))?)
    }

    fn sweep(&mut self, now: Time) -> Result<SweepResult, WriteError> {
        Ok(transaction(&mut self.session, |session| super::reset_sweep::sweep(session, now))?)
    }

    fn erase(&mut self, about: &[AttributeValue], now: Time) -> Result<ErasureCounts, WriteError> {
        Ok(transaction(&mut self.session, |session| super::erase::erase(session, about, now))?)
    }

    fn bind_secret(&mut self, id: &str) -> Result<String, WriteError> {
        let sql = "INSERT INTO catraca.secrets (id)
                   SELECT $1 WHERE NOT EXISTS (SELECT 1 FROM catraca.secrets)";
        let rows = transaction(&mut self.session, |session| {
            session.query(sql, &values![id])?;
            session.query("SELECT id FROM catraca.secrets", &[])
        })?;
        let stored = rows.first().and_then(|row| row.try_get(0).ok());
        let missing = "the table `secrets` is empty: the fingerprint of the secret is missing";
        stored.ok_or_else(|| WriteError::Bad(missing.to_owned()))
    }

    fn identify(&mut self, id: &str) -> Result<String, WriteError> {
        let sql = "INSERT INTO catraca.identity (id) VALUES ($1) ON CONFLICT DO NOTHING";
        let rows = transaction(&mut self.session, |session| {
            session.query(sql, &values![id])?;
            session.query("SELECT id FROM catraca.identity", &[])
        })?;
        let stored = rows.first().and_then(|row| row.try_get(0).ok());
        let missing = "the table `identity` is empty: the identity of the records is missing";
        stored.ok_or_else(|| WriteError::Bad(missing.to_owned()))
    }

    /// PostgreSQL has its own maintenance.
    fn maintain(&mut self) -> Result<(), WriteError> {
        Ok(())
    }

    /// Nothing to do: deleted rows are invisible at once, and autovacuum reclaims their bytes.
    fn truncate_wal(&mut self) -> Result<(), WriteError> {
        Ok(())
    }
}

impl PostgresWriter {
    fn attempt(&mut self, records: &[&Record]) -> Result<(), PostgresFailure> {
        let id = self.id.as_str();
        let batch = self.batch;
        let check_first = self.uncertain;
        transaction(&mut self.session, |session| {
            if check_first && is_written(session, id, batch)? {
                return Ok(());
            }
            let mut statements = PostgresStatementBatch { session, pending: Vec::new() };
            statements.add(MARK_BATCH, values![id, batch]);
            for record in records {
                PostgresRecordWriter { statements: &mut statements, record }.write()?;
            }
            statements.flush()
        })
    }
}

const MARK_BATCH: &str = "INSERT INTO catraca.writers (id, batch) VALUES ($1, $2)
    ON CONFLICT (id) DO UPDATE SET batch = excluded.batch, at = now()";

fn is_written(session: &mut Session, id: &str, batch: i64) -> Result<bool, PostgresFailure> {
    let sql = "SELECT 1 FROM catraca.writers WHERE id = $1 AND batch >= $2";
    Ok(!session.query(sql, &values![id, batch])?.is_empty())
}

/// Runs `work` in a transaction that is on disk when this returns, or is rolled back.
fn transaction<R>(
    session: &mut Session,
    work: impl FnOnce(&mut Session) -> Result<R, PostgresFailure>,
) -> Result<R, PostgresFailure> {
    // Commits wait for the disk, against the server's default too: acknowledgements rely on it.
    let begun = session.begin(&format!(
        "BEGIN; SET LOCAL synchronous_commit = on;
         SET LOCAL statement_timeout = {SERVER_WRITE_TIMEOUT_MS};
         SELECT pg_advisory_xact_lock({WRITE_LOCK})"
    ));
    let done = begun.and_then(|()| work(session));
    if let Err(PostgresFailure::Server(_)) = &done {
        // Only after an error of a statement: a lost connection has ended its transaction already.
        let _ = session.end("ROLLBACK");
    }
    let done = done?;
    session.end("COMMIT")?;
    Ok(done)
}

/// Statements that are sent together.
pub(super) struct PostgresStatementBatch<'s> {
    session: &'s mut Session,
    pending: Vec<RecordsStatement>,
}

impl PostgresStatementBatch<'_> {
    pub(super) fn add(&mut self, sql: &'static str, values: Vec<Value>) {
        self.pending.push((sql, values));
    }

    fn flush(&mut self) -> Result<(), PostgresFailure> {
        let pending = std::mem::take(&mut self.pending);
        pending.chunks(STATEMENTS_MAX).try_for_each(|chunk| self.session.run(chunk))
    }

    /// Queries one row, after sending all statements so far.
    fn query(&mut self, sql: &str, values: &[Value]) -> Result<Option<Row>, PostgresFailure> {
        self.flush()?;
        Ok(self.session.query(sql, values)?.into_iter().next())
    }
}

/// Writes one record in a transaction.
pub(super) struct PostgresRecordWriter<'a, 's> {
    pub(super) statements: &'a mut PostgresStatementBatch<'s>,
    record: &'a Record,
}

/// What an audit row refers to, so that export and erasure find it.
enum PostgresAuditLink<'a> {
    None,
    About(&'a str),
    Subject(Key),
}

type PostgresWriteResult = Result<(), PostgresFailure>;

impl PostgresRecordWriter<'_, '_> {
    fn write(&mut self) -> PostgresWriteResult {
        match &self.record.kind {
            RecordKind::Block(block) => self.write_block(block),
            RecordKind::Release(subject) => self.release(subject, "released"),
            RecordKind::Reset(subject) => self.release(subject, "reset"),
            RecordKind::ResetPolicy(reset) => self.reset_policy(reset),
            RecordKind::Debt(debt) => {
                self.write_debt(debt);
                Ok(())
            }
            RecordKind::List(list, entry) => self.list(*list, entry),
            RecordKind::Unlist(list, what) => self.unlist(*list, what),
            RecordKind::SetFacts(about, facts) => self.set_facts(about, facts),
            RecordKind::ForgetFacts(about) => self.forget_facts(about),
            RecordKind::Mode(policy, mode) => self.set_mode(policy, mode.map(|mode| mode.as_str())),
            RecordKind::Catalog(revision) => self.write_revision(revision),
            RecordKind::RequireKeys(required) => self.require_keys(*required),
            RecordKind::Count(counts) => {
                counts.iter().for_each(|count| self.add_count(count));
                Ok(())
            }
            RecordKind::Lock(write) => {
                self.write_lock(write);
                Ok(())
            }
            RecordKind::Note(note) => {
                self.audit(&note.act, &note.target, None, None, PostgresAuditLink::None);
                Ok(())
            }
        }
    }

    fn at(&self) -> i64 {
        self.record.at.micros()
    }

    fn by(&self) -> Option<&str> {
        self.record.by.as_deref()
    }

    fn why(&self) -> Option<&str> {
        self.record.why.as_deref()
    }

    fn audit(
        &mut self,
        act: &str,
        target: &str,
        before: Option<Json>,
        after: Option<Json>,
        link: PostgresAuditLink<'_>,
    ) {
        let (about, subject) = match link {
            PostgresAuditLink::None => (None, None),
            PostgresAuditLink::About(about) => (Some(about), None),
            PostgresAuditLink::Subject(key) => (None, Some(key.to_bytes().to_vec())),
        };
        let [before, after] = [before, after].map(|value| value.map(|value| value.to_string()));
        let mut values = values![
            self.at(),
            self.by().unwrap_or(AUTOMATIC),
            act,
            target,
            self.why(),
            before.as_deref(),
            after.as_deref(),
            about,
        ];
        values.push(Value::Bytes(subject));
        self.statements.add(
            "INSERT INTO catraca.audit (at, by, act, target, why, before, after, about, subject)
             SELECT $1, $2, $3, $4, $5, $6, $7, $8,
                    (SELECT id FROM catraca.subjects WHERE key = $9)",
            values,
        );
    }
}

/// A time as RFC 3339.
fn rfc3339(micros: i64) -> String {
    Time::from_micros(micros).to_rfc3339()
}

//! The PostgreSQL driver, for records that several nodes may share: sessions, transactions, the
//! lock between nodes, and the meaning of errors.
//!
//! All tables are in the schema `catraca`, which every statement names, so that nothing depends on
//! the state of a connection. Nodes write one after the other, under an advisory lock that ends
//! with the transaction, so that ids are in the order of commits. A commit without a response may
//! have happened: the batch is looked up before it is written again.

mod host_watch;
mod migrate;
mod session;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_postgres::Row;
use tokio_postgres::error::{Error, SqlState};
use tokio_postgres::types::{ToSql, Type};

use super::database::{Access, Database, DatabaseResult, RowVisitor, rows, transaction};
use super::error::{DatabaseError, OpenError};
use super::record::Record;
use super::sql::value::{Column, SqlRow, Value, values};
use super::sql::write::write_records;
use crate::postgres::database_url::{DatabaseUrl, InvalidDatabaseUrl};
use crate::postgres::failure::PostgresFailure;
use host_watch::HostWatch;
use session::{READ_TIMEOUT, RecordsStatement, SERVER_WRITE_TIMEOUT_MS, Session, WRITE_TIMEOUT};

/// The schema of all tables.
const SCHEMA: &str = "catraca";
/// The advisory lock that a node holds while it writes: `CATRACA` in ASCII and a number.
const WRITE_LOCK: i64 = 0x4341_5452_4143_4101;
/// The most statements in one round trip, so that none exceeds its timeout.
const STATEMENTS_MAX: usize = 256;
/// Rows per fetch of a scan.
const FETCH: usize = 10_000;

const MARK_BATCH: &str = "INSERT INTO catraca.writers (id, batch) VALUES ($1, $2)
    ON CONFLICT (id) DO UPDATE SET batch = excluded.batch, at = now()";
const IS_WRITTEN: &str = "SELECT batch FROM catraca.writers WHERE id = $1 AND batch >= $2";
/// Batch numbers of processes that ended long ago.
const OLD_WRITERS: &str = "DELETE FROM catraca.writers WHERE id IN (
    SELECT id FROM catraca.writers WHERE extract(epoch FROM at) * 1000000 < $1 LIMIT $2)";

/// A connection to the server.
pub(super) struct PostgresDatabase {
    session: Session,
    /// Both connections keep it.
    _watch: Option<Arc<HostWatch>>,
    /// Statements that are sent together.
    pending: Vec<RecordsStatement>,
    /// A random id that marks the batches of this writer.
    id: String,
    /// The number of the next batch.
    batch: i64,
    /// Whether the last commit got no response, so that it may have happened.
    uncertain: bool,
}

/// Connects, migrates the schema, and opens the connection for queries.
pub(super) fn open(url: &str) -> Result<[PostgresDatabase; 2], OpenError> {
    let url = DatabaseUrl::read(url)?;
    let failed = |failure: PostgresFailure| url.open_failed(&failure.to_string());
    let mut session = Session::new(&url, WRITE_TIMEOUT).map_err(failed)?;
    migrate::migrate(&mut session, &url)?;
    let reader = Session::new(&url, READ_TIMEOUT).map_err(failed)?;
    let watch = HostWatch::start(&url).map_err(failed)?.map(Arc::new);
    let id = random_id().map_err(|error| url.open_failed(&error.to_string()))?;
    Ok([session, reader].map(|session| PostgresDatabase {
        session,
        _watch: watch.clone(),
        pending: Vec::new(),
        id: id.clone(),
        batch: 1,
        uncertain: false,
    }))
}

fn random_id() -> Result<String, getrandom::Error> {
    Ok(format!("{:016x}{:016x}", getrandom::u64()?, getrandom::u64()?))
}

impl PostgresDatabase {
    fn write_once(&mut self, records: &[&Record]) -> DatabaseResult<()> {
        let id = self.id.clone();
        let batch = self.batch;
        let check_first = self.uncertain;
        transaction(self, Access::Write, |database| {
            let mark = values![&id, batch];
            if check_first && !rows(database, IS_WRITTEN, &mark, |_| Ok(()))?.is_empty() {
                return Ok(());
            }
            database.add(MARK_BATCH, &mark)?;
            write_records(database, records)
        })
    }

    /// Sends the pending statements.
    fn flush(&mut self) -> DatabaseResult<()> {
        let pending = std::mem::take(&mut self.pending);
        for statements in pending.chunks(STATEMENTS_MAX) {
            self.session.run(statements)?;
        }
        Ok(())
    }
}

impl Database for PostgresDatabase {
    fn write(&mut self, records: &[&Record]) -> DatabaseResult<()> {
        let written = self.write_once(records);
        // If the connection was lost, the commit may have happened. Stays set until an attempt
        // succeeds.
        self.uncertain = written.is_err() && (self.uncertain || !self.session.is_connected());
        written?;
        self.batch += 1;
        Ok(())
    }

    fn begin(&mut self, access: Access) -> DatabaseResult<()> {
        Ok(match access {
            Access::Read => self.session.begin("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"),
            // Commits wait for the disk, against the server's default too: acknowledgements rely
            // on it.
            Access::Write => self.session.begin(&format!(
                "BEGIN; SET LOCAL synchronous_commit = on;
                 SET LOCAL statement_timeout = {SERVER_WRITE_TIMEOUT_MS};
                 SELECT pg_advisory_xact_lock({WRITE_LOCK})"
            )),
        }?)
    }

    fn commit(&mut self) -> DatabaseResult<()> {
        self.flush()?;
        Ok(self.session.end("COMMIT")?)
    }

    fn rollback(&mut self) {
        self.pending.clear();
        // A lost connection has ended its transaction already.
        if self.session.in_transaction() {
            let _ = self.session.end("ROLLBACK");
        }
    }

    fn add(&mut self, sql: &'static str, values: &[Value<'_>]) -> DatabaseResult<bool> {
        self.pending.push((sql, values.iter().map(Value::to_owned).collect()));
        Ok(true)
    }

    fn execute(&mut self, sql: &str, values: &[Value<'_>]) -> DatabaseResult<u64> {
        self.flush()?;
        Ok(self.session.execute(sql, values)?)
    }

    fn query(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        visit: RowVisitor<'_>,
    ) -> DatabaseResult<()> {
        self.flush()?;
        self.session.query(sql, values)?.iter().try_for_each(|row| visit(row))
    }

    fn scan(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        visit: RowVisitor<'_>,
    ) -> DatabaseResult<()> {
        self.session.execute(&format!("DECLARE scan NO SCROLL CURSOR FOR {sql}"), values)?;
        loop {
            let rows = self.session.query(&format!("FETCH {FETCH} FROM scan"), &[])?;
            rows.iter().try_for_each(|row| visit(row))?;
            if rows.len() < FETCH {
                return Ok(self.session.execute_batch("CLOSE scan")?);
            }
        }
    }

    fn purge_own_rows(&mut self, bound: i64, limit: i64) -> DatabaseResult<()> {
        self.execute(OLD_WRITERS, &values![bound, limit]).map(drop)
    }

    fn backup(&mut self, _: &Path) -> DatabaseResult<()> {
        let fix =
            "records in PostgreSQL are backed up with its own tools: pg_dump --schema=catraca";
        Err(DatabaseError::Bad(fix.to_owned()))
    }

    /// Reads every row of every table, which also checks their pages if the server has data
    /// checksums enabled.
    fn verify(&mut self) -> DatabaseResult<Vec<String>> {
        let mut faults = Vec::new();
        let tables = ["subjects", "parts", "blocks", "history", "debts", "lists", "facts"];
        for table in tables.iter().chain(&["modes", "revisions", "auth", "audit", "counts"]) {
            let sql = format!("SELECT count(t::text) FROM catraca.{table} AS t");
            if let Err(error) = self.session.query(&sql, &[]) {
                faults.push(format!("{table}: {error}"));
            }
        }
        Ok(faults)
    }
}

impl Value<'_> {
    fn to_parameter(&self) -> (&(dyn ToSql + Sync), Type) {
        match self {
            Self::Int(number) => (number, Type::INT8),
            Self::Text(text) => (text, Type::TEXT),
            Self::Bytes(bytes) => (bytes, Type::BYTEA),
            Self::Flag(flag) => (flag, Type::BOOL),
        }
    }
}

impl SqlRow for Row {
    fn column(&self, index: usize) -> DatabaseResult<Column<'_>> {
        let unreadable = |error: Error| DatabaseError::Bad(format!("a row is unreadable: {error}"));
        let column_type = self.columns().get(index).map(tokio_postgres::Column::type_);
        let column = match column_type {
            Some(&Type::INT8) => self.try_get::<_, Option<i64>>(index).map(|n| n.map(Column::Int)),
            Some(&Type::BOOL) => {
                self.try_get::<_, Option<bool>>(index).map(|f| f.map(Column::Flag))
            }
            Some(&Type::BYTEA) => {
                self.try_get::<_, Option<&[u8]>>(index).map(|b| b.map(Column::Bytes))
            }
            _ => self.try_get::<_, Option<&str>>(index).map(|text| text.map(Column::Text)),
        };
        Ok(column.map_err(unreadable)?.unwrap_or(Column::Null))
    }
}

impl DatabaseUrl {
    fn open_failed(&self, reason: &str) -> OpenError {
        OpenError::Failed { path: self.redacted_path(), reason: reason.to_owned() }
    }

    fn redacted_path(&self) -> PathBuf {
        PathBuf::from(&self.redacted)
    }
}

impl From<InvalidDatabaseUrl> for OpenError {
    fn from(invalid: InvalidDatabaseUrl) -> Self {
        Self::Postgres { url: invalid.url, reason: invalid.reason }
    }
}

/// Errors that the record itself causes would recur; all others may be temporary.
impl From<PostgresFailure> for DatabaseError {
    fn from(failure: PostgresFailure) -> Self {
        let why = failure.to_string();
        match &failure {
            PostgresFailure::Server(error) if is_invalid_record(error) => Self::Bad(why),
            _ => Self::Down(why),
        }
    }
}

/// SQLSTATE classes of data exceptions, constraint violations and exceeded limits.
fn is_invalid_record(error: &Error) -> bool {
    let class = |state: &SqlState| state.code().get(..2).map(str::to_owned);
    matches!(error.code().and_then(class).as_deref(), Some("22" | "23" | "54"))
}

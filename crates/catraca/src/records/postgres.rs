//! Records in PostgreSQL, which several nodes may share: opening, and the meaning of errors.
//!
//! All SQL of this dialect is in this folder. All tables are in the schema `catraca`, which every
//! statement names, so that nothing depends on the state of a connection.

mod erase;
mod lists;
mod lock_tables;
mod migrate;
mod purge;
mod read;
mod reset_sweep;
mod restore;
mod session;
mod stats;
mod value;
mod write;

use std::path::PathBuf;

use parking_lot::Mutex;
use tokio_postgres::error::{Error, SqlState};

use super::error::{OpenError, RecordsError, WriteError};
use crate::postgres::database_url::{DatabaseUrl, InvalidDatabaseUrl};
use crate::postgres::failure::PostgresFailure;
use session::{READ_TIMEOUT, Session, WRITE_TIMEOUT};

/// The schema of all tables.
const SCHEMA: &str = "catraca";
/// The advisory lock that a node holds while it writes: `CATRACA` in ASCII and a number.
const WRITE_LOCK: i64 = 0x4341_5452_4143_4101;

/// The connection of the writer thread.
pub(super) struct PostgresWriter {
    session: Session,
    /// A random id that marks the batches of this writer.
    id: String,
    /// The number of the next batch.
    batch: i64,
    /// Whether the last commit got no response, so that it may have happened.
    uncertain: bool,
}

/// The connection of queries.
pub(super) struct PostgresReader {
    session: Mutex<Session>,
}

/// Connects, migrates the schema, and opens the connection for queries.
pub(super) fn open(url: &str) -> Result<(PostgresWriter, PostgresReader), OpenError> {
    let url = DatabaseUrl::read(url)?;
    let failed = |failure: PostgresFailure| url.open_failed(&failure.to_string());
    let mut session = Session::new(&url, WRITE_TIMEOUT).map_err(failed)?;
    migrate::migrate(&mut session, &url)?;
    let reader = Session::new(&url, READ_TIMEOUT).map_err(failed)?;
    let id = random_id().map_err(|error| url.open_failed(&error.to_string()))?;
    let writer = PostgresWriter { session, id, batch: 1, uncertain: false };
    Ok((writer, PostgresReader { session: Mutex::new(reader) }))
}

fn random_id() -> Result<String, getrandom::Error> {
    Ok(format!("{:016x}{:016x}", getrandom::u64()?, getrandom::u64()?))
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

impl From<PostgresFailure> for RecordsError {
    fn from(failure: PostgresFailure) -> Self {
        Self(failure.to_string())
    }
}

/// Errors that the record itself causes would recur; all others may be temporary.
impl From<PostgresFailure> for WriteError {
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

//! Records in PostgreSQL, which several nodes may share: opening, and what its errors mean.
//!
//! All SQL of this dialect is in this folder. Everything lives in a schema of its own, named in
//! every statement, so that nothing depends on what a connection was told before. Must not print a
//! password.

mod erase;
mod lists;
mod locks;
mod migrate;
mod purge;
mod read;
mod restore;
mod session;
mod stats;
mod sweep;
mod value;
mod write;

use std::path::PathBuf;

use parking_lot::Mutex;
use tokio_postgres::error::{Error, SqlState};

use super::error::{OpenError, RecordsError, WriteError};
use crate::postgres::place::{NotAPlace, Place};
use crate::postgres::trouble::Trouble;
use session::{READING, Session, WRITING};

/// Everything that is kept is in this schema.
const SCHEMA: &str = "catraca";
/// `CATRACA` and a number: who holds this advisory lock writes, on whichever node.
const LOCK: i64 = 0x4341_5452_4143_4101;

/// The connection that writes.
pub(super) struct PostgresWriter {
    session: Session,
    /// Tells this writer's batches from those of others.
    id: String,
    /// The batch that is next.
    batch: i64,
    /// Whether nobody knows what became of the last attempt.
    uncertain: bool,
}

/// The connection that reads.
pub(super) struct PostgresReader {
    session: Mutex<Session>,
}

/// Connects, brings the schema up to date, and opens the connection for reading.
pub(super) fn open(url: &str) -> Result<(PostgresWriter, PostgresReader), OpenError> {
    let place = Place::read(url)?;
    let failed = |trouble: Trouble| place.failed(&trouble.to_string());
    let mut session = Session::new(&place, WRITING).map_err(failed)?;
    migrate::migrate(&mut session, &place)?;
    let reader = Session::new(&place, READING).map_err(failed)?;
    let id = random_id().map_err(|error| place.failed(&error.to_string()))?;
    let writer = PostgresWriter { session, id, batch: 1, uncertain: false };
    Ok((writer, PostgresReader { session: Mutex::new(reader) }))
}

fn random_id() -> Result<String, getrandom::Error> {
    Ok(format!("{:016x}{:016x}", getrandom::u64()?, getrandom::u64()?))
}

impl Place {
    fn failed(&self, reason: &str) -> OpenError {
        OpenError::Failed { path: self.path(), reason: reason.to_owned() }
    }

    fn path(&self) -> PathBuf {
        PathBuf::from(&self.shown)
    }
}

impl From<NotAPlace> for OpenError {
    fn from(wrong: NotAPlace) -> Self {
        Self::Postgres { url: wrong.url, reason: wrong.reason }
    }
}

impl From<Trouble> for RecordsError {
    fn from(trouble: Trouble) -> Self {
        Self(trouble.to_string())
    }
}

/// What the record itself causes never gets better; everything else may.
impl From<Trouble> for WriteError {
    fn from(trouble: Trouble) -> Self {
        let why = trouble.to_string();
        match &trouble {
            Trouble::Said(error) if is_the_records_fault(error) => Self::Bad(why),
            _ => Self::Down(why),
        }
    }
}

/// Data that no column takes, constraints that it breaks, and bounds of the server.
fn is_the_records_fault(error: &Error) -> bool {
    let class = |state: &SqlState| state.code().get(..2).map(str::to_owned);
    matches!(error.code().and_then(class).as_deref(), Some("22" | "23" | "54"))
}

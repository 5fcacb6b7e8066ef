//! Migrations: forward only, one file each, all of them in one transaction.
//!
//! Must not touch a file that a later program, or another one, wrote.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use super::opening;
use crate::records::error::OpenError;

/// Every version's step, in order. A step that was released never changes; a new one is added.
const STEPS: [&str; 7] = [
    include_str!("schema/0001.sql"),
    include_str!("schema/0002.sql"),
    include_str!("schema/0003.sql"),
    include_str!("schema/0004.sql"),
    include_str!("schema/0005.sql"),
    include_str!("schema/0006.sql"),
    include_str!("schema/0007.sql"),
];
/// `CATR`, in the file's header.
const APPLICATION: i64 = 0x4341_5452;

/// Marks a new file as ours.
pub(super) fn begin(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "application_id", APPLICATION)
}

/// Brings the schema up to date, or refuses.
pub(super) fn migrate(connection: &mut Connection, path: &Path) -> Result<(), OpenError> {
    let found = recognise(connection, path)?;
    step(connection, found.max(0) as usize).map_err(|error| opening(path, error))
}

/// The schema of a file that is ours and that we know, or else the refusal.
pub(super) fn recognise(connection: &Connection, path: &Path) -> Result<i64, OpenError> {
    let failed = |error| opening(path, error);
    let application = pragma(connection, "application_id").map_err(failed)?;
    if application != APPLICATION {
        return Err(OpenError::Foreign { path: path.to_owned() });
    }
    let known = STEPS.len() as i64;
    let found = pragma(connection, "user_version").map_err(failed)?;
    if found > known {
        return Err(OpenError::Newer { path: path.to_owned(), found, known });
    }
    Ok(found)
}

fn step(connection: &mut Connection, from: usize) -> rusqlite::Result<()> {
    if from == STEPS.len() {
        return Ok(());
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    STEPS[from..].iter().try_for_each(|step| transaction.execute_batch(step))?;
    transaction.pragma_update(None, "user_version", STEPS.len() as i64)?;
    transaction.commit()
}

fn pragma(connection: &Connection, name: &str) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, name, |row| row.get(0))
}

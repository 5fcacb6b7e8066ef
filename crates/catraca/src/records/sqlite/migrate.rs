//! Schema migrations: forward only, one file each, all in one transaction.
//!
//! A file of a newer version of this program or of another program is refused unchanged.

use std::path::Path;

use rusqlite::{Connection, TransactionBehavior};

use super::file::to_open_error;
use crate::records::error::OpenError;

/// The migrations in order. A released one never changes; new ones are appended.
const STEPS: [&str; 11] = [
    include_str!("schema/0001.sql"),
    include_str!("schema/0002.sql"),
    include_str!("schema/0003.sql"),
    include_str!("schema/0004.sql"),
    include_str!("schema/0005.sql"),
    include_str!("schema/0006.sql"),
    include_str!("schema/0007.sql"),
    include_str!("schema/0008.sql"),
    include_str!("schema/0009.sql"),
    include_str!("schema/0010.sql"),
    include_str!("schema/0011.sql"),
];
/// The SQLite `application_id`: `CATR`.
pub(super) const APPLICATION: i64 = 0x4341_5452;

/// Sets the `application_id` of a new file.
pub(super) fn set_application_id(connection: &Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "application_id", APPLICATION)
}

/// Migrates the schema to the newest version.
pub(super) fn migrate(connection: &mut Connection, path: &Path) -> Result<(), OpenError> {
    let found = schema_version(connection, path)?;
    apply_steps(connection, found.max(0) as usize).map_err(|error| to_open_error(path, error))
}

/// The schema version of a file, or an error if it belongs to another program or is too new.
pub(super) fn schema_version(connection: &Connection, path: &Path) -> Result<i64, OpenError> {
    let failed = |error| to_open_error(path, error);
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

fn apply_steps(connection: &mut Connection, from: usize) -> rusqlite::Result<()> {
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

//! Backups: a copy while work goes on, and the way back.
//!
//! Must not overwrite anything, nor put back what is damaged.

use std::fs;
use std::path::Path;

use rusqlite::backup::Backup;
use rusqlite::{Connection, OpenFlags};

use super::{beside, check, exists, flags, migrate, move_into_place, new_file, opening};
use crate::records::error::{OpenError, RecordsError};
use crate::records::lock::Lock;

/// Copies all pages of one instant; writers go on meanwhile.
pub(super) fn backup(connection: &Connection, to: &Path) -> Result<(), RecordsError> {
    let failed = |error: std::io::Error| {
        RecordsError(format!("cannot write the backup {}: {error}", to.display()))
    };
    if to.exists() {
        return Err(RecordsError(format!(
            "{} exists already: name another file, so that no backup is overwritten",
            to.display()
        )));
    }
    let new = beside(to, ".new");
    new_file(&new).map_err(failed)?;
    let mut copy = Connection::open_with_flags(&new, flags())?;
    // All pages in one step: the copy is of one instant, and a writer cannot make it start again.
    Backup::new(connection, &mut copy)?.step(-1)?;
    // A copy travels as one file.
    copy.pragma_update(None, "journal_mode", "DELETE")?;
    drop(copy);
    move_into_place(&new, to).map_err(failed)
}

/// Puts a backup where records are to be. The place must be free and nobody may have it open.
pub fn put_back(backup: &Path, records: &Path) -> Result<(), OpenError> {
    let _lock = Lock::take(records)?;
    if exists(records)? {
        return Err(OpenError::Exists { path: records.to_owned() });
    }
    let new = beside(records, ".new");
    let failed = |error: std::io::Error| OpenError::io(backup, &error);
    exists(backup)?;
    new_file(&new).map_err(failed)?;
    fs::copy(backup, &new).map_err(failed)?;
    let sound = look_through(&new, backup);
    if let Err(error) = sound {
        fs::remove_file(&new).map_err(failed)?;
        return Err(error);
    }
    move_into_place(&new, records).map_err(failed)
}

fn look_through(copy: &Path, backup: &Path) -> Result<(), OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
    let mut connection =
        Connection::open_with_flags(copy, flags).map_err(|error| opening(backup, error))?;
    migrate::migrate(&mut connection, backup)?;
    check(&connection, backup)
}

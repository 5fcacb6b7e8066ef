//! Backups of the SQLite file, and restoring them.
//!
//! Nothing is overwritten, and a damaged backup is not restored.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use catraca_core::time::Span;
use rusqlite::backup::Backup;
use rusqlite::{Connection, OpenFlags};

use super::file::{
    beside, check, create_private_file, exists, flags, move_into_place, sync_folder, to_open_error,
};
use super::migrate;
use super::restore_locks::prepare_copy;
use crate::records::database::DatabaseResult;
use crate::records::error::{DatabaseError, OpenError};
use crate::records::file_lock::FileLock;

/// Copies the pages of one point in time; writers continue meanwhile.
pub(super) fn backup(connection: &Connection, to: &Path) -> DatabaseResult<()> {
    let failed = |error: io::Error| {
        DatabaseError::Bad(format!("cannot write the backup {}: {error}", to.display()))
    };
    if to.exists() {
        return Err(already_exists(to));
    }
    let unfinished = UnfinishedBackup::beside(to).map_err(failed)?;
    let mut copy = Connection::open_with_flags(&unfinished.0, flags())?;
    // All pages in one step: with several, a write in between would restart the copy.
    Backup::new(connection, &mut copy)?.step(-1)?;
    // So that the copy is one file, without a write-ahead log.
    copy.pragma_update(None, "journal_mode", "DELETE")?;
    drop(copy);
    unfinished.publish(to).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => already_exists(to),
        _ => failed(error),
    })
}

fn already_exists(to: &Path) -> DatabaseError {
    DatabaseError::Bad(format!(
        "{} exists already: name another file, no backup is overwritten",
        to.display()
    ))
}

/// A new file next to its later path, removed on drop unless it was moved there.
struct UnfinishedBackup(PathBuf);

impl UnfinishedBackup {
    fn beside(to: &Path) -> io::Result<Self> {
        let process = std::process::id();
        for number in 0..UNFINISHED_MAX {
            let unfinished = beside(to, &format!(".{process}-{number}.new"));
            match create_private_file(&unfinished) {
                Ok(_) => return Ok(Self(unfinished)),
                // From another backup of this process, or of a killed process with the same id.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::other("too many unfinished backups (*.new) next to it: remove them"))
    }

    /// Moves it to its path; fails if that exists by now.
    fn publish(&self, to: &Path) -> io::Result<()> {
        File::open(&self.0)?.sync_all()?;
        match fs::hard_link(&self.0, to) {
            // A file system without hard links: only the check for existence protects `to`.
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists && !to.exists() => {
                fs::rename(&self.0, to)?;
            }
            linked => linked?,
        }
        sync_folder(to)
    }
}

impl Drop for UnfinishedBackup {
    fn drop(&mut self) {
        // Fails if it was renamed to the backup itself.
        let _ = fs::remove_file(&self.0);
    }
}

/// The most unfinished backups next to one path.
const UNFINISHED_MAX: u32 = 1_000;

/// Copies records, which another process may have open, to a new file. The copy is of one point in
/// time and appears complete or not at all.
pub fn back_up(records: &Path, to: &Path) -> Result<(), OpenError> {
    if !exists(records)? {
        return Err(OpenError::io(records, &io::ErrorKind::NotFound.into()));
    }
    if to.exists() {
        return Err(OpenError::Exists { path: to.to_owned() });
    }
    let failed = |error| to_open_error(records, error);
    let connection = Connection::open_with_flags(records, flags()).map_err(failed)?;
    connection.busy_timeout(std::time::Duration::from_secs(5)).map_err(failed)?;
    connection.pragma_update(None, "query_only", true).map_err(failed)?;
    migrate::schema_version(&connection, records)?;
    backup(&connection, to)
        .map_err(|error| OpenError::Failed { path: records.to_owned(), reason: error.to_string() })
}

/// The result of restoring a backup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoredBackup {
    /// Where the replaced file was moved to, if there was one.
    pub old: Option<PathBuf>,
    /// How long the next start grants no locks, because leases that the backup does not contain may
    /// still be valid. Zero if there never were leases.
    #[doc(hidden)]
    pub locks_wait: Span,
    /// Why the replaced file could not be read, if it could not: its fencing tokens, and whether it
    /// required API keys, are then not taken over.
    pub unread: Option<String>,
}

/// Restores a backup to a path without a file. No process may have it open.
pub fn restore_backup(backup: &Path, records: &Path) -> Result<RestoredBackup, OpenError> {
    let refuse_existing = || {
        if !records.is_file() {
            return exists(records).map(drop);
        }
        // That they are in use is said first: they must not be moved then.
        FileLock::take(records)?;
        Err(OpenError::Exists { path: records.to_owned() })
    };
    refuse_existing()?;
    let (new, _lock, locks_wait, unread) = prepare_restore(backup, records)?;
    // Another process may have created them meanwhile; the next one removes the copy.
    refuse_existing()?;
    move_into_place(&new, records).map_err(|error| OpenError::io(records, &error))?;
    Ok(RestoredBackup { old: None, locks_wait, unread })
}

/// Restores a backup in place of records that no process has open. The replaced file, damaged or
/// not, is renamed.
pub fn restore_backup_over(backup: &Path, records: &Path) -> Result<RestoredBackup, OpenError> {
    let _lock = FileLock::take(records)?;
    let (new, _new_lock, locks_wait, unread) = prepare_restore(backup, records)?;
    let failed = |error: io::Error| OpenError::io(records, &error);
    let old = rename_replaced(records).map_err(failed)?;
    move_into_place(&new, records).map_err(failed)?;
    Ok(RestoredBackup { old, locks_wait, unread })
}

/// A checked copy of the backup whose locks continue from the replaced records, and how long the
/// next start grants no locks. The copy is locked, so that no start uses it before it is complete.
fn prepare_restore(
    backup: &Path,
    records: &Path,
) -> Result<(PathBuf, FileLock, Span, Option<String>), OpenError> {
    let (new, lock) = checked_copy(backup, records)?;
    let replaced = records.is_file().then_some(records);
    match prepare_copy(&new, replaced) {
        Ok((wait, unread)) => Ok((new, lock, wait, unread)),
        Err(error) => {
            fs::remove_file(&new).map_err(|error| OpenError::io(records, &error))?;
            Err(to_open_error(backup, error))
        }
    }
}

/// A copy next to its later path, migrated and checked.
fn checked_copy(backup: &Path, records: &Path) -> Result<(PathBuf, FileLock), OpenError> {
    let failed = |error: io::Error| OpenError::io(backup, &error);
    if !exists(backup)? {
        return Err(failed(io::ErrorKind::NotFound.into()));
    }
    let new = beside(records, ".new");
    // Not `fs::copy`, which would also copy the permissions of the backup.
    let lock = FileLock::create(&new)?;
    let copied = File::open(backup).and_then(|mut backup| io::copy(&mut backup, &mut lock.file()));
    let checked = copied.map_err(failed).and_then(|_| check_copy(&new, backup));
    if let Err(error) = checked {
        fs::remove_file(&new).map_err(failed)?;
        return Err(error);
    }
    Ok((new, lock))
}

/// Renames records together with their write-ahead log: they may be incomplete without it, and it
/// must never be applied to another file.
fn rename_replaced(records: &Path) -> io::Result<Option<PathBuf>> {
    let exists_with = |ending: &str| beside(records, ending).exists();
    if !exists_with("") && !exists_with("-wal") {
        return Ok(None);
    }
    let names = std::iter::once(".old".to_owned()).chain((2..).map(|nth| format!(".old-{nth}")));
    let free = |name: &String| !exists_with(name) && !exists_with(&format!("{name}-wal"));
    let name = names.into_iter().find(free).unwrap_or_default();
    for ending in ["", "-wal"] {
        if exists_with(ending) {
            fs::rename(beside(records, ending), beside(records, &format!("{name}{ending}")))?;
        }
    }
    if exists_with("-shm") {
        fs::remove_file(beside(records, "-shm"))?;
    }
    Ok(Some(beside(records, &name)))
}

fn check_copy(copy: &Path, backup: &Path) -> Result<(), OpenError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE;
    let mut connection =
        Connection::open_with_flags(copy, flags).map_err(|error| to_open_error(backup, error))?;
    migrate::migrate(&mut connection, backup)?;
    check(&connection, backup)
}

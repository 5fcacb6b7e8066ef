//! Records in one SQLite file: opening, first start, and errors.
//!
//! All SQL of this dialect is in this folder. Opening fails if the file is damaged or empty, or if
//! it is missing while its write-ahead log exists: a new file would silently drop all blocks.

mod backup;
mod erase;
mod integrity;
mod lists;
mod lock_tables;
mod migrate;
mod purge;
mod read;
mod reset_sweep;
mod restore;
mod restore_locks;
mod stats;
mod write;

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::error::{OpenError, RecordsError, WriteError};

pub use backup::{RestoredBackup, back_up, restore_backup, restore_backup_over};

/// Files up to this size get the full integrity check at every start. For larger ones only pages
/// and rows are checked, and the rest on request (`verify`).
const FULL_CHECK_MAX: u64 = 64 << 20;
/// Size of the prepared statement cache.
const STATEMENT_CACHE: usize = 64;

/// The connection of the writer thread.
pub(super) struct SqliteWriter {
    connection: Connection,
    /// Records since the last checkpoint of the write-ahead log.
    since_checkpoint: usize,
}

/// The connection of queries.
pub(super) struct SqliteReader {
    connection: Mutex<Connection>,
}

/// Opens both connections. The caller holds the file lock.
pub(super) fn open(path: &Path) -> Result<(SqliteWriter, SqliteReader), OpenError> {
    if !exists(path)? {
        create(path)?;
    }
    let mut connection = connect(path).map_err(|error| to_open_error(path, error))?;
    migrate::migrate(&mut connection, path)?;
    check(&connection, path)?;
    // Checkpoints what an earlier process left in the write-ahead log: pages that only the system's
    // cache may hold are synced before anything is built on them.
    let checkpointed = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    checkpointed.map_err(|error| to_open_error(path, error))?;
    let reader = connect(path).map_err(|error| to_open_error(path, error))?;
    reader.pragma_update(None, "query_only", true).map_err(|error| to_open_error(path, error))?;
    let writer = SqliteWriter { connection, since_checkpoint: 0 };
    Ok((writer, SqliteReader { connection: Mutex::new(reader) }))
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, flags())?;
    connection.set_prepared_statement_cache_capacity(STATEMENT_CACHE);
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // Every commit waits for the disk; an acknowledgement relies on it.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    // Deleted data is overwritten with zeros.
    connection.pragma_update(None, "secure_delete", true)?;
    // The writer runs checkpoints, after it has answered waiting callers.
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    Ok(connection)
}

/// Without `CREATE`: a missing file is created under another name and moved into place complete.
fn flags() -> OpenFlags {
    OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX
}

fn exists(path: &Path) -> Result<bool, OpenError> {
    let corrupt = |reason: String| OpenError::Corrupt { path: path.to_owned(), reason };
    match fs::metadata(path) {
        Ok(found) if !found.is_file() => {
            Err(OpenError::io(path, &io::Error::other("it is not a regular file")))
        }
        Ok(found) if found.len() == 0 => Err(corrupt("the file is empty".to_owned())),
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let log = beside(path, "-wal");
            match fs::metadata(&log) {
                Ok(left) if left.len() > 0 => Err(corrupt(format!(
                    "it is missing, but its write-ahead log {} exists",
                    log.display()
                ))),
                _ => Ok(false),
            }
        }
        Err(error) => Err(OpenError::io(path, &error)),
    }
}

/// Creates the file on the first start. It appears with its complete schema or not at all.
fn create(path: &Path) -> Result<(), OpenError> {
    let temporary = beside(path, ".new");
    recreate_private_file(&temporary).map_err(|error| OpenError::io(path, &error))?;
    let mut connection = Connection::open_with_flags(&temporary, flags())
        .map_err(|error| to_open_error(path, error))?;
    migrate::set_application_id(&connection).map_err(|error| to_open_error(path, error))?;
    migrate::migrate(&mut connection, path)?;
    drop(connection);
    move_into_place(&temporary, path).map_err(|error| OpenError::io(path, &error))
}

/// Creates an empty file that only its owner may read; replaces the rest of an earlier attempt.
fn recreate_private_file(new: &Path) -> io::Result<File> {
    for ending in ["", "-journal"] {
        match fs::remove_file(beside(new, ending)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    create_private_file(new)
}

/// Like [`recreate_private_file`], but fails if the file exists.
fn create_private_file(new: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(new)
}

fn move_into_place(new: &Path, path: &Path) -> io::Result<()> {
    File::open(new)?.sync_all()?;
    fs::rename(new, path)?;
    sync_folder(path)
}

/// Syncs the folder: only then does a renamed file survive a crash.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

fn check(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let bytes = fs::metadata(path).map_or(0, |found| found.len());
    let found = if bytes <= FULL_CHECK_MAX {
        integrity::check_all(connection)
    } else {
        integrity::check_pages(connection)
    };
    match found.map_err(|error| to_open_error(path, error))?.into_iter().next() {
        Some(reason) => Err(OpenError::Corrupt { path: path.to_owned(), reason }),
        None => Ok(()),
    }
}

/// The path with `ending` appended to the file name.
pub(super) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    PathBuf::from(name)
}

fn to_open_error(path: &Path, error: rusqlite::Error) -> OpenError {
    let path = path.to_owned();
    let reason = error.to_string();
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            OpenError::Corrupt { path, reason }
        }
        _ => OpenError::Failed { path, reason },
    }
}

impl From<rusqlite::Error> for RecordsError {
    fn from(error: rusqlite::Error) -> Self {
        Self(error.to_string())
    }
}

/// Errors that the record itself causes would recur; all others may be temporary.
impl From<rusqlite::Error> for WriteError {
    fn from(error: rusqlite::Error) -> Self {
        let why = error.to_string();
        match error.sqlite_error_code() {
            Some(
                ErrorCode::ConstraintViolation
                | ErrorCode::TooBig
                | ErrorCode::TypeMismatch
                | ErrorCode::ParameterOutOfRange
                | ErrorCode::ApiMisuse
                | ErrorCode::Unknown,
            )
            | None => Self::Bad(why),
            Some(_) => Self::Down(why),
        }
    }
}

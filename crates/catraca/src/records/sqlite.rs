//! Records in one SQLite file: opening, first start, and putting a backup back.
//!
//! All SQL of this dialect is in this folder. Must not create a file where one is missing that
//! should be there, nor go on with a damaged one.

mod backup;
mod carry;
mod erase;
mod faults;
mod lists;
mod locks;
mod migrate;
mod purge;
mod read;
mod restore;
mod stats;
mod sweep;
mod write;

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::error::{OpenError, RecordsError, WriteError};

pub use backup::{PutBack, back_up, put_back, put_back_over};

/// Files up to this size are compared with their own indexes at every start; of larger ones only
/// the pages and rows are looked at, and the rest on request.
const COMPARED_AT_START: u64 = 64 << 20;
/// Statements kept ready.
const STATEMENTS: usize = 64;

/// The connection that writes.
pub(super) struct SqliteWriter {
    connection: Connection,
    /// Records since the log was last folded into the file.
    since_fold: usize,
}

/// The connection that reads.
pub(super) struct SqliteReader {
    connection: Mutex<Connection>,
}

/// Opens both connections; the caller holds the lock.
pub(super) fn open(path: &Path) -> Result<(SqliteWriter, SqliteReader), OpenError> {
    if !exists(path)? {
        create(path)?;
    }
    let mut connection = connect(path).map_err(|error| opening(path, error))?;
    migrate::migrate(&mut connection, path)?;
    check(&connection, path)?;
    // What an earlier process left in the log is read back and put into the file, so that nothing
    // later is built on bytes that only the system's cache may hold.
    let folded = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    folded.map_err(|error| opening(path, error))?;
    let reader = connect(path).map_err(|error| opening(path, error))?;
    reader.pragma_update(None, "query_only", true).map_err(|error| opening(path, error))?;
    let writer = SqliteWriter { connection, since_fold: 0 };
    Ok((writer, SqliteReader { connection: Mutex::new(reader) }))
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, flags())?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    connection.busy_timeout(std::time::Duration::from_secs(5))?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    // Every commit waits for the disk: this is what an acknowledgement means.
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.pragma_update(None, "foreign_keys", true)?;
    // What is deleted must be gone from the file.
    connection.pragma_update(None, "secure_delete", true)?;
    // The writer folds the log itself, after it has answered those who wait.
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    Ok(connection)
}

/// An existing file only: a missing one is made elsewhere and moved here whole.
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
                Ok(left) if left.len() > 0 => {
                    Err(corrupt(format!("it is missing, but its log {} is there", log.display())))
                }
                _ => Ok(false),
            }
        }
        Err(error) => Err(OpenError::io(path, &error)),
    }
}

/// A first start: the file appears with its whole schema, or not at all.
fn create(path: &Path) -> Result<(), OpenError> {
    let new = beside(path, ".new");
    new_file(&new).map_err(|error| OpenError::io(path, &error))?;
    let mut connection =
        Connection::open_with_flags(&new, flags()).map_err(|error| opening(path, error))?;
    migrate::begin(&connection).map_err(|error| opening(path, error))?;
    migrate::migrate(&mut connection, path)?;
    drop(connection);
    move_into_place(&new, path).map_err(|error| OpenError::io(path, &error))
}

/// An empty file that only its owner may read.
fn new_file(new: &Path) -> io::Result<File> {
    for ending in ["", "-journal"] {
        match fs::remove_file(beside(new, ending)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    own_file(new)
}

/// The same where nothing may be yet.
fn own_file(new: &Path) -> io::Result<File> {
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

/// A name is only safe once its folder is on disk.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

fn check(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let bytes = fs::metadata(path).map_or(0, |found| found.len());
    let found = if bytes <= COMPARED_AT_START {
        faults::all(connection)
    } else {
        faults::of_pages(connection)
    };
    match found.map_err(|error| opening(path, error))?.into_iter().next() {
        Some(reason) => Err(OpenError::Corrupt { path: path.to_owned(), reason }),
        None => Ok(()),
    }
}

/// A file's neighbour: its name with something appended.
pub(super) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    PathBuf::from(name)
}

fn opening(path: &Path, error: rusqlite::Error) -> OpenError {
    let (path, reason) = (path.to_owned(), error.to_string());
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

/// What the record itself causes never gets better; everything else may.
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

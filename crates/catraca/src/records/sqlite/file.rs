//! The records file: creating, opening and checking it.
//!
//! Opening fails if the file is damaged or empty, or if it is missing while its write-ahead log
//! exists: a new file would silently drop all blocks.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::migrate;
use crate::records::error::OpenError;

/// Files up to this size get the full integrity check at every start. For larger ones only pages
/// and rows are checked, and the rest on request (`verify`).
const FULL_CHECK_MAX: u64 = 64 << 20;
/// Size of the prepared statement cache.
const STATEMENT_CACHE: usize = 128;

/// Opens the connection of the writer and that of queries. The caller holds the file lock.
pub(super) fn open(path: &Path) -> Result<[Connection; 2], OpenError> {
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
    Ok([connection, reader])
}

fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, flags())?;
    connection.set_prepared_statement_cache_capacity(STATEMENT_CACHE);
    // One plan per statement: with plans by parameter values, most statements would be prepared
    // again at every execution.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
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
pub(super) fn flags() -> OpenFlags {
    OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX
}

pub(super) fn exists(path: &Path) -> Result<bool, OpenError> {
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
pub(super) fn recreate_private_file(new: &Path) -> io::Result<File> {
    for ending in ["", "-journal"] {
        match fs::remove_file(beside(new, ending)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    create_private_file(new)
}

/// Like [`recreate_private_file`], but fails if the file exists.
pub(super) fn create_private_file(new: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(new)
}

pub(super) fn move_into_place(new: &Path, path: &Path) -> io::Result<()> {
    File::open(new)?.sync_all()?;
    fs::rename(new, path)?;
    sync_folder(path)
}

/// Syncs the folder: only then does a renamed file survive a crash.
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

pub(super) fn check(connection: &Connection, path: &Path) -> Result<(), OpenError> {
    let bytes = fs::metadata(path).map_or(0, |found| found.len());
    let found = if bytes <= FULL_CHECK_MAX {
        check_all(connection)
    } else {
        query_lines(connection, "PRAGMA quick_check")
    };
    match found.map_err(|error| to_open_error(path, error))?.into_iter().next() {
        Some(reason) => Err(OpenError::Corrupt { path: path.to_owned(), reason }),
        None => Ok(()),
    }
}

/// The path with `ending` appended to the file name.
pub(in crate::records) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    PathBuf::from(name)
}

pub(super) fn to_open_error(path: &Path, error: rusqlite::Error) -> OpenError {
    let path = path.to_owned();
    let reason = error.to_string();
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            OpenError::Corrupt { path, reason }
        }
        _ => OpenError::Failed { path, reason },
    }
}

/// The key of a block is also stored with its subject. A block with another key would block no one.
const KEY_MISMATCHES: &str =
    "SELECT printf('block %d differs from its subject in its key', b.subject)
    FROM blocks AS b LEFT JOIN subjects AS s ON s.id = b.subject WHERE s.key IS NOT b.key";

/// All faults that can be detected. A changed value that is valid and stored only once cannot be;
/// see `docs/guide/records.md`.
pub(super) fn check_all(connection: &Connection) -> rusqlite::Result<Vec<String>> {
    let mut faults = query_lines(connection, "PRAGMA integrity_check")?;
    // With damaged pages the result of the second query would mean nothing.
    if faults.is_empty() {
        faults = query_lines(connection, KEY_MISMATCHES)?;
    }
    Ok(faults)
}

fn query_lines(connection: &Connection, sql: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare(sql)?;
    let lines = statement.query_map([], |row| row.get::<_, String>(0))?;
    let lines: Vec<String> = lines.collect::<rusqlite::Result<_>>()?;
    Ok(lines.into_iter().filter(|line| line != "ok").collect())
}

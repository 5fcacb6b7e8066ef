//! The records file: creating, opening and checking it.
//!
//! Opening fails if the file is damaged or empty, or if it is missing while its write-ahead log
//! exists: a new file would silently drop all blocks. A full disk is no reason to fail: decisions
//! need the blocks of the file, and the writer says that nothing is durable.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags, ffi};

use super::{header, migrate};
use crate::records::error::OpenError;
use crate::records::file_lock::{FileLock, is_locked_here};

/// Files up to this size get the full integrity check at every start. For larger ones only pages
/// and rows are checked, and the rest on request (`verify`).
const FULL_CHECK_MAX: u64 = 64 << 20;
/// Size of the prepared statement cache.
const STATEMENT_CACHE: usize = 128;

/// An open file.
pub(super) struct OpenFile {
    /// The connection of the writer.
    pub writes: Connection,
    /// The connection of queries.
    pub reads: Connection,
    pub lock: FileLock,
    /// Whether the disk was full.
    pub is_disk_full: bool,
}

/// Opens the file, and creates it if it does not exist.
pub(super) fn open(path: &Path) -> Result<OpenFile, OpenError> {
    let failed = |error| to_open_error(path, error);
    let lock = match exists(path)? {
        true => FileLock::take(path)?,
        false => None,
    };
    let lock = lock.map_or_else(|| create(path), Ok)?;
    let mut vfs = Vfs::Shared;
    let mut writes = match connect(path, vfs) {
        Err(error) if is_full(&error) => {
            vfs = Vfs::Exclusive;
            connect(path, vfs).map_err(failed)?
        }
        connected => connected.map_err(failed)?,
    };
    migrate::migrate(&mut writes, path)?;
    check(&writes, path)?;
    // Checkpoints what an earlier process left in the write-ahead log: pages that only the system's
    // cache may hold are synced before anything is built on them. On a full disk they stay in the
    // log, where they can be read.
    let checkpointed = writes.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    let is_disk_full = checkpointed.as_ref().is_err_and(is_full) || vfs == Vfs::Exclusive;
    if !is_disk_full {
        checkpointed.map_err(failed)?;
    }
    let reads = connect(path, vfs).map_err(failed)?;
    reads.pragma_update(None, "query_only", true).map_err(failed)?;
    Ok(OpenFile { writes, reads, lock, is_disk_full })
}

/// Where SQLite keeps the index of the write-ahead log.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Vfs {
    /// In a file (`-shm`), so that other programs can read the records meanwhile.
    Shared,
    /// In the memory of this process, for a disk without room for that file.
    Exclusive,
}

/// Whether the disk has no room for the database, its log or the index of its log.
fn is_full(error: &rusqlite::Error) -> bool {
    let code = error.sqlite_error().map(|error| error.extended_code);
    error.sqlite_error_code() == Some(ErrorCode::DiskFull)
        || matches!(code, Some(ffi::SQLITE_IOERR_SHMSIZE | ffi::SQLITE_IOERR_SHMMAP))
}

fn connect(path: &Path, vfs: Vfs) -> rusqlite::Result<Connection> {
    let connection = match vfs {
        Vfs::Shared => Connection::open_with_flags(path, flags())?,
        Vfs::Exclusive => Connection::open_with_flags_and_vfs(path, flags(), c"unix-excl")?,
    };
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
        // A file that this process has open was checked already.
        Ok(found) if is_locked_here(&found) => Ok(true),
        Ok(_) => header::check(path).map(|()| true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let log = beside(path, "-wal");
            match fs::metadata(&log) {
                Ok(left) if left.len() > 0 => Err(corrupt(format!(
                    "it is missing, but its write-ahead log {} exists",
                    log.display()
                ))),
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    Err(OpenError::io(&log, &error))
                }
                _ => Ok(false),
            }
        }
        Err(error) => Err(OpenError::io(path, &error)),
    }
}

/// Creates the file on the first start. It appears with its complete schema or not at all.
fn create(path: &Path) -> Result<FileLock, OpenError> {
    let temporary = beside(path, ".new");
    let lock = FileLock::create(&temporary)?;
    // Another process may have created the file before this one locked the temporary file.
    if path.exists() {
        fs::remove_file(&temporary).map_err(|error| OpenError::io(&temporary, &error))?;
        let holder = "another process, which has just created them".to_owned();
        return Err(OpenError::InUse { path: path.to_owned(), holder });
    }
    let mut connection = Connection::open_with_flags(&temporary, flags())
        .map_err(|error| to_open_error(path, error))?;
    migrate::set_application_id(&connection).map_err(|error| to_open_error(path, error))?;
    migrate::migrate(&mut connection, path)?;
    drop(connection);
    move_into_place(&temporary, path).map_err(|error| OpenError::io(path, &error))?;
    Ok(lock)
}

/// Creates an empty file that only its owner may read; fails if the file exists.
pub(in crate::records) fn create_private_file(new: &Path) -> io::Result<File> {
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

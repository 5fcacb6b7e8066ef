//! The SQLite driver: transactions on one file, its write-ahead log, and errors.

mod backup;
mod dialect;
mod file;
mod header;
mod migrate;
mod open_files;
mod restore_locks;

use std::path::Path;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ErrorCode, Row, ToSql, params_from_iter};

use super::database::{Access, Database, DatabaseResult, RowVisitor, transaction};
use super::error::{DatabaseError, OpenError};
use super::file_lock::FileLock;
use super::record::Record;
use super::sql::value::{Column, SqlRow, Value, invalid_column};
use super::sql::write::write_records;
use dialect::Translations;
use open_files::OpenFiles;

pub use backup::{RestoredBackup, back_up, restore_backup, restore_backup_over};
pub(super) use file::{beside, create_private_file};

/// Statements that write after which the write-ahead log is checkpointed.
const CHECKPOINT_EVERY: usize = 8_000;

/// A connection to the file.
pub(super) struct SqliteDatabase {
    connection: Connection,
    translations: Translations,
    /// Statements that wrote since the last checkpoint of the write-ahead log.
    since_checkpoint: usize,
    /// Whether the disk was full at the start. A transaction that changes nothing would succeed on
    /// a full disk, so the first one must write.
    must_prove_room: bool,
    /// Of the writer only.
    files: Option<OpenFiles>,
}

/// Opens the connection of the writer and that of queries, and the lock of the file.
pub(super) fn open(path: &Path) -> Result<(FileLock, [SqliteDatabase; 2]), OpenError> {
    let file::OpenFile { writes, reads, lock, is_disk_full } = file::open(path)?;
    let writes = SqliteDatabase {
        must_prove_room: is_disk_full,
        files: Some(OpenFiles::new(path, lock.inode())),
        ..SqliteDatabase::new(writes)
    };
    Ok((lock, [writes, SqliteDatabase::new(reads)]))
}

impl SqliteDatabase {
    fn new(connection: Connection) -> Self {
        Self {
            connection,
            translations: Translations::default(),
            since_checkpoint: 0,
            must_prove_room: false,
            files: None,
        }
    }

    /// Writes a page, unchanged.
    fn prove_room(&mut self) -> DatabaseResult<()> {
        let version: i64 =
            self.connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
        transaction(self, Access::Write, |database| {
            Ok(database.connection.pragma_update(None, "user_version", version)?)
        })?;
        self.must_prove_room = false;
        // What an earlier process left in the log is still there.
        self.since_checkpoint += 1;
        Ok(())
    }

    fn checkpoint(&mut self, mode: &str) -> DatabaseResult<()> {
        let sql = format!("PRAGMA wal_checkpoint({mode})");
        let busy: bool = self.connection.query_row(&sql, [], |row| row.get(0))?;
        if busy && mode == "TRUNCATE" {
            let why =
                "a backup or a long query uses the write-ahead log: try again when it has ended";
            return Err(DatabaseError::Down(why.to_owned()));
        }
        Ok(())
    }
}

impl Database for SqliteDatabase {
    fn write(&mut self, records: &[&Record]) -> DatabaseResult<()> {
        if self.must_prove_room {
            self.prove_room()?;
        }
        if self.since_checkpoint >= CHECKPOINT_EVERY {
            // Before the batch, not after it: callers of the last batch have been answered by now.
            // If it fails, commits still reach the disk; it is tried again after half as many
            // statements, and by `maintain`, which counts the failure.
            self.since_checkpoint = self.checkpoint("PASSIVE").map_or(CHECKPOINT_EVERY / 2, |()| 0);
        }
        transaction(self, Access::Write, |database| write_records(database, records))
    }

    fn begin(&mut self, access: Access) -> DatabaseResult<()> {
        let sql = match access {
            Access::Read => "BEGIN",
            Access::Write => "BEGIN IMMEDIATE",
        };
        Ok(self.connection.execute_batch(sql)?)
    }

    fn commit(&mut self) -> DatabaseResult<()> {
        Ok(self.connection.execute_batch("COMMIT")?)
    }

    fn rollback(&mut self) {
        // Some errors, such as a full disk, have ended the transaction already.
        if !self.connection.is_autocommit() {
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }

    fn add(&mut self, sql: &'static str, values: &[Value<'_>]) -> DatabaseResult<bool> {
        self.since_checkpoint += 1;
        let sql = self.translations.get(sql);
        Ok(self.connection.prepare_cached(sql)?.execute(params_from_iter(values))? > 0)
    }

    fn execute(&mut self, sql: &str, values: &[Value<'_>]) -> DatabaseResult<u64> {
        self.since_checkpoint += 1;
        let sql = dialect::translate(sql);
        Ok(self.connection.prepare_cached(&sql)?.execute(params_from_iter(values))? as u64)
    }

    fn query(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        visit: RowVisitor<'_>,
    ) -> DatabaseResult<()> {
        let sql = dialect::translate(sql);
        let mut statement = self.connection.prepare_cached(&sql)?;
        let mut rows = statement.query(params_from_iter(values))?;
        while let Some(row) = rows.next()? {
            visit(row)?;
        }
        Ok(())
    }

    fn maintain(&mut self) -> DatabaseResult<()> {
        if self.since_checkpoint > 0 {
            self.checkpoint("PASSIVE")?;
            self.since_checkpoint = 0;
        }
        Ok(())
    }

    fn file_fault(&mut self) -> Option<String> {
        self.files.as_mut()?.fault()
    }

    fn truncate_wal(&mut self) -> DatabaseResult<()> {
        self.checkpoint("TRUNCATE")
    }

    fn sequence(&mut self) -> DatabaseResult<u64> {
        // SQLite's own table of the highest ids that AUTOINCREMENT gave, also of deleted rows.
        let sql = "SELECT coalesce(sum(seq), 0) FROM sqlite_sequence";
        let sum: i64 = self.connection.query_row(sql, [], |row| row.get(0))?;
        Ok(sum.unsigned_abs())
    }

    fn backup(&mut self, to: &Path) -> DatabaseResult<()> {
        backup::backup(&self.connection, to)
    }

    fn verify(&mut self) -> DatabaseResult<Vec<String>> {
        Ok(file::check_all(&self.connection)?)
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Int(Some(number)) => ValueRef::Integer(*number),
            Self::Text(Some(text)) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(Some(bytes)) => ValueRef::Blob(bytes),
            Self::Flag(flag) => ValueRef::Integer((*flag).into()),
            Self::Int(None) | Self::Text(None) | Self::Bytes(None) => ValueRef::Null,
        }))
    }
}

impl SqlRow for Row<'_> {
    fn column(&self, index: usize) -> DatabaseResult<Column<'_>> {
        Ok(match self.get_ref(index)? {
            ValueRef::Null => Column::Null,
            ValueRef::Integer(number) => Column::Int(number),
            ValueRef::Text(text) => {
                Column::Text(std::str::from_utf8(text).map_err(|_| invalid_column("text"))?)
            }
            ValueRef::Blob(bytes) => Column::Bytes(bytes),
            ValueRef::Real(_) => return Err(invalid_column("number")),
        })
    }
}

/// Errors that the record itself causes would recur; all others may be temporary.
impl From<rusqlite::Error> for DatabaseError {
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

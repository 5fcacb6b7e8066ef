//! The SQLite database of one test, in a folder of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use catraca::records::{Options, Records};
use rusqlite::Connection;
use rusqlite::types::ValueRef;

/// The Markdown fences of the guide's queries in this dialect.
pub const FENCES: &[&str] = &["```sql\n"];

/// A folder with a database, removed when the test ends.
pub struct TestDatabase(PathBuf);

impl TestDatabase {
    pub fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("catraca-records-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub fn path(&self) -> PathBuf {
        self.file("catraca.db")
    }

    pub fn url(&self) -> String {
        format!("sqlite:{}", self.path().display())
    }

    pub fn open(&self) -> Records {
        Records::open(&self.url(), Options::default()).unwrap()
    }

    /// Runs a query on the file; returns its rows as text.
    pub fn rows(&self, sql: &str) -> Vec<Vec<String>> {
        let connection = Connection::open(self.path()).unwrap();
        let mut statement = connection.prepare(sql).unwrap();
        let width = statement.column_count();
        let rows = statement.query_map([], |row| {
            (0..width).map(|column| row.get_ref(column).map(|value| to_text(&value))).collect()
        });
        rows.unwrap().collect::<Result<_, _>>().unwrap()
    }

    /// Makes a backup in the same folder, so that `holds` searches it too.
    pub fn back_up(&self, records: &Records) {
        records.backup(&self.file("backup.db")).unwrap();
    }

    /// The contents of all files of the folder.
    pub fn bytes(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let files = fs::read_dir(&self.0).unwrap().map(|entry| entry.unwrap().path());
        files.map(|path| (path.clone(), fs::read(&path).unwrap())).collect()
    }

    /// Whether any file contains these bytes.
    pub fn holds(&self, needle: &str) -> bool {
        let needle = needle.as_bytes();
        self.bytes().iter().any(|(_, bytes)| bytes.windows(needle.len()).any(|at| at == needle))
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs a query on a database file; returns the first column.
pub fn query_column<T: rusqlite::types::FromSql>(path: &Path, sql: &str) -> Vec<T> {
    let connection = Connection::open(path).unwrap();
    let mut statement = connection.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| row.get(0)).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

fn to_text(value: &ValueRef<'_>) -> String {
    match value {
        ValueRef::Null => "NULL".to_owned(),
        ValueRef::Integer(number) => number.to_string(),
        ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
        other => format!("{other:?}"),
    }
}

/// The start of the last 24 hours, where PostgreSQL has `NOW() - INTERVAL '24 hours'`.
pub const DAY_AGO: &str = "strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-24 hours')";

/// The error of a statement that must fail.
pub fn execute_error(database: &TestDatabase, sql: &str) -> String {
    Connection::open(database.path()).unwrap().execute(sql, []).unwrap_err().to_string()
}

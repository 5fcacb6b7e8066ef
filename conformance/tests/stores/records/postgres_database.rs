//! The PostgreSQL database of one test, on a server that the tests share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use catraca::records::{Options, Records};

use catraca_testkit::postgres::{PostgresServer, shared_server};

/// The Markdown fences of the guide's queries in this dialect, preferred first.
pub const FENCES: &[&str] = &["```postgresql\n", "```sql\n"];

const TABLES: [&str; 13] = [
    "attempts",
    "subjects",
    "parts",
    "blocks",
    "history",
    "debts",
    "lists",
    "facts",
    "modes",
    "revisions",
    "audit",
    "counts",
    "writers",
];

/// A database, removed together with its server.
pub struct TestDatabase {
    pub server: Arc<PostgresServer>,
    pub name: String,
}

impl TestDatabase {
    pub fn new() -> Self {
        Self::on(shared_server())
    }

    pub fn on(server: Arc<PostgresServer>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("test_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        server.psql("postgres", &format!("CREATE DATABASE {name}"));
        Self { server, name }
    }

    pub fn url(&self) -> String {
        self.server.url(&self.name)
    }

    pub fn open(&self) -> Records {
        Records::open(&self.url(), Options::default()).unwrap()
    }

    /// Runs a query in psql; returns its rows, with times in the format of the SQLite tests.
    pub fn rows(&self, sql: &str) -> Vec<Vec<String>> {
        let rows = self.server.psql(&self.name, sql).into_iter();
        rows.map(|row| row.iter().map(|text| instant(text)).collect()).collect()
    }

    /// Asserts that `backup` refers to PostgreSQL's own tools.
    pub fn back_up(&self, records: &Records) {
        let refused = records.backup(&self.server.directory.join("backup.db")).unwrap_err();
        assert!(refused.to_string().contains("pg_dump"), "{refused}");
    }

    /// Whether any row of any table contains this text.
    pub fn holds(&self, needle: &str) -> bool {
        let table = |table: &&str| {
            let sql = format!(
                "SELECT count(*) FROM catraca.{table} AS t WHERE strpos(t::text, '{needle}') > 0"
            );
            self.rows(&sql) != [["0"]]
        };
        TABLES.iter().any(table)
    }
}

fn instant(text: &str) -> String {
    let Some((date, time)) = text.split_once(' ') else { return text.to_owned() };
    let Some(time) = time.strip_suffix("+00") else { return text.to_owned() };
    let (whole, part) = time.split_once('.').unwrap_or((time, ""));
    format!("{date}T{whole}.{part:0<3}Z")
}

/// The start of the last 24 hours, as the source's query has it.
pub const DAY_AGO: &str = "NOW() - INTERVAL '24 hours'";

/// The error of a statement that must fail.
pub fn execute_error(database: &TestDatabase, sql: &str) -> String {
    let output = database.server.shell(&database.name).args(["-c", sql]).output().unwrap();
    assert!(!output.status.success(), "{sql}");
    String::from_utf8(output.stderr).unwrap()
}

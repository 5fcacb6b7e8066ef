//! Where the records of one test are: a database of its own on the server that the tests share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use catraca::records::{Options, Records};

use crate::server::{Server, shared};

/// The fences of the guide's queries in this dialect, best first.
pub const FENCES: &[&str] = &["```postgresql\n", "```sql\n"];

const TABLES: [&str; 12] = [
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

/// A database that goes with its server.
pub struct Folder {
    pub server: Arc<Server>,
    pub name: String,
}

impl Folder {
    pub fn new() -> Self {
        Self::on(shared())
    }

    pub fn on(server: Arc<Server>) -> Self {
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

    /// What a question asked of the database itself gives; instants as the other dialect has them.
    pub fn rows(&self, sql: &str) -> Vec<Vec<String>> {
        let rows = self.server.psql(&self.name, sql).into_iter();
        rows.map(|row| row.iter().map(|text| instant(text)).collect()).collect()
    }

    /// A server is backed up with its own tools, and the records say so.
    pub fn back_up(&self, records: &Records) {
        let refused = records.backup(&self.server.directory.join("backup.db")).unwrap_err();
        assert!(refused.to_string().contains("pg_dump"), "{refused}");
    }

    /// Whether any row of any table holds this.
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

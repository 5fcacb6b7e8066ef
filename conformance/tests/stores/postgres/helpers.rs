//! Helpers: databases, stores, sessions and batches.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use catraca::postgres::{PostgresOptions, PostgresStore};
use catraca::store::{SharedStore, StoreError, When};
use catraca_core::batch::{
    Batch, CheckBatch, CheckReply, CheckRow, Reply, SettleBatch, SettleReply, SettleRow,
};
use catraca_core::digest::Key;
use catraca_core::limit::{BucketTerms, Limit, WindowTerms};
use catraca_core::time::{Span, Time};
use catraca_testkit::blocking_store::BlockingStore;
use tokio::runtime::Runtime;

use catraca_testkit::postgres::{PostgresServer, shared_server};

pub const HOUR: i64 = 3_600_000_000;

/// A new database on a test server.
pub struct Database {
    pub server: Arc<PostgresServer>,
    pub name: String,
}

impl Database {
    pub fn new() -> Self {
        Self::on(shared_server())
    }

    pub fn on(server: Arc<PostgresServer>) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name = format!("store_{}", NEXT.fetch_add(1, Ordering::Relaxed));
        server.psql("postgres", &format!("CREATE DATABASE {name}"));
        Self { server, name }
    }

    pub fn url(&self) -> String {
        self.server.url(&self.name)
    }

    /// Runs SQL with psql; returns the first column of the first row.
    pub fn query(&self, sql: &str) -> String {
        self.server.psql(&self.name, sql).concat().into_iter().next().unwrap_or_default()
    }

    pub async fn open(&self, options: PostgresOptions) -> PostgresStore {
        PostgresStore::open(&self.url(), options).await.unwrap()
    }

    pub fn blocking(&self, options: PostgresOptions) -> BlockingStore<PostgresStore> {
        let url = self.url();
        BlockingStore::start(async || PostgresStore::open(&url, options).await).unwrap()
    }

    pub fn session(&self) -> Session {
        Session::start(self)
    }
}

/// Options with a deadline that a busy machine does not exceed.
pub fn long_deadline() -> PostgresOptions {
    PostgresOptions { deadline: Duration::from_secs(20), ..PostgresOptions::default() }
}

pub fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

/// A number from the environment, or the default.
pub fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a whole number"))
}

/// Another client's session, in psql.
pub struct Session {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
}

impl Session {
    fn start(database: &Database) -> Self {
        let mut shell = database.server.shell(&database.name);
        let mut child = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, input, output }
    }

    /// Runs SQL to its end; returns the last row's only column.
    pub fn query(&mut self, sql: &str) -> String {
        self.send(sql);
        self.receive()
    }

    /// Sends SQL that may have to wait for a lock.
    pub fn send(&mut self, sql: &str) {
        writeln!(self.input, "{sql}\n\\echo done").unwrap();
    }

    /// Waits for the end of the SQL sent; returns the last row's only column.
    pub fn receive(&mut self) -> String {
        let mut last = String::new();
        loop {
            let line = self.output.next().expect("psql is running").unwrap();
            if line == "done" {
                return last;
            }
            last = line;
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

pub fn key(number: u64) -> Key {
    let mut bytes = [0x5a; 16];
    bytes[..8].copy_from_slice(&number.wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    Key::from_bytes(bytes)
}

pub fn row(number: u64, limit: Limit) -> CheckRow {
    CheckRow { family: 1, ..CheckRow::new(key(number), limit) }
}

pub fn window(limit: i64, span: i64) -> Limit {
    Limit::Window([WindowTerms { limit, span: Span::from_micros(span) }].into_iter().collect())
}

pub fn bucket(size: i64) -> Limit {
    Limit::Bucket(BucketTerms { size, tokens: 1, period: 24 * HOUR })
}

pub fn gate(rows: impl IntoIterator<Item = CheckRow>) -> Batch {
    Batch::Check(CheckBatch { rows: rows.into_iter().collect(), ..CheckBatch::default() })
}

pub fn peek(row: CheckRow) -> Batch {
    Batch::Check(CheckBatch {
        rows: [row].into_iter().collect(),
        peek: true,
        ..CheckBatch::default()
    })
}

/// A settle that takes one unit more than the check did.
pub fn settle(mark: u64, number: u64, limit: Limit, at: Time) -> Batch {
    let row = SettleRow { family: 1, ..SettleRow::new(key(number), limit, at) };
    let expires = at.after(Span::from_secs(86_400));
    Batch::Settle(SettleBatch { marker: key(mark), expires, rows: vec![row], reference: None })
}

/// A check at the time of the server's clock.
pub async fn check(store: &PostgresStore, batch: &Batch) -> Result<CheckReply, StoreError> {
    match store.apply(batch, When::Store).await? {
        Reply::Check(reply) => Ok(reply),
        other => panic!("a check answered {other:?}"),
    }
}

/// Applies a settle; returns whether it was a repetition.
pub async fn settled(store: &PostgresStore, batch: &Batch, at: Time) -> Result<bool, StoreError> {
    match store.apply(batch, When::At(at)).await? {
        Reply::Settle(SettleReply::Settled { already_settled: again, .. }) => Ok(again),
        other => panic!("a settle answered {other:?}"),
    }
}

/// Runs all calls concurrently; returns their results.
pub async fn all<T: Send + 'static>(
    calls: impl IntoIterator<Item = impl Future<Output = T> + Send + 'static>,
) -> Vec<T> {
    let tasks: Vec<_> = calls.into_iter().map(tokio::spawn).collect();
    let mut results = Vec::with_capacity(tasks.len());
    for task in tasks {
        results.push(task.await.unwrap());
    }
    results
}

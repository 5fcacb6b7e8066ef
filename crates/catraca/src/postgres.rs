//! The PostgreSQL store: state that several nodes share, for installations without Redis.
//!
//! There is one table row per key, with its cells as opaque bytes; the rules are those of core. A
//! batch is a transaction that locks its rows in the order of their keys, reads the server's clock
//! while they are locked, runs the rules and commits. Batches that wait for a connection share the
//! next transaction. All tables are in the schema `catraca_store`. A batch that may have been
//! applied is not sent again, and no call waits longer than its deadline.
//!
//! ```no_run
//! use catraca::postgres::{PostgresOptions, PostgresStore};
//!
//! # async fn open() -> Result<(), Box<dyn std::error::Error>> {
//! let url = "postgres://catraca@db.example/shop";
//! let store = PostgresStore::open(url, PostgresOptions::default()).await?;
//! # drop(store);
//! # Ok(())
//! # }
//! ```

mod batch_transaction;
pub(crate) mod connection;
pub(crate) mod database_url;
pub(crate) mod failure;
mod key_cells;
mod lock_store;
mod locked_rows;
mod migrate;
mod node_exchange;
mod open_error;
mod options;
mod primary;
mod queue;
mod row_keys;
pub(crate) mod tls;
mod worker_pool;

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use catraca_core::batch::{Batch, Reply};
use catraca_core::time::Time;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_postgres::{Error, Row};

use crate::store::{
    NodeMessage, NodeReply, SharedStore, StoreError, StoreFuture, StoreStatus, When,
};
use crate::supervise::supervise;
use connection::PostgresConnection;
use database_url::DatabaseUrl;
use failure::PostgresFailure;
use lock_store::{FreedSender, ListenReport};
use queue::{QueuedBatch, QueuedCall, QueuedQuery};
use worker_pool::WorkerPool;

pub use open_error::PostgresError;
pub use options::PostgresOptions;

/// Columns: change counter, incarnation of the schema, clock in microseconds, and a number that
/// changes when the server restarts (start time) or the table is truncated or rewritten (file
/// node). `#` is PostgreSQL's exclusive or.
const STATUS: &str = "SELECT changes, life,
    (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
    (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint
        # (pg_relation_filenode('catraca_store.cells')::bigint << 24)
    FROM catraca_store.state";
const INCREMENT_CHANGES: &str =
    "UPDATE catraca_store.state SET changes = changes + 1 RETURNING changes";
/// Stores the identity of the records unless there is one; returns the one that is stored.
const BIND_RECORDS: &str =
    "UPDATE catraca_store.state SET records = coalesce(records, $1) RETURNING records";
const SWEEP: &str = "SELECT catraca_store.sweep(1000)";
/// The most rows that one `SWEEP` deletes.
const SWEPT_MAX: u64 = 1_000;
/// The deadline of a sweep. It is longer than that of calls, because no caller waits for it.
const SWEEP_DEADLINE: Duration = Duration::from_secs(5);

/// The error when rows stay locked by another transaction.
const ROWS_LOCKED: &str = "another transaction holds rows of this call for too long: \
                           pg_stat_activity and pg_blocking_pids show which one";

/// A store in a PostgreSQL database. Its connections are closed when it is dropped.
pub struct PostgresStore {
    pool: Arc<WorkerPool>,
    options: PostgresOptions,
    url: DatabaseUrl,
    /// Notices of freed lock names, for the waiters of this node.
    freed: FreedSender,
    /// The task that receives these notices; started by the first waiter.
    listening: OnceLock<JoinHandle<()>>,
    listen_report: Arc<ListenReport>,
    /// Why the last sweep failed, if it did.
    sweep_error: Arc<ArcSwapOption<String>>,
    tasks: Vec<JoinHandle<()>>,
}

/// The load of the store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PostgresStats {
    /// Open connections.
    pub connected: usize,
    /// Calls that wait for a connection.
    pub waiting: usize,
}

impl PostgresStore {
    /// Connects to a URL such as `postgres://ana@host/shop` and migrates the schema. Must be called
    /// on a tokio runtime with time and I/O; the connections keep using that runtime.
    pub async fn open(url: &str, options: PostgresOptions) -> Result<Self, PostgresError> {
        let url = DatabaseUrl::read(url)?;
        let options = options.clamp_to_bounds();
        let failed = |failure: PostgresFailure| PostgresError::of(&url.redacted, &failure);
        let connection =
            PostgresConnection::open(&url, options.connect_timeout).await.map_err(failed)?;
        migrate::migrate(&connection, &url).await?;
        let pool = Arc::new(WorkerPool::new(&options));
        pool.add_connection();
        // The first worker uses the connection that has migrated the schema.
        let mut first = Some(connection);
        let spawn_worker = |_| {
            let mut first = first.take();
            let pool = Arc::clone(&pool);
            let url = url.clone();
            tokio::spawn(supervise("postgres worker", move || {
                worker_pool::run_worker(Arc::clone(&pool), url.clone(), options, first.take())
            }))
        };
        let mut tasks: Vec<_> = (0..options.connections).map(spawn_worker).collect();
        let sweep_error = Arc::<ArcSwapOption<String>>::default();
        let spawn_sweeper = |every| {
            let pool = Arc::clone(&pool);
            let error = Arc::clone(&sweep_error);
            tokio::spawn(supervise("postgres sweep", move || {
                sweep_periodically(Arc::clone(&pool), every, Arc::clone(&error))
            }))
        };
        tasks.extend(options.sweep_every.map(spawn_sweeper));
        let watch = connection::watch_hosts(url.clone(), options.connect_timeout);
        tasks.push(tokio::spawn(watch));
        let freed = lock_store::freed_channel();
        Ok(Self {
            pool,
            options,
            url,
            freed,
            listening: OnceLock::new(),
            listen_report: Arc::default(),
            sweep_error,
            tasks,
        })
    }

    /// The URL without the password.
    pub fn redacted_url(&self) -> &str {
        &self.url.redacted
    }

    /// The present load.
    pub fn stats(&self) -> PostgresStats {
        PostgresStats { connected: self.pool.connection_count(), waiting: self.pool.queue.len() }
    }

    /// Deletes up to 1,000 rows whose cells are all forgotten; returns how many. The store does
    /// this periodically, as [`PostgresOptions::sweep_every`] says.
    pub async fn sweep(&self) -> Result<u64, StoreError> {
        sweep(&self.pool).await
    }

    async fn query(&self, sql: &'static str, text: Option<String>) -> Result<Row, StoreError> {
        run_query(&self.pool, sql, text, self.options.deadline).await
    }
}

/// A queued call whose caller has gone is dropped; a transaction that has begun is completed.
impl SharedStore for PostgresStore {
    fn apply<'a>(&'a self, batch: &'a Batch, when: When) -> StoreFuture<'a, Reply> {
        Box::pin(async move {
            let until = Instant::now() + self.options.deadline;
            let (reply, answer) = oneshot::channel();
            let call = QueuedBatch { batch: batch.clone(), when, until, reply, is_retry: false };
            self.pool.submit(QueuedCall::Batch(call))?;
            wait_for_reply(answer, until, self.options.deadline).await
        })
    }

    fn background_error(&self) -> Option<String> {
        self.sweep_error.load().as_deref().cloned()
    }

    fn status(&self) -> StoreFuture<'_, StoreStatus> {
        Box::pin(async move {
            let row = self.query(STATUS, None).await?;
            read_status(&row).map_err(unreadable)
        })
    }

    fn publish_change(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.query(INCREMENT_CHANGES, None).await.map(drop) })
    }

    fn bind_records<'a>(&'a self, records: &'a str) -> StoreFuture<'a, String> {
        Box::pin(async move {
            let row = self.query(BIND_RECORDS, Some(records.to_owned())).await?;
            row.try_get(0).map_err(unreadable)
        })
    }

    fn exchange<'a>(&'a self, message: &'a NodeMessage<'a>) -> StoreFuture<'a, NodeReply> {
        Box::pin(async move { self.exchange_notices(message).await })
    }

    fn trim_notices(&self, keep: u64) -> StoreFuture<'_, Vec<Vec<u8>>> {
        Box::pin(async move { self.trim_to(keep).await })
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.tasks.iter().chain(self.listening.get()).for_each(JoinHandle::abort);
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore").field("url", &self.url.redacted).finish_non_exhaustive()
    }
}

/// A restart of the server counts as a new incarnation, because a standby that was promoted may
/// lack the last transactions; so does a truncated or rewritten table.
fn read_status(row: &Row) -> Result<StoreStatus, Error> {
    let column = |number: usize| row.try_get::<_, i64>(number);
    let changes = column(0)?;
    let schema_incarnation = column(1)?;
    let now = column(2)?;
    let server_incarnation = column(3)?;
    Ok(StoreStatus {
        changes: changes.cast_unsigned(),
        now: Time::from_micros(now),
        incarnation: schema_incarnation.cast_unsigned() ^ server_incarnation.cast_unsigned(),
    })
}

fn unreadable(error: Error) -> StoreError {
    StoreError::corrupt(PostgresFailure::Server(error).to_string())
}

/// Sweeps at an interval, each time until less than a full page was deleted. After a failure the
/// next interval tries again.
async fn sweep_periodically(
    pool: Arc<WorkerPool>,
    every: Duration,
    error: Arc<ArcSwapOption<String>>,
) {
    loop {
        sleep(every).await;
        let failed = loop {
            match sweep(&pool).await {
                Ok(swept) if swept >= SWEPT_MAX => {}
                Ok(_) => break None,
                Err(failed) => break Some(failed),
            }
        };
        let text = failed.map(|failed| {
            format!("forgotten rows are not deleted: {failed}; the tables of catraca_store grow")
        });
        error.store(text.map(Arc::new));
    }
}

async fn sweep(pool: &WorkerPool) -> Result<u64, StoreError> {
    let row = run_query(pool, SWEEP, None, SWEEP_DEADLINE).await?;
    row.try_get::<_, i64>(0).map(i64::cast_unsigned).map_err(unreadable)
}

/// Runs a statement with one text or none on one of the pool's connections.
async fn run_query(
    pool: &WorkerPool,
    sql: &'static str,
    text: Option<String>,
    deadline: Duration,
) -> Result<Row, StoreError> {
    let until = Instant::now() + deadline;
    let (reply, answer) = oneshot::channel();
    pool.submit(QueuedCall::Query(QueuedQuery { sql, text, until, reply }))?;
    wait_for_reply(answer, until, deadline).await
}

/// Waits for the worker's reply until the deadline.
async fn wait_for_reply<T>(
    answer: oneshot::Receiver<Result<T, StoreError>>,
    until: Instant,
    deadline: Duration,
) -> Result<T, StoreError> {
    match timeout_at(until, answer).await {
        Ok(Ok(answer)) => answer,
        // The worker has dropped the call: it panicked, or the store is being closed.
        Ok(Err(_)) => Err(StoreError::unavailable("the call to PostgreSQL was dropped".to_owned())),
        Err(_) => Err(StoreError::unavailable(PostgresFailure::TimedOut(deadline).to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: a call that its worker dropped was reported as one that exceeded its deadline.
    #[tokio::test]
    async fn a_call_whose_worker_panics_is_reported_as_dropped() {
        let (reply, answer) = oneshot::channel::<Result<(), StoreError>>();
        let worker = tokio::spawn(async move {
            let _reply = reply;
            panic!("a row with an impossible value");
        });
        let deadline = Duration::from_secs(60);
        let error = wait_for_reply(answer, Instant::now() + deadline, deadline).await.unwrap_err();
        assert!(worker.await.unwrap_err().is_panic());
        assert!(error.to_string().contains("was dropped"), "{error}");
    }
}

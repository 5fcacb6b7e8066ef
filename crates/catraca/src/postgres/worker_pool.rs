//! The workers of the store: each has one connection, takes queued calls, and reconnects when the
//! connection is lost.
//!
//! While no worker has a connection, calls fail at once, and the workers try to connect with
//! growing pauses.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep};
use tokio_postgres::types::Type;

use super::batch_transaction;
use super::connection::{PostgresConnection, TransactionTimeouts};
use super::database_url::DatabaseUrl;
use super::failure::PostgresFailure;
use super::lock_store;
use super::open_error::store_error;
use super::options::PostgresOptions;
use super::queue::{CallQueue, QueuedCall, QueuedQuery, TransactionWork};
use crate::store::StoreError;

/// The pause before reconnecting; it doubles with every failure.
const PAUSE_FIRST: Duration = Duration::from_millis(20);
/// The longest pause, so that a server that is back is used soon.
const PAUSE_LONGEST: Duration = Duration::from_millis(500);

/// What the workers and the callers share.
#[derive(Debug)]
pub(super) struct WorkerPool {
    pub queue: CallQueue,
    /// How many workers have a connection.
    connected: AtomicUsize,
    /// Why the last connection was lost or could not be made.
    last_error: Mutex<String>,
}

impl WorkerPool {
    pub(super) fn new(options: &PostgresOptions) -> Self {
        let queue = CallQueue::new(options.waiting_max);
        Self { queue, connected: AtomicUsize::new(0), last_error: Mutex::default() }
    }

    pub(super) fn connection_count(&self) -> usize {
        self.connected.load(Ordering::Acquire)
    }

    /// Counts a new connection.
    pub(super) fn add_connection(&self) {
        self.connected.fetch_add(1, Ordering::AcqRel);
    }

    /// Queues a call; fails at once if no worker has a connection or the queue is full.
    pub(super) fn submit(&self, call: QueuedCall) -> Result<(), StoreError> {
        if self.connection_count() == 0 {
            return Err(StoreError::unavailable(self.last_error.lock().clone()));
        }
        if self.queue.push(call) { Ok(()) } else { Err(StoreError::unavailable(FULL)) }
    }

    /// Counts a lost connection. If it was the last one, all queued calls fail now instead of
    /// waiting for their deadlines.
    fn remove_connection(&self, why: String) {
        self.last_error.lock().clone_from(&why);
        if self.connected.fetch_sub(1, Ordering::AcqRel) == 1 {
            self.queue.drain().into_iter().for_each(|call| call.refuse(&why));
        }
    }
}

const FULL: &str = "too many calls wait for PostgreSQL";
const REPLACED: &str = "another PostgreSQL of the URL has become the primary";
const PANICKED: &str = "a task of the store panicked; it is started again";
const CLOSED: &str = "PostgreSQL is out of reach: it closed the connection";

/// A connection that the pool counts, until this is dropped: a panic must not leave the count above
/// the connections that are left.
struct CountedConnection<'p> {
    pool: &'p WorkerPool,
    /// Why it is lost.
    why: String,
}

impl Drop for CountedConnection<'_> {
    fn drop(&mut self) {
        self.pool.remove_connection(std::mem::take(&mut self.why));
    }
}

/// One worker: serves calls over one connection after the other until the task is aborted.
pub(super) async fn run_worker(
    pool: Arc<WorkerPool>,
    url: DatabaseUrl,
    options: PostgresOptions,
    first: Option<PostgresConnection>,
) {
    let mut next = first;
    loop {
        let mut connection = match next.take() {
            Some(connection) => connection,
            None => connect(&pool, &url, &options).await,
        };
        let mut counted = CountedConnection { pool: &pool, why: PANICKED.to_owned() };
        counted.why = serve(&pool, &url, &mut connection, &options).await;
        drop(connection);
        drop(counted);
    }
}

async fn connect(
    pool: &WorkerPool,
    url: &DatabaseUrl,
    options: &PostgresOptions,
) -> PostgresConnection {
    let mut pause = PAUSE_FIRST;
    loop {
        sleep(pause).await;
        match PostgresConnection::open(url, options.connect_timeout).await {
            Ok(connection) => {
                pool.add_connection();
                return connection;
            }
            Err(failure) => *pool.last_error.lock() = failure.to_string(),
        }
        pause = (pause * 2).min(PAUSE_LONGEST);
    }
}

/// Serves calls until the connection cannot be used any more; returns why.
async fn serve(
    pool: &WorkerPool,
    url: &DatabaseUrl,
    connection: &mut PostgresConnection,
    options: &PostgresOptions,
) -> String {
    let replaced = url.wait_replaced(connection.timeline());
    tokio::pin!(replaced);
    loop {
        let work = tokio::select! {
            // A closed connection first: a call must not be taken for it.
            biased;
            () = connection.wait_closed() => return CLOSED.to_owned(),
            () = &mut replaced => return REPLACED.to_owned(),
            work = pool.queue.next() => work,
        };
        let done = match work {
            TransactionWork::Batches(calls) => {
                batch_transaction::apply(connection, &pool.queue, calls).await
            }
            TransactionWork::Query(query) => run_query(connection, query, options).await,
            TransactionWork::Lock(call) => lock_store::apply(connection, *call).await,
        };
        if let Err(why) = done {
            return why;
        }
    }
}

/// Runs a single query in a transaction of its own.
async fn run_query(
    connection: &PostgresConnection,
    query: QueuedQuery,
    options: &PostgresOptions,
) -> Result<(), String> {
    let timeouts = TransactionTimeouts { until: query.until, lock: options.deadline / 8 * 7 };
    let answer = match &query.text {
        Some(text) => connection.transact(timeouts, query.sql, &[(text, Type::TEXT)]).await,
        None => connection.transact(timeouts, query.sql, &[]).await,
    };
    // `lost` says why the connection cannot be used any more. An error of the server leaves it
    // open, inside a failed transaction.
    let (answer, lost) = match answer {
        Ok(row) => (Ok(row), None),
        Err(PostgresFailure::Server(error)) => {
            let ended = connection.batch(Instant::now() + options.deadline, "ROLLBACK").await;
            let lost = ended.err().map(|failure| failure.to_string());
            (Err(store_error(&PostgresFailure::Server(error))), lost)
        }
        Err(failure) => (Err(store_error(&failure)), Some(failure.to_string())),
    };
    drop(query.reply.send(answer));
    lost.map_or(Ok(()), Err)
}

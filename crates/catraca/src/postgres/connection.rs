//! One connection to PostgreSQL: transactions of one or two round trips, each with a deadline.
//!
//! A transaction sets its own timeouts on the server (`SET LOCAL`), so the server ends it even if
//! this node hangs. There is no session state and there are no named statements, so poolers work in
//! any mode. Nothing is sent twice.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, timeout_at};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Row};

use super::database_url::DatabaseUrl;
use super::failure::PostgresFailure;
use super::lock_store::LockStatement;
use super::primary;
use crate::supervise::supervise;

/// Connects; also returns the timeline of the server. The second value must be polled for the
/// client to work; it completes when the client is dropped or the connection is closed.
pub(crate) async fn connect(
    url: &DatabaseUrl,
    connect_timeout: Duration,
) -> Result<(Client, impl Future<Output = ()> + Send + use<>, u32), PostgresFailure> {
    let connected = primary::connect(url, connect_timeout).await?;
    let connection = connected.connection;
    Ok((connected.client, async { drop(connection.await) }, connected.timeline))
}

/// Asks the hosts of the URL for their timelines until it is dropped, so that connections leave a
/// primary that was replaced. A URL with one host has nothing to compare with.
pub(crate) async fn watch_hosts(url: DatabaseUrl, connect_timeout: Duration) {
    if !url.has_several_hosts() {
        return;
    }
    let mut watches = JoinSet::new();
    for host in url.hosts.clone() {
        let url = url.clone();
        watches.spawn(supervise("postgres host watch", move || {
            primary::watch_host(url.clone(), host.clone(), connect_timeout)
        }));
    }
    watches.join_all().await;
}

/// A connection whose driver runs in a task; dropping it closes the socket at once.
pub(super) struct PostgresConnection {
    client: Client,
    timeline: u32,
    driver: JoinHandle<()>,
}

/// A parameter of a statement and its type. With the type given, the statement needs no extra round
/// trip to be prepared.
pub(super) type TypedValue<'v> = (&'v (dyn ToSql + Sync), Type);

/// How long a transaction may take, and wait for locks.
#[derive(Clone, Copy, Debug)]
pub(super) struct TransactionTimeouts {
    /// The deadline of the callers.
    pub until: Instant,
    /// How long it may wait for one row lock.
    pub lock: Duration,
}

impl PostgresConnection {
    pub(super) async fn open(
        url: &DatabaseUrl,
        connect_timeout: Duration,
    ) -> Result<Self, PostgresFailure> {
        let connected = primary::connect(url, connect_timeout).await?;
        let connection = connected.connection;
        let driver = tokio::spawn(async { drop(connection.await) });
        Ok(Self { client: connected.client, timeline: connected.timeline, driver })
    }

    /// The timeline of the server; 0 if it is not known.
    pub(super) fn timeline(&self) -> u32 {
        self.timeline
    }

    /// Completes when the connection is closed. Must not be called again after that.
    pub(super) async fn wait_closed(&mut self) {
        drop((&mut self.driver).await);
    }

    /// Begins a transaction and runs its first statement, in one round trip.
    pub(super) async fn begin(
        &self,
        timeouts: TransactionTimeouts,
        sql: &str,
        values: &[TypedValue<'_>],
    ) -> Result<Row, PostgresFailure> {
        let begin = begin(timeouts);
        within(timeouts.until, async {
            let begin = self.client.batch_execute(&begin);
            let answer = self.client.query_typed_one(sql, values);
            Ok(tokio::try_join!(biased; begin, answer)?.1)
        })
        .await
    }

    /// Runs the last statement of a transaction and commits, in one round trip.
    pub(super) async fn commit(
        &self,
        until: Instant,
        sql: &str,
        values: &[TypedValue<'_>],
    ) -> Result<(), PostgresFailure> {
        within(until, async {
            let answer = self.client.query_typed(sql, values);
            let commit = self.client.batch_execute("COMMIT");
            tokio::try_join!(biased; answer, commit).map(drop)
        })
        .await
    }

    /// A transaction of one statement, in one round trip.
    pub(super) async fn transact(
        &self,
        timeouts: TransactionTimeouts,
        sql: &str,
        values: &[TypedValue<'_>],
    ) -> Result<Row, PostgresFailure> {
        let begin = begin(timeouts);
        within(timeouts.until, async {
            let begin = self.client.batch_execute(&begin);
            let answer = self.client.query_typed_one(sql, values);
            let commit = self.client.batch_execute("COMMIT");
            Ok(tokio::try_join!(biased; begin, answer, commit)?.1)
        })
        .await
    }

    /// Begins a transaction and runs its first statements, in one round trip.
    pub(super) async fn begin_all(
        &self,
        timeouts: TransactionTimeouts,
        statements: &[LockStatement],
    ) -> Result<Vec<Vec<Row>>, PostgresFailure> {
        // A granted lock must survive a crash of the server, even if its default is `off`.
        let begin = format!("{}; SET LOCAL synchronous_commit = on", begin(timeouts));
        let typed: Vec<_> = statements.iter().map(LockStatement::typed_values).collect();
        let mut calls: Vec<PendingQuery<'_>> = vec![self.plain(&begin)];
        calls.extend(self.calls(statements, &typed));
        let answers = within(timeouts.until, pipeline(calls)).await?;
        Ok(answers.into_iter().skip(1).collect())
    }

    /// Runs the last statements of a transaction and commits, in one round trip.
    pub(super) async fn commit_all(
        &self,
        until: Instant,
        statements: &[LockStatement],
    ) -> Result<(), PostgresFailure> {
        let typed: Vec<_> = statements.iter().map(LockStatement::typed_values).collect();
        let mut calls = self.calls(statements, &typed);
        calls.push(self.plain("COMMIT"));
        within(until, pipeline(calls)).await.map(drop)
    }

    fn calls<'c>(
        &'c self,
        statements: &'c [LockStatement],
        typed: &'c [Vec<TypedValue<'c>>],
    ) -> Vec<PendingQuery<'c>> {
        let pairs = statements.iter().zip(typed);
        pairs
            .map(|(statement, values)| -> PendingQuery<'c> {
                Box::pin(self.client.query_typed(statement.sql(), values))
            })
            .collect()
    }

    fn plain<'c>(&'c self, sql: &'c str) -> PendingQuery<'c> {
        Box::pin(async move { self.client.batch_execute(sql).await.map(|()| Vec::new()) })
    }

    /// Runs one statement, inside or outside of a transaction.
    pub(super) async fn rows(
        &self,
        until: Instant,
        sql: &str,
        values: &[TypedValue<'_>],
    ) -> Result<Vec<Row>, PostgresFailure> {
        within(until, self.client.query_typed(sql, values)).await
    }

    /// Runs statements without parameters, such as `ROLLBACK`.
    pub(super) async fn batch(&self, until: Instant, sql: &str) -> Result<(), PostgresFailure> {
        within(until, self.client.batch_execute(sql)).await
    }
}

/// A statement whose result is awaited.
type PendingQuery<'c> = Pin<Box<dyn Future<Output = Result<Vec<Row>, Error>> + Send + 'c>>;

/// Sends all statements at once, in order, and returns their rows or the first error. The
/// statements behind a failed one fail as well, and their errors may arrive earlier, so the results
/// are judged in order.
async fn pipeline(mut calls: Vec<PendingQuery<'_>>) -> Result<Vec<Vec<Row>>, Error> {
    let mut answers: Vec<Option<Result<Vec<Row>, Error>>> = calls.iter().map(|_| None).collect();
    poll_fn(move |cx| {
        for (call, answer) in calls.iter_mut().zip(&mut answers).filter(|(_, a)| a.is_none()) {
            if let Poll::Ready(result) = call.as_mut().poll(cx) {
                *answer = Some(result);
            }
        }
        let complete = answers.iter().take_while(|answer| answer.is_some()).count();
        let failed = answers.iter().take(complete).any(|answer| matches!(answer, Some(Err(_))));
        if complete < answers.len() && !failed {
            return Poll::Pending;
        }
        Poll::Ready(answers.drain(..complete).flatten().collect())
    })
    .await
}

/// Closes the socket at once: a client that is only dropped would wait for pending results first.
impl Drop for PostgresConnection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// Begins a transaction with its timeouts. The isolation level is explicit: a database may have
/// another default, under which waiting for a row lock ends in an error.
fn begin(timeouts: TransactionTimeouts) -> String {
    let left = millis(timeouts.until.saturating_duration_since(Instant::now()));
    let lock = millis(timeouts.lock).min(left);
    format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL lock_timeout = {lock}; \
         SET LOCAL statement_timeout = {left}; \
         SET LOCAL idle_in_transaction_session_timeout = {left}"
    )
}

/// Whole milliseconds, at least 1: for the server, 0 means no limit.
fn millis(time: Duration) -> u128 {
    time.as_millis().max(1)
}

/// Waits for a call until the deadline.
async fn within<T>(
    until: Instant,
    call: impl Future<Output = Result<T, Error>>,
) -> Result<T, PostgresFailure> {
    let started = Instant::now();
    match timeout_at(until, call).await {
        Ok(answer) => answer.map_err(PostgresFailure::of),
        Err(_) => Err(PostgresFailure::TimedOut(until.saturating_duration_since(started))),
    }
}

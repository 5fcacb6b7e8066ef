//! One PostgreSQL connection of the records: connects on demand, reconnects after failures, with a
//! timeout on every call.
//!
//! It has an async runtime of its own that only runs during a call, so the connection belongs to
//! the calling thread. Statements are unnamed, so that they work behind poolers in any mode, and a
//! batch of them is sent in one round trip.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Row};

use crate::postgres::connection;
use crate::postgres::database_url::DatabaseUrl;
use crate::postgres::failure::PostgresFailure;
use crate::records::sql::value::Value;

/// Timeout of connecting.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Timeout of a call that writes; the server's own timeout is a little shorter.
pub(super) const WRITE_TIMEOUT: Duration = Duration::from_secs(5);
/// The server's `statement_timeout` of writes, in milliseconds.
pub(super) const SERVER_WRITE_TIMEOUT_MS: u64 = 4_500;
/// Timeout of a query.
pub(super) const READ_TIMEOUT: Duration = Duration::from_secs(15);

const REPLACED: &str = "another PostgreSQL of the URL has become the primary";

/// A connection that is made again after it was lost.
pub(super) struct Session {
    /// Present until drop.
    runtime: Option<Runtime>,
    url: DatabaseUrl,
    call_timeout: Duration,
    client: Option<Client>,
    /// The timeline of the server; 0 if it is not known.
    timeline: u32,
    /// Whether a transaction is open. It must end on the same connection: on a new one, `COMMIT`
    /// would succeed without having committed anything.
    in_transaction: bool,
}

/// A statement with its parameters.
pub(super) type RecordsStatement = (&'static str, Vec<Value<'static>>);

impl Session {
    pub(super) fn new(url: &DatabaseUrl, call_timeout: Duration) -> Result<Self, PostgresFailure> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime =
            runtime.map_err(|error| PostgresFailure::ConnectionLost(error.to_string()))?;
        let mut url = url.clone();
        url.set_tcp_user_timeout(call_timeout);
        let mut session = Self {
            runtime: Some(runtime),
            url,
            call_timeout,
            client: None,
            timeline: 0,
            in_transaction: false,
        };
        session.connect()?;
        Ok(session)
    }

    /// Runs statements without parameters, in one round trip.
    pub(super) fn execute_batch(&mut self, sql: &str) -> Result<(), PostgresFailure> {
        self.call(async |client| client.batch_execute(sql).await)
    }

    /// Begins a transaction, on a new connection if the present one turns out to be lost: an idle
    /// connection does not notice a restart of the server.
    pub(super) fn begin(&mut self, sql: &str) -> Result<(), PostgresFailure> {
        self.in_transaction = false;
        let begun = match self.execute_batch(sql) {
            Err(PostgresFailure::ConnectionLost(_)) => self.execute_batch(sql),
            answer => answer,
        };
        self.in_transaction = begun.is_ok();
        if let Err(PostgresFailure::Server(_)) = &begun {
            // A later part of `sql` failed, such as the wait for a lock: `BEGIN` had succeeded.
            let _ = self.end("ROLLBACK");
        }
        begun
    }

    /// Ends a transaction.
    pub(super) fn end(&mut self, sql: &str) -> Result<(), PostgresFailure> {
        let ended = self.execute_batch(sql);
        self.in_transaction = false;
        ended
    }

    /// Runs one query; outside of a transaction once more on a new connection if the present one
    /// turns out to be lost.
    pub(super) fn query(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
    ) -> Result<Vec<Row>, PostgresFailure> {
        let may_retry = !self.in_transaction;
        let parameters = to_parameters(values);
        match self.call(async |client| client.query_typed(sql, &parameters).await) {
            Err(PostgresFailure::ConnectionLost(_)) if may_retry => {
                self.call(async |client| client.query_typed(sql, &parameters).await)
            }
            answer => answer,
        }
    }

    /// Runs one statement. Returns how many rows it changed.
    pub(super) fn execute(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
    ) -> Result<u64, PostgresFailure> {
        let parameters = to_parameters(values);
        self.call(async |client| client.execute_typed(sql, &parameters).await)
    }

    /// Sends all statements at once; the server runs them in order. Returns the first error.
    pub(super) fn run(&mut self, statements: &[RecordsStatement]) -> Result<(), PostgresFailure> {
        let parameters: Vec<Vec<RecordsParameter<'_>>> =
            statements.iter().map(|(_, values)| to_parameters(values)).collect();
        self.call(async |client| {
            let calls = statements.iter().zip(&parameters);
            let calls = calls.map(|((sql, _), values)| client.execute_typed(sql, values));
            in_order(calls).await
        })
    }

    /// Whether the connection was not lost by the last call.
    pub(super) fn is_connected(&self) -> bool {
        self.client.is_some()
    }

    /// Whether a transaction is open.
    pub(super) fn in_transaction(&self) -> bool {
        self.in_transaction
    }

    /// Closes the connection, which ends an open transaction.
    fn disconnect(&mut self) {
        self.client = None;
        self.in_transaction = false;
    }

    fn connect(&mut self) -> Result<(), PostgresFailure> {
        let is_usable =
            |client: &Client| !client.is_closed() && !self.url.is_replaced(self.timeline);
        if self.client.as_ref().is_some_and(is_usable) {
            return Ok(());
        }
        self.client = None;
        if std::mem::take(&mut self.in_transaction) {
            return Err(PostgresFailure::ConnectionLost(
                "the connection was lost during a transaction".to_owned(),
            ));
        }
        let Some(runtime) = &self.runtime else {
            return Err(PostgresFailure::TimedOut(CONNECT_TIMEOUT));
        };
        let connect = connection::connect(&self.url, CONNECT_TIMEOUT);
        let (client, driver, timeline) = runtime.block_on(connect)?;
        // It ends with its client. Its error is ignored, because the next call returns it too.
        runtime.spawn(driver);
        self.client = Some(client);
        self.timeline = timeline;
        Ok(())
    }

    fn call<T>(
        &mut self,
        call: impl AsyncFnOnce(&Client) -> Result<T, Error>,
    ) -> Result<T, PostgresFailure> {
        self.connect()?;
        let (Some(client), Some(runtime)) = (&self.client, &self.runtime) else {
            return Err(PostgresFailure::TimedOut(CONNECT_TIMEOUT));
        };
        let replaced = self.url.wait_replaced(self.timeline);
        let answer = runtime.block_on(async {
            tokio::select! {
                // A commit on a primary that was replaced is written again on its successor.
                biased;
                () = replaced => None,
                answer = timeout(self.call_timeout, call(client)) => Some(answer),
            }
        });
        let failure = match answer {
            Some(Ok(Ok(answer))) => return Ok(answer),
            Some(Ok(Err(error))) => PostgresFailure::of(error),
            Some(Err(_)) => PostgresFailure::TimedOut(self.call_timeout),
            None => PostgresFailure::ConnectionLost(REPLACED.to_owned()),
        };
        if !matches!(failure, PostgresFailure::Server(_)) {
            self.disconnect();
        }
        Err(failure)
    }
}

/// The last owner may drop this on a thread of another runtime, where waiting for a runtime's end
/// panics.
impl Drop for Session {
    fn drop(&mut self) {
        self.runtime.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

type RecordsParameter<'v> = (&'v (dyn ToSql + Sync), Type);

fn to_parameters<'v>(values: &'v [Value<'_>]) -> Vec<RecordsParameter<'v>> {
    values.iter().map(Value::to_parameter).collect()
}

/// Starts all calls in order, then waits for each in the same order.
async fn in_order<F: Future<Output = Result<u64, Error>>>(
    calls: impl Iterator<Item = F>,
) -> Result<(), Error> {
    let mut calls: Vec<Pin<Box<F>>> = calls.map(Box::pin).collect();
    let mut completed: Vec<Option<Result<u64, Error>>> = Vec::with_capacity(calls.len());
    // The first poll sends a call.
    poll_fn(|context| {
        for call in &mut calls {
            let polled = call.as_mut().poll(context);
            completed.push(if let Poll::Ready(done) = polled { Some(done) } else { None });
        }
        Poll::Ready(())
    })
    .await;
    for (call, completed) in calls.into_iter().zip(completed) {
        match completed {
            Some(done) => done?,
            None => call.await?,
        };
    }
    Ok(())
}

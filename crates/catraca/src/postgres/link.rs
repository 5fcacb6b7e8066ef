//! One connection of the store: two trips to a transaction, and an end as soon as it is let go.
//!
//! A transaction tells the server by itself how long it may wait, so that one whose caller is gone
//! ends without it. Nothing depends on what the connection was told before and no statement has a
//! name, so poolers in any mode do. Must not wait without an end, nor send anything twice.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Row};

use super::locks::Statement;
use super::place::Place;
use super::trouble::Trouble;

/// Connects within a time. The second part must be driven for the first to work; it ends with it,
/// or with the connection.
pub(crate) async fn connect(
    place: &Place,
    patience: Duration,
) -> Result<(Client, impl Future<Output = ()> + Send + use<>), Trouble> {
    match timeout(patience, place.config.connect(place.tls.connector.clone())).await {
        Ok(Ok((client, connection))) => Ok((client, async { drop(connection.await) })),
        Ok(Err(error)) => match place.tls.explain(&error) {
            Some(why) => Err(Trouble::Lost(why)),
            None => Err(Trouble::of(error)),
        },
        Err(_) => Err(Trouble::Late(patience)),
    }
}

/// A connection that is driven by a task, and ends with this value whatever it is in the middle of.
pub(super) struct Link {
    client: Client,
    driver: JoinHandle<()>,
}

/// A value of a statement, with the type that the server is told.
pub(super) type Typed<'v> = (&'v (dyn ToSql + Sync), Type);

/// How long a transaction may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// When nobody waits for it any more.
    pub until: Instant,
    /// How long it may wait for one row.
    pub lock: Duration,
}

impl Link {
    pub(super) async fn open(place: &Place, patience: Duration) -> Result<Self, Trouble> {
        let (client, driver) = connect(place, patience).await?;
        Ok(Self { client, driver: tokio::spawn(driver) })
    }

    /// Waits for the end of the connection. Must not be called again once it has answered.
    pub(super) async fn closed(&mut self) {
        drop((&mut self.driver).await);
    }

    /// Begins a transaction and asks its first question, in one trip.
    pub(super) async fn begin(
        &self,
        patience: Patience,
        sql: &str,
        values: &[Typed<'_>],
    ) -> Result<Row, Trouble> {
        let begin = begin(patience);
        within(patience.until, async {
            let begin = self.client.batch_execute(&begin);
            let answer = self.client.query_typed_one(sql, values);
            Ok(tokio::try_join!(biased; begin, answer)?.1)
        })
        .await
    }

    /// Asks the last question of a transaction and commits it, in one trip.
    pub(super) async fn commit(
        &self,
        until: Instant,
        sql: &str,
        values: &[Typed<'_>],
    ) -> Result<(), Trouble> {
        within(until, async {
            let answer = self.client.query_typed(sql, values);
            let commit = self.client.batch_execute("COMMIT");
            tokio::try_join!(biased; answer, commit).map(drop)
        })
        .await
    }

    /// A whole transaction of one question, in one trip.
    pub(super) async fn ask(
        &self,
        patience: Patience,
        sql: &str,
        values: &[Typed<'_>],
    ) -> Result<Row, Trouble> {
        let begin = begin(patience);
        within(patience.until, async {
            let begin = self.client.batch_execute(&begin);
            let answer = self.client.query_typed_one(sql, values);
            let commit = self.client.batch_execute("COMMIT");
            Ok(tokio::try_join!(biased; begin, answer, commit)?.1)
        })
        .await
    }

    /// Begins a transaction and asks its first questions, in one trip.
    pub(super) async fn begin_all(
        &self,
        patience: Patience,
        statements: &[Statement],
    ) -> Result<Vec<Vec<Row>>, Trouble> {
        // What is told to be kept is kept, whatever the server's habit.
        let begin = format!("{}; SET LOCAL synchronous_commit = on", begin(patience));
        let typed: Vec<_> = statements.iter().map(Statement::typed).collect();
        let mut calls: Vec<Call<'_>> = vec![self.plain(&begin)];
        calls.extend(self.calls(statements, &typed));
        let answers = within(patience.until, in_order(calls)).await?;
        Ok(answers.into_iter().skip(1).collect())
    }

    /// The last statements of a transaction and its commit, in one trip.
    pub(super) async fn commit_all(
        &self,
        until: Instant,
        statements: &[Statement],
    ) -> Result<(), Trouble> {
        let typed: Vec<_> = statements.iter().map(Statement::typed).collect();
        let mut calls = self.calls(statements, &typed);
        calls.push(self.plain("COMMIT"));
        within(until, in_order(calls)).await.map(drop)
    }

    fn calls<'c>(
        &'c self,
        statements: &'c [Statement],
        typed: &'c [Vec<Typed<'c>>],
    ) -> Vec<Call<'c>> {
        let pairs = statements.iter().zip(typed);
        let call = |(statement, values): (&'c Statement, &'c Vec<Typed<'c>>)| -> Call<'c> {
            Box::pin(self.client.query_typed(statement.sql(), values))
        };
        pairs.map(call).collect()
    }

    fn plain<'c>(&'c self, sql: &'c str) -> Call<'c> {
        Box::pin(async move { self.client.batch_execute(sql).await.map(|()| Vec::new()) })
    }

    /// One statement as it is.
    pub(super) async fn rows(
        &self,
        until: Instant,
        sql: &str,
        values: &[Typed<'_>],
    ) -> Result<Vec<Row>, Trouble> {
        within(until, self.client.query_typed(sql, values)).await
    }

    /// Statements without values, such as the end of a transaction.
    pub(super) async fn batch(&self, until: Instant, sql: &str) -> Result<(), Trouble> {
        within(until, self.client.batch_execute(sql)).await
    }
}

/// A question on its way.
type Call<'c> = Pin<Box<dyn Future<Output = Result<Vec<Row>, Error>> + Send + 'c>>;

/// Sends all of them at once, one after the other; the first that fails is the answer. What comes
/// after a failure only fails for it, and may be heard of before it.
async fn in_order(mut calls: Vec<Call<'_>>) -> Result<Vec<Vec<Row>>, Error> {
    let mut answers: Vec<Option<Result<Vec<Row>, Error>>> = calls.iter().map(|_| None).collect();
    poll_fn(move |cx| {
        for (call, answer) in calls.iter_mut().zip(&mut answers).filter(|(_, a)| a.is_none()) {
            if let Poll::Ready(told) = call.as_mut().poll(cx) {
                *answer = Some(told);
            }
        }
        let known = answers.iter().take_while(|answer| answer.is_some()).count();
        let failed = answers.iter().take(known).any(|answer| matches!(answer, Some(Err(_))));
        if known < answers.len() && !failed {
            return Poll::Pending;
        }
        Poll::Ready(answers.drain(..known).flatten().collect())
    })
    .await
}

/// The socket goes at once: a client that is only dropped would wait for its answers first.
impl Drop for Link {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

/// A database may have another usual isolation, under which a wait for a row ends in an error.
fn begin(patience: Patience) -> String {
    let left = millis(patience.until.saturating_duration_since(Instant::now()));
    let lock = millis(patience.lock).min(left);
    format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL lock_timeout = {lock}; \
         SET LOCAL statement_timeout = {left}; \
         SET LOCAL idle_in_transaction_session_timeout = {left}"
    )
}

/// Whole milliseconds, and never none: zero is without an end to the server.
fn millis(time: Duration) -> u128 {
    time.as_millis().max(1)
}

async fn within<T>(
    until: Instant,
    call: impl Future<Output = Result<T, Error>>,
) -> Result<T, Trouble> {
    let begun = Instant::now();
    match timeout_at(until, call).await {
        Ok(answer) => answer.map_err(Trouble::of),
        Err(_) => Err(Trouble::Late(until.saturating_duration_since(begun))),
    }
}

//! One connection: made when it is needed, given up when it fails, with a deadline on every call.
//!
//! It has a runtime of its own that runs only while somebody waits here, so the connection belongs
//! to the thread that asks. Statements are sent without names, so that poolers do not matter, and
//! many at a time, so that a batch waits for the network once. Must not wait without an end.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Error, Row};

use super::value::Value;
use crate::postgres::link;
use crate::postgres::place::Place;
use crate::postgres::trouble::Trouble;

/// The longest that connecting may take.
const CONNECTING: Duration = Duration::from_secs(3);
/// The longest that a call which writes may take; the server gives up a little earlier.
pub(super) const WRITING: Duration = Duration::from_secs(5);
/// What the server is told of it.
pub(super) const WRITING_MS: u64 = 4_500;
/// The longest that a question may take.
pub(super) const READING: Duration = Duration::from_secs(15);

/// A connection, and the way to make it anew.
pub(super) struct Session {
    /// There until the end.
    runtime: Option<Runtime>,
    place: Place,
    patience: Duration,
    client: Option<Client>,
    /// Whether a transaction is open. Its connection is the only one that it may go on with: on a
    /// fresh one there would be nothing to commit, and the server would agree to that.
    begun: bool,
}

/// A statement with its values.
pub(super) type Statement = (&'static str, Vec<Value>);

impl Session {
    pub(super) fn new(place: &Place, patience: Duration) -> Result<Self, Trouble> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Trouble::Lost(error.to_string()))?;
        let mut place = place.clone();
        place.config.tcp_user_timeout(patience);
        let mut session =
            Self { runtime: Some(runtime), place, patience, client: None, begun: false };
        session.connect()?;
        Ok(session)
    }

    /// Runs statements without values, in one go.
    pub(super) fn batch(&mut self, sql: &str) -> Result<(), Trouble> {
        self.call(async |client| client.batch_execute(sql).await)
    }

    /// The same for what begins something, on a fresh connection should this one be gone: one that
    /// was idle while the server was restarted does not know it yet.
    pub(super) fn begin(&mut self, sql: &str) -> Result<(), Trouble> {
        self.begun = false;
        let begun = match self.batch(sql) {
            Err(Trouble::Lost(_)) => self.batch(sql),
            answer => answer,
        };
        self.begun = begun.is_ok();
        begun
    }

    /// Ends what was begun.
    pub(super) fn end(&mut self, sql: &str) -> Result<(), Trouble> {
        let ended = self.batch(sql);
        self.begun = false;
        ended
    }

    /// Asks one question.
    pub(super) fn ask(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, Trouble> {
        let typed: Vec<Typed<'_>> = values.iter().map(Value::typed).collect();
        self.call(async |client| client.query_typed(sql, &typed).await)
    }

    /// The same on a fresh connection, should this one turn out to be gone: for questions that
    /// change nothing.
    pub(super) fn ask_again(&mut self, sql: &str, values: &[Value]) -> Result<Vec<Row>, Trouble> {
        match self.ask(sql, values) {
            Err(Trouble::Lost(_)) => self.ask(sql, values),
            answer => answer,
        }
    }

    /// Sends all statements at once; they run in order. The first error is the answer.
    pub(super) fn run(&mut self, statements: &[Statement]) -> Result<(), Trouble> {
        let typed: Vec<Vec<Typed<'_>>> = statements
            .iter()
            .map(|(_, values)| values.iter().map(Value::typed).collect())
            .collect();
        self.call(async |client| {
            let calls = statements.iter().zip(&typed);
            let calls = calls.map(|((sql, _), values)| client.execute_typed(sql, values));
            in_order(calls).await
        })
    }

    /// Gives the connection up, with whatever it is in the middle of.
    pub(super) fn leave(&mut self) {
        (self.client, self.begun) = (None, false);
    }

    fn connect(&mut self) -> Result<(), Trouble> {
        if self.client.as_ref().is_some_and(|client| !client.is_closed()) {
            return Ok(());
        }
        self.client = None;
        if std::mem::take(&mut self.begun) {
            return Err(Trouble::Lost("the connection ended in a transaction".to_owned()));
        }
        let Some(runtime) = &self.runtime else { return Err(Trouble::Late(CONNECTING)) };
        let (client, driver) = runtime.block_on(link::connect(&self.place, CONNECTING))?;
        // It ends with its client; what it has to say about its end, the next call says too.
        runtime.spawn(driver);
        self.client = Some(client);
        Ok(())
    }

    fn call<T>(
        &mut self,
        call: impl AsyncFnOnce(&Client) -> Result<T, Error>,
    ) -> Result<T, Trouble> {
        self.connect()?;
        let (Some(client), Some(runtime)) = (&self.client, &self.runtime) else {
            return Err(Trouble::Late(CONNECTING));
        };
        let answer = runtime.block_on(async { timeout(self.patience, call(client)).await });
        let trouble = match answer {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(error)) => Trouble::of(error),
            Err(_) => Trouble::Late(self.patience),
        };
        if !matches!(trouble, Trouble::Said(_)) {
            self.leave();
        }
        Err(trouble)
    }
}

/// The last hand may let go on a thread that must not wait, as it would for a runtime's end.
impl Drop for Session {
    fn drop(&mut self) {
        self.runtime.take().into_iter().for_each(Runtime::shutdown_background);
    }
}

type Typed<'v> = (&'v (dyn ToSql + Sync), Type);

/// Starts all calls in order, then waits for each in the same order.
async fn in_order<F: Future<Output = Result<u64, Error>>>(
    calls: impl Iterator<Item = F>,
) -> Result<(), Error> {
    let mut calls: Vec<Pin<Box<F>>> = calls.map(Box::pin).collect();
    let mut early: Vec<Option<Result<u64, Error>>> = Vec::with_capacity(calls.len());
    // A call is sent when it is first polled.
    poll_fn(|context| {
        for call in &mut calls {
            let polled = call.as_mut().poll(context);
            early.push(if let Poll::Ready(done) = polled { Some(done) } else { None });
        }
        Poll::Ready(())
    })
    .await;
    for (call, early) in calls.into_iter().zip(early) {
        match early {
            Some(done) => done?,
            None => call.await?,
        };
    }
    Ok(())
}

//! The PostgreSQL store: state that nodes share, for those whose only server is PostgreSQL.
//!
//! A row per key, with its cells as opaque bytes; the rules stay in core. A batch is a transaction
//! that locks its rows in order, reads the server's clock while it holds them, runs the rules and
//! commits. Batches that wait for a connection share the next transaction. The schema
//! `catraca_store` is its own. Must not print a password, wait without an end, or send a batch
//! again that may have been applied.
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

mod desk;
mod error;
mod group;
mod held;
mod keys;
pub(crate) mod link;
mod locks;
mod migrate;
mod options;
pub(crate) mod place;
mod queue;
mod row;
pub(crate) mod tls;
pub(crate) mod trouble;

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use catraca_core::batch::{Batch, Reply};
use catraca_core::time::Time;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_postgres::{Error, Row};

use crate::store::{Pulse, SharedStore, StoreError, When};
use desk::Desk;
use link::Link;
use locks::Ears;
use place::Place;
use queue::{Ask, Errand, Job};
use trouble::Trouble;

pub use error::PostgresError;
pub use options::PostgresOptions;

const PULSE: &str = "SELECT changes, life,
    (extract(epoch FROM clock_timestamp()) * 1000000)::bigint,
    (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint
        # (pg_relation_filenode('catraca_store.cells')::bigint << 24)
    FROM catraca_store.state";
const STIR: &str = "UPDATE catraca_store.state SET changes = changes + 1 RETURNING changes";
const CLAIM: &str =
    "UPDATE catraca_store.state SET records = coalesce(records, $1) RETURNING records";
const SWEEP: &str = "SELECT catraca_store.sweep(1000)";
/// What one sweep drops at most.
const SWEPT_MAX: u64 = 1_000;
/// The longest that a sweep may take: nobody waits for it.
const SWEEPING: Duration = Duration::from_secs(5);

/// Said of rows that another transaction does not let go.
const HELD: &str = "another transaction holds rows of this call for too long: pg_stat_activity and \
                    pg_blocking_pids show whose";

/// A store in a PostgreSQL database. Its connections end with it.
pub struct PostgresStore {
    desk: Arc<Desk>,
    options: PostgresOptions,
    shown: String,
    place: Place,
    ears: Ears,
    /// Listens for names that became free, once anybody wants to know.
    listening: OnceLock<JoinHandle<()>>,
    tasks: Vec<JoinHandle<()>>,
}

/// What the store is busy with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PostgresStats {
    /// Connections that are there.
    pub connected: usize,
    /// Calls that wait for one.
    pub waiting: usize,
}

impl PostgresStore {
    /// Connects to a URL such as `postgres://ana@host/shop` and brings the schema up to date. Must
    /// be called on a tokio runtime with time and I/O, which the connections go on to use.
    pub async fn open(url: &str, options: PostgresOptions) -> Result<Self, PostgresError> {
        let (place, options) = (Place::read(url)?, options.sound());
        let failed = |trouble: Trouble| PostgresError::of(&place.shown, &trouble);
        let link = Link::open(&place, options.connect_timeout).await.map_err(failed)?;
        migrate::migrate(&link, &place).await?;
        let desk = Arc::new(Desk::new(&options));
        desk.join();
        let mut first = Some(link);
        let work = |_| {
            let (desk, place) = (Arc::clone(&desk), place.clone());
            tokio::spawn(desk::work(desk, place, options, first.take()))
        };
        let mut tasks: Vec<_> = (0..options.connections).map(work).collect();
        let tend = |every| tokio::spawn(tend(Arc::clone(&desk), every));
        tasks.extend(options.sweep_every.map(tend));
        let (shown, ears, listening) = (place.shown.clone(), locks::ears(), OnceLock::new());
        Ok(Self { desk, options, shown, place, ears, listening, tasks })
    }

    /// Where it is, without a password.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// What it is busy with.
    pub fn stats(&self) -> PostgresStats {
        PostgresStats { connected: self.desk.connected(), waiting: self.desk.queue.len() }
    }

    /// Drops up to a thousand rows whose loss cannot be noticed; says how many. Done by itself now
    /// and then, as the options say.
    pub async fn sweep(&self) -> Result<u64, StoreError> {
        sweep(&self.desk).await
    }

    async fn ask(&self, sql: &'static str, text: Option<String>) -> Result<Row, StoreError> {
        errand(&self.desk, sql, text, self.options.deadline).await
    }
}

/// A call that is not waited for is not begun; one that has begun goes on to its end.
impl SharedStore for PostgresStore {
    async fn apply(&self, batch: &Batch, when: When) -> Result<Reply, StoreError> {
        let until = Instant::now() + self.options.deadline;
        let (reply, answer) = oneshot::channel();
        let ask = Ask { batch: batch.clone(), when, until, reply, again: false };
        self.desk.hand_in(Job::Ask(ask))?;
        wait(answer, until, self.options.deadline).await
    }

    async fn pulse(&self) -> Result<Pulse, StoreError> {
        let row = self.ask(PULSE, None).await?;
        pulse(&row).map_err(unread)
    }

    async fn stir(&self) -> Result<(), StoreError> {
        self.ask(STIR, None).await.map(drop)
    }

    async fn claim(&self, records: &str) -> Result<String, StoreError> {
        let row = self.ask(CLAIM, Some(records.to_owned())).await?;
        row.try_get(0).map_err(unread)
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.tasks.iter().chain(self.listening.get()).for_each(JoinHandle::abort);
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresStore").field("at", &self.shown).finish_non_exhaustive()
    }
}

/// A restart of the server is another life too: a standby that took over may not know everything.
/// So is another file under the table: somebody has emptied or rewritten it.
fn pulse(row: &Row) -> Result<Pulse, Error> {
    let [changes, life, now, started] = [0, 1, 2, 3].map(|column| row.try_get::<_, i64>(column));
    Ok(Pulse {
        changes: changes?.cast_unsigned(),
        now: Time::from_micros(now?),
        life: life?.cast_unsigned() ^ started?.cast_unsigned(),
    })
}

fn unread(error: Error) -> StoreError {
    StoreError::corrupt(Trouble::Said(error).to_string())
}

/// Sweeps now and then; what fails is tried again next time.
async fn tend(desk: Arc<Desk>, every: Duration) {
    loop {
        sleep(every).await;
        while sweep(&desk).await.is_ok_and(|swept| swept >= SWEPT_MAX) {}
    }
}

async fn sweep(desk: &Desk) -> Result<u64, StoreError> {
    let row = errand(desk, SWEEP, None, SWEEPING).await?;
    row.try_get::<_, i64>(0).map(i64::cast_unsigned).map_err(unread)
}

async fn errand(
    desk: &Desk,
    sql: &'static str,
    text: Option<String>,
    deadline: Duration,
) -> Result<Row, StoreError> {
    let until = Instant::now() + deadline;
    let (reply, answer) = oneshot::channel();
    desk.hand_in(Job::Errand(Errand { sql, text, until, reply }))?;
    wait(answer, until, deadline).await
}

/// Waits for an answer, and no longer than was promised.
async fn wait<T>(
    answer: oneshot::Receiver<Result<T, StoreError>>,
    until: Instant,
    deadline: Duration,
) -> Result<T, StoreError> {
    match timeout_at(until, answer).await {
        Ok(Ok(answer)) => answer,
        Ok(Err(_)) | Err(_) => Err(StoreError::unavailable(Trouble::Late(deadline).to_string())),
    }
}

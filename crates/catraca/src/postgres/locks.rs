//! Locks and slots in PostgreSQL: the rules of core over rows that nodes share.
//!
//! An operation is a transaction: it locks the row of its namespace, reads the server's clock while
//! it holds it, loads the leases that it can meet (`need`), lets core's book do the rest, and
//! writes what has changed (`put`). That no two leases have one name, and no two slots one time, is
//! also a constraint of the tables. `listen` tells whoever waits. Must not send an operation again
//! that may have been applied.

mod listen;
mod need;
mod put;
mod row;
mod seen;

use std::time::Duration;

use catraca_core::lock::{LockOp, LockReply, LockTold, Mark};
use catraca_core::time::Time;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use super::PostgresStore;
use super::error::store_error;
use super::link::{Link, Patience};
use super::queue::{Job, Reached};
use super::trouble::Trouble;
use crate::locks::{Asking, Freed, LockStore};
use crate::store::{StoreError, When};
use need::Need;
use seen::Seen;

pub(super) use listen::{Ears, ears};

/// A value of a statement that is kept until it is sent.
type Bound = (Box<dyn ToSql + Sync + Send>, Type);

/// A statement and its values.
pub(super) struct Statement {
    sql: &'static str,
    values: Vec<Bound>,
}

fn bound(value: impl ToSql + Sync + Send + 'static, kind: Type) -> Bound {
    (Box::new(value), kind)
}

/// An operation that waits for a connection.
#[derive(Debug)]
pub(super) struct LockAsk {
    pub namespace: String,
    pub op: LockOp,
    pub when: When,
    pub until: Instant,
    pub reply: Reached<LockReply>,
}

impl LockAsk {
    /// The instant that was given, in place of the server's.
    fn at(&self) -> Option<Time> {
        match self.when {
            When::Store => None,
            When::At(time) => Some(time),
        }
    }

    /// Until when its transaction may end.
    fn ending(&self) -> Instant {
        self.until.max(Instant::now() + ENDING)
    }
}

/// Deadlocks and conflicts that the server calls are rare, and over at once.
const ATTEMPTS: u32 = 4;
/// The longest pause before the second attempt; it doubles.
const PAUSE_MS: u64 = 5;
/// How long the end of a transaction may take at least.
const ENDING: Duration = Duration::from_millis(250);

const ROOM: &str =
    "SELECT now, fence, kept, versions, changed FROM catraca_store.lock_room($1, $2, $3)";
/// The same without holding it, for whoever only looks.
const GLANCE: &str = "SELECT greatest(coalesce(max(now), 0), \
    coalesce($2, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)), \
    coalesce(max(fence), 0), coalesce(max(kept), 0), 0::bigint, NULL::bigint \
    FROM catraca_store.lock_rooms WHERE namespace = $1";

impl LockStore for PostgresStore {
    fn ask<'a>(&'a self, namespace: &'a str, op: &'a LockOp, when: When) -> Asking<'a> {
        Box::pin(async move {
            let until = Instant::now() + self.options.deadline;
            let (reply, answer) = oneshot::channel();
            let (namespace, op) = (namespace.to_owned(), op.clone());
            let ask = LockAsk { namespace, op, when, until, reply };
            self.desk.hand_in(Job::Lock(Box::new(ask)))?;
            super::wait(answer, until, self.options.deadline).await
        })
    }

    fn freed(&self) -> tokio::sync::broadcast::Receiver<Freed> {
        let (place, patience) = (&self.place, self.options.connect_timeout);
        let listen = || tokio::spawn(listen::listen(place.clone(), self.ears.clone(), patience));
        self.listening.get_or_init(listen);
        self.ears.subscribe()
    }

    /// A commit is on the server's disk before it is answered, unless the disk itself lies.
    fn is_durable(&self) -> bool {
        true
    }
}

/// Does an operation and answers it. An error means that the connection is of no use any more.
pub(super) async fn apply(link: &Link, ask: LockAsk) -> Result<(), String> {
    let mut pause = PAUSE_MS;
    for attempt in 1..=ATTEMPTS {
        let trouble = match operate(link, &ask).await {
            Ok(reply) => {
                drop(ask.reply.send(reply));
                return Ok(());
            }
            Err(trouble) => trouble,
        };
        if let Trouble::Said(_) = &trouble {
            let ended = link.batch(ask.ending(), "ROLLBACK").await;
            ended.map_err(|trouble| trouble.to_string())?;
        }
        // Said inside the transaction, so nothing was applied. An overlap or a name that is taken
        // is what another transaction has just written: the next attempt sees whose.
        let passing =
            matches!(trouble.code(), Some("40001" | "40P01" | "23P01" | "23505" | "23503"));
        if !passing || attempt == ATTEMPTS || Instant::now() >= ask.until {
            let lost = !matches!(trouble, Trouble::Said(_));
            drop(ask.reply.send(Err(store_error(&trouble))));
            return if lost { Err(trouble.to_string()) } else { Ok(()) };
        }
        sleep(jitter(pause)).await;
        pause *= 2;
    }
    Ok(())
}

/// Anything up to a bound; without randomness all of it.
fn jitter(most_ms: u64) -> Duration {
    let mut bytes = [0; 8];
    let drawn = getrandom::fill(&mut bytes).is_ok();
    let most = most_ms * 1_000;
    Duration::from_micros(if drawn { u64::from_le_bytes(bytes) % (most + 1) } else { most })
}

/// One transaction from begin to end. What is unreadable is an answer too.
async fn operate(link: &Link, ask: &LockAsk) -> Result<Result<LockReply, StoreError>, Trouble> {
    let (op, namespace) = (&ask.op, ask.namespace.as_str());
    let looks =
        matches!(op, LockOp::Look(_) | LockOp::Show(_) | LockOp::List { .. } | LockOp::Tally);
    let mut need = Need::of(namespace, op, ask.at());
    let mut first = vec![room(ask, looks)];
    let (leases, versions) = (need.leases.len(), need.versions.is_some());
    first.append(&mut need.leases);
    first.extend(need.versions.take());
    first.extend(need.counts.take());
    let left = ask.until.saturating_duration_since(Instant::now());
    let patience = Patience { until: ask.until, lock: left / 8 * 7 };
    let mut answers = link.begin_all(patience, &first).await?.into_iter();
    let mut seen = match Seen::read(ask, &mut answers, leases, versions) {
        Ok(seen) => seen,
        Err(wrong) => return end((link, ask), Err(wrong)).await,
    };
    let more = Need::later(namespace, op, seen.now, seen.fence);
    if let Some(more) = more.or_else(|| seen.about(namespace, op)) {
        let rows = link.rows(ask.until, more.sql, &more.typed()).await?;
        if let Err(wrong) = seen.add(&rows) {
            return end((link, ask), Err(wrong)).await;
        }
    }
    let counts = answers.next().filter(|_| matches!(op, LockOp::Tally));
    if let Some(counts) = counts {
        return end((link, ask), tallied(&counts, seen.now)).await;
    }
    let another = seen.is_another();
    let (reply, statements) = seen.apply(ask);
    if looks || (statements.is_empty() && !another) {
        return end((link, ask), reply).await;
    }
    link.commit_all(ask.until, &statements).await?;
    Ok(reply)
}

/// Ends a transaction that has written nothing.
async fn end<T>(
    (link, ask): (&Link, &LockAsk),
    answer: Result<T, StoreError>,
) -> Result<Result<T, StoreError>, Trouble> {
    link.batch(ask.ending(), "ROLLBACK").await?;
    Ok(answer)
}

fn room(ask: &LockAsk, looks: bool) -> Statement {
    let at = ask.at().map(Time::micros);
    let (ns, at) = (need::mark(Mark::of_namespace(&ask.namespace)), bound(at, Type::INT8));
    if looks {
        return Statement { sql: GLANCE, values: vec![ns, at] };
    }
    let name = bound(ask.namespace.clone(), Type::TEXT);
    Statement { sql: ROOM, values: vec![ns, name, at] }
}

fn tallied(rows: &[Row], now: Time) -> Result<LockReply, StoreError> {
    let rows: Result<Vec<_>, _> = rows.iter().map(put::counted).collect();
    let mut rows = rows.map_err(|error| StoreError::corrupt(error.to_string()))?;
    rows.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    Ok(LockReply { now, told: LockTold::Tallied(rows) })
}

impl Statement {
    pub(super) fn sql(&self) -> &str {
        self.sql
    }

    pub(super) fn typed(&self) -> Vec<(&(dyn ToSql + Sync), Type)> {
        fn value((value, kind): &Bound) -> (&(dyn ToSql + Sync), Type) {
            (&**value, kind.clone())
        }
        self.values.iter().map(value).collect()
    }
}

//! Locks and slots in PostgreSQL: core's rules over table rows that nodes share.
//!
//! An operation is a transaction: it locks the row of its namespace, reads the server's clock while
//! the row is locked, loads the leases that can affect it (`load_plan`), applies the operation with
//! core's lock table (`loaded`), and writes the changes (`write_plan`). Constraints of the tables
//! also guarantee that a name has one lease and that slots do not overlap. `listen` wakes waiters
//! of this node. An operation that may have been applied is not sent again.

mod lease_row;
mod listen;
mod load_plan;
mod loaded;
mod write_plan;

use std::sync::Arc;
use std::time::Duration;

use catraca_core::lock::{Durability, LockOp, LockOutcome, LockReply, NameDigest};
use catraca_core::time::Time;
use tokio::sync::{broadcast, oneshot};
use tokio::time::{Instant, sleep};
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use super::PostgresStore;
use super::connection::{PostgresConnection, TransactionTimeouts};
use super::failure::PostgresFailure;
use super::open_error::store_error;
use super::queue::{CallReplySender, QueuedCall};
use crate::locks::{FreedCallback, FreedNotice, LockStore, LockStoreFuture, forward_freed};
use crate::store::{StoreError, When};
use crate::supervise::supervise;
use load_plan::LoadPlan;
use loaded::LoadedNamespace;

pub(super) use listen::{FreedSender, ListenReport, freed_channel};

/// A parameter of a statement and its type.
type BoundValue = (Box<dyn ToSql + Sync + Send>, Type);

/// A statement with its parameters.
pub(super) struct LockStatement {
    sql: &'static str,
    values: Vec<BoundValue>,
}

fn bind(value: impl ToSql + Sync + Send + 'static, kind: Type) -> BoundValue {
    (Box::new(value), kind)
}

/// An operation in the queue.
#[derive(Debug)]
pub(super) struct QueuedLockOp {
    pub namespace: String,
    pub op: LockOp,
    pub when: When,
    pub until: Instant,
    pub reply: CallReplySender<LockReply>,
}

impl QueuedLockOp {
    /// The instant to use instead of the server's clock, if one was given.
    fn explicit_time(&self) -> Option<Time> {
        match self.when {
            When::Store => None,
            When::At(time) => Some(time),
        }
    }

    /// The deadline of the transaction's `ROLLBACK`, which may be later than that of the operation.
    fn rollback_deadline(&self) -> Instant {
        self.until.max(Instant::now() + ROLLBACK_TIMEOUT)
    }
}

/// How many times an operation is tried. Conflicts that the server reports are rare and short.
const ATTEMPTS: u32 = 4;
/// The longest pause before the second attempt, in milliseconds; it doubles with every attempt.
const PAUSE_MS: u64 = 5;
/// The time that a `ROLLBACK` may take in any case.
const ROLLBACK_TIMEOUT: Duration = Duration::from_millis(250);

/// Locks the row of a namespace and reads the clock; the columns are those of [`READ_NAMESPACE`].
const LOCK_NAMESPACE: &str =
    "SELECT now, fence, kept, versions, changed FROM catraca_store.lock_room($1, $2, $3)";
/// Reads the row of a namespace without locking it, for operations that only read: instant, last
/// fence, number of leases, number of versions, when a change of timeline was noticed.
const READ_NAMESPACE: &str = "SELECT greatest(coalesce(max(now), 0), \
    coalesce($2, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)), \
    coalesce(max(fence), 0), coalesce(max(kept), 0), 0::bigint, NULL::bigint \
    FROM catraca_store.lock_rooms WHERE namespace = $1";

impl LockStore for PostgresStore {
    fn ask<'a>(&'a self, namespace: &'a str, op: &'a LockOp, when: When) -> LockStoreFuture<'a> {
        Box::pin(async move {
            let until = Instant::now() + self.options.deadline;
            let (reply, answer) = oneshot::channel();
            let namespace = namespace.to_owned();
            let call = QueuedLockOp { namespace, op: op.clone(), when, until, reply };
            self.pool.submit(QueuedCall::Lock(Box::new(call)))?;
            Ok(super::wait_for_reply(answer, until, self.options.deadline).await?)
        })
    }

    fn listen(&self, listener: FreedCallback) {
        forward_freed(self.freed_notices(), listener);
    }

    fn background_error(&self) -> Option<String> {
        self.listen_report.error.load().as_deref().cloned()
    }

    fn limitation(&self) -> Option<String> {
        self.listen_report.limitation.load().as_deref().cloned()
    }

    /// Lock transactions use `synchronous_commit = on`, so a commit is on the server's disk before
    /// it is answered.
    fn durability(&self) -> Option<Durability> {
        Some(Durability::Fsync)
    }
}

impl PostgresStore {
    /// Notices of names that become free. After the receiver reports a lag, any name may be free.
    /// The first call opens the connection that listens.
    pub fn freed_notices(&self) -> broadcast::Receiver<FreedNotice> {
        self.listening.get_or_init(|| {
            let listener = Arc::new(listen::PostgresListener {
                url: self.url.clone(),
                freed: self.freed.clone(),
                connect_timeout: self.options.connect_timeout,
                report: Arc::clone(&self.listen_report),
            });
            tokio::spawn(supervise("lock listener", move || listen::listen(Arc::clone(&listener))))
        });
        self.freed.subscribe()
    }
}

/// Applies an operation and replies to the caller. An error means that the connection cannot be
/// used any more.
pub(super) async fn apply(
    connection: &PostgresConnection,
    call: QueuedLockOp,
) -> Result<(), String> {
    let mut pause = PAUSE_MS;
    for attempt in 1..=ATTEMPTS {
        let failure = match run_transaction(connection, &call).await {
            Ok(reply) => {
                drop(call.reply.send(reply));
                return Ok(());
            }
            Err(failure) => failure,
        };
        if let PostgresFailure::Server(_) = &failure {
            let ended = connection.batch(call.rollback_deadline(), "ROLLBACK").await;
            ended.map_err(|failure| failure.to_string())?;
        }
        // The error was reported inside the transaction, so nothing was applied. A violated
        // constraint means that another transaction has just written the same name or an
        // overlapping range; the next attempt sees its lease. The codes: serialization_failure,
        // deadlock_detected, exclusion, unique and foreign_key violation.
        let is_conflict =
            matches!(failure.code(), Some("40001" | "40P01" | "23P01" | "23505" | "23503"));
        if !is_conflict || attempt == ATTEMPTS || Instant::now() >= call.until {
            let is_lost = !matches!(failure, PostgresFailure::Server(_));
            drop(call.reply.send(Err(store_error(&failure))));
            return if is_lost { Err(failure.to_string()) } else { Ok(()) };
        }
        sleep(jitter(pause)).await;
        pause *= 2;
    }
    Ok(())
}

/// A random pause up to a bound; the whole bound if there is no randomness.
fn jitter(max_ms: u64) -> Duration {
    let mut bytes = [0; 8];
    let is_random = getrandom::fill(&mut bytes).is_ok();
    let max = max_ms * 1_000;
    Duration::from_micros(if is_random { u64::from_le_bytes(bytes) % (max + 1) } else { max })
}

/// One transaction from `BEGIN` to `COMMIT` or `ROLLBACK`. The outer error is a failure of the
/// call, the inner one a reply to the caller, for example about a row that cannot be decoded.
async fn run_transaction(
    connection: &PostgresConnection,
    call: &QueuedLockOp,
) -> Result<Result<LockReply, StoreError>, PostgresFailure> {
    let op = &call.op;
    let namespace = call.namespace.as_str();
    let only_reads = matches!(
        op,
        LockOp::Availability(_) | LockOp::Show(_) | LockOp::List { .. } | LockOp::Counters
    );
    let mut plan = LoadPlan::for_op(namespace, op, call.explicit_time());
    let lease_results = plan.leases.len();
    let has_versions = plan.versions.is_some();
    // First round trip: the results come in this order, and `LoadedNamespace::read` relies on it.
    let mut first = vec![namespace_statement(call, only_reads)];
    first.append(&mut plan.leases);
    first.extend(plan.versions.take());
    first.extend(plan.counts.take());
    let time_left = call.until.saturating_duration_since(Instant::now());
    let timeouts = TransactionTimeouts { until: call.until, lock: time_left / 8 * 7 };
    let mut results = connection.begin_all(timeouts, &first).await?.into_iter();
    let mut loaded = match LoadedNamespace::read(call, &mut results, lease_results, has_versions) {
        Ok(loaded) => loaded,
        Err(error) => return rollback(connection, call, Err(error)).await,
    };
    // Some operations need leases that depend on the clock, the last fence or the loaded lease.
    let further = LoadPlan::after_clock(namespace, op, loaded.now, loaded.fence);
    if let Some(statement) = further.or_else(|| loaded.further_load(namespace, op)) {
        let rows = connection.rows(call.until, statement.sql, &statement.typed_values()).await?;
        if let Err(error) = loaded.add_leases(&rows) {
            return rollback(connection, call, Err(error)).await;
        }
    }
    let counts = results.next().filter(|_| matches!(op, LockOp::Counters));
    if let Some(counts) = counts {
        return rollback(connection, call, tally_reply(&counts, loaded.now)).await;
    }
    // A change of timeline was written when the namespace was locked, and must be committed.
    let found_new_timeline = loaded.found_new_timeline();
    let (reply, statements) = loaded.apply(call);
    if only_reads || (statements.is_empty() && !found_new_timeline) {
        return rollback(connection, call, reply).await;
    }
    connection.commit_all(call.until, &statements).await?;
    Ok(reply)
}

/// Ends a transaction that has written nothing. Unlike a commit, a rollback does not wait for a
/// disk.
async fn rollback<T>(
    connection: &PostgresConnection,
    call: &QueuedLockOp,
    reply: Result<T, StoreError>,
) -> Result<Result<T, StoreError>, PostgresFailure> {
    connection.batch(call.rollback_deadline(), "ROLLBACK").await?;
    Ok(reply)
}

/// Reads the row of the namespace; locks it unless the operation only reads.
fn namespace_statement(call: &QueuedLockOp, only_reads: bool) -> LockStatement {
    let namespace = load_plan::bind_digest(NameDigest::of_namespace(&call.namespace));
    let at = bind(call.explicit_time().map(Time::micros), Type::INT8);
    if only_reads {
        return LockStatement { sql: READ_NAMESPACE, values: vec![namespace, at] };
    }
    let name = bind(call.namespace.clone(), Type::TEXT);
    LockStatement { sql: LOCK_NAMESPACE, values: vec![namespace, name, at] }
}

fn tally_reply(rows: &[Row], now: Time) -> Result<LockReply, StoreError> {
    let rows: Result<Vec<_>, _> = rows.iter().map(write_plan::read_counts).collect();
    let mut rows = rows.map_err(|error| StoreError::corrupt(error.to_string()))?;
    rows.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
    Ok(LockReply { now, outcome: LockOutcome::Counters(rows) })
}

impl LockStatement {
    pub(super) fn sql(&self) -> &str {
        self.sql
    }

    pub(super) fn typed_values(&self) -> Vec<(&(dyn ToSql + Sync), Type)> {
        fn value((value, kind): &BoundValue) -> (&(dyn ToSql + Sync), Type) {
            (&**value, kind.clone())
        }
        self.values.iter().map(value).collect()
    }
}

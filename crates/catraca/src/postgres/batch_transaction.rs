//! Applies several batches in one transaction: lock their rows and read the clock, run the rules,
//! write and commit. Two round trips, or one if nothing changes.
//!
//! Rows are created and locked in the order of their keys, so that transactions cannot deadlock.
//! Before the second round trip nothing can have been applied, and the batches may be tried again;
//! after it they are never sent again. Callers get their replies after the commit.

use catraca_core::batch::Reply;
use catraca_core::digest::Key;
use catraca_core::time::Time;
use tokio::time::Instant;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use super::connection::{PostgresConnection, TransactionTimeouts};
use super::failure::PostgresFailure;
use super::locked_rows::{LockedRows, RowChanges};
use super::open_error::store_error;
use super::queue::{CallQueue, QueuedBatch};
use super::row_keys::RowKeys;
use crate::store::StoreError;

const TAKE: &str = "SELECT now, keys, bodies, missed FROM catraca_store.take($1, $2, $3)";
const PUT: &str = "SELECT catraca_store.put($1, $2, $3, $4)";
/// How many times a transaction is tried. Rows that appear while others are being locked, and
/// conflicts that the server reports, are rare and short.
const ATTEMPTS: u32 = 5;

/// Batches that are being applied.
struct BatchTransaction {
    calls: Vec<QueuedBatch>,
    keys: RowKeys,
    /// The latest deadline of the callers.
    until: Instant,
    /// Whether rows that other transactions hold are skipped: in a second attempt, after the first
    /// one has waited for them in vain.
    skip_locked: bool,
    /// Whether the commit was sent: after that, a lost connection leaves the result unknown.
    commit_sent: bool,
}

/// How an attempt ended.
enum Attempt {
    /// All callers have their replies, or are to get an error.
    Done,
    /// Nothing was applied, and the transaction may be tried again.
    Retry,
}

/// Applies batches and replies to each caller. An error means that the connection cannot be used
/// any more.
pub(super) async fn apply(
    connection: &PostgresConnection,
    queue: &CallQueue,
    calls: Vec<QueuedBatch>,
) -> Result<(), String> {
    let Some(until) = calls.iter().map(|call| call.until).max() else { return Ok(()) };
    let keys = RowKeys::of(calls.iter().map(|call| &call.batch));
    let mut transaction =
        BatchTransaction { calls, keys, until, skip_locked: false, commit_sent: false };
    for _ in 0..ATTEMPTS {
        let failure = match transaction.attempt(connection).await {
            Ok(Attempt::Done) => return Ok(()),
            Ok(Attempt::Retry) => continue,
            Err(failure) => failure,
        };
        match transaction.after_failure(&failure) {
            Attempt::Retry => {
                let ended = connection.batch(transaction.until, "ROLLBACK").await;
                ended.map_err(|failure| failure.to_string())?;
            }
            Attempt::Done => return transaction.give_up(connection, queue, failure).await,
        }
    }
    transaction.refuse(|| StoreError::unavailable(ROWS_CHANGING));
    Ok(())
}

const ROWS_CHANGING: &str = "the rows of this call change faster than they can be locked";

impl BatchTransaction {
    /// One transaction from `BEGIN` to `COMMIT` or `ROLLBACK`.
    async fn attempt(
        &mut self,
        connection: &PostgresConnection,
    ) -> Result<Attempt, PostgresFailure> {
        let row = self.lock_rows(connection).await?;
        let mut rows = self.read(&row).map_err(PostgresFailure::Server)?;
        if rows.has_missed_rows() && !self.skip_locked {
            connection.batch(self.until, "ROLLBACK").await?;
            return Ok(Attempt::Retry);
        }
        // One after the other: each batch sees what the ones before it have written.
        let apply = |call: &QueuedBatch| rows.apply(&call.batch, call.when);
        let replies: Vec<_> = self.calls.iter().map(apply).collect();
        let changes = match rows.changes() {
            Ok(changes) => changes,
            Err(error) => {
                self.refuse(|| StoreError::corrupt(error.to_string()));
                return connection.batch(self.until, "ROLLBACK").await.map(|()| Attempt::Done);
            }
        };
        if changes.is_empty() {
            // Nothing was written, so the replies need not wait for the commit.
            self.answer(replies);
            return connection.batch(self.until, "COMMIT").await.map(|()| Attempt::Done);
        }
        self.commit_sent = true;
        write_and_commit(connection, self.until, &changes).await?;
        self.answer(replies);
        Ok(Attempt::Done)
    }

    /// First round trip: begins the transaction, locks the rows and reads the clock.
    async fn lock_rows(&self, connection: &PostgresConnection) -> Result<Row, PostgresFailure> {
        let create = bytes(&self.keys.create);
        let create = slices(&create);
        let existing = bytes(&self.keys.existing);
        let existing = slices(&existing);
        let values: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 3] = [
            (&create, Type::BYTEA_ARRAY),
            (&existing, Type::BYTEA_ARRAY),
            (&self.skip_locked, Type::BOOL),
        ];
        connection.begin(self.timeouts(), TAKE, &values).await
    }

    /// How long to wait for locked rows: half of the time if several batches share the transaction,
    /// so that there is time for a second attempt without the batches whose rows are locked.
    fn timeouts(&self) -> TransactionTimeouts {
        let time_left = self.until.saturating_duration_since(Instant::now());
        let can_skip = self.calls.len() > 1 && !self.skip_locked;
        let lock = if can_skip { time_left / 2 } else { time_left / 8 * 7 };
        TransactionTimeouts { until: self.until, lock }
    }

    fn read(&self, row: &Row) -> Result<LockedRows, tokio_postgres::Error> {
        let keys: Vec<&[u8]> = row.try_get::<_, Option<_>>(1)?.unwrap_or_default();
        let bodies: Vec<&[u8]> = row.try_get::<_, Option<_>>(2)?.unwrap_or_default();
        let missed: Vec<&[u8]> = row.try_get::<_, Option<_>>(3)?.unwrap_or_default();
        let mut locked: Vec<(&[u8], &[u8])> = keys.into_iter().zip(bodies).collect();
        locked.sort_unstable_by_key(|(key, _)| *key);
        Ok(LockedRows::new(&self.keys, &locked, &missed, Time::from_micros(row.try_get(0)?)))
    }

    /// Whether to try again after an error of the server. It was reported inside the transaction,
    /// so nothing was applied.
    fn after_failure(&mut self, failure: &PostgresFailure) -> Attempt {
        // lock_not_available, query_canceled: another transaction holds a row.
        let is_locked = matches!(failure.code(), Some("55P03" | "57014"));
        let may_retry = match failure.code() {
            // serialization_failure, deadlock_detected
            Some("40001" | "40P01") => true,
            // Skipping the locked rows helps only if other batches are left.
            _ => is_locked && !self.skip_locked && self.calls.len() > 1,
        };
        self.skip_locked |= is_locked;
        if may_retry && Instant::now() < self.until {
            self.commit_sent = false;
            return Attempt::Retry;
        }
        Attempt::Done
    }

    /// Replies with the error. If the connection was lost before the commit was sent, batches that
    /// are not retries yet are queued again for another connection.
    async fn give_up(
        mut self,
        connection: &PostgresConnection,
        queue: &CallQueue,
        failure: PostgresFailure,
    ) -> Result<(), String> {
        if let PostgresFailure::ConnectionLost(why) = &failure {
            if !self.commit_sent {
                let calls = std::mem::take(&mut self.calls);
                let (lost, fresh): (Vec<_>, Vec<_>) =
                    calls.into_iter().partition(|call| call.is_retry);
                self.calls = lost;
                queue.put_back(
                    fresh.into_iter().map(|call| QueuedBatch { is_retry: true, ..call }).collect(),
                );
            }
            self.refuse(|| store_error(&failure));
            return Err(why.clone());
        }
        self.refuse(|| store_error(&failure));
        match failure {
            PostgresFailure::Server(_) => {
                let until = Instant::now() + ROLLBACK_TIMEOUT;
                connection.batch(until, "ROLLBACK").await.map_err(|failure| failure.to_string())
            }
            PostgresFailure::ConnectionLost(_) | PostgresFailure::TimedOut(_) => {
                Err(failure.to_string())
            }
        }
    }

    fn answer(&mut self, replies: Vec<Result<Reply, StoreError>>) {
        for (call, reply) in self.calls.drain(..).zip(replies) {
            // An error only means that the caller has gone.
            drop(call.reply.send(reply));
        }
    }

    fn refuse(&mut self, why: impl Fn() -> StoreError) {
        self.calls.drain(..).for_each(|call| drop(call.reply.send(Err(why()))));
    }
}

/// How long the `ROLLBACK` of a failed transaction may take.
const ROLLBACK_TIMEOUT: std::time::Duration = std::time::Duration::from_millis(250);

/// Second round trip: writes the changed rows and commits.
async fn write_and_commit(
    connection: &PostgresConnection,
    until: Instant,
    changes: &RowChanges,
) -> Result<(), PostgresFailure> {
    let keys = slices(&changes.keys);
    let gone = slices(&changes.gone);
    let values: [(&(dyn tokio_postgres::types::ToSql + Sync), Type); 4] = [
        (&keys, Type::BYTEA_ARRAY),
        (&changes.bodies, Type::BYTEA_ARRAY),
        (&changes.ends, Type::INT8_ARRAY),
        (&gone, Type::BYTEA_ARRAY),
    ];
    connection.commit(until, PUT, &values).await
}

fn bytes(keys: &[Key]) -> Vec<[u8; 16]> {
    keys.iter().map(|key| key.to_bytes()).collect()
}

fn slices(keys: &[[u8; 16]]) -> Vec<&[u8]> {
    keys.iter().map(<[u8; 16]>::as_slice).collect()
}

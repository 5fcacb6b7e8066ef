//! Policy resets: ends blocks and deletes debts from before a reset, a bounded number of rows per
//! transaction.
//!
//! Blocks and debts from after the reset (`epoch`) are not touched.

use catraca_core::digest::Key;
use catraca_core::time::Time;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, TransactionBehavior, params};

use crate::records::database::SweepResult;
use crate::records::error::WriteError;

/// Subjects examined in one transaction.
const ROWS: i64 = 1_000;

/// A policy reset whose sweep is not complete.
struct SqlitePendingSweep {
    policy: String,
    epoch: i64,
    at: i64,
    by: Option<String>,
    why: Option<String>,
    /// The id of the last subject examined.
    swept: i64,
}

pub(super) fn sweep(connection: &mut Connection, now: Time) -> Result<SweepResult, WriteError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let pending = transaction.prepare_cached(PENDING)?.query_row([], read).optional()?;
    let swept =
        pending.map_or(Ok(SweepResult::default()), |pending| pending.sweep(&transaction, now))?;
    transaction.commit()?;
    Ok(swept)
}

const PENDING: &str = "SELECT policy, epoch, at, by, why, swept FROM resets
    WHERE swept IS NOT NULL LIMIT 1";
const LAST: &str = "SELECT max(id), count(*) FROM (
    SELECT id FROM subjects WHERE policy = ?1 AND id > ?2 ORDER BY id LIMIT ?3)";
const BLOCKS: &str = "UPDATE blocks SET until = min(until, ?4), touched = ?4, freed = ?5
    WHERE until > ?5 AND epoch < ?6 AND subject IN (
        SELECT id FROM subjects WHERE policy = ?1 AND id > ?2 AND id <= ?3)
    RETURNING subject, key, shadow";
const HISTORY: &str = "INSERT INTO history (subject, at, act, until, shadow, origin, reason, by)
    VALUES (?1, ?2, 'reset', ?2, ?3, 'operator', ?4, ?5)";
const DEBTS: &str = "DELETE FROM debts WHERE epoch < ?4 AND subject IN (
        SELECT id FROM subjects WHERE policy = ?1 AND id > ?2 AND id <= ?3)
    RETURNING subject";
const SWEPT: &str = "UPDATE resets SET swept = ?2 WHERE policy = ?1";

fn read(row: &Row<'_>) -> rusqlite::Result<SqlitePendingSweep> {
    Ok(SqlitePendingSweep {
        policy: row.get(0)?,
        epoch: row.get(1)?,
        at: row.get(2)?,
        by: row.get(3)?,
        why: row.get(4)?,
        swept: row.get(5)?,
    })
}

impl SqlitePendingSweep {
    fn sweep(&self, transaction: &Transaction<'_>, now: Time) -> Result<SweepResult, WriteError> {
        let Self { policy, swept, .. } = self;
        let (last, found): (Option<i64>, i64) = transaction
            .prepare_cached(LAST)?
            .query_row(params![policy, swept, ROWS], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let last = last.unwrap_or(*swept);
        let blocks = self.end_blocks(transaction, last, now)?;
        let debts = self.delete_debts(transaction, last)?;
        // The position of the next sweep; NULL when this reset is complete.
        let position = Some(last).filter(|_| found == ROWS);
        transaction.prepare_cached(SWEPT)?.execute(params![policy, position])?;
        // `more` even when this reset is complete: another one may be pending.
        Ok(SweepResult { blocks, debts, more: true })
    }

    fn end_blocks(
        &self,
        transaction: &Transaction<'_>,
        last: i64,
        now: Time,
    ) -> Result<Vec<Key>, WriteError> {
        let Self { policy, epoch, at, by, why, swept } = self;
        let mut statement = transaction.prepare_cached(BLOCKS)?;
        let values = params![policy, swept, last, at, now.micros(), epoch];
        let ended =
            statement.query_map(values, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        let ended = ended.collect::<rusqlite::Result<Vec<(i64, [u8; 16], bool)>>>()?;
        let mut insert_history = transaction.prepare_cached(HISTORY)?;
        for (subject, _, shadow) in &ended {
            insert_history.execute(params![subject, at, shadow, why, by])?;
        }
        Ok(ended.into_iter().map(|(_, key, _)| Key::from_bytes(key)).collect())
    }

    /// Deletes the debts, and their subjects if no other row refers to them.
    fn delete_debts(&self, transaction: &Transaction<'_>, last: i64) -> Result<u64, WriteError> {
        let Self { policy, epoch, swept, .. } = self;
        let mut statement = transaction.prepare_cached(DEBTS)?;
        let values = params![policy, swept, last, epoch];
        let subjects = statement.query_map(values, |row| row.get(0))?;
        let subjects = subjects.collect::<rusqlite::Result<Vec<i64>>>()?;
        for subject in &subjects {
            transaction.prepare_cached(super::purge::SUBJECT)?.execute([subject])?;
        }
        Ok(subjects.len() as u64)
    }
}

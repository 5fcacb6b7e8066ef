//! Deletes data that is past its retention, and what policy resets left: a bounded number of rows
//! per transaction.
//!
//! Active data is never deleted, however old. Blocks and debts from after a reset (`epoch`) are not
//! touched.

use std::collections::BTreeSet;
use std::time::Duration;

use catraca_core::digest::Key;
use catraca_core::time::Time;

use super::value::{SqlRow, values};
use crate::records::database::{
    Access, Database, DatabaseResult, PurgeCounts, Retention, SweepResult, row, rows, transaction,
};

/// Rows of one class, or subjects of one reset, per transaction.
const ROWS: i64 = 1_000;
const MICROS_PER_MINUTE: i64 = 60_000_000;

/// The history of an active block is retained, so that its reason can be shown.
const OLD_HISTORY: &str = "DELETE FROM catraca.history WHERE id IN (
    SELECT h.id FROM catraca.history AS h LEFT JOIN catraca.blocks AS b ON b.subject = h.subject
    WHERE h.at < $1 AND coalesce(b.until, 0) < $1 LIMIT $2) RETURNING subject";
/// A block whose level is remembered has still an effect.
const OLD_BLOCKS: &str = "DELETE FROM catraca.blocks WHERE subject IN (
    SELECT subject FROM catraca.blocks
    WHERE until < $1 AND touched < $1 AND (level = 0 OR until + forget < $1) LIMIT $2)
    RETURNING subject";
const OLD_ENTRIES: &str = "DELETE FROM catraca.lists WHERE id IN (
    SELECT id FROM catraca.lists WHERE until < $1 LIMIT $2)";
const OLD_AUDIT: &str = "DELETE FROM catraca.audit WHERE id IN (
    SELECT id FROM catraca.audit WHERE at < $1 ORDER BY at LIMIT $2)";
/// The newest revision, which is in use, is retained.
const OLD_REVISIONS: &str = "DELETE FROM catraca.revisions WHERE id IN (
    SELECT id FROM catraca.revisions WHERE at < $1
    AND id < (SELECT max(id) FROM catraca.revisions) LIMIT $2)";
const OLD_COUNTS: &str = "DELETE FROM catraca.counts WHERE (minute, namespace, action, policy) IN (
    SELECT minute, namespace, action, policy FROM catraca.counts WHERE minute < $1 LIMIT $2)";
const OLD_ATTEMPTS: &str = "DELETE FROM catraca.attempts WHERE (subject, minute) IN (
    SELECT subject, minute FROM catraca.attempts WHERE minute < $1 LIMIT $2) RETURNING subject";
/// Debts that the refill has paid back by now.
const PAID_DEBTS: &str = "DELETE FROM catraca.debts WHERE subject IN (
    SELECT subject FROM catraca.debts
    WHERE at + CAST(size - balance AS numeric) * period / tokens < $1 LIMIT $2)
    RETURNING subject";
const UNUSED_SUBJECT: &str = "DELETE FROM catraca.subjects WHERE id = $1
    AND NOT EXISTS (SELECT 1 FROM catraca.blocks WHERE subject = $1)
    AND NOT EXISTS (SELECT 1 FROM catraca.history WHERE subject = $1)
    AND NOT EXISTS (SELECT 1 FROM catraca.debts WHERE subject = $1)
    AND NOT EXISTS (SELECT 1 FROM catraca.attempts WHERE subject = $1)";

const PENDING_SWEEP: &str = "SELECT policy, epoch, at, by, why, swept FROM catraca.resets
    WHERE swept IS NOT NULL LIMIT 1";
const SWEEP_RANGE: &str = "SELECT max(id), count(*) FROM (
    SELECT id FROM catraca.subjects WHERE policy = $1 AND id > $2 ORDER BY id LIMIT $3) AS few";
const END_BLOCKS: &str = "UPDATE catraca.blocks
    SET until = least(until, $4), touched = $4, freed = $5
    WHERE until > $5 AND epoch < $6 AND subject IN (
        SELECT id FROM catraca.subjects WHERE policy = $1 AND id > $2 AND id <= $3)
    RETURNING subject, key, shadow";
const RESET_STEP: &str = "INSERT INTO catraca.history
        (subject, at, act, until, shadow, origin, reason, by)
    VALUES ($1, $2, 'reset', $2, $3, 'operator', $4, $5)";
const RESET_DEBTS: &str = "DELETE FROM catraca.debts WHERE epoch < $4 AND subject IN (
        SELECT id FROM catraca.subjects WHERE policy = $1 AND id > $2 AND id <= $3)
    RETURNING subject";
const SWEPT: &str = "UPDATE catraca.resets SET swept = $2 WHERE policy = $1";

/// Deletes data that is past its retention. Returns how many rows.
pub(in crate::records) fn purge(
    database: &mut dyn Database,
    now: Time,
    retention: &Retention,
) -> DatabaseResult<PurgeCounts> {
    transaction(database, Access::Write, |database| {
        let ended = cutoff(now, retention.history);
        let paid_debts = delete_of_subjects(database, PAID_DEBTS, now.micros())?;
        let history = delete_of_subjects(database, OLD_HISTORY, ended)?;
        let blocks = delete_of_subjects(database, OLD_BLOCKS, ended)?;
        let old_audit = cutoff(now, retention.audit);
        let old_minute = cutoff(now, retention.counts) / MICROS_PER_MINUTE;
        let attempts = delete_of_subjects(database, OLD_ATTEMPTS, old_minute)?;
        let mut delete = |sql: &str, bound: i64| database.execute(sql, &values![bound, ROWS]);
        let mut purged = PurgeCounts {
            history: history.len() as u64,
            blocks: blocks.len() as u64,
            lists: delete(OLD_ENTRIES, ended)?,
            audit: delete(OLD_AUDIT, old_audit)? + delete(OLD_REVISIONS, old_audit)?,
            counts: delete(OLD_COUNTS, old_minute)? + attempts.len() as u64,
            subjects: 0,
        };
        database.purge_own_rows(ended, ROWS)?;
        // Only subjects of deleted rows are examined: a scan of all subjects would take too long.
        let touched: BTreeSet<i64> =
            [paid_debts, history, blocks, attempts].concat().into_iter().collect();
        for subject in touched {
            purged.subjects += database.execute(UNUSED_SUBJECT, &values![subject])?;
        }
        Ok(purged)
    })
}

fn cutoff(now: Time, retention: Duration) -> i64 {
    now.before(retention.into()).micros()
}

/// Deletes rows and returns their subjects.
fn delete_of_subjects(
    database: &mut dyn Database,
    sql: &str,
    bound: i64,
) -> DatabaseResult<Vec<i64>> {
    rows(database, sql, &values![bound, ROWS], |row| row.get(0))
}

/// A policy reset whose sweep is not complete.
struct PendingSweep {
    policy: String,
    epoch: i64,
    at: i64,
    by: Option<String>,
    why: Option<String>,
    /// The id of the last subject examined.
    swept: i64,
}

/// Ends blocks and deletes debts from before a reset of their policy.
pub(in crate::records) fn sweep(
    database: &mut dyn Database,
    now: Time,
) -> DatabaseResult<SweepResult> {
    transaction(database, Access::Write, |database| {
        match row(database, PENDING_SWEEP, &[], pending_sweep)? {
            Some(pending) => pending.sweep(database, now),
            None => Ok(SweepResult::default()),
        }
    })
}

fn pending_sweep(row: &dyn SqlRow) -> DatabaseResult<PendingSweep> {
    Ok(PendingSweep {
        policy: row.get(0)?,
        epoch: row.get(1)?,
        at: row.get(2)?,
        by: row.get(3)?,
        why: row.get(4)?,
        swept: row.get(5)?,
    })
}

impl PendingSweep {
    fn sweep(&self, database: &mut dyn Database, now: Time) -> DatabaseResult<SweepResult> {
        let Self { policy, swept, .. } = self;
        let range: Option<(Option<i64>, i64)> =
            row(database, SWEEP_RANGE, &values![policy, *swept, ROWS], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })?;
        let (last, found) = range.unwrap_or_default();
        let blocks = self.end_blocks(database, last.unwrap_or(*swept), now)?;
        let debts = self.delete_debts(database, last.unwrap_or(*swept))?;
        // The position of the next sweep; NULL when this reset is complete.
        let position = last.filter(|_| found == ROWS);
        database.execute(SWEPT, &values![policy, position])?;
        // `more` even when this reset is complete: another one may be pending.
        Ok(SweepResult { blocks, debts, more: true })
    }

    fn end_blocks(
        &self,
        database: &mut dyn Database,
        last: i64,
        now: Time,
    ) -> DatabaseResult<Vec<Key>> {
        let Self { policy, epoch, at, by, why, swept } = self;
        let values = values![policy, *swept, last, *at, now, *epoch];
        let ended: Vec<(i64, Key, bool)> =
            rows(database, END_BLOCKS, &values, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        for (subject, _, shadow) in &ended {
            let step = values![*subject, *at, *shadow, why.as_deref(), by.as_deref()];
            database.add(RESET_STEP, &step)?;
        }
        Ok(ended.into_iter().map(|(_, key, _)| key).collect())
    }

    /// Deletes the debts, and their subjects if no other row refers to them.
    fn delete_debts(&self, database: &mut dyn Database, last: i64) -> DatabaseResult<u64> {
        let values = values![&self.policy, self.swept, last, self.epoch];
        let subjects: Vec<i64> = rows(database, RESET_DEBTS, &values, |row| row.get(0))?;
        for subject in &subjects {
            database.add(UNUSED_SUBJECT, &values![*subject])?;
        }
        Ok(subjects.len() as u64)
    }
}

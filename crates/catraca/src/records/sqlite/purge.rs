//! Retention: deletes data that is past its time, a bounded number of rows per transaction.
//!
//! Active data is never deleted, however old.

use std::collections::BTreeSet;

use catraca_core::time::{Span, Time};
use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::records::database::{PurgeCounts, Retention};
use crate::records::error::WriteError;

/// Rows of one class per transaction.
const ROWS: i64 = 1_000;

pub(super) fn purge(
    connection: &mut Connection,
    now: Time,
    retention: &Retention,
) -> Result<PurgeCounts, WriteError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let ended = cutoff(now, retention.history);
    let paid_debts = delete_returning(&transaction, PAID_DEBTS, now.micros())?;
    let history = delete_returning(&transaction, HISTORY, ended)?;
    let blocks = delete_returning(&transaction, BLOCKS, ended)?;
    let mut purged = PurgeCounts {
        history: history.len() as u64,
        blocks: blocks.len() as u64,
        lists: delete(&transaction, LISTS, ended)?,
        audit: delete(&transaction, AUDIT, cutoff(now, retention.audit))?
            + delete(&transaction, REVISIONS, cutoff(now, retention.audit))?,
        counts: delete(&transaction, COUNTS, cutoff(now, retention.counts) / MICROS_PER_MINUTE)?,
        subjects: 0,
    };
    // Only subjects of deleted rows are examined: a scan of all subjects would take too long.
    let touched: BTreeSet<i64> = [paid_debts, history, blocks].concat().into_iter().collect();
    for subject in touched {
        purged.subjects += transaction.prepare_cached(SUBJECT)?.execute([subject])? as u64;
    }
    transaction.commit()?;
    Ok(purged)
}

const MICROS_PER_MINUTE: i64 = 60_000_000;

/// The history of an active block is retained, so that its reason can be shown.
const HISTORY: &str = "DELETE FROM history WHERE id IN (
    SELECT h.id FROM history AS h LEFT JOIN blocks AS b ON b.subject = h.subject
    WHERE h.at < ?1 AND coalesce(b.until, 0) < ?1 LIMIT ?2) RETURNING subject";
const BLOCKS: &str = "DELETE FROM blocks WHERE subject IN (
    SELECT subject FROM blocks WHERE until < ?1 AND touched < ?1 LIMIT ?2)
    RETURNING subject";
const LISTS: &str = "DELETE FROM lists WHERE id IN (
    SELECT id FROM lists WHERE until < ?1 LIMIT ?2)";
const AUDIT: &str = "DELETE FROM audit WHERE id IN (
    SELECT id FROM audit WHERE at < ?1 ORDER BY at LIMIT ?2)";
/// The newest revision, which is in use, is retained.
const REVISIONS: &str = "DELETE FROM revisions WHERE id IN (
    SELECT id FROM revisions WHERE at < ?1
    AND id < (SELECT max(id) FROM revisions) LIMIT ?2)";
const COUNTS: &str = "DELETE FROM counts WHERE (minute, namespace, action, policy) IN (
    SELECT minute, namespace, action, policy FROM counts WHERE minute < ?1 LIMIT ?2)";
/// Debts that the refill has paid back by now.
const PAID_DEBTS: &str = "DELETE FROM debts WHERE subject IN (
    SELECT subject FROM debts WHERE at + (size - balance) * period / tokens < ?1 LIMIT ?2)
    RETURNING subject";
pub(super) const SUBJECT: &str = "DELETE FROM subjects WHERE id = ?1
    AND NOT EXISTS (SELECT 1 FROM blocks WHERE subject = ?1)
    AND NOT EXISTS (SELECT 1 FROM history WHERE subject = ?1)
    AND NOT EXISTS (SELECT 1 FROM debts WHERE subject = ?1)";

fn cutoff(now: Time, span: Span) -> i64 {
    now.before(span).micros()
}

fn delete(transaction: &Transaction<'_>, sql: &str, bound: i64) -> Result<u64, WriteError> {
    Ok(transaction.prepare_cached(sql)?.execute([bound, ROWS])? as u64)
}

/// Deletes rows and returns their subjects.
fn delete_returning(
    transaction: &Transaction<'_>,
    sql: &str,
    bound: i64,
) -> Result<Vec<i64>, WriteError> {
    let mut statement = transaction.prepare_cached(sql)?;
    let rows = statement.query_map([bound, ROWS], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

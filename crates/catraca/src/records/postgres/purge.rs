//! Retention: deletes data that is past its time, a bounded number of rows per transaction.
//!
//! Active data is never deleted, however old.

use std::collections::BTreeSet;

use catraca_core::time::{Span, Time};

use super::session::Session;
use super::value::values;
use crate::postgres::failure::PostgresFailure;
use crate::records::database::{PurgeCounts, Retention};

/// Rows of one class per transaction.
const ROWS: i64 = 1_000;
const MICROS_PER_MINUTE: i64 = 60_000_000;

pub(super) fn purge(
    session: &mut Session,
    now: Time,
    retention: &Retention,
) -> Result<PurgeCounts, PostgresFailure> {
    let ended = cutoff(now, retention.history);
    let paid_debts = delete(session, PAID_DEBTS, now.micros())?;
    let history = delete(session, HISTORY, ended)?;
    let blocks = delete(session, BLOCKS, ended)?;
    let audit_cutoff = cutoff(now, retention.audit);
    let mut purged = PurgeCounts {
        history: history.len() as u64,
        blocks: blocks.len() as u64,
        lists: delete(session, LISTS, ended)?.len() as u64,
        audit: (delete(session, AUDIT, audit_cutoff)?.len()
            + delete(session, REVISIONS, audit_cutoff)?.len()) as u64,
        counts: delete(session, COUNTS, cutoff(now, retention.counts) / MICROS_PER_MINUTE)?.len()
            as u64,
        subjects: 0,
    };
    delete(session, WRITERS, ended)?;
    // Only subjects of deleted rows are examined: a scan of all subjects would take too long.
    let touched: BTreeSet<i64> = [paid_debts, history, blocks].concat().into_iter().collect();
    for subject in touched {
        purged.subjects += session.query(SUBJECT, &values![subject])?.len() as u64;
    }
    Ok(purged)
}

/// The history of an active block is retained, so that its reason can be shown.
const HISTORY: &str = "DELETE FROM catraca.history WHERE id IN (
    SELECT h.id FROM catraca.history AS h LEFT JOIN catraca.blocks AS b ON b.subject = h.subject
    WHERE h.at < $1 AND coalesce(b.until, 0) < $1 LIMIT $2) RETURNING subject";
const BLOCKS: &str = "DELETE FROM catraca.blocks WHERE subject IN (
    SELECT subject FROM catraca.blocks WHERE until < $1 AND touched < $1 LIMIT $2)
    RETURNING subject";
const LISTS: &str = "DELETE FROM catraca.lists WHERE id IN (
    SELECT id FROM catraca.lists WHERE until < $1 LIMIT $2) RETURNING id";
const AUDIT: &str = "DELETE FROM catraca.audit WHERE id IN (
    SELECT id FROM catraca.audit WHERE at < $1 ORDER BY at LIMIT $2) RETURNING id";
/// The newest revision, which is in use, is retained.
const REVISIONS: &str = "DELETE FROM catraca.revisions WHERE id IN (
    SELECT id FROM catraca.revisions WHERE at < $1
    AND id < (SELECT max(id) FROM catraca.revisions) LIMIT $2) RETURNING id";
const COUNTS: &str = "DELETE FROM catraca.counts WHERE (minute, namespace, action, policy) IN (
    SELECT minute, namespace, action, policy FROM catraca.counts WHERE minute < $1 LIMIT $2)
    RETURNING minute";
/// Debts that the refill has paid back by now.
const PAID_DEBTS: &str = "DELETE FROM catraca.debts WHERE subject IN (
    SELECT subject FROM catraca.debts
    WHERE at + (size - balance)::numeric * period / tokens < $1 LIMIT $2)
    RETURNING subject";
/// Batch numbers of processes that ended long ago.
const WRITERS: &str = "DELETE FROM catraca.writers WHERE id IN (
    SELECT id FROM catraca.writers WHERE extract(epoch FROM at) * 1000000 < $1 LIMIT $2)
    RETURNING batch";
pub(super) const SUBJECT: &str = "DELETE FROM catraca.subjects AS s WHERE id = $1
    AND NOT EXISTS (SELECT 1 FROM catraca.blocks WHERE subject = s.id)
    AND NOT EXISTS (SELECT 1 FROM catraca.history WHERE subject = s.id)
    AND NOT EXISTS (SELECT 1 FROM catraca.debts WHERE subject = s.id) RETURNING id";

fn cutoff(now: Time, span: Span) -> i64 {
    now.before(span).micros()
}

/// Deletes rows and returns their first column, the subject for most tables.
fn delete(session: &mut Session, sql: &str, bound: i64) -> Result<Vec<i64>, PostgresFailure> {
    let rows = session.query(sql, &values![bound, ROWS])?;
    rows.iter().map(|row| row.try_get(0).map_err(PostgresFailure::Server)).collect()
}

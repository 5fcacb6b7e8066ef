//! Retention: what is over its time goes, a bounded number of rows at a time.
//!
//! Must not delete what is still in force, however old.

use std::collections::BTreeSet;

use catraca_core::time::{Span, Time};

use super::session::Session;
use super::value::values;
use crate::postgres::trouble::Trouble;
use crate::records::port::{Purged, Retention};

/// Rows of one class in one transaction.
const ROWS: i64 = 1_000;
const MICROS_PER_MINUTE: i64 = 60_000_000;

pub(super) fn purge(session: &mut Session, now: Time, keep: &Retention) -> Result<Purged, Trouble> {
    let ended = before(now, keep.history);
    let paid = delete(session, PAID, now.micros())?;
    let history = delete(session, HISTORY, ended)?;
    let blocks = delete(session, BLOCKS, ended)?;
    let audited = before(now, keep.audit);
    let mut purged = Purged {
        history: history.len() as u64,
        blocks: blocks.len() as u64,
        lists: delete(session, LISTS, ended)?.len() as u64,
        audit: (delete(session, AUDIT, audited)?.len() + delete(session, REVISIONS, audited)?.len())
            as u64,
        counts: delete(session, COUNTS, before(now, keep.counts) / MICROS_PER_MINUTE)?.len() as u64,
        subjects: 0,
    };
    delete(session, WRITERS, ended)?;
    // Only those that something was just deleted of: looking at all of them takes too long.
    let touched: BTreeSet<i64> = [paid, history, blocks].concat().into_iter().collect();
    for subject in touched {
        purged.subjects += session.ask(SUBJECT, &values![subject])?.len() as u64;
    }
    Ok(purged)
}

/// The history of a block that stands is kept, so that its reason can be told.
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
/// The catalog in force stays.
const REVISIONS: &str = "DELETE FROM catraca.revisions WHERE id IN (
    SELECT id FROM catraca.revisions WHERE at < $1
    AND id < (SELECT max(id) FROM catraca.revisions) LIMIT $2) RETURNING id";
const COUNTS: &str = "DELETE FROM catraca.counts WHERE (minute, namespace, action, policy) IN (
    SELECT minute, namespace, action, policy FROM catraca.counts WHERE minute < $1 LIMIT $2)
    RETURNING minute";
/// A debt that the refill alone has paid back.
const PAID: &str = "DELETE FROM catraca.debts WHERE subject IN (
    SELECT subject FROM catraca.debts
    WHERE at + (size - balance)::numeric * period / tokens < $1 LIMIT $2)
    RETURNING subject";
/// Of processes that are long gone.
const WRITERS: &str = "DELETE FROM catraca.writers WHERE id IN (
    SELECT id FROM catraca.writers WHERE extract(epoch FROM at) * 1000000 < $1 LIMIT $2)
    RETURNING batch";
pub(super) const SUBJECT: &str = "DELETE FROM catraca.subjects AS s WHERE id = $1
    AND NOT EXISTS (SELECT 1 FROM catraca.blocks WHERE subject = s.id)
    AND NOT EXISTS (SELECT 1 FROM catraca.history WHERE subject = s.id)
    AND NOT EXISTS (SELECT 1 FROM catraca.debts WHERE subject = s.id) RETURNING id";

fn before(now: Time, span: Span) -> i64 {
    now.before(span).micros()
}

/// Deletes, and says whose rows they were.
fn delete(session: &mut Session, sql: &str, bound: i64) -> Result<Vec<i64>, Trouble> {
    let rows = session.ask(sql, &values![bound, ROWS])?;
    rows.iter().map(|row| row.try_get(0).map_err(Trouble::Said)).collect()
}

//! Policy resets: ends blocks and deletes debts from before a reset, a bounded number of rows per
//! transaction.
//!
//! Blocks and debts from after the reset (`epoch`) are not touched.

use catraca_core::digest::Key;
use catraca_core::time::Time;
use tokio_postgres::Row;

use super::session::Session;
use super::value::{Value, values};
use crate::postgres::failure::PostgresFailure;
use crate::records::database::SweepResult;

/// Subjects examined in one transaction.
const ROWS: i64 = 1_000;

const PENDING: &str = "SELECT policy, swept FROM catraca.resets WHERE swept IS NOT NULL LIMIT 1";
const LAST: &str = "SELECT max(id), count(*) FROM (
    SELECT id FROM catraca.subjects WHERE policy = $1 AND id > $2
    ORDER BY id LIMIT $3) AS few";
const BLOCKS: &str = "WITH ended AS (
        UPDATE catraca.blocks AS b
        SET until = least(b.until, r.at), touched = r.at, freed = $4
        FROM catraca.subjects AS s JOIN catraca.resets AS r ON r.policy = s.policy
        WHERE s.id = b.subject AND b.until > $4 AND b.epoch < r.epoch
            AND s.policy = $1 AND s.id > $2 AND s.id <= $3
        RETURNING b.subject, b.key, b.shadow, r.at, r.why, r.by),
    recorded AS (
        INSERT INTO catraca.history (subject, at, act, until, shadow, origin, reason, by)
        SELECT subject, at, 'reset', at, shadow, 'operator', why, by FROM ended)
    SELECT key FROM ended";
const DEBTS: &str = "DELETE FROM catraca.debts AS d
    USING catraca.subjects AS s, catraca.resets AS r
    WHERE s.id = d.subject AND r.policy = s.policy AND d.epoch < r.epoch
        AND s.policy = $1 AND s.id > $2 AND s.id <= $3
    RETURNING d.subject";
const SWEPT: &str = "UPDATE catraca.resets SET swept = $2 WHERE policy = $1";

pub(super) fn sweep(session: &mut Session, now: Time) -> Result<SweepResult, PostgresFailure> {
    let pending = session.query(PENDING, &[])?;
    let Some(pending) = pending.first() else { return Ok(SweepResult::default()) };
    let policy: &str = get(pending, 0)?;
    let from: i64 = get(pending, 1)?;
    let found = session.query(LAST, &values![policy, from, ROWS])?;
    let Some(found) = found.first() else { return Ok(SweepResult::default()) };
    let last: Option<i64> = get(found, 0)?;
    let count: i64 = get(found, 1)?;
    let range = values![policy, from, last.unwrap_or(from)];
    let blocks = end_blocks(session, &range, now)?;
    let debts = delete_debts(session, &range)?;
    // The position of the next sweep; NULL when this reset is complete.
    let position = last.filter(|_| count == ROWS);
    session.query(SWEPT, &values![policy, position])?;
    // `more` even when this reset is complete: another one may be pending.
    Ok(SweepResult { blocks, debts, more: true })
}

fn end_blocks(
    session: &mut Session,
    range: &[Value],
    now: Time,
) -> Result<Vec<Key>, PostgresFailure> {
    let mut values = range.to_vec();
    values.push(now.micros().into());
    let ended = session.query(BLOCKS, &values)?;
    let keys = ended.iter().map(|row| get::<&[u8]>(row, 0));
    // The block of an invalid key is ended in the database; in the store it expires at its time.
    let read = |bytes: &[u8]| bytes.try_into().ok().map(Key::from_bytes);
    keys.filter_map(|bytes| bytes.map(read).transpose()).collect()
}

/// Deletes the debts, and their subjects if no other row refers to them.
fn delete_debts(session: &mut Session, range: &[Value]) -> Result<u64, PostgresFailure> {
    let deleted = session.query(DEBTS, range)?;
    for row in &deleted {
        let subject: i64 = get(row, 0)?;
        session.query(super::purge::SUBJECT, &values![subject])?;
    }
    Ok(deleted.len() as u64)
}

fn get<'r, T: tokio_postgres::types::FromSql<'r>>(
    row: &'r Row,
    column: usize,
) -> Result<T, PostgresFailure> {
    row.try_get(column).map_err(PostgresFailure::Server)
}

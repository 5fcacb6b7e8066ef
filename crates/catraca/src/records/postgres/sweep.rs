//! Sweeping up after whole resets, a bounded number of rows at a time.
//!
//! Must not end what was started since.

use catraca_core::digest::Key;
use catraca_core::time::Time;
use tokio_postgres::Row;

use super::session::Session;
use super::value::{Value, values};
use crate::postgres::trouble::Trouble;
use crate::records::port::Swept;

/// Subjects that are looked at in one transaction.
const ROWS: i64 = 1_000;

const LEFT: &str = "SELECT policy, swept FROM catraca.resets WHERE swept IS NOT NULL LIMIT 1";
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
    told AS (
        INSERT INTO catraca.history (subject, at, act, until, shadow, origin, reason, by)
        SELECT subject, at, 'reset', at, shadow, 'operator', why, by FROM ended)
    SELECT key FROM ended";
const DEBTS: &str = "DELETE FROM catraca.debts AS d
    USING catraca.subjects AS s, catraca.resets AS r
    WHERE s.id = d.subject AND r.policy = s.policy AND d.epoch < r.epoch
        AND s.policy = $1 AND s.id > $2 AND s.id <= $3
    RETURNING d.subject";
const SWEPT: &str = "UPDATE catraca.resets SET swept = $2 WHERE policy = $1";

pub(super) fn sweep(session: &mut Session, now: Time) -> Result<Swept, Trouble> {
    let left = session.ask(LEFT, &[])?;
    let Some(left) = left.first() else { return Ok(Swept::default()) };
    let (policy, from): (&str, i64) = (get(left, 0)?, get(left, 1)?);
    let found = session.ask(LAST, &values![policy, from, ROWS])?;
    let Some(found) = found.first() else { return Ok(Swept::default()) };
    let (last, count): (Option<i64>, i64) = (get(found, 0)?, get(found, 1)?);
    let some = values![policy, from, last.unwrap_or(from)];
    let (blocks, debts) = (end_blocks(session, &some, now)?, forget_debts(session, &some)?);
    // Another may wait behind this one.
    let more = last.filter(|_| count == ROWS);
    session.ask(SWEPT, &values![policy, more])?;
    Ok(Swept { blocks, debts, more: true })
}

fn end_blocks(session: &mut Session, some: &[Value], now: Time) -> Result<Vec<Key>, Trouble> {
    let mut values = some.to_vec();
    values.push(now.micros().into());
    let ended = session.ask(BLOCKS, &values)?;
    let keys = ended.iter().map(|row| get::<&[u8]>(row, 0));
    // A row that cannot be read is ended all the same; its block lapses in the store by itself.
    let read = |bytes: &[u8]| bytes.try_into().ok().map(Key::from_bytes);
    keys.filter_map(|bytes| bytes.map(read).transpose()).collect()
}

/// Nothing else may speak of their subjects.
fn forget_debts(session: &mut Session, some: &[Value]) -> Result<u64, Trouble> {
    let gone = session.ask(DEBTS, some)?;
    for row in &gone {
        let subject: i64 = get(row, 0)?;
        session.ask(super::purge::SUBJECT, &values![subject])?;
    }
    Ok(gone.len() as u64)
}

fn get<'r, T: tokio_postgres::types::FromSql<'r>>(
    row: &'r Row,
    column: usize,
) -> Result<T, Trouble> {
    row.try_get(column).map_err(Trouble::Said)
}

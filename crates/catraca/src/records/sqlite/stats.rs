//! Totals that add up: every decision is allowed, denied or blocked, and counted once.
//!
//! Must not count rows where events are meant.

use catraca_core::time::Time;
use rusqlite::{Connection, params};

use super::read::parts;
use crate::records::error::RecordsError;
use crate::records::row::{TopBlocked, Totals};
use crate::records::tally::minute_of;

type Answer<T> = Result<T, RecordsError>;

pub(super) fn policies(connection: &Connection, from: Time, to: Time) -> Answer<Vec<Totals>> {
    let sql = "SELECT policy, sum(allowed), sum(denied), sum(blocked) FROM counts
               WHERE minute >= ?1 AND minute < ?2 AND policy <> ''
               GROUP BY policy ORDER BY policy";
    totals(connection, sql, from, to)
}

pub(super) fn actions(connection: &Connection, from: Time, to: Time) -> Answer<Vec<Totals>> {
    let sql = "SELECT action, sum(allowed), sum(denied), sum(blocked) FROM counts
               WHERE minute >= ?1 AND minute < ?2 AND policy = ''
               GROUP BY action ORDER BY sum(allowed + denied + blocked) DESC, action";
    totals(connection, sql, from, to)
}

fn totals(connection: &Connection, sql: &str, from: Time, to: Time) -> Answer<Vec<Totals>> {
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([minute_of(from), minute_of(to)], |row| {
        let number = |column| row.get::<_, i64>(column).map(|sum| sum as u64);
        let (allowed, denied, blocked) = (number(1)?, number(2)?, number(3)?);
        let total = allowed + denied + blocked;
        Ok(Totals { name: row.get(0)?, total, allowed, denied, blocked })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(super) fn top_blocked(
    connection: &Connection,
    from: Time,
    limit: u32,
) -> Answer<Vec<TopBlocked>> {
    let mut statement = connection.prepare_cached(
        "SELECT s.namespace, s.policy, s.parts, count(*), max(h.until)
         FROM history AS h JOIN subjects AS s ON s.id = h.subject
         WHERE h.at >= ?1 AND h.act IN ('started', 'extended') AND h.shadow = 0
         GROUP BY h.subject ORDER BY count(*) DESC, max(h.until) DESC, h.subject LIMIT ?2",
    )?;
    let mut rows = statement.query(params![from.micros(), limit])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(TopBlocked {
            namespace: row.get(0)?,
            policy: row.get(1)?,
            parts: parts(&row.get::<_, String>(2)?)?,
            blocks: row.get::<_, i64>(3)? as u64,
            last_until: Time::from_micros(row.get(4)?),
        });
    }
    Ok(found)
}

//! Statistics: decisions by policy and action, and the subjects blocked most often.
//!
//! Every decision is counted once, as allowed, denied or blocked, so that the totals add up.

use catraca_core::time::Time;
use rusqlite::{Connection, params};

use super::read::{SqliteReadResult, parts};
use crate::records::minute_counts::minute_of;
use crate::records::row::{TopBlocked, Totals};

pub(super) fn policies(
    connection: &Connection,
    from: Time,
    to: Time,
) -> SqliteReadResult<Vec<Totals>> {
    let sql = "SELECT policy, sum(allowed), sum(denied), sum(blocked) FROM counts
               WHERE minute >= ?1 AND minute < ?2 AND policy <> ''
               GROUP BY policy ORDER BY policy";
    totals(connection, sql, from, to)
}

pub(super) fn actions(
    connection: &Connection,
    from: Time,
    to: Time,
) -> SqliteReadResult<Vec<Totals>> {
    let sql = "SELECT action, sum(allowed), sum(denied), sum(blocked) FROM counts
               WHERE minute >= ?1 AND minute < ?2 AND policy = ''
               GROUP BY action ORDER BY sum(allowed + denied + blocked) DESC, action";
    totals(connection, sql, from, to)
}

fn totals(
    connection: &Connection,
    sql: &str,
    from: Time,
    to: Time,
) -> SqliteReadResult<Vec<Totals>> {
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([minute_of(from), minute_of(to)], |row| {
        let number = |column| row.get::<_, i64>(column).map(|sum| sum as u64);
        let allowed = number(1)?;
        let denied = number(2)?;
        let blocked = number(3)?;
        let total = allowed + denied + blocked;
        Ok(Totals { name: row.get(0)?, total, allowed, denied, blocked })
    })?;
    Ok(rows.collect::<Result<_, _>>()?)
}

pub(super) fn top_blocked(
    connection: &Connection,
    from: Time,
    limit: u32,
) -> SqliteReadResult<Vec<TopBlocked>> {
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

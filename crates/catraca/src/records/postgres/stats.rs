//! Statistics: decisions by policy and action, and the subjects blocked most often.
//!
//! Every decision is counted once, as allowed, denied or blocked, so that the totals add up.

use catraca_core::time::Time;
use tokio_postgres::Row;

use super::read::{PostgresReadResult, parts};
use super::value::{Value, values};
use crate::records::minute_counts::minute_of;
use crate::records::row::{TopBlocked, Totals};

/// Sorted by bytes (collation `C`), as SQLite does, independent of the locale of the database.
pub(super) const POLICIES: &str = "SELECT policy, sum(allowed)::bigint, sum(denied)::bigint,
        sum(blocked)::bigint FROM catraca.counts
    WHERE minute >= $1 AND minute < $2 AND policy <> ''
    GROUP BY policy ORDER BY policy COLLATE \"C\"";
pub(super) const ACTIONS: &str = "SELECT action, sum(allowed)::bigint, sum(denied)::bigint,
        sum(blocked)::bigint FROM catraca.counts
    WHERE minute >= $1 AND minute < $2 AND policy = ''
    GROUP BY action ORDER BY sum(allowed + denied + blocked) DESC, action COLLATE \"C\"";
pub(super) const TOP_BLOCKED: &str = "SELECT s.namespace, s.policy, s.parts, count(*), max(h.until)
    FROM catraca.history AS h JOIN catraca.subjects AS s ON s.id = h.subject
    WHERE h.at >= $1 AND h.act IN ('started', 'extended') AND NOT h.shadow
    GROUP BY s.id ORDER BY count(*) DESC, max(h.until) DESC, s.id LIMIT $2";

pub(super) fn minutes(from: Time, to: Time) -> Vec<Value> {
    values![minute_of(from), minute_of(to)]
}

pub(super) fn totals(row: &Row) -> PostgresReadResult<Totals> {
    let number = |column: usize| row.try_get::<_, i64>(column).map(|sum| sum as u64);
    let allowed = number(1)?;
    let denied = number(2)?;
    let blocked = number(3)?;
    let total = allowed + denied + blocked;
    Ok(Totals { name: row.try_get(0)?, total, allowed, denied, blocked })
}

pub(super) fn top_blocked(row: &Row) -> PostgresReadResult<TopBlocked> {
    Ok(TopBlocked {
        namespace: row.try_get(0)?,
        policy: row.try_get(1)?,
        parts: parts(row.try_get(2)?)?,
        blocks: row.try_get::<_, i64>(3)? as u64,
        last_until: Time::from_micros(row.try_get(4)?),
    })
}

//! Queries of blocks: pages of them, one by its id, and their history.
//!
//! The table of blocks has the newest block of each key. Earlier ones are found in the history: a
//! block begins with the step `started`, and has all steps up to the next `started` of its key.

use std::collections::BTreeSet;
use std::time::SystemTime;

use catraca_core::digest::Key;
use catraca_core::time::Time;

use super::queries::{number_parameters, page, page_size, parts, subjects_about};
use super::restore::block;
use super::value::{SqlRow, Value, invalid_column, values};
use crate::event::SubjectKey;
use crate::records::Records;
use crate::records::block_id::BlockId;
use crate::records::database::{Access, Database, DatabaseResult, rows, transaction};
use crate::records::error::RecordsError;
use crate::records::record::{origin_name, parse_origin};
use crate::records::row::{BlockQuery, BlockRow, BlockStates, Cursor, HistoryRow, Page};
use crate::records::text_interner::TextInterner;

/// The newest block of each key. The columns are those that [`block_row`] reads.
pub(super) const BLOCK: &str = "SELECT b.subject, b.key, s.namespace, s.policy, s.parts, b.since,
    b.by, b.until, b.origin, b.shadow, b.reason, b.status, b.message, b.level, b.forget, b.act_id
    FROM catraca.blocks AS b JOIN catraca.subjects AS s ON s.id = b.subject";

/// Every block in the history, with the same columns: `f` is its first step and `l` its last one,
/// which has its end; `b` is the step with the latest end, which has its origin and reason.
const PAST_BLOCK: &str = "SELECT f.subject, s.key, s.namespace, s.policy, s.parts, f.at,
    b.by, l.until, b.origin, b.shadow, b.reason, CAST(NULL AS bigint), CAST(NULL AS text),
    l.level, CAST(0 AS bigint), b.act_id
    FROM catraca.history AS f JOIN catraca.subjects AS s ON s.id = f.subject
    JOIN catraca.history AS l ON l.id = (
        SELECT max(h.id) FROM catraca.history AS h
        WHERE h.subject = f.subject AND h.id >= f.id AND h.id < coalesce(
            (SELECT min(n.id) FROM catraca.history AS n
             WHERE n.subject = f.subject AND n.id > f.id AND n.act = 'started'),
            9223372036854775807))
    JOIN catraca.history AS b ON b.id = (
        SELECT h.id FROM catraca.history AS h
        WHERE h.subject = f.subject AND h.id >= f.id AND h.id <= l.id
            AND h.act IN ('started', 'extended')
        ORDER BY h.until DESC, h.id LIMIT 1)
    WHERE f.act = 'started'";

/// The steps of the block of a subject that started at an instant.
const HISTORY: &str = "SELECT id, at, act, origin, reason, until, by, level
    FROM catraca.history WHERE subject = $1
    AND id >= coalesce((SELECT min(id) FROM catraca.history
        WHERE subject = $1 AND act = 'started' AND at = $2), 0)
    AND id < coalesce((SELECT min(id) FROM catraca.history
        WHERE subject = $1 AND act = 'started' AND at > $2), 9223372036854775807)
    ORDER BY id";

/// Reads one row of the index per namespace, instead of every subject.
const NAMESPACES: &str = "WITH RECURSIVE n (namespace) AS (
        SELECT min(namespace) FROM catraca.subjects
        UNION ALL
        SELECT (SELECT min(s.namespace) FROM catraca.subjects AS s
                WHERE s.namespace > n.namespace)
        FROM n WHERE n.namespace IS NOT NULL)
    SELECT namespace FROM n WHERE namespace IS NOT NULL
    UNION SELECT namespace FROM catraca.lists WHERE namespace <> ''
    UNION SELECT namespace FROM catraca.facts WHERE namespace <> ''";

/// Of the blocks, those that are active and that an act of the block of subject `$2` made, since
/// that block started at `$3`.
const MADE_TOGETHER: &str = "WHERE NOT b.shadow AND b.until > $1 AND b.subject <> $2
    AND EXISTS (SELECT 1 FROM catraca.history AS h
        WHERE h.subject = b.subject AND h.at >= b.since AND h.act_id IN (
            SELECT o.act_id FROM catraca.history AS o
            WHERE o.subject = $2 AND o.at >= $3 AND o.act_id IS NOT NULL))
    ORDER BY b.since DESC, b.subject DESC";

/// Every step of a subject.
const ALL_HISTORY: &str = "SELECT id, at, act, origin, reason, until, by, level
    FROM catraca.history WHERE subject = $1 ORDER BY id";

impl Records {
    /// Blocks, newest first.
    pub fn blocks(
        &self,
        query: &BlockQuery,
        now: impl Into<SystemTime>,
    ) -> Result<Page<BlockRow>, RecordsError> {
        let limit = page_size(query.limit);
        let (sql, values) = page_sql(query, now.into().into(), limit);
        let found = rows(&mut **self.reads.lock(), &sql, &values, block_row)?;
        Ok(page(found, limit, |last| Cursor { since: last.since, subject: last.subject_id }))
    }

    /// The block with this id, active or ended.
    pub fn block(&self, id: BlockId) -> Result<Option<BlockRow>, RecordsError> {
        let reads = &mut **self.reads.lock();
        let newest = format!("{BLOCK} WHERE b.since = $1");
        let past = format!("{PAST_BLOCK} AND f.at = $1");
        for sql in [newest, past] {
            let started_then = rows(reads, &sql, &values![id.since], block_row)?;
            // Several keys may have been blocked at one instant, as by one ban.
            if let Some(row) = started_then.into_iter().find(|row| id.is_of(row.subject.key)) {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    /// The active blocks that an act made together with this one: one ban blocks every key of an
    /// `each` policy. The acts are those of this block; what other acts made is not followed.
    pub fn members(
        &self,
        block: &BlockRow,
        now: impl Into<SystemTime>,
    ) -> Result<Vec<BlockRow>, RecordsError> {
        let now = Time::from(now.into());
        let sql = format!("{BLOCK} {MADE_TOGETHER}");
        let values = values![now, block.subject_id, block.since];
        Ok(rows(&mut **self.reads.lock(), &sql, &values, block_row)?)
    }

    /// The active blocks whose last act is one of those of these blocks, for a list of them.
    pub fn companions(
        &self,
        blocks: &[BlockRow],
        now: impl Into<SystemTime>,
    ) -> Result<Vec<BlockRow>, RecordsError> {
        let now = Time::from(now.into());
        let acts: BTreeSet<&str> = blocks.iter().filter_map(|row| row.act_id.as_deref()).collect();
        if acts.is_empty() {
            return Ok(Vec::new());
        }
        let list = vec!["?"; acts.len()].join(", ");
        let clause = format!("AND b.act_id IN ({list}) ORDER BY b.since DESC, b.subject DESC");
        let active = format!("{BLOCK} WHERE NOT b.shadow AND b.until > $1 ");
        let sql = active + &number_parameters(&clause, 1);
        let values = values![now].into_iter().chain(acts.into_iter().map(Value::from));
        let values: Vec<Value<'_>> = values.collect();
        Ok(rows(&mut **self.reads.lock(), &sql, &values, block_row)?)
    }

    /// Calls `visit` with every active block.
    pub fn each_active_block(
        &self,
        now: impl Into<SystemTime>,
        mut visit: impl FnMut(BlockRow),
    ) -> Result<(), RecordsError> {
        let now = Time::from(now.into());
        let sql = format!("{BLOCK} WHERE NOT b.shadow AND b.until > $1");
        // In a transaction, which a scan of any number of rows needs.
        Ok(transaction(&mut **self.reads.lock(), Access::Read, |database| {
            database.scan(&sql, &values![now], &mut |row| {
                visit(block_row(row)?);
                Ok(())
            })
        })?)
    }

    /// The namespaces of all subjects, list entries and facts that the records know.
    pub fn namespaces(&self) -> Result<Vec<String>, RecordsError> {
        Ok(rows(&mut **self.reads.lock(), NAMESPACES, &[], |row| row.get(0))?)
    }

    /// The newest block of a key, active or ended.
    pub fn block_of(&self, key: Key) -> Result<Option<BlockRow>, RecordsError> {
        let sql = format!("{BLOCK} WHERE s.key = $1");
        Ok(rows(&mut **self.reads.lock(), &sql, &values![key], block_row)?.pop())
    }

    /// The history of one block, oldest first.
    pub fn history(&self, block: &BlockRow) -> Result<Vec<HistoryRow>, RecordsError> {
        let values = values![block.subject_id, block.since];
        Ok(rows(&mut **self.reads.lock(), HISTORY, &values, history_row)?)
    }
}

/// The history of all blocks of a subject, oldest first.
pub(super) fn all_history(
    database: &mut dyn Database,
    subject: i64,
) -> DatabaseResult<Vec<HistoryRow>> {
    rows(database, ALL_HISTORY, &values![subject], history_row)
}

fn page_sql(query: &BlockQuery, now: Time, limit: i64) -> (String, Vec<Value<'_>>) {
    // The columns with the start and the subject of a block, in either statement.
    let (mut sql, start, subject) = match query.states {
        BlockStates::Active => {
            (format!("{BLOCK} WHERE NOT b.shadow AND b.until > $1"), "b.since", "b.subject")
        }
        BlockStates::Ended => {
            (format!("{PAST_BLOCK} AND NOT f.shadow AND l.until <= $1"), "f.at", "f.subject")
        }
        // The instant is compared with all the same: a server refuses an unused parameter.
        BlockStates::All => {
            (format!("{PAST_BLOCK} AND NOT f.shadow AND f.at <= $1"), "f.at", "f.subject")
        }
    };
    let mut values = values![now].to_vec();
    let mut narrow = |clause: &str, more: &[Value<'_>]| {
        sql.push_str(&number_parameters(clause, values.len()));
        values.extend(more.iter().map(Value::to_owned));
    };
    if let Some(namespace) = &query.namespace {
        narrow(" AND s.namespace = ?", &values![namespace]);
    }
    if let Some(policy) = &query.policy {
        narrow(" AND s.policy = ?", &values![policy]);
    }
    if let Some(origin) = query.origin {
        narrow(" AND b.origin = ?", &values![origin_name(origin)]);
    }
    if let Some(reason) = &query.reason {
        narrow(" AND b.reason = ?", &values![reason]);
    }
    if !query.about.is_empty() {
        let (clause, more) = subjects_about(&query.about);
        narrow(&format!(" AND {subject} IN ({clause})"), &more);
    }
    if query.states == BlockStates::Active {
        // One ban is one row: that of its member which comes first. Only members that match count,
        // so that each ban with a matching member is listed.
        let (about, more) = subjects_about(&query.about);
        let matching = if more.is_empty() { "" } else { &format!(" AND o.subject IN ({about})") };
        let clause = format!(
            " AND NOT EXISTS (SELECT 1 FROM catraca.blocks AS o WHERE o.act_id = b.act_id
                AND NOT o.shadow AND o.until > $1{matching}
                AND (o.since, o.subject) > (b.since, b.subject))"
        );
        narrow(&clause, &more);
    }
    if let Some(Cursor { since, subject: last }) = query.after {
        narrow(&format!(" AND ({start}, {subject}) < (?, ?)"), &values![since, last]);
    }
    narrow(&format!(" ORDER BY {start} DESC, {subject} DESC LIMIT ?"), &values![limit + 1]);
    (sql, values)
}

pub(super) fn block_row(row: &dyn SqlRow) -> DatabaseResult<BlockRow> {
    let subject = SubjectKey {
        key: row.get(1)?,
        namespace: row.get(2)?,
        policy: row.get(3)?,
        parts: parts(row.get(4)?)?,
    };
    let since = row.get(5)?;
    Ok(BlockRow {
        id: BlockId::new(subject.key, since),
        subject_id: row.get(0)?,
        subject,
        since,
        by: row.get(6)?,
        block: block(row, 7, &mut TextInterner::default())?,
        act_id: row.get(15)?,
        orphaned: None,
    })
}

fn history_row(row: &dyn SqlRow) -> DatabaseResult<HistoryRow> {
    Ok(HistoryRow {
        id: row.get(0)?,
        at: row.get(1)?,
        act: row.get(2)?,
        origin: parse_origin(row.get(3)?).ok_or_else(|| invalid_column("origin"))?,
        reason: row.get(4)?,
        until: row.get(5)?,
        by: row.get(6)?,
        level: row.get(7)?,
    })
}

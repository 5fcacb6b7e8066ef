//! Queries for operators: blocks, their history, the audit.

use std::path::Path;

use catraca_core::digest::Key;
use catraca_core::time::Time;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};

use super::restore::{block, invalid_column, key, restore_items};
use super::{SqliteReader, backup, erase, integrity, lists, stats};
use crate::event::SubjectKey;
use crate::records::database::DatabaseReader;
use crate::records::error::RecordsError;
use crate::records::lock_rows::RecordedLock;
use crate::records::privacy::SubjectExport;
use crate::records::record::{AttributeValue, ListName, origin_name, parse_origin};
use crate::records::row::{
    AuditQuery, AuditRow, BlockQuery, BlockRow, Cursor, FactCursor, FactRow, HistoryRow, ListRow,
    PAGE_MAX, Page, RestoreScope, RestoredItem, RevisionRow, TextInterner, TopBlocked, Totals,
};

pub(super) type SqliteReadResult<T> = Result<T, RecordsError>;

impl DatabaseReader for SqliteReader {
    fn restore(
        &self,
        scope: RestoreScope,
        now: Time,
        since: Time,
        visit: &mut dyn FnMut(RestoredItem),
    ) -> SqliteReadResult<()> {
        restore_items(&mut self.connection.lock(), scope, now, since, visit)
    }

    fn blocks(&self, query: &BlockQuery, now: Time) -> SqliteReadResult<Page<BlockRow>> {
        blocks(&self.connection.lock(), query, now)
    }

    fn block(&self, id: i64) -> SqliteReadResult<Option<BlockRow>> {
        let sql = format!("{BLOCK} WHERE b.subject = ?1");
        let connection = self.connection.lock();
        let mut statement = connection.prepare_cached(&sql)?;
        statement.query_row([id], |row| Ok(block_row(row))).optional()?.transpose()
    }

    fn block_of(&self, key: Key) -> SqliteReadResult<Option<BlockRow>> {
        lists::block_of(&self.connection.lock(), key)
    }

    fn lists(
        &self,
        list: ListName,
        before: Option<i64>,
        limit: u32,
        now: Time,
    ) -> SqliteReadResult<Page<ListRow, i64>> {
        lists::lists(&self.connection.lock(), list, before, limit, now)
    }

    fn facts(
        &self,
        after: Option<FactCursor>,
        limit: u32,
    ) -> SqliteReadResult<Page<FactRow, FactCursor>> {
        lists::facts(&self.connection.lock(), after, limit)
    }

    fn history(&self, id: i64) -> SqliteReadResult<Vec<HistoryRow>> {
        history(&self.connection.lock(), id)
    }

    fn audit(&self, query: &AuditQuery) -> SqliteReadResult<Page<AuditRow, i64>> {
        audit(&self.connection.lock(), query)
    }

    fn revisions(&self, limit: u32) -> SqliteReadResult<Vec<RevisionRow>> {
        let connection = self.connection.lock();
        let mut statement = connection.prepare_cached(
            "SELECT at, revision, policies, by FROM revisions ORDER BY id DESC LIMIT ?1",
        )?;
        let rows = statement.query_map([limit.min(PAGE_MAX)], |row| {
            let at = Time::from_micros(row.get(0)?);
            Ok(RevisionRow { at, revision: row.get(1)?, policies: row.get(2)?, by: row.get(3)? })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    fn keys_required(&self) -> SqliteReadResult<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM auth WHERE keys_required)";
        Ok(self.connection.lock().query_row(sql, [], |row| row.get(0))?)
    }

    fn policies(&self, from: Time, to: Time) -> SqliteReadResult<Vec<Totals>> {
        stats::policies(&self.connection.lock(), from, to)
    }

    fn actions(&self, from: Time, to: Time) -> SqliteReadResult<Vec<Totals>> {
        stats::actions(&self.connection.lock(), from, to)
    }

    fn top_blocked(&self, from: Time, limit: u32) -> SqliteReadResult<Vec<TopBlocked>> {
        stats::top_blocked(&self.connection.lock(), from, limit.min(PAGE_MAX))
    }

    fn locks(&self, visit: &mut dyn FnMut(RecordedLock)) -> SqliteReadResult<()> {
        super::lock_tables::locks(&self.connection.lock(), visit)
    }

    fn export(&self, about: &[AttributeValue]) -> SqliteReadResult<SubjectExport> {
        erase::export(&mut self.connection.lock(), about)
    }

    fn backup(&self, to: &Path) -> SqliteReadResult<()> {
        backup::backup(&self.connection.lock(), to)
    }

    fn verify(&self) -> SqliteReadResult<Vec<String>> {
        Ok(integrity::check_all(&self.connection.lock())?)
    }
}

/// The columns that [`block_row`] reads.
pub(super) const BLOCK: &str = "SELECT b.subject, b.key, s.namespace, s.policy, s.parts, b.since,
    b.by, b.until, b.origin, b.shadow, b.reason, b.status, b.message, b.level, b.forget
    FROM blocks AS b JOIN subjects AS s ON s.id = b.subject";

fn blocks(
    connection: &Connection,
    query: &BlockQuery,
    now: Time,
) -> SqliteReadResult<Page<BlockRow>> {
    let limit = query.limit.clamp(1, PAGE_MAX);
    let (sql, values) = page_sql(query, now, limit);
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(params_from_iter(values))?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(block_row(row)?);
    }
    let more = found.len() > limit as usize;
    found.truncate(limit as usize);
    let last = found.last().filter(|_| more);
    let next = last.map(|last| Cursor { since: last.since, id: last.id });
    Ok(Page { rows: found, next })
}

fn page_sql(query: &BlockQuery, now: Time, limit: u32) -> (String, Vec<Value>) {
    let mut sql = format!("{BLOCK} WHERE b.shadow = 0 AND b.until > ?");
    let mut values: Vec<Value> = vec![now.micros().into()];
    let mut narrow = |clause: &str, more: Vec<Value>| {
        sql.push_str(clause);
        values.extend(more);
    };
    if let Some(namespace) = &query.namespace {
        narrow(" AND s.namespace = ?", vec![namespace.clone().into()]);
    }
    if let Some(policy) = &query.policy {
        narrow(" AND s.policy = ?", vec![policy.clone().into()]);
    }
    if let Some(origin) = query.origin {
        narrow(" AND b.origin = ?", vec![origin_name(origin).to_owned().into()]);
    }
    if !query.about.is_empty() {
        let (clause, more) = subjects_about(&query.about);
        narrow(&format!(" AND b.subject IN ({clause})"), more);
    }
    if let Some(Cursor { since, id }) = query.after {
        let position = vec![since.micros().into(), id.into()];
        narrow(" AND (b.since, b.subject) < (?, ?)", position);
    }
    let order = " ORDER BY b.since DESC, b.subject DESC LIMIT ?";
    // One row more than the page has, to see whether there is a next page.
    narrow(order, vec![i64::from(limit + 1).into()]);
    (sql, values)
}

/// SQL for the subjects that have one of these values, and its parameters.
pub(super) fn subjects_about(about: &[AttributeValue]) -> (String, Vec<Value>) {
    let one = "SELECT subject FROM parts WHERE attribute = ? AND value = ?";
    let clause = vec![one; about.len()].join(" UNION ");
    let values = about.iter().flat_map(|about| [&about.attribute, &about.value]);
    (clause, values.map(|text| text.clone().into()).collect())
}

pub(super) fn block_row(row: &Row<'_>) -> SqliteReadResult<BlockRow> {
    let subject = SubjectKey {
        key: key(row, 1)?,
        namespace: row.get(2)?,
        policy: row.get(3)?,
        parts: parts(&row.get::<_, String>(4)?)?,
    };
    Ok(BlockRow {
        id: row.get(0)?,
        subject,
        since: Time::from_micros(row.get(5)?),
        by: row.get(6)?,
        block: block(row, 7, &mut TextInterner::default())?,
    })
}

pub(super) fn parts(json: &str) -> SqliteReadResult<Vec<(String, String)>> {
    serde_json::from_str(json).map_err(|_| invalid_column("subject"))
}

pub(super) fn history(connection: &Connection, id: i64) -> SqliteReadResult<Vec<HistoryRow>> {
    let sql = "SELECT id, at, act, origin, reason, until, by FROM history
               WHERE subject = ?1 ORDER BY id";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([id])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let origin: String = row.get(3)?;
        found.push(HistoryRow {
            id: row.get(0)?,
            at: Time::from_micros(row.get(1)?),
            act: row.get(2)?,
            origin: parse_origin(&origin).ok_or_else(|| invalid_column("origin"))?,
            reason: row.get(4)?,
            until: Time::from_micros(row.get(5)?),
            by: row.get(6)?,
        });
    }
    Ok(found)
}

fn audit(connection: &Connection, query: &AuditQuery) -> SqliteReadResult<Page<AuditRow, i64>> {
    let limit = query.limit.clamp(1, PAGE_MAX) as usize;
    let mut statement = connection.prepare_cached(
        "SELECT id, at, by, act, target, why, before, after FROM audit
         WHERE id < coalesce(?1, 9223372036854775807)
           AND (?2 IS NULL OR by = ?2) AND (?3 IS NULL OR act = ?3)
         ORDER BY id DESC LIMIT ?4",
    )?;
    let values = params![query.before, query.by, query.act, (limit + 1) as i64];
    let rows = statement.query_map(values, audit_row)?;
    let mut found: Vec<AuditRow> = rows.collect::<Result<_, _>>()?;
    let more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| more).map(|last| last.id);
    Ok(Page { rows: found, next })
}

pub(super) fn audit_row(row: &Row<'_>) -> rusqlite::Result<AuditRow> {
    Ok(AuditRow {
        id: row.get(0)?,
        at: Time::from_micros(row.get(1)?),
        by: row.get(2)?,
        act: row.get(3)?,
        target: row.get(4)?,
        why: row.get(5)?,
        before: row.get(6)?,
        after: row.get(7)?,
    })
}

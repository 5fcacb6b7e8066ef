//! Reading for operators: pages of blocks, their history, the audit.
//!
//! Must not scan what an index can find.

use std::path::Path;

use catraca_core::digest::Key;
use catraca_core::time::Time;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};

use super::restore::{key, odd, standing};
use super::{SqliteReader, backup, erase, faults, lists, stats};
use crate::records::error::RecordsError;
use crate::records::locks::KeptLock;
use crate::records::port::Reads;
use crate::records::privacy::Exported;
use crate::records::record::{About, ListName, origin_of, origin_word};
use crate::records::row::{
    AuditQuery, AuditRow, BlockQuery, BlockRow, Cursor, Extent, FactPlace, FactRow, HistoryRow,
    ListRow, PAGE_MAX, Page, RevisionRow, Standing, TopBlocked, Totals,
};

type Answer<T> = Result<T, RecordsError>;

impl Reads for SqliteReader {
    fn standing(
        &self,
        extent: Extent,
        times: (Time, Time),
        visit: &mut dyn FnMut(Standing),
    ) -> Answer<()> {
        standing(&mut self.connection.lock(), extent, times, visit)
    }

    fn blocks(&self, query: &BlockQuery, now: Time) -> Answer<Page<BlockRow>> {
        blocks(&self.connection.lock(), query, now)
    }

    fn block(&self, id: i64) -> Answer<Option<BlockRow>> {
        let sql = format!("{BLOCK} WHERE b.subject = ?1");
        let connection = self.connection.lock();
        let mut statement = connection.prepare_cached(&sql)?;
        statement.query_row([id], |row| Ok(block_row(row))).optional()?.transpose()
    }

    fn block_of(&self, key: Key) -> Answer<Option<BlockRow>> {
        lists::block_of(&self.connection.lock(), key)
    }

    fn lists(
        &self,
        list: ListName,
        before: Option<i64>,
        limit: u32,
        now: Time,
    ) -> Answer<Page<ListRow, i64>> {
        lists::lists(&self.connection.lock(), list, before, limit, now)
    }

    fn facts(&self, after: Option<FactPlace>, limit: u32) -> Answer<Page<FactRow, FactPlace>> {
        lists::facts(&self.connection.lock(), after, limit)
    }

    fn history(&self, id: i64) -> Answer<Vec<HistoryRow>> {
        history(&self.connection.lock(), id)
    }

    fn audit(&self, query: &AuditQuery) -> Answer<Page<AuditRow, i64>> {
        audit(&self.connection.lock(), query)
    }

    fn revisions(&self, limit: u32) -> Answer<Vec<RevisionRow>> {
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

    fn keys_required(&self) -> Answer<bool> {
        let sql = "SELECT EXISTS (SELECT 1 FROM auth WHERE keys_required)";
        Ok(self.connection.lock().query_row(sql, [], |row| row.get(0))?)
    }

    fn policies(&self, from: Time, to: Time) -> Answer<Vec<Totals>> {
        stats::policies(&self.connection.lock(), from, to)
    }

    fn actions(&self, from: Time, to: Time) -> Answer<Vec<Totals>> {
        stats::actions(&self.connection.lock(), from, to)
    }

    fn top_blocked(&self, from: Time, limit: u32) -> Answer<Vec<TopBlocked>> {
        stats::top_blocked(&self.connection.lock(), from, limit.min(PAGE_MAX))
    }

    fn locks(&self, visit: &mut dyn FnMut(KeptLock)) -> Answer<()> {
        super::locks::locks(&self.connection.lock(), visit)
    }

    fn export(&self, about: &[About]) -> Answer<Exported> {
        erase::export(&mut self.connection.lock(), about)
    }

    fn backup(&self, to: &Path) -> Answer<()> {
        backup::backup(&self.connection.lock(), to)
    }

    fn verify(&self) -> Answer<Vec<String>> {
        Ok(faults::all(&self.connection.lock())?)
    }
}

/// The columns that [`block_row`] reads.
pub(super) const BLOCK: &str = "SELECT b.subject, b.key, s.namespace, s.policy, s.parts, b.since,
    b.until, b.origin, b.reason, b.by FROM blocks AS b JOIN subjects AS s ON s.id = b.subject";

fn blocks(connection: &Connection, query: &BlockQuery, now: Time) -> Answer<Page<BlockRow>> {
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
        narrow(" AND b.origin = ?", vec![origin_word(origin).to_owned().into()]);
    }
    if !query.about.is_empty() {
        let (clause, more) = subjects_about(&query.about);
        narrow(&format!(" AND b.subject IN ({clause})"), more);
    }
    if let Some(Cursor { since, id }) = query.after {
        let place = vec![since.micros().into(), id.into()];
        narrow(" AND (b.since, b.subject) < (?, ?)", place);
    }
    let order = " ORDER BY b.since DESC, b.subject DESC LIMIT ?";
    // One more than asked for says whether there are more.
    narrow(order, vec![i64::from(limit + 1).into()]);
    (sql, values)
}

/// The subjects that have one of these values.
pub(super) fn subjects_about(about: &[About]) -> (String, Vec<Value>) {
    let one = "SELECT subject FROM parts WHERE attribute = ? AND value = ?";
    let clause = vec![one; about.len()].join(" UNION ");
    let values = about.iter().flat_map(|about| [&about.attribute, &about.value]);
    (clause, values.map(|text| text.clone().into()).collect())
}

pub(super) fn block_row(row: &Row<'_>) -> Answer<BlockRow> {
    let origin: String = row.get(7)?;
    let found: Key = key(row, 1)?;
    Ok(BlockRow {
        id: row.get(0)?,
        key: found,
        namespace: row.get(2)?,
        policy: row.get(3)?,
        parts: parts(&row.get::<_, String>(4)?)?,
        since: Time::from_micros(row.get(5)?),
        until: Time::from_micros(row.get(6)?),
        origin: origin_of(&origin).ok_or_else(|| odd("origin"))?,
        reason: row.get(8)?,
        by: row.get(9)?,
    })
}

pub(super) fn parts(json: &str) -> Answer<Vec<(String, String)>> {
    serde_json::from_str(json).map_err(|_| odd("subject"))
}

pub(super) fn history(connection: &Connection, id: i64) -> Answer<Vec<HistoryRow>> {
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
            origin: origin_of(&origin).ok_or_else(|| odd("origin"))?,
            reason: row.get(4)?,
            until: Time::from_micros(row.get(5)?),
            by: row.get(6)?,
        });
    }
    Ok(found)
}

fn audit(connection: &Connection, query: &AuditQuery) -> Answer<Page<AuditRow, i64>> {
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

//! Queries for operators: blocks, their history, the audit.

use std::path::Path;

use catraca_core::digest::Key;
use catraca_core::time::Time;
use tokio_postgres::Row;

use super::restore::{block, invalid_column, key, restore_items};
use super::value::{Value, values};
use super::{PostgresReader, erase, lists, stats};
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

pub(super) type PostgresReadResult<T> = Result<T, RecordsError>;

impl DatabaseReader for PostgresReader {
    fn restore(
        &self,
        scope: RestoreScope,
        now: Time,
        since: Time,
        visit: &mut dyn FnMut(RestoredItem),
    ) -> PostgresReadResult<()> {
        restore_items(&mut self.session.lock(), scope, now, since, visit)
    }

    fn blocks(&self, query: &BlockQuery, now: Time) -> PostgresReadResult<Page<BlockRow>> {
        let limit = query.limit.clamp(1, PAGE_MAX);
        let (sql, values) = page_sql(query, now, limit);
        let mut found = self.rows(&sql, &values, block_row)?;
        let more = found.len() > limit as usize;
        found.truncate(limit as usize);
        let last = found.last().filter(|_| more);
        let next = last.map(|last| Cursor { since: last.since, id: last.id });
        Ok(Page { rows: found, next })
    }

    fn block(&self, id: i64) -> PostgresReadResult<Option<BlockRow>> {
        Ok(self.rows(&format!("{BLOCK} WHERE b.subject = $1"), &values![id], block_row)?.pop())
    }

    fn block_of(&self, key: Key) -> PostgresReadResult<Option<BlockRow>> {
        let values = values![key.to_bytes()];
        Ok(self.rows(&format!("{BLOCK} WHERE b.key = $1"), &values, block_row)?.pop())
    }

    fn lists(
        &self,
        list: ListName,
        before: Option<i64>,
        limit: u32,
        now: Time,
    ) -> PostgresReadResult<Page<ListRow, i64>> {
        let limit = limit.clamp(1, PAGE_MAX) as usize;
        let values = values![list.as_str(), before, now.micros(), (limit + 1) as i64];
        let rows = self.rows(lists::LISTS, &values, lists::list_row)?;
        Ok(page(rows, limit, |row| row.id))
    }

    fn facts(
        &self,
        after: Option<FactCursor>,
        limit: u32,
    ) -> PostgresReadResult<Page<FactRow, FactCursor>> {
        let limit = limit.clamp(1, PAGE_MAX) as usize;
        let (attribute, value, name) = after.unwrap_or_default();
        let values = values![&attribute, &value, &name, (limit + 1) as i64];
        let mut found = self.rows(lists::FACTS, &values, lists::fact_row)?;
        let more = found.len() > limit;
        found.truncate(limit);
        let next = found.last().filter(|_| more).map(FactRow::cursor);
        Ok(Page { rows: found, next })
    }

    fn history(&self, id: i64) -> PostgresReadResult<Vec<HistoryRow>> {
        self.rows(HISTORY, &values![id], history_row)
    }

    fn audit(&self, query: &AuditQuery) -> PostgresReadResult<Page<AuditRow, i64>> {
        let limit = query.limit.clamp(1, PAGE_MAX) as usize;
        let by = query.by.as_deref();
        let act = query.act.as_deref();
        let values = values![query.before, by, act, (limit + 1) as i64];
        Ok(page(self.rows(AUDIT, &values, audit_row)?, limit, |row| row.id))
    }

    fn revisions(&self, limit: u32) -> PostgresReadResult<Vec<RevisionRow>> {
        let sql = "SELECT at, revision, policies, by FROM catraca.revisions
                   ORDER BY id DESC LIMIT $1";
        self.rows(sql, &values![i64::from(limit.min(PAGE_MAX))], |row| {
            let policies = row.try_get::<_, Option<i64>>(2)?;
            Ok(RevisionRow {
                at: Time::from_micros(row.try_get(0)?),
                revision: row.try_get(1)?,
                policies: policies.and_then(|number| u32::try_from(number).ok()),
                by: row.try_get(3)?,
            })
        })
    }

    fn keys_required(&self) -> PostgresReadResult<bool> {
        let sql = "SELECT keys_required FROM catraca.auth";
        let rows = self.rows(sql, &[], |row| Ok(row.try_get(0)?))?;
        Ok(rows.first().copied().unwrap_or(false))
    }

    fn policies(&self, from: Time, to: Time) -> PostgresReadResult<Vec<Totals>> {
        self.rows(stats::POLICIES, &stats::minutes(from, to), stats::totals)
    }

    fn actions(&self, from: Time, to: Time) -> PostgresReadResult<Vec<Totals>> {
        self.rows(stats::ACTIONS, &stats::minutes(from, to), stats::totals)
    }

    fn top_blocked(&self, from: Time, limit: u32) -> PostgresReadResult<Vec<TopBlocked>> {
        let values = values![from.micros(), i64::from(limit.min(PAGE_MAX))];
        self.rows(stats::TOP_BLOCKED, &values, stats::top_blocked)
    }

    fn locks(&self, visit: &mut dyn FnMut(RecordedLock)) -> PostgresReadResult<()> {
        super::lock_tables::locks(&mut self.session.lock(), visit)
    }

    fn export(&self, about: &[AttributeValue]) -> PostgresReadResult<SubjectExport> {
        erase::export(&mut self.session.lock(), about)
    }

    fn backup(&self, _: &Path) -> PostgresReadResult<()> {
        let fix =
            "records in PostgreSQL are backed up with its own tools: pg_dump --schema=catraca";
        Err(RecordsError(fix.to_owned()))
    }

    /// Reads every row of every table, which also checks their pages if the server has data
    /// checksums enabled.
    fn verify(&self) -> PostgresReadResult<Vec<String>> {
        let mut faults = Vec::new();
        let tables = ["subjects", "parts", "blocks", "history", "debts", "lists", "facts"];
        for table in tables.iter().chain(&["modes", "revisions", "auth", "audit", "counts"]) {
            let sql = format!("SELECT count(t::text) FROM catraca.{table} AS t");
            if let Err(error) = self.session.lock().query_retrying(&sql, &[]) {
                faults.push(format!("{table}: {error}"));
            }
        }
        Ok(faults)
    }
}

impl PostgresReader {
    fn rows<T>(
        &self,
        sql: &str,
        values: &[Value],
        read: impl FnMut(&Row) -> PostgresReadResult<T>,
    ) -> PostgresReadResult<Vec<T>> {
        self.session.lock().query_retrying(sql, values)?.iter().map(read).collect()
    }
}

/// Cuts the extra row, which only shows that there is a next page.
fn page<T>(mut rows: Vec<T>, limit: usize, id: impl Fn(&T) -> i64) -> Page<T, i64> {
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| more).map(id);
    Page { rows, next }
}

/// The columns that [`block_row`] reads.
pub(super) const BLOCK: &str = "SELECT b.subject, b.key, s.namespace, s.policy, s.parts, b.since,
    b.by, b.until, b.origin, b.shadow, b.reason, b.status, b.message, b.level, b.forget
    FROM catraca.blocks AS b JOIN catraca.subjects AS s ON s.id = b.subject";
pub(super) const HISTORY: &str = "SELECT id, at, act, origin, reason, until, by
    FROM catraca.history WHERE subject = $1 ORDER BY id";
const AUDIT: &str = "SELECT id, at, by, act, target, why, before, after FROM catraca.audit
    WHERE id < coalesce($1, 9223372036854775807)
      AND ($2 IS NULL OR by = $2) AND ($3 IS NULL OR act = $3)
    ORDER BY id DESC LIMIT $4";

fn page_sql(query: &BlockQuery, now: Time, limit: u32) -> (String, Vec<Value>) {
    let mut sql = format!("{BLOCK} WHERE NOT b.shadow AND b.until > $1");
    let mut values = values![now.micros()];
    let mut narrow = |clause: &str, more: Vec<Value>| {
        sql.push_str(&number_parameters(clause, values.len()));
        values.extend(more);
    };
    if let Some(namespace) = &query.namespace {
        narrow(" AND s.namespace = ?", values![namespace]);
    }
    if let Some(policy) = &query.policy {
        narrow(" AND s.policy = ?", values![policy]);
    }
    if let Some(origin) = query.origin {
        narrow(" AND b.origin = ?", values![origin_name(origin)]);
    }
    if !query.about.is_empty() {
        let (clause, more) = subjects_about(&query.about);
        narrow(&format!(" AND b.subject IN ({clause})"), more);
    }
    if let Some(Cursor { since, id }) = query.after {
        narrow(" AND (b.since, b.subject) < (?, ?)", values![since.micros(), id]);
    }
    let order = " ORDER BY b.since DESC, b.subject DESC LIMIT ?";
    narrow(order, values![i64::from(limit + 1)]);
    (sql, values)
}

/// Replaces each `?` by the next numbered parameter, after `used` earlier ones.
pub(super) fn number_parameters(clause: &str, mut used: usize) -> String {
    let mut pieces = clause.split('?');
    let mut sql = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        used += 1;
        sql.push_str(&format!("${used}{piece}"));
    }
    sql
}

/// SQL for the subjects that have one of these values, and its parameters.
pub(super) fn subjects_about(about: &[AttributeValue]) -> (String, Vec<Value>) {
    let one = "SELECT subject FROM catraca.parts WHERE attribute = ? AND value = ?";
    let clause = vec![one; about.len()].join(" UNION ");
    let values = about.iter().flat_map(|about| values![&about.attribute, &about.value]);
    (clause, values.collect())
}

pub(super) fn block_row(row: &Row) -> PostgresReadResult<BlockRow> {
    let subject = SubjectKey {
        key: key(row, 1)?,
        namespace: row.try_get(2)?,
        policy: row.try_get(3)?,
        parts: parts(row.try_get(4)?)?,
    };
    Ok(BlockRow {
        id: row.try_get(0)?,
        subject,
        since: Time::from_micros(row.try_get(5)?),
        by: row.try_get(6)?,
        block: block(row, 7, &mut TextInterner::default())?,
    })
}

pub(super) fn parts(json: &str) -> PostgresReadResult<Vec<(String, String)>> {
    serde_json::from_str(json).map_err(|_| invalid_column("subject"))
}

pub(super) fn history_row(row: &Row) -> PostgresReadResult<HistoryRow> {
    let origin: &str = row.try_get(3)?;
    Ok(HistoryRow {
        id: row.try_get(0)?,
        at: Time::from_micros(row.try_get(1)?),
        act: row.try_get(2)?,
        origin: parse_origin(origin).ok_or_else(|| invalid_column("origin"))?,
        reason: row.try_get(4)?,
        until: Time::from_micros(row.try_get(5)?),
        by: row.try_get(6)?,
    })
}

pub(super) fn audit_row(row: &Row) -> PostgresReadResult<AuditRow> {
    Ok(AuditRow {
        id: row.try_get(0)?,
        at: Time::from_micros(row.try_get(1)?),
        by: row.try_get(2)?,
        act: row.try_get(3)?,
        target: row.try_get(4)?,
        why: row.try_get(5)?,
        before: row.try_get(6)?,
        after: row.try_get(7)?,
    })
}

/// A column with an unexpected type.
impl From<tokio_postgres::Error> for RecordsError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self(format!("a row of the records is unreadable: {error}"))
    }
}

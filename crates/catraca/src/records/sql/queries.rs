//! Queries for operators: pages of lists, facts and the audit, and statistics.
//!
//! Every decision is counted once, as allowed, denied or blocked, so that the totals add up.

use std::time::SystemTime;

use catraca_core::lists::AccessListEntry;
use catraca_core::time::Time;

use super::restore::list_target;
use super::value::{SqlRow, Value, invalid_column, values};
use crate::records::Records;
use crate::records::database::{DatabaseResult, rows};
use crate::records::display::{
    entry_columns, namespace_column, namespace_of_column, namespace_of_target,
};
use crate::records::error::RecordsError;
use crate::records::minute_counts::minute_of;
use crate::records::record::{AttributeValue, ListName};
use crate::records::row::{
    AuditQuery, AuditRow, FactCursor, FactRow, ListRow, PAGE_MAX, Page, RevisionRow, TopBlocked,
    Totals,
};

const LISTS: &str = "SELECT id, attribute, value, at, until, reason, by, namespace
    FROM catraca.lists
    WHERE list = $1 AND id < coalesce($2, 9223372036854775807)
      AND (until IS NULL OR until > $3) AND ($4 IS NULL OR namespace = $4)
    ORDER BY id DESC LIMIT $5";
const LIST_ENTRY: &str = "SELECT id, attribute, value, at, until, reason, by, namespace
    FROM catraca.lists
    WHERE list = $1 AND attribute = $2 AND value = $3 AND namespace = $4";
const FACTS: &str = "SELECT attribute, value, name, fact, at, by, namespace FROM catraca.facts
    WHERE (attribute, value, name, namespace) > ($1, $2, $3, $4)
      AND ($5 IS NULL OR namespace = $5)
    ORDER BY attribute, value, name, namespace LIMIT $6";
/// The columns that [`audit_row`] reads.
pub(super) const AUDITED: &str =
    "SELECT a.id, a.at, a.by, a.act, a.target, a.why, a.before, a.after,
        s.parts, s.namespace
    FROM catraca.audit AS a LEFT JOIN catraca.subjects AS s ON s.id = a.subject";
const AUDIT: &str = "WHERE a.id < coalesce($1, 9223372036854775807)
      AND ($2 IS NULL OR a.by = $2) AND ($3 IS NULL OR a.act = $3)
      AND ($4 IS NULL OR s.namespace = $4
        OR (a.act IN ('list', 'unlist', 'state', 'forget', 'export', 'erase')
            AND strpos(a.target, '/' || $4 || ' ') BETWEEN 1 AND strpos(a.target, ' '))
        OR (a.act IN ('force-lock', 'clear-locks') AND strpos(a.target, $4 || ' ') = 1))
    ORDER BY a.id DESC LIMIT $5";
const REVISIONS: &str = "SELECT at, revision, policies, by FROM catraca.revisions
    ORDER BY id DESC LIMIT $1";
/// Sorted by bytes, independent of the locale of a database.
const POLICIES: &str = "SELECT policy, CAST(sum(allowed) AS bigint), CAST(sum(denied) AS bigint),
        CAST(sum(blocked) AS bigint) FROM catraca.counts
    WHERE minute >= $1 AND minute < $2 AND policy <> '' AND ($3 IS NULL OR namespace = $3)
    GROUP BY policy ORDER BY policy COLLATE \"C\"";
const ACTIONS: &str = "SELECT action, CAST(sum(allowed) AS bigint), CAST(sum(denied) AS bigint),
        CAST(sum(blocked) AS bigint) FROM catraca.counts
    WHERE minute >= $1 AND minute < $2 AND policy = '' AND ($3 IS NULL OR namespace = $3)
    GROUP BY action ORDER BY sum(allowed + denied + blocked) DESC, action COLLATE \"C\"";
const TOP_BLOCKED: &str = "SELECT s.namespace, s.policy, s.parts, count(*), max(h.until)
    FROM catraca.history AS h JOIN catraca.subjects AS s ON s.id = h.subject
    WHERE h.at >= $1 AND h.act IN ('started', 'extended') AND NOT h.shadow
      AND ($2 IS NULL OR s.namespace = $2)
    GROUP BY s.id ORDER BY count(*) DESC, max(h.until) DESC, s.id LIMIT $3";

const HAS_POLICY: &str = "SELECT EXISTS (SELECT 1 FROM catraca.subjects WHERE policy = $1)";
const HAS_ACT: &str = "SELECT EXISTS (SELECT 1 FROM catraca.audit WHERE act = $1)";
/// The audit names a value as `attribute=value`, and may have it longer than all other tables.
const HAS_ATTRIBUTE: &str = "SELECT EXISTS (SELECT 1 FROM catraca.parts WHERE attribute = $1)
    OR EXISTS (SELECT 1 FROM catraca.lists WHERE attribute = $1)
    OR EXISTS (SELECT 1 FROM catraca.facts WHERE attribute = $1)
    OR EXISTS (SELECT 1 FROM catraca.audit
        WHERE substr(about, 1, length($1) + 1) = $1 || '=')";

impl Records {
    /// Whether any row is about a value of this attribute.
    pub fn has_attribute(&self, attribute: &str) -> Result<bool, RecordsError> {
        let found = self.rows(HAS_ATTRIBUTE, &values![attribute], |row| row.get(0))?;
        Ok(found.first().copied().unwrap_or(false))
    }

    /// Whether any key is of this policy.
    pub fn has_policy(&self, policy: &str) -> Result<bool, RecordsError> {
        let found = self.rows(HAS_POLICY, &values![policy], |row| row.get(0))?;
        Ok(found.first().copied().unwrap_or(false))
    }

    /// Whether the audit has such an act.
    pub fn has_act(&self, act: &str) -> Result<bool, RecordsError> {
        let found = self.rows(HAS_ACT, &values![act], |row| row.get(0))?;
        Ok(found.first().copied().unwrap_or(false))
    }

    /// Active entries of a list, newest first, with ids below `before`. With a namespace, only
    /// those of this namespace.
    pub fn lists(
        &self,
        list: ListName,
        namespace: Option<&str>,
        before: Option<i64>,
        limit: u32,
        now: impl Into<SystemTime>,
    ) -> Result<Page<ListRow, i64>, RecordsError> {
        let now = Time::from(now.into());
        let limit = page_size(limit);
        let values = values![list.as_str(), before, now, namespace, limit + 1];
        Ok(page(self.rows(LISTS, &values, list_row)?, limit, |last| last.id))
    }

    /// The row of an entry of a list.
    pub fn list_row(
        &self,
        list: ListName,
        entry: &AccessListEntry,
    ) -> Result<Option<ListRow>, RecordsError> {
        let namespace = namespace_column(entry.namespace.as_deref());
        let (attribute, value) = entry_columns(entry);
        let values = values![list.as_str(), &attribute, &value, namespace];
        Ok(self.rows(LIST_ENTRY, &values, list_row)?.pop())
    }

    /// Facts in the order of attribute, value, name and namespace, after the position `after`. With
    /// a namespace, only those of this namespace.
    pub fn facts(
        &self,
        namespace: Option<&str>,
        after: Option<FactCursor>,
        limit: u32,
    ) -> Result<Page<FactRow, FactCursor>, RecordsError> {
        let limit = page_size(limit);
        let (attribute, value, name, last_namespace) = after.unwrap_or_default();
        let values = values![&attribute, &value, &name, &last_namespace, namespace, limit + 1];
        Ok(page(self.rows(FACTS, &values, fact_row)?, limit, FactRow::cursor))
    }

    /// Audited actions, newest first. Those of a namespace are acts on its keys, list entries,
    /// facts and locks, and privacy requests of its operators.
    pub fn audit(&self, query: &AuditQuery) -> Result<Page<AuditRow, i64>, RecordsError> {
        let limit = page_size(query.limit);
        let by = query.by.as_deref();
        let act = query.act.as_deref();
        let values = values![query.before, by, act, query.namespace.as_deref(), limit + 1];
        let sql = format!("{AUDITED} {AUDIT}");
        Ok(page(self.rows(&sql, &values, audit_row)?, limit, |last| last.id))
    }

    /// Loaded catalogs, newest first.
    pub fn revisions(&self, limit: u32) -> Result<Vec<RevisionRow>, RecordsError> {
        self.rows(REVISIONS, &values![i64::from(limit.min(PAGE_MAX))], |row| {
            Ok(RevisionRow {
                at: row.get(0)?,
                revision: row.get(1)?,
                policies: row.get(2)?,
                by: row.get(3)?,
            })
        })
    }

    /// Whether callers needed an API key when that was last recorded, by
    /// [`crate::records::RecordKind::RequireKeys`].
    pub fn keys_required(&self) -> Result<bool, RecordsError> {
        let required =
            self.rows("SELECT keys_required FROM catraca.auth", &[], |row| row.get(0))?;
        Ok(required.first().copied().unwrap_or(false))
    }

    /// Decisions by policy, from the minute of `from` up to the minute of `to`, exclusive. A
    /// decision counts once for each of its policies. With a namespace, only decisions in it.
    pub fn policies(
        &self,
        namespace: Option<&str>,
        from: impl Into<SystemTime>,
        to: impl Into<SystemTime>,
    ) -> Result<Vec<Totals>, RecordsError> {
        let minutes = (minute_of(from.into().into()), minute_of(to.into().into()));
        self.rows(POLICIES, &values![minutes.0, minutes.1, namespace], totals)
    }

    /// Decisions by action, most first. A decision counts once. With a namespace, only decisions in
    /// it.
    pub fn actions(
        &self,
        namespace: Option<&str>,
        from: impl Into<SystemTime>,
        to: impl Into<SystemTime>,
    ) -> Result<Vec<Totals>, RecordsError> {
        let minutes = (minute_of(from.into().into()), minute_of(to.into().into()));
        self.rows(ACTIONS, &values![minutes.0, minutes.1, namespace], totals)
    }

    /// Subjects by number of blocks since `from`, most first. With a namespace, only its own.
    pub fn top_blocked(
        &self,
        namespace: Option<&str>,
        from: impl Into<SystemTime>,
        limit: u32,
    ) -> Result<Vec<TopBlocked>, RecordsError> {
        let from = Time::from(from.into());
        let limit = i64::from(limit.min(PAGE_MAX));
        self.rows(TOP_BLOCKED, &values![from, namespace, limit], |row| {
            Ok(TopBlocked {
                namespace: row.get(0)?,
                policy: row.get(1)?,
                parts: parts(row.get(2)?)?,
                blocks: row.get(3)?,
                last_until: row.get(4)?,
            })
        })
    }

    pub(super) fn rows<T>(
        &self,
        sql: &str,
        values: &[Value<'_>],
        read: impl FnMut(&dyn SqlRow) -> DatabaseResult<T>,
    ) -> Result<Vec<T>, RecordsError> {
        Ok(rows(&mut **self.reads.lock(), sql, values, read)?)
    }
}

pub(super) fn page_size(limit: u32) -> i64 {
    limit.clamp(1, PAGE_MAX).into()
}

/// Cuts the extra row, which only shows that there is a next page.
pub(super) fn page<T, C>(mut rows: Vec<T>, limit: i64, cursor: impl Fn(&T) -> C) -> Page<T, C> {
    let limit = limit as usize;
    let more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| more).map(cursor);
    Page { rows, next, incomplete: None }
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
pub(super) fn subjects_about(about: &[AttributeValue]) -> (String, Vec<Value<'_>>) {
    let one = "SELECT subject FROM catraca.parts WHERE attribute = ? AND value = ?";
    let clause = vec![one; about.len()].join(" UNION ");
    let values = about.iter().flat_map(|about| values![&about.attribute, &about.value]);
    (clause, values.collect())
}

pub(super) fn parts(json: &str) -> DatabaseResult<Vec<(String, String)>> {
    serde_json::from_str(json).map_err(|_| invalid_column("subject"))
}

pub(super) fn audit_row(row: &dyn SqlRow) -> DatabaseResult<AuditRow> {
    let act: String = row.get(3)?;
    let target: String = row.get(4)?;
    let of_key: Option<String> = row.get(9)?;
    let namespace = of_key.or_else(|| namespace_of_target(&act, &target).map(str::to_owned));
    Ok(AuditRow {
        namespace,
        id: row.get(0)?,
        at: row.get(1)?,
        by: row.get(2)?,
        act,
        target,
        why: row.get(5)?,
        before: row.get(6)?,
        after: row.get(7)?,
        parts: row.get::<Option<&str>>(8)?.map(parts).transpose()?.unwrap_or_default(),
    })
}

fn list_row(row: &dyn SqlRow) -> DatabaseResult<ListRow> {
    Ok(ListRow {
        id: row.get(0)?,
        namespace: namespace_of_column(row.get(7)?),
        what: list_target(row.get(1)?, row.get(2)?)?,
        at: row.get(3)?,
        until: row.get(4)?,
        reason: row.get(5)?,
        by: row.get(6)?,
    })
}

fn fact_row(row: &dyn SqlRow) -> DatabaseResult<FactRow> {
    Ok(FactRow {
        namespace: namespace_of_column(row.get(6)?),
        about: AttributeValue { attribute: row.get(0)?, value: row.get(1)? },
        name: row.get(2)?,
        fact: row.get(3)?,
        at: row.get(4)?,
        by: row.get(5)?,
    })
}

fn totals(row: &dyn SqlRow) -> DatabaseResult<Totals> {
    let allowed: u64 = row.get(1)?;
    let denied: u64 = row.get(2)?;
    let blocked: u64 = row.get(3)?;
    let total = allowed + denied + blocked;
    Ok(Totals { name: row.get(0)?, total, allowed, denied, blocked })
}

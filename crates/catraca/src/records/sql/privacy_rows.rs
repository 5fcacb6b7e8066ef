//! Export and erasure of the data about one subject.
//!
//! Erasure retains and counts active blocks, list entries and debts, with what explains them: the
//! steps and the audit since a block started, and the audit since an entry was written.
//!
//! Both may be restricted to one namespace: to the keys, list entries and facts of this namespace.

use catraca_core::time::Time;

use super::attempts::attempts_row;
use super::block_queries::{BLOCK, all_history, block_row};
use super::queries::{AUDITED, audit_row, number_parameters, subjects_about};
use super::value::{SqlRow, Value, values};
use crate::records::Records;
use crate::records::database::{Access, Database, DatabaseResult, rows, transaction};
use crate::records::display::namespace_of_column;
use crate::records::error::RecordsError;
use crate::records::privacy::{
    ErasureCounts, ExportedAttempts, ExportedEntry, ExportedFact, SubjectExport,
};
use crate::records::record::AttributeValue;
use crate::records::row::AuditRow;

const AUDIT_OF_SUBJECT: &str = "WHERE a.subject = $1 ORDER BY a.id";
/// The target of a change inside a namespace begins like `blocklist/shop `.
const AUDIT_ABOUT: &str = "WHERE (a.about = $1 || '=' || $2 OR (a.about = $2 AND $1 = 'ip'))
    AND ($3 IS NULL OR strpos(a.target, '/' || $3 || ' ') BETWEEN 1 AND strpos(a.target, ' '))
    ORDER BY a.id";
const FACTS: &str = "SELECT name, fact, namespace FROM catraca.facts
    WHERE attribute = $1 AND value = $2 AND ($3 IS NULL OR namespace = $3)
    ORDER BY namespace, name";
/// An address may also be listed as a range.
const ENTRIES: &str = "SELECT list, reason, until, namespace FROM catraca.lists
    WHERE value = $2 AND (attribute = $1 OR (attribute = '' AND $1 = 'ip'))
    AND ($3 IS NULL OR namespace = $3) ORDER BY id";

const DELETE_ENDED_ENTRIES: &str = "DELETE FROM catraca.lists WHERE value = $2
    AND (attribute = $1 OR (attribute = '' AND $1 = 'ip'))
    AND ($3 IS NULL OR namespace = $3) AND until <= $4";
const DELETE_FACTS: &str = "DELETE FROM catraca.facts
    WHERE attribute = $1 AND value = $2 AND ($3 IS NULL OR namespace = $3)";
/// Operator, action and time stay in the audit. The target is erased, unless the action wrote an
/// entry that its list still has.
const ERASE_AUDIT_TARGET: &str = "UPDATE catraca.audit AS a
    SET target = substr(a.target, 1, strpos(a.target, ' ')) || '(erased)', why = NULL,
        before = NULL, after = NULL, about = NULL
    WHERE (a.about = $1 || '=' || $2 OR (a.about = $2 AND $1 = 'ip'))
    AND ($3 IS NULL OR strpos(a.target, '/' || $3 || ' ') BETWEEN 1 AND strpos(a.target, ' '))
    AND a.at <= $4
    AND NOT EXISTS (SELECT 1 FROM catraca.lists AS l WHERE l.value = $2
        AND (l.attribute = $1 OR (l.attribute = '' AND $1 = 'ip'))
        AND a.at >= l.at AND a.target = l.list || CASE WHEN l.namespace = '' THEN ''
            ELSE '/' || l.namespace END || ' ' || a.about)";
const ERASE_SUBJECT_TARGET: &str = "UPDATE catraca.audit SET target = '(erased)', before = NULL,
    after = NULL, why = NULL, subject = NULL WHERE subject = $1";
/// What happened before the active block of a subject started.
const ERASE_EARLIER_TARGETS: &str = "UPDATE catraca.audit SET target = '(erased)', before = NULL,
    after = NULL, why = NULL, subject = NULL
    WHERE subject = $1 AND at < (SELECT since FROM catraca.blocks WHERE subject = $1)";
const EARLIER_STEPS: &str = "subject = $1 AND id < (SELECT coalesce(max(f.id), 0)
    FROM catraca.history AS f JOIN catraca.blocks AS b ON b.subject = f.subject
    WHERE f.subject = $1 AND f.act = 'started' AND f.at <= b.since)";
const ATTEMPTS: &str = "SELECT s.namespace, s.policy,
        CAST(sum(a.allowed + a.denied + a.blocked) AS bigint), min(a.first_at), max(a.last_at)
    FROM catraca.attempts AS a JOIN catraca.subjects AS s ON s.id = a.subject
    WHERE a.subject = $1 GROUP BY s.namespace, s.policy";
const COUNT_BLOCKS: &str = "SELECT count(*) FROM catraca.blocks WHERE subject = $1 AND until > $2";
const COUNT_DEBTS: &str = "SELECT count(*) FROM catraca.debts WHERE subject = $1";

impl Records {
    /// All data about a subject, given by the values of [`crate::records::stored_values_of`]. With
    /// `within`, only the data of that namespace.
    pub fn export(
        &self,
        about: &[AttributeValue],
        within: Option<&str>,
    ) -> Result<SubjectExport, RecordsError> {
        let reads = &mut **self.reads.lock();
        Ok(transaction(reads, Access::Read, |database| export(database, about, within))?)
    }
}

fn export(
    database: &mut dyn Database,
    about: &[AttributeValue],
    within: Option<&str>,
) -> DatabaseResult<SubjectExport> {
    let mut exported = SubjectExport::default();
    for subject in subjects(database, about, within)? {
        let id = values![subject];
        let blocks = rows(database, &format!("{BLOCK} WHERE b.subject = $1"), &id, block_row)?;
        for block in blocks {
            exported.blocks.push((block, all_history(database, subject)?));
        }
        exported.attempts.extend(rows(database, ATTEMPTS, &id, exported_attempts)?);
        let sql = format!("{AUDITED} {AUDIT_OF_SUBJECT}");
        let audited: Vec<AuditRow> = rows(database, &sql, &id, audit_row)?;
        exported.audit.extend(audited);
    }
    for AttributeValue { attribute, value } in about {
        let values = values![attribute, value, within];
        let sql = format!("{AUDITED} {AUDIT_ABOUT}");
        exported.audit.extend(rows(database, &sql, &values, audit_row)?);
        exported.lists.extend(entries(database, &values)?);
        exported.facts.extend(rows(database, FACTS, &values, exported_fact)?);
    }
    Ok(exported)
}

fn exported_attempts(row: &dyn SqlRow) -> DatabaseResult<ExportedAttempts> {
    Ok(ExportedAttempts {
        namespace: row.get(0)?,
        policy: row.get(1)?,
        attempts: attempts_row(row, 2)?,
    })
}

fn exported_fact(row: &dyn SqlRow) -> DatabaseResult<ExportedFact> {
    let namespace = namespace_of_column(row.get(2)?);
    Ok(ExportedFact { namespace, name: row.get(0)?, fact: row.get(1)? })
}

fn entries(
    database: &mut dyn Database,
    values: &[Value<'_>],
) -> DatabaseResult<Vec<ExportedEntry>> {
    rows(database, ENTRIES, values, |row| {
        Ok(ExportedEntry {
            namespace: namespace_of_column(row.get(3)?),
            list: row.get(0)?,
            reason: row.get(1)?,
            until: row.get(2)?,
        })
    })
}

fn subjects(
    database: &mut dyn Database,
    about: &[AttributeValue],
    within: Option<&str>,
) -> DatabaseResult<Vec<i64>> {
    if about.is_empty() {
        return Ok(Vec::new());
    }
    let (found, mut values) = subjects_about(about);
    let mut sql = found;
    if let Some(namespace) = within {
        sql = format!("SELECT id FROM catraca.subjects WHERE id IN ({sql}) AND namespace = ?");
        values.extend(values![namespace]);
    }
    rows(database, &number_parameters(&sql, 0), &values, |row| row.get(0))
}

/// Erases in one transaction what is older than `now`; facts only if `facts` says so.
pub(in crate::records) fn erase(
    database: &mut dyn Database,
    about: &[AttributeValue],
    within: Option<&str>,
    now: Time,
    facts: bool,
) -> DatabaseResult<ErasureCounts> {
    transaction(database, Access::Write, |database| {
        let mut erased = ErasureCounts::default();
        for subject in subjects(database, about, within)? {
            erase_subject(database, subject, now, &mut erased)?;
        }
        for AttributeValue { attribute, value } in about {
            let values = values![attribute, value, within];
            let is_active = |entry: &&ExportedEntry| entry.until.is_none_or(|until| until > now);
            let listed = entries(database, &values)?;
            erased.retained_lists += listed.iter().filter(is_active).count() as u64;
            database.execute(DELETE_ENDED_ENTRIES, &values![attribute, value, within, now])?;
            if facts {
                erased.facts += database.execute(DELETE_FACTS, &values)?;
            }
            let values = values![attribute, value, within, now];
            erased.audit += database.execute(ERASE_AUDIT_TARGET, &values)?;
        }
        Ok(erased)
    })
}

fn erase_subject(
    database: &mut dyn Database,
    subject: i64,
    now: Time,
    erased: &mut ErasureCounts,
) -> DatabaseResult<()> {
    database.execute("DELETE FROM catraca.attempts WHERE subject = $1", &values![subject])?;
    let mut count = |sql: &str, values: &[Value<'_>]| -> DatabaseResult<u64> {
        Ok(rows(database, sql, values, |row| row.get(0))?.pop().unwrap_or_default())
    };
    let blocked = count(COUNT_BLOCKS, &values![subject, now])?;
    let debts = count(COUNT_DEBTS, &values![subject])?;
    erased.retained_blocks += blocked;
    erased.retained_debts += debts;
    if blocked > 0 {
        let sql = format!(
            "SELECT count(*) FROM catraca.history WHERE act = 'started' AND {EARLIER_STEPS}"
        );
        erased.blocks += count(&sql, &values![subject])?;
        let sql = format!("DELETE FROM catraca.history WHERE {EARLIER_STEPS}");
        database.execute(&sql, &values![subject])?;
        erased.audit += database.execute(ERASE_EARLIER_TARGETS, &values![subject])?;
        return Ok(());
    }
    erased.blocks += count(COUNT_BLOCKS, &values![subject, Time::ZERO])?;
    erased.audit += database.execute(ERASE_SUBJECT_TARGET, &values![subject])?;
    if debts > 0 {
        // A debt needs only the key that it is about.
        database.execute("DELETE FROM catraca.history WHERE subject = $1", &values![subject])?;
        database.execute("DELETE FROM catraca.blocks WHERE subject = $1", &values![subject])?;
        return Ok(());
    }
    // Deletes parts, block and history too, by foreign keys.
    database.execute("DELETE FROM catraca.subjects WHERE id = $1", &values![subject])?;
    Ok(())
}

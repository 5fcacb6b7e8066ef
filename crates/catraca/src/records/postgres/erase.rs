//! Export and erasure of the data about one subject.
//!
//! Erasure retains and counts active blocks, list entries and debts.

use catraca_core::time::Time;

use super::read::{
    BLOCK, HISTORY, PostgresReadResult, audit_row, block_row, history_row, number_parameters,
    subjects_about,
};
use super::session::Session;
use super::value::{Value, values};
use crate::postgres::failure::PostgresFailure;
use crate::records::privacy::{ErasureCounts, SubjectExport};
use crate::records::record::AttributeValue;

pub(super) fn export(
    session: &mut Session,
    about: &[AttributeValue],
) -> PostgresReadResult<SubjectExport> {
    session.begin("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?;
    let exported = export_in_transaction(session, about);
    match exported.is_ok() {
        true => session.end("COMMIT")?,
        false => session.disconnect(),
    }
    exported
}

fn export_in_transaction(
    session: &mut Session,
    about: &[AttributeValue],
) -> PostgresReadResult<SubjectExport> {
    let mut exported = SubjectExport::default();
    for subject in subjects(session, about)? {
        let blocks = session.query(&format!("{BLOCK} WHERE b.subject = $1"), &values![subject])?;
        for row in &blocks {
            let history = session.query(HISTORY, &values![subject])?;
            let history = history.iter().map(history_row).collect::<PostgresReadResult<_>>()?;
            exported.blocks.push((block_row(row)?, history));
        }
        let audited =
            session.query(&format!("{AUDIT} subject = $1 ORDER BY id"), &values![subject])?;
        exported
            .audit
            .extend(audited.iter().map(audit_row).collect::<PostgresReadResult<Vec<_>>>()?);
    }
    for AttributeValue { attribute, value } in about {
        let audited = session.query(&format!("{AUDIT} {ABOUT}"), &values![attribute, value])?;
        exported
            .audit
            .extend(audited.iter().map(audit_row).collect::<PostgresReadResult<Vec<_>>>()?);
        exported.lists.extend(entries(session, attribute, value)?);
        let sql = "SELECT name, fact FROM catraca.facts WHERE attribute = $1 AND value = $2";
        for row in session.query(sql, &values![attribute, value])? {
            exported.facts.push((row.try_get(0)?, row.try_get(1)?));
        }
    }
    Ok(exported)
}

const ABOUT: &str = "about = $1 || '=' || $2 OR (about = $2 AND $1 = 'ip') ORDER BY id";
const AUDIT: &str = "SELECT id, at, by, act, target, why, before, after FROM catraca.audit WHERE";

type PostgresListEntry = (String, Option<String>, Option<i64>);

/// The list entries of a value; an address may also be listed as a range.
fn entries(
    session: &mut Session,
    attribute: &str,
    value: &str,
) -> Result<Vec<PostgresListEntry>, PostgresFailure> {
    let sql = "SELECT list, reason, until FROM catraca.lists
        WHERE value = $2 AND (attribute = $1 OR (attribute = '' AND $1 = 'ip')) ORDER BY id";
    let rows = session.query(sql, &values![attribute, value])?;
    let listed = rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?)));
    listed.collect::<Result<_, _>>().map_err(PostgresFailure::Server)
}

fn subjects(session: &mut Session, about: &[AttributeValue]) -> Result<Vec<i64>, PostgresFailure> {
    if about.is_empty() {
        return Ok(Vec::new());
    }
    let (sql, values): (String, Vec<Value>) = subjects_about(about);
    let rows = session.query(&number_parameters(&sql, 0), &values)?;
    rows.iter().map(|row| row.try_get(0).map_err(PostgresFailure::Server)).collect()
}

/// Erases within the writer's transaction.
pub(super) fn erase(
    session: &mut Session,
    about: &[AttributeValue],
    now: Time,
) -> Result<ErasureCounts, PostgresFailure> {
    let mut erased = ErasureCounts::default();
    for subject in subjects(session, about)? {
        erase_subject(session, subject, now, &mut erased)?;
    }
    for AttributeValue { attribute, value } in about {
        let listed = entries(session, attribute, value)?;
        let is_active =
            |entry: &&PostgresListEntry| entry.2.is_none_or(|until| until > now.micros());
        erased.retained_lists += listed.iter().filter(is_active).count() as u64;
        let values = values![attribute, value];
        session.query(ENDED_ENTRIES, &values![attribute, value, now.micros()])?;
        erased.facts += session.query(FACTS, &values)?.len() as u64;
        erased.audit += session.query(ERASE_AUDIT_TARGET, &values)?.len() as u64;
    }
    Ok(erased)
}

const ENDED_ENTRIES: &str = "DELETE FROM catraca.lists WHERE value = $2
    AND (attribute = $1 OR (attribute = '' AND $1 = 'ip')) AND until <= $3 RETURNING id";
const FACTS: &str = "DELETE FROM catraca.facts WHERE attribute = $1 AND value = $2 RETURNING name";
/// Operator, action and time stay in the audit. The target is erased, unless the list that the
/// action was about still has the entry.
const ERASE_AUDIT_TARGET: &str = "UPDATE catraca.audit AS a
    SET target = substr(a.target, 1, strpos(a.target, ' ')) || '(erased)', why = NULL,
        before = NULL, after = NULL, about = NULL
    WHERE (a.about = $1 || '=' || $2 OR (a.about = $2 AND $1 = 'ip'))
    AND NOT EXISTS (SELECT 1 FROM catraca.lists AS l WHERE l.value = $2
        AND (l.attribute = $1 OR (l.attribute = '' AND $1 = 'ip'))
        AND a.target = l.list || ' ' || a.about)
    RETURNING a.id";
const ERASE_SUBJECT_TARGET: &str = "UPDATE catraca.audit SET target = '(erased)', before = NULL,
    after = NULL, why = NULL, subject = NULL WHERE subject = $1 RETURNING id";
const ACTIVE_BLOCKS: &str = "SELECT subject FROM catraca.blocks WHERE subject = $1 AND until > $2";

fn erase_subject(
    session: &mut Session,
    subject: i64,
    now: Time,
    erased: &mut ErasureCounts,
) -> Result<(), PostgresFailure> {
    let mut count =
        |sql: &str, values: Vec<Value>| session.query(sql, &values).map(|rows| rows.len() as u64);
    let blocked = count(ACTIVE_BLOCKS, values![subject, now.micros()])?;
    let debts = count("SELECT subject FROM catraca.debts WHERE subject = $1", values![subject])?;
    erased.retained_blocks += blocked;
    erased.retained_debts += debts;
    if blocked + debts > 0 {
        return Ok(());
    }
    let blocks = "SELECT subject FROM catraca.blocks WHERE subject = $1";
    erased.blocks += count(blocks, values![subject])?;
    erased.audit += count(ERASE_SUBJECT_TARGET, values![subject])?;
    // Deletes parts, block and history too, by foreign keys.
    count("DELETE FROM catraca.subjects WHERE id = $1", values![subject])?;
    Ok(())
}

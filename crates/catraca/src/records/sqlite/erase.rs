//! Export and erasure of the data about one subject.
//!
//! Erasure retains and counts active blocks, list entries and debts.

use catraca_core::time::Time;
use rusqlite::types::Value;
use rusqlite::{Connection, Transaction, TransactionBehavior, params, params_from_iter};

use super::read::{BLOCK, audit_row, block_row, history, subjects_about};
use crate::records::error::{RecordsError, WriteError};
use crate::records::privacy::{ErasureCounts, SubjectExport};
use crate::records::record::AttributeValue;

pub(super) fn export(
    connection: &mut Connection,
    about: &[AttributeValue],
) -> Result<SubjectExport, RecordsError> {
    let transaction = connection.transaction()?;
    let mut exported = SubjectExport::default();
    for subject in subjects(&transaction, about)? {
        let mut statement = transaction.prepare_cached(&format!("{BLOCK} WHERE b.subject = ?1"))?;
        let mut rows = statement.query([subject])?;
        while let Some(row) = rows.next()? {
            exported.blocks.push((block_row(row)?, history(&transaction, subject)?));
        }
        exported.audit.extend(audit_rows(&transaction, AUDIT_OF_SUBJECT, params![subject])?);
    }
    for AttributeValue { attribute, value } in about {
        exported.audit.extend(audit_rows(&transaction, AUDIT_ABOUT, params![attribute, value])?);
        exported.lists.extend(entries(&transaction, attribute, value)?);
        exported.facts.extend(facts(&transaction, attribute, value)?);
    }
    Ok(exported)
}

const AUDIT_OF_SUBJECT: &str =
    "SELECT id, at, by, act, target, why, before, after FROM audit WHERE subject = ?1 ORDER BY id";
const AUDIT_ABOUT: &str = "SELECT id, at, by, act, target, why, before, after FROM audit
    WHERE about = ?1 || '=' || ?2 OR (about = ?2 AND ?1 = 'ip') ORDER BY id";

fn audit_rows(
    connection: &Connection,
    sql: &str,
    values: impl rusqlite::Params,
) -> Result<Vec<crate::records::row::AuditRow>, RecordsError> {
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map(values, audit_row)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

type SqliteListEntry = (String, Option<String>, Option<i64>);

/// The list entries of a value; an address may also be listed as a range.
fn entries(
    connection: &Connection,
    attribute: &str,
    value: &str,
) -> rusqlite::Result<Vec<SqliteListEntry>> {
    let mut statement = connection.prepare_cached(
        "SELECT list, reason, until FROM lists
         WHERE value = ?2 AND (attribute = ?1 OR (attribute = '' AND ?1 = 'ip')) ORDER BY id",
    )?;
    let rows = statement
        .query_map([attribute, value], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    rows.collect()
}

fn facts(
    connection: &Connection,
    attribute: &str,
    value: &str,
) -> rusqlite::Result<Vec<(String, String)>> {
    let sql = "SELECT name, fact FROM facts WHERE attribute = ?1 AND value = ?2";
    let mut statement = connection.prepare_cached(sql)?;
    let rows = statement.query_map([attribute, value], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

fn subjects(connection: &Connection, about: &[AttributeValue]) -> rusqlite::Result<Vec<i64>> {
    if about.is_empty() {
        return Ok(Vec::new());
    }
    let (sql, values): (String, Vec<Value>) = subjects_about(about);
    let mut statement = connection.prepare_cached(&sql)?;
    let rows = statement.query_map(params_from_iter(values), |row| row.get(0))?;
    rows.collect()
}

pub(super) fn erase(
    connection: &mut Connection,
    about: &[AttributeValue],
    now: Time,
) -> Result<ErasureCounts, WriteError> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut erased = ErasureCounts::default();
    for subject in subjects(&transaction, about)? {
        erase_subject(&transaction, subject, now, &mut erased)?;
    }
    for AttributeValue { attribute, value } in about {
        let listed = entries(&transaction, attribute, value)?;
        let is_active = |entry: &&SqliteListEntry| entry.2.is_none_or(|until| until > now.micros());
        erased.retained_lists += listed.iter().filter(is_active).count() as u64;
        let run = |sql: &str| transaction.execute(sql, [attribute, value]);
        transaction.execute(ENDED_ENTRIES, (attribute, value, now.micros()))?;
        erased.facts += run("DELETE FROM facts WHERE attribute = ?1 AND value = ?2")? as u64;
        erased.audit += run(ERASE_AUDIT_TARGET)? as u64;
    }
    transaction.commit()?;
    Ok(erased)
}

const ENDED_ENTRIES: &str = "DELETE FROM lists WHERE value = ?2
    AND (attribute = ?1 OR (attribute = '' AND ?1 = 'ip')) AND until <= ?3";
/// Operator, action and time stay in the audit. The target is erased, unless the list that the
/// action was about still has the entry.
const ERASE_AUDIT_TARGET: &str = "UPDATE audit
    SET target = substr(target, 1, instr(target, ' ')) || '(erased)', why = NULL,
        before = NULL, after = NULL, about = NULL
    WHERE (about = ?1 || '=' || ?2 OR (about = ?2 AND ?1 = 'ip'))
    AND NOT EXISTS (SELECT 1 FROM lists AS l WHERE l.value = ?2
        AND (l.attribute = ?1 OR (l.attribute = '' AND ?1 = 'ip'))
        AND audit.target = l.list || ' ' || audit.about)";

fn erase_subject(
    transaction: &Transaction<'_>,
    subject: i64,
    now: Time,
    erased: &mut ErasureCounts,
) -> Result<(), WriteError> {
    let count = |sql: &str, values: &[i64]| {
        transaction.query_row(sql, params_from_iter(values), |row| row.get::<_, i64>(0))
    };
    let active_blocks = "SELECT count(*) FROM blocks WHERE subject = ?1 AND until > ?2";
    let blocked = count(active_blocks, &[subject, now.micros()])?;
    let debts = count("SELECT count(*) FROM debts WHERE subject = ?1", &[subject])?;
    erased.retained_blocks += blocked as u64;
    erased.retained_debts += debts as u64;
    if blocked + debts > 0 {
        return Ok(());
    }
    erased.blocks += count("SELECT count(*) FROM blocks WHERE subject = ?1", &[subject])? as u64;
    let erase_target = "UPDATE audit SET target = '(erased)', before = NULL, after = NULL,
                        why = NULL, subject = NULL WHERE subject = ?1";
    erased.audit += transaction.execute(erase_target, [subject])? as u64;
    // Deletes parts, block and history too, by foreign keys.
    transaction.execute("DELETE FROM subjects WHERE id = ?1", [subject])?;
    Ok(())
}

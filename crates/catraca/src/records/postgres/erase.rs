//! Export and erasure of one subject, by the names it is kept under.
//!
//! Must not free anybody: a block, a list entry or a debt that stands is kept and counted.

use catraca_core::time::Time;

use super::read::{
    Answer, BLOCK, HISTORY, audit_row, block_row, history_row, numbered, subjects_about,
};
use super::session::Session;
use super::value::{Value, values};
use crate::postgres::trouble::Trouble;
use crate::records::privacy::{Erased, Exported};
use crate::records::record::About;

pub(super) fn export(session: &mut Session, about: &[About]) -> Answer<Exported> {
    session.begin("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?;
    let exported = gather(session, about);
    match exported.is_ok() {
        true => session.end("COMMIT")?,
        false => session.leave(),
    }
    exported
}

fn gather(session: &mut Session, about: &[About]) -> Answer<Exported> {
    let mut exported = Exported::default();
    for subject in subjects(session, about)? {
        let blocks = session.ask(&format!("{BLOCK} WHERE b.subject = $1"), &values![subject])?;
        for row in &blocks {
            let history = session.ask(HISTORY, &values![subject])?;
            let history = history.iter().map(history_row).collect::<Answer<_>>()?;
            exported.blocks.push((block_row(row)?, history));
        }
        let audited =
            session.ask(&format!("{AUDIT} subject = $1 ORDER BY id"), &values![subject])?;
        exported.audit.extend(audited.iter().map(audit_row).collect::<Answer<Vec<_>>>()?);
    }
    for About { attribute, value } in about {
        let audited = session.ask(&format!("{AUDIT} {ABOUT}"), &values![attribute, value])?;
        exported.audit.extend(audited.iter().map(audit_row).collect::<Answer<Vec<_>>>()?);
        exported.lists.extend(entries(session, attribute, value)?);
        let sql = "SELECT name, fact FROM catraca.facts WHERE attribute = $1 AND value = $2";
        for row in session.ask(sql, &values![attribute, value])? {
            exported.facts.push((row.try_get(0)?, row.try_get(1)?));
        }
    }
    Ok(exported)
}

const ABOUT: &str = "about = $1 || '=' || $2 OR (about = $2 AND $1 = 'ip') ORDER BY id";
const AUDIT: &str = "SELECT id, at, by, act, target, why, before, after FROM catraca.audit WHERE";

type Listed = (String, Option<String>, Option<i64>);

/// An address may be listed as a range of its own.
fn entries(session: &mut Session, attribute: &str, value: &str) -> Result<Vec<Listed>, Trouble> {
    let sql = "SELECT list, reason, until FROM catraca.lists
        WHERE value = $2 AND (attribute = $1 OR (attribute = '' AND $1 = 'ip')) ORDER BY id";
    let rows = session.ask(sql, &values![attribute, value])?;
    let listed = rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?)));
    listed.collect::<Result<_, _>>().map_err(Trouble::Said)
}

fn subjects(session: &mut Session, about: &[About]) -> Result<Vec<i64>, Trouble> {
    if about.is_empty() {
        return Ok(Vec::new());
    }
    let (sql, values): (String, Vec<Value>) = subjects_about(about);
    let rows = session.ask(&numbered(&sql, 0), &values)?;
    rows.iter().map(|row| row.try_get(0).map_err(Trouble::Said)).collect()
}

/// Within the writer's transaction.
pub(super) fn erase(session: &mut Session, about: &[About], now: Time) -> Result<Erased, Trouble> {
    let mut erased = Erased::default();
    for subject in subjects(session, about)? {
        erase_subject(session, subject, now, &mut erased)?;
    }
    for About { attribute, value } in about {
        let listed = entries(session, attribute, value)?;
        let stands = |entry: &&Listed| entry.2.is_none_or(|until| until > now.micros());
        erased.retained_lists += listed.iter().filter(stands).count() as u64;
        let values = values![attribute, value];
        session.ask(ENDED, &values![attribute, value, now.micros()])?;
        erased.facts += session.ask(FACTS, &values)?.len() as u64;
        erased.audit += session.ask(UNNAME_ABOUT, &values)?.len() as u64;
    }
    Ok(erased)
}

const ENDED: &str = "DELETE FROM catraca.lists WHERE value = $2
    AND (attribute = $1 OR (attribute = '' AND $1 = 'ip')) AND until <= $3 RETURNING id";
const FACTS: &str = "DELETE FROM catraca.facts WHERE attribute = $1 AND value = $2 RETURNING name";
/// Who did what kind of thing, and when, stays; what it was done to goes, unless that very list
/// still has an entry about it.
const UNNAME_ABOUT: &str = "UPDATE catraca.audit AS a
    SET target = substr(a.target, 1, strpos(a.target, ' ')) || '(erased)', why = NULL,
        before = NULL, after = NULL, about = NULL
    WHERE (a.about = $1 || '=' || $2 OR (a.about = $2 AND $1 = 'ip'))
    AND NOT EXISTS (SELECT 1 FROM catraca.lists AS l WHERE l.value = $2
        AND (l.attribute = $1 OR (l.attribute = '' AND $1 = 'ip'))
        AND a.target = l.list || ' ' || a.about)
    RETURNING a.id";
const UNNAME: &str = "UPDATE catraca.audit SET target = '(erased)', before = NULL,
    after = NULL, why = NULL, subject = NULL WHERE subject = $1 RETURNING id";
const STANDS: &str = "SELECT subject FROM catraca.blocks WHERE subject = $1 AND until > $2";

fn erase_subject(
    session: &mut Session,
    subject: i64,
    now: Time,
    erased: &mut Erased,
) -> Result<(), Trouble> {
    let mut count =
        |sql: &str, values: Vec<Value>| session.ask(sql, &values).map(|rows| rows.len() as u64);
    let blocked = count(STANDS, values![subject, now.micros()])?;
    let owed = count("SELECT subject FROM catraca.debts WHERE subject = $1", values![subject])?;
    erased.retained_blocks += blocked;
    erased.retained_debts += owed;
    if blocked + owed > 0 {
        return Ok(());
    }
    let blocks = "SELECT subject FROM catraca.blocks WHERE subject = $1";
    erased.blocks += count(blocks, values![subject])?;
    erased.audit += count(UNNAME, values![subject])?;
    // Parts, block and history go with it.
    count("DELETE FROM catraca.subjects WHERE id = $1", values![subject])?;
    Ok(())
}

//! What is in force, for a start: one pass over each table, some thousand rows at a time.
//!
//! Must not leave out a row that it cannot read: that would free somebody in silence.

use catraca_core::cell::block::Note;
use catraca_core::digest::Key;
use catraca_core::limit::BucketTerms;
use catraca_core::lists::Entry;
use catraca_core::time::{Span, Time};
use tokio_postgres::Row;

use super::lists::what;
use super::read::Answer;
use super::session::Session;
use crate::records::error::RecordsError;
use crate::records::record::{About, ListName, PolicyReset, mode_of, origin_of};
use crate::records::row::{Extent, Shared, Standing, StandingBlock, StandingDebt};

/// Rows that travel together.
const ROWS: usize = 10_000;

pub(super) fn standing(
    session: &mut Session,
    extent: Extent,
    times: (Time, Time),
    visit: &mut dyn FnMut(Standing),
) -> Answer<()> {
    let walked = tables(session, extent, times, visit);
    if walked.is_err() {
        session.leave();
    }
    walked
}

fn tables(
    session: &mut Session,
    extent: Extent,
    (now, since): (Time, Time),
    visit: &mut dyn FnMut(Standing),
) -> Answer<()> {
    let (now, since) = (now.micros(), since.micros());
    let mut texts = Shared::default();
    // One transaction: all tables of one instant.
    session.begin("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?;
    let mut each = |sql: String, read: &mut dyn FnMut(&Row) -> Answer<Standing>| -> Answer<()> {
        walk(session, &sql, &mut |row| read(row).map(&mut *visit))
    };
    let forgotten = format!("coalesce(reset >= {since}, false)");
    let freed = format!("SELECT key, {forgotten} FROM catraca.blocks WHERE freed >= {since}");
    each(freed, &mut freed_key)?;
    each(format!("{LISTS} > {now} ORDER BY id"), &mut list)?;
    each(FACTS.to_owned(), &mut fact)?;
    each(MODES.to_owned(), &mut mode)?;
    each(RESETS.to_owned(), &mut reset)?;
    if extent == Extent::Everything {
        let remembered = format!("level > 0 AND until + forget > {now} AND until <= {now}");
        for which in [format!("until > {now}"), remembered] {
            each(format!("{BLOCKS} {which}"), &mut |row| block(row, &mut texts))?;
        }
        each(DEBTS.to_owned(), &mut debt)?;
    }
    Ok(session.end("COMMIT")?)
}

const BLOCKS: &str = "SELECT key, until, origin, shadow, reason, status, message, level, forget
    FROM catraca.blocks WHERE";
const LISTS: &str = "SELECT list, attribute, value, reason, until
    FROM catraca.lists WHERE until IS NULL OR until";
const FACTS: &str = "SELECT attribute, value, name, fact FROM catraca.facts";
const MODES: &str = "SELECT policy, mode FROM catraca.modes";
const RESETS: &str = "SELECT policy, epoch FROM catraca.resets";
const DEBTS: &str = "SELECT s.key, d.at, d.balance, d.size, d.tokens, d.period
    FROM catraca.debts AS d JOIN catraca.subjects AS s ON s.id = d.subject";

/// Visits every row of a question.
fn walk(session: &mut Session, sql: &str, visit: &mut dyn FnMut(&Row) -> Answer<()>) -> Answer<()> {
    session.batch(&format!("DECLARE walk NO SCROLL CURSOR FOR {sql}"))?;
    loop {
        let rows = session.ask(&format!("FETCH {ROWS} FROM walk"), &[])?;
        rows.iter().try_for_each(&mut *visit)?;
        if rows.len() < ROWS {
            return Ok(session.batch("CLOSE walk")?);
        }
    }
}

fn freed_key(row: &Row) -> Answer<Standing> {
    let (key, forgotten) = (key(row, 0)?, row.try_get(1)?);
    Ok(if forgotten { Standing::Forgotten(key) } else { Standing::Free(key) })
}

fn block(row: &Row, texts: &mut Shared) -> Answer<Standing> {
    let mut shared = |column: usize| -> Answer<_> {
        Ok(row.try_get::<_, Option<&str>>(column)?.map(|text| texts.get(text)))
    };
    let (reason, message) = (shared(4)?, shared(6)?);
    let status = row.try_get::<_, Option<i64>>(5)?.map(u16::try_from).transpose();
    Ok(Standing::Block(StandingBlock {
        key: key(row, 0)?,
        until: Time::from_micros(row.try_get(1)?),
        origin: origin_of(row.try_get(2)?).ok_or_else(|| odd("origin"))?,
        shadow: row.try_get(3)?,
        note: Note { reason, status: status.map_err(|_| odd("status"))?, message },
        level: u32::try_from(row.try_get::<_, i64>(7)?).map_err(|_| odd("level"))?,
        forget: Span::from_micros(row.try_get(8)?),
    }))
}

fn list(row: &Row) -> Answer<Standing> {
    let name: &str = row.try_get(0)?;
    let list = [ListName::Allow, ListName::Block].into_iter().find(|list| list.as_str() == name);
    let what = what(row.try_get(1)?, row.try_get(2)?)?;
    let until = row.try_get::<_, Option<i64>>(4)?.map(Time::from_micros);
    let entry = Entry { what, reason: row.try_get(3)?, until };
    Ok(Standing::List(list.ok_or_else(|| odd("list"))?, entry))
}

fn fact(row: &Row) -> Answer<Standing> {
    let about = About { attribute: row.try_get(0)?, value: row.try_get(1)? };
    Ok(Standing::Fact(about, row.try_get(2)?, row.try_get(3)?))
}

fn mode(row: &Row) -> Answer<Standing> {
    let mode = mode_of(row.try_get(1)?).ok_or_else(|| odd("mode"))?;
    Ok(Standing::Mode(row.try_get(0)?, mode))
}

fn reset(row: &Row) -> Answer<Standing> {
    let (policy, epoch) = (row.try_get(0)?, Time::from_micros(row.try_get(1)?));
    Ok(Standing::Reset(PolicyReset { policy, epoch }))
}

fn debt(row: &Row) -> Answer<Standing> {
    let (size, tokens, period) = (row.try_get(3)?, row.try_get(4)?, row.try_get(5)?);
    Ok(Standing::Debt(StandingDebt {
        key: key(row, 0)?,
        at: Time::from_micros(row.try_get(1)?),
        balance: row.try_get(2)?,
        terms: BucketTerms { size, tokens, period },
    }))
}

pub(super) fn key(row: &Row, column: usize) -> Answer<Key> {
    let bytes: &[u8] = row.try_get(column)?;
    bytes.try_into().map(Key::from_bytes).map_err(|_| odd("key"))
}

pub(super) fn odd(what: &str) -> RecordsError {
    RecordsError(format!("a row holds an unreadable {what}"))
}

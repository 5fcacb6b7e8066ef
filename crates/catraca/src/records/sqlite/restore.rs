//! What is in force, for a start: one pass over each table.
//!
//! Must not leave out a row that it cannot read: that would free somebody in silence.

use catraca_core::address::Range;
use catraca_core::cell::block::Note;
use catraca_core::digest::Key;
use catraca_core::limit::BucketTerms;
use catraca_core::lists::{Entry, What};
use catraca_core::time::{Span, Time};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, params};

use crate::records::error::RecordsError;
use crate::records::record::{About, ListName, PolicyReset, mode_of, origin_of};
use crate::records::row::{Extent, Shared, Standing, StandingBlock, StandingDebt};

type Visit<'v> = &'v mut dyn FnMut(Standing);

pub(super) fn standing(
    connection: &mut Connection,
    extent: Extent,
    (now, since): (Time, Time),
    visit: Visit<'_>,
) -> Result<(), RecordsError> {
    // One transaction: all tables of one instant.
    let connection = connection.transaction()?;
    freed(&connection, since, visit)?;
    lists(&connection, now, visit)?;
    facts(&connection, visit)?;
    modes(&connection, visit)?;
    resets(&connection, visit)?;
    if extent == Extent::Everything {
        blocks(&connection, now, visit)?;
        debts(&connection, visit)?;
    }
    Ok(())
}

fn blocks(connection: &Connection, now: Time, visit: Visit<'_>) -> Result<(), RecordsError> {
    let mut texts = Shared::default();
    for which in ["until > ?1", "level > 0 AND until + forget > ?1 AND until <= ?1"] {
        let sql = format!(
            "SELECT key, until, origin, shadow, reason, status, message, level, forget
             FROM blocks WHERE {which}"
        );
        let mut statement = connection.prepare(&sql)?;
        let mut rows = statement.query([now.micros()])?;
        while let Some(row) = rows.next()? {
            visit(Standing::Block(block(row, &mut texts)?));
        }
    }
    Ok(())
}

fn block(row: &Row<'_>, texts: &mut Shared) -> Result<StandingBlock, RecordsError> {
    let word = row.get_ref(2)?.as_str().map_err(|_| odd("origin"))?;
    Ok(StandingBlock {
        key: key(row, 0)?,
        until: Time::from_micros(row.get(1)?),
        origin: origin_of(word).ok_or_else(|| odd("origin"))?,
        shadow: row.get(3)?,
        note: Note {
            reason: text(row, 4)?.map(|text| texts.get(text)),
            status: row.get(5)?,
            message: text(row, 6)?.map(|text| texts.get(text)),
        },
        level: row.get(7)?,
        forget: Span::from_micros(row.get(8)?),
    })
}

fn freed(connection: &Connection, since: Time, visit: Visit<'_>) -> Result<(), RecordsError> {
    let sql = "SELECT key, coalesce(reset >= ?1, 0) FROM blocks WHERE freed >= ?1";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([since.micros()])?;
    while let Some(row) = rows.next()? {
        let (key, forgotten) = (key(row, 0)?, row.get(1)?);
        visit(if forgotten { Standing::Forgotten(key) } else { Standing::Free(key) });
    }
    Ok(())
}

fn lists(connection: &Connection, now: Time, visit: Visit<'_>) -> Result<(), RecordsError> {
    let sql = "SELECT list, attribute, value, reason, until FROM lists
               WHERE until IS NULL OR until > ?1 ORDER BY id";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query(params![now.micros()])?;
    while let Some(row) = rows.next()? {
        let (list, attribute, value): (String, String, String) =
            (row.get(0)?, row.get(1)?, row.get(2)?);
        let list = [ListName::Allow, ListName::Block].into_iter().find(|l| l.as_str() == list);
        let what = match attribute.is_empty() {
            true => What::Range(Range::parse(&value).map_err(|_| odd("range"))?),
            false => What::Value { attribute, value },
        };
        let until = row.get::<_, Option<i64>>(4)?.map(Time::from_micros);
        let entry = Entry { what, reason: row.get(3)?, until };
        visit(Standing::List(list.ok_or_else(|| odd("list"))?, entry));
    }
    Ok(())
}

fn facts(connection: &Connection, visit: Visit<'_>) -> Result<(), RecordsError> {
    let mut statement = connection.prepare("SELECT attribute, value, name, fact FROM facts")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let about = About { attribute: row.get(0)?, value: row.get(1)? };
        visit(Standing::Fact(about, row.get(2)?, row.get(3)?));
    }
    Ok(())
}

fn modes(connection: &Connection, visit: Visit<'_>) -> Result<(), RecordsError> {
    let mut statement = connection.prepare("SELECT policy, mode FROM modes")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let mode = mode_of(&row.get::<_, String>(1)?).ok_or_else(|| odd("mode"))?;
        visit(Standing::Mode(row.get(0)?, mode));
    }
    Ok(())
}

fn resets(connection: &Connection, visit: Visit<'_>) -> Result<(), RecordsError> {
    let mut statement = connection.prepare("SELECT policy, epoch FROM resets")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (policy, epoch) = (row.get(0)?, Time::from_micros(row.get(1)?));
        visit(Standing::Reset(PolicyReset { policy, epoch }));
    }
    Ok(())
}

fn debts(connection: &Connection, visit: Visit<'_>) -> Result<(), RecordsError> {
    let sql = "SELECT s.key, d.at, d.balance, d.size, d.tokens, d.period
               FROM debts AS d JOIN subjects AS s ON s.id = d.subject";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let terms = BucketTerms { size: row.get(3)?, tokens: row.get(4)?, period: row.get(5)? };
        let (at, balance) = (Time::from_micros(row.get(1)?), row.get(2)?);
        visit(Standing::Debt(StandingDebt { key: key(row, 0)?, at, balance, terms }));
    }
    Ok(())
}

pub(super) fn key(row: &Row<'_>, column: usize) -> Result<Key, RecordsError> {
    let bytes = row.get_ref(column)?.as_blob().map_err(|_| odd("key"))?;
    bytes.try_into().map(Key::from_bytes).map_err(|_| odd("key"))
}

fn text<'r>(row: &'r Row<'_>, column: usize) -> Result<Option<&'r str>, RecordsError> {
    match row.get_ref(column)? {
        ValueRef::Null => Ok(None),
        value => value.as_str().map(Some).map_err(|_| odd("text")),
    }
}

pub(super) fn odd(what: &str) -> RecordsError {
    RecordsError(format!("a row holds an unreadable {what}"))
}

//! Reads all active items at start, in one pass over each table.
//!
//! An unreadable row is an error: skipping it would silently release a block.

use catraca_core::address::AddressRange;
use catraca_core::cell::block::{Block, BlockNote};
use catraca_core::digest::Key;
use catraca_core::limit::BucketTerms;
use catraca_core::lists::{AccessListEntry, ListTarget};
use catraca_core::time::{Span, Time};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row, params};

use crate::records::error::RecordsError;
use crate::records::record::{AttributeValue, ListName, PolicyReset, parse_mode, parse_origin};
use crate::records::row::{RestoreScope, RestoredDebt, RestoredItem, TextInterner};

type Visit<'v> = &'v mut dyn FnMut(RestoredItem);

pub(super) fn restore_items(
    connection: &mut Connection,
    scope: RestoreScope,
    now: Time,
    since: Time,
    visit: Visit<'_>,
) -> Result<(), RecordsError> {
    // One transaction, so that all tables are of one point in time.
    let connection = connection.transaction()?;
    freed_keys(&connection, since, visit)?;
    lists(&connection, now, visit)?;
    facts(&connection, visit)?;
    modes(&connection, visit)?;
    resets(&connection, visit)?;
    if scope == RestoreScope::Everything {
        blocks(&connection, now, visit)?;
        debts(&connection, visit)?;
    }
    Ok(())
}

fn blocks(connection: &Connection, now: Time, visit: Visit<'_>) -> Result<(), RecordsError> {
    let mut texts = TextInterner::default();
    for which in ["until > ?1", "level > 0 AND until + forget > ?1 AND until <= ?1"] {
        let sql = format!(
            "SELECT key, until, origin, shadow, reason, status, message, level, forget
             FROM blocks WHERE {which}"
        );
        let mut statement = connection.prepare(&sql)?;
        let mut rows = statement.query([now.micros()])?;
        while let Some(row) = rows.next()? {
            visit(RestoredItem::Block(key(row, 0)?, block(row, 1, &mut texts)?));
        }
    }
    Ok(())
}

/// Reads `until, origin, shadow, reason, status, message, level, forget`, from column `first` on.
pub(super) fn block(
    row: &Row<'_>,
    first: usize,
    texts: &mut TextInterner,
) -> Result<Block, RecordsError> {
    let word = row.get_ref(first + 1)?.as_str().map_err(|_| invalid_column("origin"))?;
    Ok(Block {
        until: Time::from_micros(row.get(first)?),
        origin: parse_origin(word).ok_or_else(|| invalid_column("origin"))?,
        shadow: row.get(first + 2)?,
        note: BlockNote {
            reason: text(row, first + 3)?.map(|text| texts.get(text)),
            status: row.get(first + 4)?,
            message: text(row, first + 5)?.map(|text| texts.get(text)),
        },
        level: row.get(first + 6)?,
        forget: Span::from_micros(row.get(first + 7)?),
    })
}

fn freed_keys(connection: &Connection, since: Time, visit: Visit<'_>) -> Result<(), RecordsError> {
    let sql = "SELECT key, coalesce(reset >= ?1, 0) FROM blocks WHERE freed >= ?1";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([since.micros()])?;
    while let Some(row) = rows.next()? {
        let key = key(row, 0)?;
        let was_reset = row.get(1)?;
        visit(if was_reset { RestoredItem::ResetKey(key) } else { RestoredItem::Released(key) });
    }
    Ok(())
}

fn lists(connection: &Connection, now: Time, visit: Visit<'_>) -> Result<(), RecordsError> {
    let sql = "SELECT list, attribute, value, reason, until FROM lists
               WHERE until IS NULL OR until > ?1 ORDER BY id";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query(params![now.micros()])?;
    while let Some(row) = rows.next()? {
        let list: String = row.get(0)?;
        let attribute: String = row.get(1)?;
        let value: String = row.get(2)?;
        let list = [ListName::Allow, ListName::Block].into_iter().find(|l| l.as_str() == list);
        let what = match attribute.is_empty() {
            true => {
                ListTarget::Range(AddressRange::parse(&value).map_err(|_| invalid_column("range"))?)
            }
            false => ListTarget::Value { attribute, value },
        };
        let until = row.get::<_, Option<i64>>(4)?.map(Time::from_micros);
        let entry = AccessListEntry { target: what, reason: row.get(3)?, until };
        visit(RestoredItem::List(list.ok_or_else(|| invalid_column("list"))?, entry));
    }
    Ok(())
}

fn facts(connection: &Connection, visit: Visit<'_>) -> Result<(), RecordsError> {
    let mut statement = connection.prepare("SELECT attribute, value, name, fact FROM facts")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let about = AttributeValue { attribute: row.get(0)?, value: row.get(1)? };
        visit(RestoredItem::Fact(about, row.get(2)?, row.get(3)?));
    }
    Ok(())
}

fn modes(connection: &Connection, visit: Visit<'_>) -> Result<(), RecordsError> {
    let mut statement = connection.prepare("SELECT policy, mode FROM modes")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let mode = parse_mode(&row.get::<_, String>(1)?).ok_or_else(|| invalid_column("mode"))?;
        visit(RestoredItem::Mode(row.get(0)?, mode));
    }
    Ok(())
}

fn resets(connection: &Connection, visit: Visit<'_>) -> Result<(), RecordsError> {
    let mut statement = connection.prepare("SELECT policy, epoch FROM resets")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let policy = row.get(0)?;
        let epoch = Time::from_micros(row.get(1)?);
        visit(RestoredItem::ResetPolicy(PolicyReset { policy, epoch }));
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
        let at = Time::from_micros(row.get(1)?);
        let balance = row.get(2)?;
        visit(RestoredItem::Debt(RestoredDebt { key: key(row, 0)?, at, balance, terms }));
    }
    Ok(())
}

pub(super) fn key(row: &Row<'_>, column: usize) -> Result<Key, RecordsError> {
    let bytes = row.get_ref(column)?.as_blob().map_err(|_| invalid_column("key"))?;
    bytes.try_into().map(Key::from_bytes).map_err(|_| invalid_column("key"))
}

fn text<'r>(row: &'r Row<'_>, column: usize) -> Result<Option<&'r str>, RecordsError> {
    match row.get_ref(column)? {
        ValueRef::Null => Ok(None),
        value => value.as_str().map(Some).map_err(|_| invalid_column("text")),
    }
}

pub(super) fn invalid_column(what: &str) -> RecordsError {
    RecordsError(format!("a row has an invalid {what}"))
}

//! Queries of lists and facts for operators, by page, and of a block by its key.

use catraca_core::address::AddressRange;
use catraca_core::digest::Key;
use catraca_core::lists::ListTarget;
use catraca_core::time::Time;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::read::{BLOCK, block_row};
use super::restore::invalid_column;
use crate::records::error::RecordsError;
use crate::records::record::{AttributeValue, ListName};
use crate::records::row::{BlockRow, FactCursor, FactRow, ListRow, PAGE_MAX, Page};

pub(super) fn lists(
    connection: &Connection,
    list: ListName,
    before: Option<i64>,
    limit: u32,
    now: Time,
) -> Result<Page<ListRow, i64>, RecordsError> {
    let limit = limit.clamp(1, PAGE_MAX) as usize;
    let mut statement = connection.prepare_cached(
        "SELECT id, attribute, value, at, until, reason, by FROM lists
         WHERE list = ?1 AND id < coalesce(?2, 9223372036854775807)
           AND (until IS NULL OR until > ?3)
         ORDER BY id DESC LIMIT ?4",
    )?;
    let values = params![list.as_str(), before, now.micros(), (limit + 1) as i64];
    let mut rows = statement.query(values)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(list_row(row)?);
    }
    let more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| more).map(|last| last.id);
    Ok(Page { rows: found, next })
}

fn list_row(row: &Row<'_>) -> Result<ListRow, RecordsError> {
    let attribute: String = row.get(1)?;
    let value: String = row.get(2)?;
    let what = match attribute.is_empty() {
        true => {
            ListTarget::Range(AddressRange::parse(&value).map_err(|_| invalid_column("range"))?)
        }
        false => ListTarget::Value { attribute, value },
    };
    Ok(ListRow {
        id: row.get(0)?,
        what,
        at: Time::from_micros(row.get(3)?),
        until: row.get::<_, Option<i64>>(4)?.map(Time::from_micros),
        reason: row.get(5)?,
        by: row.get(6)?,
    })
}

pub(super) fn facts(
    connection: &Connection,
    after: Option<FactCursor>,
    limit: u32,
) -> Result<Page<FactRow, FactCursor>, RecordsError> {
    let limit = limit.clamp(1, PAGE_MAX) as usize;
    let mut statement = connection.prepare_cached(
        "SELECT attribute, value, name, fact, at, by FROM facts
         WHERE (attribute, value, name) > (?1, ?2, ?3)
         ORDER BY attribute, value, name LIMIT ?4",
    )?;
    let (attribute, value, name) = after.unwrap_or_default();
    let values = params![attribute, value, name, (limit + 1) as i64];
    let rows = statement.query_map(values, |row| {
        Ok(FactRow {
            about: AttributeValue { attribute: row.get(0)?, value: row.get(1)? },
            name: row.get(2)?,
            fact: row.get(3)?,
            at: Time::from_micros(row.get(4)?),
            by: row.get(5)?,
        })
    })?;
    let mut found: Vec<FactRow> = rows.collect::<Result<_, _>>()?;
    let more = found.len() > limit;
    found.truncate(limit);
    let next = found.last().filter(|_| more).map(FactRow::cursor);
    Ok(Page { rows: found, next })
}

pub(super) fn block_of(
    connection: &Connection,
    key: Key,
) -> Result<Option<BlockRow>, RecordsError> {
    let sql = format!("{BLOCK} WHERE b.key = ?1");
    let mut statement = connection.prepare_cached(&sql)?;
    let row = statement.query_row([key.to_bytes()], |row| Ok(block_row(row))).optional()?;
    row.transpose()
}

//! Reads all active items at start, in one pass over each table, with a cursor.
//!
//! An unreadable row is an error: skipping it would silently release a block.

use catraca_core::cell::block::{Block, BlockNote};
use catraca_core::digest::Key;
use catraca_core::limit::BucketTerms;
use catraca_core::lists::AccessListEntry;
use catraca_core::time::{Span, Time};
use tokio_postgres::Row;

use super::lists::what;
use super::read::PostgresReadResult;
use super::session::Session;
use crate::records::error::RecordsError;
use crate::records::record::{AttributeValue, ListName, PolicyReset, parse_mode, parse_origin};
use crate::records::row::{RestoreScope, RestoredDebt, RestoredItem, TextInterner};

/// Rows per fetch.
const ROWS: usize = 10_000;

pub(super) fn restore_items(
    session: &mut Session,
    scope: RestoreScope,
    now: Time,
    since: Time,
    visit: &mut dyn FnMut(RestoredItem),
) -> PostgresReadResult<()> {
    let restored = read_tables(session, scope, now, since, visit);
    if restored.is_err() {
        // Ends the transaction and its cursor.
        session.disconnect();
    }
    restored
}

fn read_tables(
    session: &mut Session,
    scope: RestoreScope,
    now: Time,
    since: Time,
    visit: &mut dyn FnMut(RestoredItem),
) -> PostgresReadResult<()> {
    let now = now.micros();
    let since = since.micros();
    let mut texts = TextInterner::default();
    // One transaction, so that all tables are of one point in time.
    session.begin("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?;
    let mut each = |sql: String,
                    read: &mut dyn FnMut(&Row) -> PostgresReadResult<RestoredItem>|
     -> PostgresReadResult<()> {
        for_each_row(session, &sql, &mut |row| read(row).map(&mut *visit))
    };
    let was_reset = format!("coalesce(reset >= {since}, false)");
    let freed = format!("SELECT key, {was_reset} FROM catraca.blocks WHERE freed >= {since}");
    each(freed, &mut freed_key)?;
    each(format!("{LISTS} > {now} ORDER BY id"), &mut list)?;
    each(FACTS.to_owned(), &mut fact)?;
    each(MODES.to_owned(), &mut mode)?;
    each(RESETS.to_owned(), &mut reset)?;
    if scope == RestoreScope::Everything {
        let remembered = format!("level > 0 AND until + forget > {now} AND until <= {now}");
        for which in [format!("until > {now}"), remembered] {
            each(format!("{BLOCKS} {which}"), &mut |row| {
                Ok(RestoredItem::Block(key(row, 0)?, block(row, 1, &mut texts)?))
            })?;
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

/// Calls `visit` with every row of a query.
fn for_each_row(
    session: &mut Session,
    sql: &str,
    visit: &mut dyn FnMut(&Row) -> PostgresReadResult<()>,
) -> PostgresReadResult<()> {
    session.execute_batch(&format!("DECLARE walk NO SCROLL CURSOR FOR {sql}"))?;
    loop {
        let rows = session.query(&format!("FETCH {ROWS} FROM walk"), &[])?;
        rows.iter().try_for_each(&mut *visit)?;
        if rows.len() < ROWS {
            return Ok(session.execute_batch("CLOSE walk")?);
        }
    }
}

fn freed_key(row: &Row) -> PostgresReadResult<RestoredItem> {
    let key = key(row, 0)?;
    let was_reset = row.try_get(1)?;
    Ok(if was_reset { RestoredItem::ResetKey(key) } else { RestoredItem::Released(key) })
}

/// Reads `until, origin, shadow, reason, status, message, level, forget`, from column `first` on.
pub(super) fn block(
    row: &Row,
    first: usize,
    texts: &mut TextInterner,
) -> PostgresReadResult<Block> {
    let mut shared = |column: usize| -> PostgresReadResult<_> {
        Ok(row.try_get::<_, Option<&str>>(column)?.map(|text| texts.get(text)))
    };
    let reason = shared(first + 3)?;
    let message = shared(first + 5)?;
    let status = row.try_get::<_, Option<i64>>(first + 4)?.map(u16::try_from).transpose();
    let level = u32::try_from(row.try_get::<_, i64>(first + 6)?);
    Ok(Block {
        until: Time::from_micros(row.try_get(first)?),
        origin: parse_origin(row.try_get(first + 1)?).ok_or_else(|| invalid_column("origin"))?,
        shadow: row.try_get(first + 2)?,
        note: BlockNote { reason, status: status.map_err(|_| invalid_column("status"))?, message },
        level: level.map_err(|_| invalid_column("level"))?,
        forget: Span::from_micros(row.try_get(first + 7)?),
    })
}

fn list(row: &Row) -> PostgresReadResult<RestoredItem> {
    let name: &str = row.try_get(0)?;
    let list = [ListName::Allow, ListName::Block].into_iter().find(|list| list.as_str() == name);
    let what = what(row.try_get(1)?, row.try_get(2)?)?;
    let until = row.try_get::<_, Option<i64>>(4)?.map(Time::from_micros);
    let entry = AccessListEntry { target: what, reason: row.try_get(3)?, until };
    Ok(RestoredItem::List(list.ok_or_else(|| invalid_column("list"))?, entry))
}

fn fact(row: &Row) -> PostgresReadResult<RestoredItem> {
    let about = AttributeValue { attribute: row.try_get(0)?, value: row.try_get(1)? };
    Ok(RestoredItem::Fact(about, row.try_get(2)?, row.try_get(3)?))
}

fn mode(row: &Row) -> PostgresReadResult<RestoredItem> {
    let mode = parse_mode(row.try_get(1)?).ok_or_else(|| invalid_column("mode"))?;
    Ok(RestoredItem::Mode(row.try_get(0)?, mode))
}

fn reset(row: &Row) -> PostgresReadResult<RestoredItem> {
    let policy = row.try_get(0)?;
    let epoch = Time::from_micros(row.try_get(1)?);
    Ok(RestoredItem::ResetPolicy(PolicyReset { policy, epoch }))
}

fn debt(row: &Row) -> PostgresReadResult<RestoredItem> {
    let size = row.try_get(3)?;
    let tokens = row.try_get(4)?;
    let period = row.try_get(5)?;
    Ok(RestoredItem::Debt(RestoredDebt {
        key: key(row, 0)?,
        at: Time::from_micros(row.try_get(1)?),
        balance: row.try_get(2)?,
        terms: BucketTerms { size, tokens, period },
    }))
}

pub(super) fn key(row: &Row, column: usize) -> PostgresReadResult<Key> {
    let bytes: &[u8] = row.try_get(column)?;
    bytes.try_into().map(Key::from_bytes).map_err(|_| invalid_column("key"))
}

pub(super) fn invalid_column(what: &str) -> RecordsError {
    RecordsError(format!("a row has an invalid {what}"))
}

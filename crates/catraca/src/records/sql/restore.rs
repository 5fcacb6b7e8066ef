//! Reads all active items at start, in one pass over each table.
//!
//! An unreadable row is an error: skipping it would silently release a block.

use catraca_core::address::AddressRange;
use catraca_core::cell::block::{Block, BlockNote};
use catraca_core::digest::Key;
use catraca_core::limit::BucketTerms;
use catraca_core::lists::{AccessListEntry, ListTarget};
use catraca_core::time::Time;

use super::value::{SqlRow, Value, invalid_column, values};
use crate::records::Records;
use crate::records::database::{Access, Database, DatabaseResult, transaction};
use crate::records::display::namespace_of_column;
use crate::records::error::RecordsError;
use crate::records::record::{AttributeValue, ListName, PolicyReset, parse_mode, parse_origin};
use crate::records::row::{RestoreScope, RestoredDebt, RestoredFact, RestoredItem};
use crate::records::text_interner::TextInterner;

const FREED: &str = "SELECT b.key, coalesce(b.reset >= $1, false), (
        SELECT h.until FROM catraca.history AS h
        WHERE h.subject = b.subject AND h.at <= b.freed AND h.act IN ('started', 'extended')
        ORDER BY h.id DESC LIMIT 1)
    FROM catraca.blocks AS b WHERE b.freed >= $1";
const LISTS: &str = "SELECT list, attribute, value, reason, until, namespace FROM catraca.lists
    WHERE until IS NULL OR until > $1 ORDER BY id";
const FACTS: &str = "SELECT attribute, value, name, fact, namespace FROM catraca.facts";
const MODES: &str = "SELECT policy, mode, at FROM catraca.modes";
const RESETS: &str = "SELECT policy, epoch FROM catraca.resets";
const ACTIVE_BLOCKS: &str = "SELECT key, until, origin, shadow, reason, status, message, level,
    forget FROM catraca.blocks WHERE until > $1";
const RECENT_BLOCKS: &str = "SELECT key, until, origin, shadow, reason, status, message, level,
    forget FROM catraca.blocks WHERE until > $1 AND touched >= $2";
/// Blocks that have ended and whose level is remembered.
const REMEMBERED_LEVELS: &str = "SELECT key, until, origin, shadow, reason, status, message, level,
    forget FROM catraca.blocks WHERE level > 0 AND until + forget > $1 AND until <= $1";
const DEBTS: &str = "SELECT s.key, d.at, d.balance, d.size, d.tokens, d.period
    FROM catraca.debts AS d JOIN catraca.subjects AS s ON s.id = d.subject";

impl Records {
    /// Calls `visit` with all active blocks, lists, facts, modes and debts, and with the keys that
    /// were freed since `since`, the time at which the store's snapshot was begun.
    pub fn restore(
        &self,
        now: Time,
        since: Time,
        mut visit: impl FnMut(RestoredItem),
    ) -> Result<(), RecordsError> {
        self.restore_scope(RestoreScope::Everything, now, since, &mut visit)
    }

    /// Like [`Records::restore`] without blocks and debts: the changes that operators may have made
    /// on another node.
    pub fn restore_changes(
        &self,
        now: Time,
        since: Time,
        mut visit: impl FnMut(RestoredItem),
    ) -> Result<(), RecordsError> {
        self.restore_scope(RestoreScope::Changes, now, since, &mut visit)
    }

    /// Like [`Records::restore_changes`], with the blocks that were started since.
    #[cfg(feature = "shared")]
    pub(crate) fn restore_recent(
        &self,
        now: Time,
        since: Time,
        mut visit: impl FnMut(RestoredItem),
    ) -> Result<(), RecordsError> {
        self.restore_scope(RestoreScope::Recent, now, since, &mut visit)
    }

    fn restore_scope(
        &self,
        scope: RestoreScope,
        now: Time,
        since: Time,
        visit: &mut dyn FnMut(RestoredItem),
    ) -> Result<(), RecordsError> {
        // One transaction, so that all tables are of one point in time.
        Ok(transaction(&mut **self.reads.lock(), Access::Read, |database| {
            TableReader { database, visit }.read_scope(scope, now, since)
        })?)
    }
}

/// Reads one table after the other.
struct TableReader<'a> {
    database: &'a mut dyn Database,
    visit: &'a mut dyn FnMut(RestoredItem),
}

impl TableReader<'_> {
    fn read_scope(&mut self, scope: RestoreScope, now: Time, since: Time) -> DatabaseResult<()> {
        self.read(FREED, &values![since], freed_key)?;
        self.read(LISTS, &values![now], list)?;
        self.read(FACTS, &[], fact)?;
        self.read(MODES, &[], mode)?;
        self.read(RESETS, &[], reset)?;
        if scope == RestoreScope::Changes {
            return Ok(());
        }
        let mut texts = TextInterner::default();
        if scope == RestoreScope::Recent {
            return self.read(RECENT_BLOCKS, &values![now, since], |row| {
                Ok(RestoredItem::Block(row.get(0)?, block(row, 1, &mut texts)?))
            });
        }
        for sql in [ACTIVE_BLOCKS, REMEMBERED_LEVELS] {
            self.read(sql, &values![now], |row| {
                Ok(RestoredItem::Block(row.get(0)?, block(row, 1, &mut texts)?))
            })?;
        }
        self.read(DEBTS, &[], debt)
    }

    fn read(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        mut item: impl FnMut(&dyn SqlRow) -> DatabaseResult<RestoredItem>,
    ) -> DatabaseResult<()> {
        let visit = &mut *self.visit;
        self.database.scan(sql, values, &mut |row| item(row).map(&mut *visit))
    }
}

/// Reads `until, origin, shadow, reason, status, message, level, forget`, from column `first` on.
pub(super) fn block(
    row: &dyn SqlRow,
    first: usize,
    texts: &mut TextInterner,
) -> DatabaseResult<Block> {
    let mut shared = |column: usize| -> DatabaseResult<_> {
        Ok(row.get::<Option<&str>>(column)?.map(|text| texts.get(text)))
    };
    let reason = shared(first + 3)?;
    let message = shared(first + 5)?;
    Ok(Block {
        until: row.get(first)?,
        origin: parse_origin(row.get(first + 1)?).ok_or_else(|| invalid_column("origin"))?,
        shadow: row.get(first + 2)?,
        note: BlockNote { reason, status: row.get(first + 4)?, message },
        level: row.get(first + 6)?,
        forget: row.get(first + 7)?,
    })
}

fn freed_key(row: &dyn SqlRow) -> DatabaseResult<RestoredItem> {
    let key: Key = row.get(0)?;
    let was_reset = row.get(1)?;
    let end: Option<Time> = row.get(2)?;
    Ok(match was_reset {
        true => RestoredItem::ResetKey(key, end),
        false => RestoredItem::Released(key, end),
    })
}

fn list(row: &dyn SqlRow) -> DatabaseResult<RestoredItem> {
    let name: &str = row.get(0)?;
    let list = [ListName::Allow, ListName::Block].into_iter().find(|list| list.as_str() == name);
    let target = list_target(row.get(1)?, row.get(2)?)?;
    let namespace = namespace_of_column(row.get(5)?);
    let entry = AccessListEntry { namespace, target, reason: row.get(3)?, until: row.get(4)? };
    Ok(RestoredItem::List(list.ok_or_else(|| invalid_column("list"))?, entry))
}

/// The range or value of a list entry.
pub(super) fn list_target(attribute: String, value: String) -> DatabaseResult<ListTarget> {
    if attribute.is_empty() {
        let range = AddressRange::parse(&value).map_err(|_| invalid_column("range"))?;
        return Ok(ListTarget::Range(range));
    }
    Ok(ListTarget::Value { attribute, value })
}

fn fact(row: &dyn SqlRow) -> DatabaseResult<RestoredItem> {
    let about = AttributeValue { attribute: row.get(0)?, value: row.get(1)? };
    let namespace = namespace_of_column(row.get(4)?);
    let fact = RestoredFact { namespace, about, name: row.get(2)?, fact: row.get(3)? };
    Ok(RestoredItem::Fact(fact))
}

fn mode(row: &dyn SqlRow) -> DatabaseResult<RestoredItem> {
    let mode = parse_mode(row.get(1)?).ok_or_else(|| invalid_column("mode"))?;
    Ok(RestoredItem::Mode(row.get(0)?, mode, row.get(2)?))
}

fn reset(row: &dyn SqlRow) -> DatabaseResult<RestoredItem> {
    Ok(RestoredItem::ResetPolicy(PolicyReset { policy: row.get(0)?, epoch: row.get(1)? }))
}

fn debt(row: &dyn SqlRow) -> DatabaseResult<RestoredItem> {
    let terms = BucketTerms { size: row.get(3)?, tokens: row.get(4)?, period: row.get(5)? };
    Ok(RestoredItem::Debt(RestoredDebt {
        key: row.get(0)?,
        at: row.get(1)?,
        balance: row.get(2)?,
        terms,
    }))
}

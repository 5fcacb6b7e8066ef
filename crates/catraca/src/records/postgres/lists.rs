//! Queries of lists and facts for operators, by page.

use catraca_core::address::AddressRange;
use catraca_core::lists::ListTarget;
use catraca_core::time::Time;
use tokio_postgres::Row;

use super::read::PostgresReadResult;
use super::restore::invalid_column;
use crate::records::record::AttributeValue;
use crate::records::row::{FactRow, ListRow};

pub(super) const LISTS: &str = "SELECT id, attribute, value, at, until, reason, by
    FROM catraca.lists
    WHERE list = $1 AND id < coalesce($2, 9223372036854775807)
      AND (until IS NULL OR until > $3)
    ORDER BY id DESC LIMIT $4";

pub(super) fn list_row(row: &Row) -> PostgresReadResult<ListRow> {
    Ok(ListRow {
        id: row.try_get(0)?,
        what: what(row.try_get(1)?, row.try_get(2)?)?,
        at: Time::from_micros(row.try_get(3)?),
        until: row.try_get::<_, Option<i64>>(4)?.map(Time::from_micros),
        reason: row.try_get(5)?,
        by: row.try_get(6)?,
    })
}

pub(super) const FACTS: &str = "SELECT attribute, value, name, fact, at, by FROM catraca.facts
    WHERE (attribute, value, name) > ($1, $2, $3) ORDER BY attribute, value, name LIMIT $4";

pub(super) fn fact_row(row: &Row) -> PostgresReadResult<FactRow> {
    Ok(FactRow {
        about: AttributeValue { attribute: row.try_get(0)?, value: row.try_get(1)? },
        name: row.try_get(2)?,
        fact: row.try_get(3)?,
        at: Time::from_micros(row.try_get(4)?),
        by: row.try_get(5)?,
    })
}

/// The range or value of a list entry.
pub(super) fn what(attribute: String, value: String) -> PostgresReadResult<ListTarget> {
    Ok(match attribute.is_empty() {
        true => {
            ListTarget::Range(AddressRange::parse(&value).map_err(|_| invalid_column("range"))?)
        }
        false => ListTarget::Value { attribute, value },
    })
}

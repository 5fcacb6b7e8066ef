//! Reading lists and facts for operators, page by page.
//!
//! Must not scan what an index can find.

use catraca_core::address::Range;
use catraca_core::lists::What;
use catraca_core::time::Time;
use tokio_postgres::Row;

use super::read::Answer;
use super::restore::odd;
use crate::records::record::About;
use crate::records::row::{FactRow, ListRow};

pub(super) const LISTS: &str = "SELECT id, attribute, value, at, until, reason, by
    FROM catraca.lists
    WHERE list = $1 AND id < coalesce($2, 9223372036854775807)
      AND (until IS NULL OR until > $3)
    ORDER BY id DESC LIMIT $4";

pub(super) fn list_row(row: &Row) -> Answer<ListRow> {
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

pub(super) fn fact_row(row: &Row) -> Answer<FactRow> {
    Ok(FactRow {
        about: About { attribute: row.try_get(0)?, value: row.try_get(1)? },
        name: row.try_get(2)?,
        fact: row.try_get(3)?,
        at: Time::from_micros(row.try_get(4)?),
        by: row.try_get(5)?,
    })
}

/// An entry from its columns.
pub(super) fn what(attribute: String, value: String) -> Answer<What> {
    Ok(match attribute.is_empty() {
        true => What::Range(Range::parse(&value).map_err(|_| odd("range"))?),
        false => What::Value { attribute, value },
    })
}

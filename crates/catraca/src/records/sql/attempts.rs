//! The attempts of single keys, for operators.

use std::time::SystemTime;

use catraca_core::digest::Key;

use super::value::{SqlRow, values};
use crate::records::Records;
use crate::records::database::DatabaseResult;
use crate::records::error::RecordsError;
use crate::records::minute_counts::minute_of;
use crate::records::row::KeyAttempts;

const ATTEMPTS: &str = "SELECT CAST(sum(a.allowed + a.denied + a.blocked) AS bigint),
        min(a.first_at), max(a.last_at)
    FROM catraca.attempts AS a JOIN catraca.subjects AS s ON s.id = a.subject
    WHERE s.key = $1 AND a.minute >= $2 HAVING count(*) > 0";

impl Records {
    /// Whether the attempts of single keys are counted.
    pub fn counts_keys(&self) -> bool {
        self.options.keys_per_minute > 0
    }

    /// The attempts of a key since the minute of `since`; absent if there were none, or if they
    /// were not counted.
    pub fn attempts(
        &self,
        key: Key,
        since: impl Into<SystemTime>,
    ) -> Result<Option<KeyAttempts>, RecordsError> {
        let values = values![key, minute_of(since.into().into())];
        Ok(self.rows(ATTEMPTS, &values, |row| attempts_row(row, 0))?.pop())
    }
}

/// The number, the first and the last attempt, from this column on.
pub(super) fn attempts_row(row: &dyn SqlRow, column: usize) -> DatabaseResult<KeyAttempts> {
    Ok(KeyAttempts {
        attempts: row.get(column)?,
        first: row.get(column + 1)?,
        last: row.get(column + 2)?,
    })
}

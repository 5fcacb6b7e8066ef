//! Writes the attempts of single keys.

use super::{RecordWriter, values};
use crate::records::database::DatabaseResult;
use crate::records::record::KeyCount;

const ADD_ATTEMPTS: &str = "INSERT INTO catraca.attempts AS a
        (subject, minute, allowed, denied, blocked, first_at, last_at)
    SELECT id, $2, $3, $4, $5, $6, $7 FROM catraca.subjects WHERE key = $1
    ON CONFLICT (subject, minute) DO UPDATE SET
        allowed = a.allowed + excluded.allowed, denied = a.denied + excluded.denied,
        blocked = a.blocked + excluded.blocked,
        first_at = least(a.first_at, excluded.first_at),
        last_at = greatest(a.last_at, excluded.last_at)";

impl RecordWriter<'_> {
    pub(super) fn add_attempts(&mut self, count: &KeyCount) -> DatabaseResult<()> {
        let KeyCount { minute, subject, outcomes, first, last } = count;
        self.ensure_subject(subject)?;
        let [allowed, denied, blocked] = outcomes.map(|number| number as i64);
        let values = values![subject.key, *minute, allowed, denied, blocked, *first, *last];
        self.add(ADD_ATTEMPTS, &values)
    }
}

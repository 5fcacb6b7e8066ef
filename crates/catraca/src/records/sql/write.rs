//! Writes records: the statements of each kind, for one transaction per batch.
//!
//! Records may arrive out of order: an older one never undoes a newer one.

mod attempts;
mod blocks;
mod lists_facts_modes;
mod private_values;

use catraca_core::digest::Key;
use catraca_core::time::Time;
use serde_json::Value as Json;

use super::value::{SqlRow, Value, values};
use crate::records::database::{Database, DatabaseResult, row};
use crate::records::record::{Record, RecordKind};

/// The operator in the audit of automatic actions.
const AUTOMATIC: &str = "catraca";

/// Writes records in the open transaction.
pub(in crate::records) fn write_records(
    database: &mut dyn Database,
    records: &[&Record],
) -> DatabaseResult<()> {
    records.iter().try_for_each(|record| RecordWriter { database, record }.write())
}

/// Writes one record.
pub(super) struct RecordWriter<'a> {
    pub(super) database: &'a mut dyn Database,
    record: &'a Record,
}

/// What an audit row refers to, so that export and erasure find it.
enum AuditLink<'a> {
    None,
    About(&'a str),
    Subject(Key),
}

/// An audited action.
struct AuditEntry<'a> {
    act: &'a str,
    target: &'a str,
    before: Option<Json>,
    after: Option<Json>,
    link: AuditLink<'a>,
}

const AUDIT: &str = "INSERT INTO catraca.audit
        (at, by, act, target, why, before, after, about, subject)
    SELECT $1, $2, $3, $4, $5, $6, $7, $8, (SELECT id FROM catraca.subjects WHERE key = $9)";

impl RecordWriter<'_> {
    fn write(&mut self) -> DatabaseResult<()> {
        let record = self.record;
        match &record.kind {
            RecordKind::Block(event) => self.write_block(event),
            RecordKind::Release(subject) => self.write_release(subject),
            RecordKind::Reset(subject) => self.write_reset(subject),
            RecordKind::ResetPolicy(reset) => self.reset_policy(reset),
            RecordKind::Debt(debt) => self.write_debt(debt),
            RecordKind::List(list, entry) => self.list(*list, entry),
            RecordKind::Unlist(list, entry) => self.unlist(*list, entry),
            RecordKind::SetFacts { namespace, about, facts } => {
                self.set_facts(namespace.as_deref(), about, facts)
            }
            RecordKind::MergeFacts { into, from } => self.merge_facts(into, from),
            RecordKind::HideValues(catalog, digester) => self.hide_values(catalog, digester),
            RecordKind::ForgetFacts { namespace, about } => {
                self.forget_facts(namespace.as_deref(), about)
            }
            RecordKind::Mode(policy, mode) => self.set_mode(policy, mode.map(|mode| mode.as_str())),
            RecordKind::Catalog(revision) => self.write_revision(revision),
            RecordKind::RequireKeys(required) => self.require_keys(*required),
            RecordKind::Count(counts) => counts.iter().try_for_each(|count| self.add_count(count)),
            RecordKind::CountKeys(counts) => {
                counts.iter().try_for_each(|count| self.add_attempts(count))
            }
            RecordKind::Lock(write) => self.write_lock(write),
            RecordKind::Note(note) => self.audit(AuditEntry {
                act: &note.act,
                target: &note.target,
                before: None,
                after: None,
                link: AuditLink::None,
            }),
        }
    }

    pub(super) fn add(&mut self, sql: &'static str, values: &[Value<'_>]) -> DatabaseResult<()> {
        self.database.add(sql, values).map(drop)
    }

    /// The state before a change, if there was one.
    fn prior_value(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        read: impl FnMut(&dyn SqlRow) -> DatabaseResult<Json>,
    ) -> DatabaseResult<Option<Json>> {
        row(self.database, sql, values, read)
    }

    fn audit(&mut self, entry: AuditEntry<'_>) -> DatabaseResult<()> {
        let Record { at, by, why, .. } = self.record;
        let about = if let AuditLink::About(about) = entry.link { Some(about) } else { None };
        let subject = if let AuditLink::Subject(key) = entry.link { Some(key) } else { None };
        let before = entry.before.map(|value| value.to_string());
        let after = entry.after.map(|value| value.to_string());
        let values = values![
            *at,
            by.as_deref().unwrap_or(AUTOMATIC),
            entry.act,
            entry.target,
            why.as_deref(),
            before.as_deref(),
            after.as_deref(),
            about,
            subject,
        ];
        self.add(AUDIT, &values)
    }
}

/// A time as RFC 3339.
fn rfc3339(micros: i64) -> String {
    Time::from_micros(micros).to_rfc3339()
}

//! Replaces the catalog, and records who changed what.

use catraca_core::catalog::Catalog;

use super::App;
use crate::records::{AuditNote, Operator, Receipt, Record, RecordKind};

/// The act of one change in the audit log.
const CHANGE: &str = "change";

/// A catalog to apply, and what the audit says about it.
#[derive(Debug)]
pub struct CatalogChange<'a> {
    /// The new catalog.
    pub catalog: Catalog,
    /// What differs from the catalog in use, one sentence per change.
    pub changes: &'a [String],
    /// Whether callers need an API key with it. The records remember that, so that a later start
    /// without any key is refused.
    pub requires_keys: bool,
    /// The operator, unless the files changed by themselves.
    pub by: Option<&'a str>,
    /// The reason for the audit.
    pub why: &'a str,
}

impl App {
    /// Replaces the catalog; the next decision uses it. Lists and facts that operators made stay in
    /// force, and values of attributes that have become private are hidden in the records. Does
    /// nothing but record the need of keys if the revision is the same. Returns whether that is on
    /// disk, which waits for the disk: it must not be called on an async worker.
    pub fn reload(&self, change: CatalogChange<'_>) -> bool {
        let CatalogChange { catalog, changes, requires_keys, by, why } = change;
        let is_new = catalog.revision != self.catalog().revision;
        // An entry that is added meanwhile must have the same form in the engine and the records.
        let _change = self.parts.change_lock.blocking_lock();
        let event = is_new.then(|| self.engine().replace_catalog(catalog));
        if let Some(event) = &event {
            self.engine().emit(event);
        }
        let Some(records) = &self.parts.records else { return event.is_none() };
        let mut receipts: Vec<Receipt> = Vec::new();
        if let Some(event) = event {
            let operator = by.map(|name| Operator { name, why: Some(why) });
            receipts.push(records.record_events(operator, &[event]));
        }
        let at = self.now();
        let record =
            |kind| Record { at, by: by.map(str::to_owned), why: Some(why.to_owned()), kind };
        if is_new {
            let note =
                |change: &String| AuditNote { act: CHANGE.to_owned(), target: change.clone() };
            let notes = changes.iter().map(|change| record(RecordKind::Note(note(change))));
            receipts.push(records.record(notes.collect()));
        }
        if is_new {
            receipts.push(records.hide_values(at, &self.catalog(), self.engine().digester()));
        }
        if requires_keys {
            receipts.push(records.record(vec![record(RecordKind::RequireKeys(true))]));
        }
        // All are awaited, even after one that is not durable.
        receipts.into_iter().map(Receipt::wait).fold(true, |all, ack| all & ack.is_durable())
    }
}

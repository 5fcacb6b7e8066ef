//! Replaces the catalog, and records who changed what.

use std::time::SystemTime;

use catraca_core::catalog::Catalog;
use catraca_core::time::Time;

use super::App;
use crate::records::{AuditNote, Operator, Receipt, Record, RecordKind};

/// The act of one change in the audit log.
const CHANGE: &str = "change";
/// The act of a reload that found its catalog in force.
const RELOAD: &str = "reload";

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

/// The result of a reload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReloadedCatalog {
    /// Since when the revision is in force, if it was in force already: another reload, such as
    /// that of the changed files, was faster.
    #[doc(hidden)]
    pub in_force_since: Option<Time>,
    /// Whether the reload is on disk.
    pub durable: bool,
}

impl ReloadedCatalog {
    /// Since when the revision is in force, if it was in force already: another reload, such as
    /// that of the changed files, was faster.
    pub fn in_force_since(&self) -> Option<SystemTime> {
        self.in_force_since.map(SystemTime::from)
    }
}

impl App {
    /// Replaces the catalog; the next decision uses it. Lists and facts that operators made stay in
    /// force, and values of attributes that have become private are hidden in the records. If the
    /// revision is in force already, records only the need of keys, and the reload of an operator
    /// with its reason. Waits for the disk: it must not be called on an async worker.
    pub fn reload(&self, change: CatalogChange<'_>) -> ReloadedCatalog {
        let CatalogChange { catalog, changes, requires_keys, by, why } = change;
        // An entry that is added meanwhile must have the same form in the engine and the records.
        let _change = self.parts.change_lock.blocking_lock();
        let is_new = catalog.revision != self.catalog().revision;
        let event = is_new.then(|| self.engine().replace_catalog(catalog));
        if let Some(event) = &event {
            *self.parts.catalog_since.lock() = self.now();
            self.engine().emit(event);
        }
        let in_force_since = (!is_new).then(|| *self.parts.catalog_since.lock());
        let Some(records) = &self.parts.records else {
            return ReloadedCatalog { in_force_since, durable: !is_new };
        };
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
        if let Some(since) = in_force_since.filter(|_| by.is_some()) {
            let target = format!("revision {}, in force since {since}", self.catalog().revision);
            let note = AuditNote { act: RELOAD.to_owned(), target };
            receipts.push(records.record(vec![record(RecordKind::Note(note))]));
        }
        if is_new {
            receipts.push(records.hide_values(at, &self.catalog(), self.engine().digester()));
            let moved = self.engine().renormalise_private_facts().into_iter();
            let merges = moved.map(|(into, from)| record(RecordKind::MergeFacts { into, from }));
            receipts.push(records.record(merges.collect()));
        }
        if requires_keys {
            receipts.push(records.record(vec![record(RecordKind::RequireKeys(true))]));
        }
        // All are awaited, even after one that is not durable.
        let acks = receipts.into_iter().map(Receipt::wait);
        let durable = acks.fold(true, |all, ack| all & ack.is_durable());
        ReloadedCatalog { in_force_since, durable }
    }
}

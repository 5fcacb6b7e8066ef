//! The blocklist and the allowlist: list, add and remove entries.
//!
//! An entry is about an address range or an attribute value, and may have an end. Entries about
//! private values hold pseudonyms. An entry stays in force if its attribute becomes private, or no
//! longer is: callers are looked up by both forms.

use std::collections::BTreeMap;
use std::time::SystemTime;

use catraca_core::address::AddressRange;
use catraca_core::facts::HASH_PREFIX;
use catraca_core::lists::{AccessListEntry, ListTarget};
use catraca_core::located::names::{NAME_MAX, is_name};
use catraca_core::request::VALUE_BYTES_MAX;
use catraca_core::time::Time;

use super::namespaces::check_namespace;
use super::operator::{OwnedOperator, check_text};
use super::page_size::check_page_size;
use super::{App, AppError};
use crate::engine::ListedEntry;
use crate::records::{ListName, ListRow, Operator, Page, Record, RecordKind, Records};

/// The most entries in one change.
pub const ENTRIES_MAX: usize = 1_000;
/// The most entries of one namespace in a list. Entries of all namespaces are not bounded.
pub const NAMESPACE_ENTRIES_MAX: usize = 10_000;

/// What an entry is about, as an operator writes it.
#[derive(Clone, Debug)]
pub enum ListTargetText {
    /// An address range, or one address.
    Range(String),
    /// An attribute other than `ip`, and its value in clear.
    Value {
        /// The attribute.
        attribute: String,
        /// The value.
        value: String,
    },
}

/// An entry to add.
#[derive(Clone, Debug)]
pub struct NewListEntry {
    /// The only namespace in which it applies; absent for all.
    pub namespace: Option<String>,
    /// What it is about.
    pub target: ListTargetText,
    /// When it ends; absent if it lasts until it is removed.
    #[doc(hidden)]
    pub until: Option<Time>,
    /// The reason, shown with the entry.
    pub reason: Option<String>,
    /// The reason for the audit; `reason` if absent.
    pub why: Option<String>,
}

impl NewListEntry {
    /// An entry for all namespaces that lasts until it is removed.
    pub const fn new(target: ListTargetText) -> Self {
        Self { namespace: None, target, until: None, reason: None, why: None }
    }

    /// Ends the entry at this instant.
    #[must_use]
    pub fn until(mut self, end: impl Into<SystemTime>) -> Self {
        self.until = Some(end.into().into());
        self
    }
}

/// The entries that a call added.
#[derive(Clone, Debug)]
pub struct AddedEntries {
    /// The entries as they are stored, with pseudonyms of private values.
    pub entries: Vec<AccessListEntry>,
    /// For each entry, the one that it replaced.
    pub before: Vec<Option<AccessListEntry>>,
    /// Whether the entries are on disk; false for a dry run.
    pub durable: bool,
}

/// The entry that a call removed.
#[derive(Clone, Debug)]
pub struct RemovedEntry {
    /// The entry before it was removed.
    pub before: AccessListEntry,
    /// Whether the removal is on disk.
    pub durable: bool,
}

impl App {
    /// Active run-time entries of a list, newest first, with ids below `before`. With a namespace,
    /// only those of this namespace.
    pub async fn list_entries(
        &self,
        list: ListName,
        namespace: Option<&str>,
        before: Option<i64>,
        limit: u32,
    ) -> Result<Page<ListRow, i64>, AppError> {
        check_page_size(limit)?;
        let now = self.now();
        let namespace = namespace.map(str::to_owned);
        let query =
            move |records: &Records| records.lists(list, namespace.as_deref(), before, limit, now);
        let incomplete = self.await_queued_records().await?;
        let mut page = self.read_records(query).await?;
        page.incomplete = incomplete;
        for row in &mut page.rows {
            self.hide_private_target(&mut row.what);
        }
        Ok(page)
    }

    /// The entry to add, with its value in clear and normalised, or why this one is invalid.
    /// Changes nothing.
    pub fn list_entry(&self, entry: &NewListEntry) -> Result<AccessListEntry, AppError> {
        check_namespace(entry.namespace.as_deref())?;
        if let ListTargetText::Value { attribute, value } = &entry.target {
            check_bounds(attribute, value)?;
            let namespace = entry.namespace.as_deref();
            self.check_caller_attribute("bad-entry", namespace, attribute)?;
        }
        let target = self.list_target(&entry.target)?;
        if entry.until.is_some_and(|until| until <= self.now()) {
            return Err(AppError::invalid("bad-entry", "the entry would have ended already"));
        }
        check_text("why", entry.why.as_deref())?;
        let reason = check_text("reason", entry.reason.as_deref())?.map(str::to_owned);
        let namespace = entry.namespace.clone();
        Ok(AccessListEntry { namespace, target, reason, until: entry.until })
    }

    /// Adds entries to a list, all or none; an entry about the same target and namespace is
    /// replaced. A dry run changes nothing, and returns what would be replaced. `entries` are those
    /// that [`App::list_entry`] returned, each with its reason for the audit.
    pub async fn add_to_list(
        &self,
        by: &Operator<'_>,
        list: ListName,
        entries: Vec<(AccessListEntry, Option<String>)>,
        dry_run: bool,
    ) -> Result<AddedEntries, AppError> {
        if entries.len() > ENTRIES_MAX {
            let sent = entries.len();
            let detail =
                format!("a request may have {ENTRIES_MAX} entries and this one has {sent}");
            return Err(AppError::invalid("list-too-long", detail));
        }
        let by = OwnedOperator::new(by)?;
        self.required_records()?;
        if dry_run {
            self.check_room_for_entries(list, &entries)?;
            let current = |(entry, _): &(AccessListEntry, _)| {
                self.engine().run_time_list_entry(list, entry.namespace.as_deref(), &entry.target)
            };
            let before = entries.iter().map(current).collect();
            let to_store = |(entry, _)| self.engine().entry_to_store(entry);
            let entries = entries.into_iter().map(to_store).collect();
            return Ok(AddedEntries { entries, before, durable: false });
        }
        let app = self.clone();
        self.run_to_end(async move {
            let change_order = app.parts.change_lock.lock().await;
            app.check_room_for_entries(list, &entries)?;
            let (added, reasons): (Vec<_>, Vec<_>) = entries.into_iter().unzip();
            let listed = app.engine().add_to_list(list, added);
            let changes = listed.iter().zip(reasons);
            let records =
                changes.flat_map(|(listed, why)| app.entry_records(&by, list, listed, why));
            let durable = app.write_change(&change_order, records.collect()).await?;
            let before = listed.iter().map(|listed| listed.replaced.first().cloned()).collect();
            let entries = listed.into_iter().map(|listed| listed.stored).collect();
            Ok(AddedEntries { entries, before, durable })
        })
        .await
    }

    /// The records of an entry that was added: those that it replaced in another form are removed.
    fn entry_records(
        &self,
        by: &OwnedOperator,
        list: ListName,
        listed: &ListedEntry,
        why: Option<String>,
    ) -> Vec<Record> {
        let stored = &listed.stored;
        // An entry without a `why` is audited with its `reason`.
        let why = why.filter(|why| !why.is_empty()).or_else(|| stored.reason.clone());
        let others = listed.replaced.iter().filter(|other| other.target != stored.target);
        let removed = others.map(|other| RecordKind::Unlist(list, other.clone()));
        let added = RecordKind::List(list, stored.clone());
        let name = by.borrow().name;
        let record = |kind| Record::operator(self.now(), name, why.as_deref(), kind);
        removed.chain([added]).map(record).collect()
    }

    /// Bounds the entries of each namespace: its operators need not be trusted by those of others.
    fn check_room_for_entries(
        &self,
        list: ListName,
        entries: &[(AccessListEntry, Option<String>)],
    ) -> Result<(), AppError> {
        let mut added: BTreeMap<&str, usize> = BTreeMap::new();
        for namespace in entries.iter().filter_map(|(entry, _)| entry.namespace.as_deref()) {
            *added.entry(namespace).or_default() += 1;
        }
        for (namespace, added) in added {
            let count = self.engine().run_time_list_size(list, namespace);
            if count + added <= NAMESPACE_ENTRIES_MAX {
                continue;
            }
            // Entries that replace others need no room.
            let is_new = |(entry, _): &&(AccessListEntry, _)| {
                let own = entry.namespace.as_deref().filter(|own| *own == namespace);
                let current =
                    |own| self.engine().run_time_list_entry(list, Some(own), &entry.target);
                own.is_some_and(|own| current(own).is_none())
            };
            if count + entries.iter().filter(is_new).count() > NAMESPACE_ENTRIES_MAX {
                let detail = format!(
                    "the {} has {count} entries of the namespace `{namespace}` and may have \
                     {NAMESPACE_ENTRIES_MAX}; nothing was changed: remove entries first",
                    list.as_str()
                );
                return Err(AppError::invalid("too-many-entries", detail));
            }
        }
        Ok(())
    }

    /// Removes the entry about a target from a list. A value is given in clear, or as the pseudonym
    /// that the list shows. Without a namespace, it is the entry of all namespaces.
    pub async fn remove_from_list(
        &self,
        by: &Operator<'_>,
        list: ListName,
        namespace: Option<&str>,
        target: &ListTargetText,
    ) -> Result<RemovedEntry, AppError> {
        // Without the rules of new entries: an entry that was recorded before them, or with
        // another catalog, can be removed too.
        let target = self.target_to_remove(list, target)?;
        let by = OwnedOperator::new(by)?;
        self.required_records()?;
        let app = self.clone();
        let namespace = namespace.map(str::to_owned);
        self.run_to_end(async move {
            let change_order = app.parts.change_lock.lock().await;
            let removed = app.engine().remove_from_list(list, namespace.as_deref(), &target);
            let Some(before) = removed.first().cloned() else {
                let detail = format!(
                    "the {} has no such entry made at run time; the catalog's are changed in its \
                     file",
                    list.as_str()
                );
                return Err(AppError::not_found("unknown-entry", detail));
            };
            let unlist = |entry: AccessListEntry| RecordKind::Unlist(list, entry);
            let durable = app
                .record_change(&change_order, &by, removed.into_iter().map(unlist).collect())
                .await?;
            Ok(RemovedEntry { before, durable })
        })
        .await
    }

    /// The target of an entry to remove. A value that no caller can have any more is given as it is
    /// stored.
    fn target_to_remove(
        &self,
        list: ListName,
        target: &ListTargetText,
    ) -> Result<ListTarget, AppError> {
        self.list_target(target).or_else(|error| match target {
            ListTargetText::Value { attribute, value }
                if self.engine().is_listed_as(list, attribute, value) =>
            {
                Ok(ListTarget::Value { attribute: attribute.clone(), value: value.clone() })
            }
            _ => Err(error),
        })
    }

    fn list_target(&self, target: &ListTargetText) -> Result<ListTarget, AppError> {
        match target {
            ListTargetText::Range(range) => {
                let range = AddressRange::parse(range)
                    .map_err(|error| AppError::invalid("bad-range", error.to_string()))?;
                Ok(ListTarget::Range(range))
            }
            ListTargetText::Value { attribute, .. } if attribute == "ip" => {
                let detail = "write an address as `range`, such as 203.0.113.0/24";
                Err(AppError::invalid("bad-entry", detail))
            }
            ListTargetText::Value { attribute, value } => {
                let attribute = attribute.clone();
                let value = self.engine().normalised_value(&attribute, value)?;
                Ok(ListTarget::Value { attribute, value })
            }
        }
    }

    pub(super) fn hide_private_target(&self, target: &mut ListTarget) {
        if let ListTarget::Value { attribute, value } = target {
            self.engine().hide_private_value(attribute, value);
        }
    }
}

/// Refuses a name or value that no subject can have, and a hash in the place of a value: only a
/// caller that sends the hash itself would match.
fn check_bounds(attribute: &str, value: &str) -> Result<(), AppError> {
    if !is_name(attribute) {
        let detail = format!(
            "an attribute's name has 1 to {NAME_MAX} letters, digits, `_`, `.` or `-`; this one \
             has {} bytes, or other characters",
            attribute.len()
        );
        return Err(AppError::invalid("bad-entry", detail));
    }
    if !(1..=VALUE_BYTES_MAX).contains(&value.len()) {
        let detail = format!(
            "the value of `{attribute}` has {} bytes and may have 1 to {VALUE_BYTES_MAX}",
            value.len()
        );
        return Err(AppError::invalid("bad-entry", detail));
    }
    if value.starts_with(HASH_PREFIX) {
        let detail = format!(
            "only facts may name a value by its hash: send the value of `{attribute}` itself"
        );
        return Err(AppError::invalid("bad-entry", detail));
    }
    Ok(())
}

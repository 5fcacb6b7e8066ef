//! Operators' acts that need records types: release by key, run-time lists, and queries of facts
//! and modes.

use std::collections::BTreeMap;
use std::sync::Arc;

use catraca_core::catalog::Catalog;
use catraca_core::digest::{Digester, is_pseudonym};
use catraca_core::facts::Facts;
use catraca_core::lists::{AccessListEntry, ListTarget};
use catraca_core::policy::{Mode, Name};
use catraca_core::refusal::Refusal;
use catraca_core::select::{normalise, normalise_stored};

use super::Engine;
use super::stored_values::{earlier_targets, fact_value};
use crate::error::Error;
use crate::records::{BlockRow, ListName};
use crate::rule_set::{RulePart, RuleSet};
use crate::store::Store;

/// An entry that was added to a run-time list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedEntry {
    /// The entry as it is stored: the value of a private attribute is a pseudonym.
    pub stored: AccessListEntry,
    /// The entry that it replaced; more than one if the value was stored in several forms.
    pub replaced: Vec<AccessListEntry>,
}

impl<S: Store> Engine<S> {
    /// Ends one block that was found in the records. Returns whether the store had it: neither a
    /// later block of the same key is released, nor this one if it was extended since.
    pub fn release(&self, block: &BlockRow) -> Result<bool, Error> {
        let row = (block.subject.clone(), Some(block.block.until));
        Ok(self.run(&mut self.unblock_exchange(vec![row]))?.contains(&true))
    }
}

impl<S> Engine<S> {
    /// Adds entries about values in clear, as callers send them, to a run-time list. An entry about
    /// the same value and namespace is replaced, in whichever form it is stored.
    pub fn add_to_list(&self, name: ListName, entries: Vec<AccessListEntry>) -> Vec<ListedEntry> {
        let digester = self.digester.clone();
        self.update_list(name, move |catalog, list| {
            let add = |entry: &AccessListEntry| {
                let mut forms = stored_targets(&digester, &entry.target, Lookup::Clear);
                forms.extend(earlier_targets(catalog, list, &entry.target));
                let stored = stored_entry(&digester, catalog, entry.clone());
                let replaced = take_entries(list, stored.namespace.as_deref(), &forms);
                list.push(stored.clone());
                ListedEntry { stored, replaced }
            };
            entries.iter().map(add).collect()
        })
    }

    /// Removes the entry about a value from a run-time list, in whichever form it is stored, and
    /// returns it; more than one if it was stored in several. The value is given in clear, or as
    /// the pseudonym that the list shows. Without a namespace, it is the entry of all namespaces.
    pub fn remove_from_list(
        &self,
        name: ListName,
        namespace: Option<&str>,
        what: &ListTarget,
    ) -> Vec<AccessListEntry> {
        let what = what.clone();
        let forms = stored_targets(&self.digester, &what, Lookup::ClearOrPseudonym);
        let namespace = namespace.map(str::to_owned);
        self.update_list(name, move |catalog, list| {
            let mut forms = forms.clone();
            forms.extend(earlier_targets(catalog, list, &what));
            take_entries(list, namespace.as_deref(), &forms)
        })
    }

    /// How many unexpired entries of a namespace a run-time list has.
    pub fn run_time_list_size(&self, name: ListName, namespace: &str) -> usize {
        let rules = self.rules.load();
        let now = self.clock.now();
        let is_own = |entry: &&AccessListEntry| entry.namespace.as_deref() == Some(namespace);
        entries_of(&rules, name).iter().filter(is_own).filter(|entry| entry.is_live(now)).count()
    }

    /// The unexpired entry of a run-time list about a value, given in clear or as its pseudonym.
    /// Without a namespace, it is the entry of all namespaces.
    pub fn run_time_list_entry(
        &self,
        name: ListName,
        namespace: Option<&str>,
        what: &ListTarget,
    ) -> Option<AccessListEntry> {
        let rules = self.rules.load();
        let now = self.clock.now();
        let entries = entries_of(&rules, name);
        let mut forms = stored_targets(&self.digester, what, Lookup::ClearOrPseudonym);
        forms.extend(earlier_targets(&rules.catalog, entries, what));
        let mut live = entries.iter().filter(|entry| entry.is_live(now));
        live.find(|entry| is_about(entry, namespace, &forms)).cloned()
    }

    /// An entry about a value in clear, as the lists and the records store it.
    pub fn entry_to_store(&self, entry: AccessListEntry) -> AccessListEntry {
        stored_entry(&self.digester, &self.rules.load().catalog, entry)
    }

    /// Replaces a stored value in clear by its pseudonym if its attribute is private now.
    pub fn hide_private_value(&self, attribute: &str, value: &mut String) {
        if self.rules.load().catalog.is_private(attribute) && !is_pseudonym(value) {
            *value = self.digester.pseudonym(attribute, value);
        }
    }

    fn update_list<R>(
        &self,
        name: ListName,
        change: impl Fn(&Catalog, &mut Vec<AccessListEntry>) -> Vec<R> + Send + Sync + 'static,
    ) -> Vec<R> {
        let now = self.clock.now();
        let changed = self.change_rules(RulePart::Lists, move |rules| {
            let (allow, block) = Arc::make_mut(&mut rules.entries);
            // Expired entries are removed at every change, so that the lists do not grow forever.
            allow.retain(|entry| entry.is_live(now));
            block.retain(|entry| entry.is_live(now));
            let list = match name {
                ListName::Allow => allow,
                ListName::Block => block,
            };
            Ok(change(&rules.catalog, list))
        });
        debug_assert!(changed.is_ok(), "this change is never refused");
        changed.unwrap_or_default()
    }

    /// The facts about an attribute's value: those set at run time in one namespace alone, or
    /// without a namespace those of all namespaces, set at run time or by the catalog.
    pub fn facts_about(
        &self,
        namespace: Option<&str>,
        attribute: &str,
        raw: &str,
    ) -> Result<BTreeMap<Name, Name>, Refusal> {
        let rules = self.rules.load();
        let about = fact_value(&rules, attribute, raw)?;
        let is_effective = normalise_stored(&rules.catalog, attribute, &about).is_some();
        let facts = if is_effective { &rules.facts } else { &rules.stated };
        let facts = facts.of(namespace).map(|facts| facts.about(attribute, &about));
        Ok(facts.unwrap_or_default())
    }

    /// The facts about an attribute's value that apply in a namespace.
    pub fn facts_in_namespace(
        &self,
        namespace: &str,
        attribute: &str,
        raw: &str,
    ) -> Result<BTreeMap<Name, Name>, Refusal> {
        let rules = self.rules.load();
        let about = normalise(&rules.catalog, attribute, raw)?;
        Ok(rules.facts.in_namespace(namespace).about(attribute, &about))
    }

    /// How many facts operators set in a namespace.
    pub fn count_facts(&self, namespace: &str) -> usize {
        self.rules.load().stated.of(Some(namespace)).map_or(0, Facts::count)
    }

    /// How many facts that operators set are ignored, because the catalog uses their names for
    /// another attribute or for an attribute that callers send.
    pub fn ignored_facts(&self) -> u64 {
        self.rules.load().ignored_facts
    }

    /// The mode that an operator set for a policy, if any.
    pub fn mode_override(&self, policy: &str) -> Option<Mode> {
        let rules = self.rules.load();
        rules.overrides.iter().find(|(name, _)| **name == *policy).map(|(_, mode)| *mode)
    }
}

/// What the text of a value may be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lookup {
    /// The value itself.
    Clear,
    /// The value itself, or its pseudonym as lists show it.
    ClearOrPseudonym,
}

/// An entry about a value in clear, as lists and records store it.
fn stored_entry(
    digester: &Digester,
    catalog: &Catalog,
    mut entry: AccessListEntry,
) -> AccessListEntry {
    if let ListTarget::Value { attribute, value } = &mut entry.target {
        *value = digester.stored_value(attribute, value, catalog.is_private(attribute));
    }
    entry
}

/// The forms in which a list may store a target.
fn stored_targets(digester: &Digester, what: &ListTarget, lookup: Lookup) -> Vec<ListTarget> {
    let ListTarget::Value { attribute, value } = what else { return vec![what.clone()] };
    let mut values: Vec<String> = digester.pseudonyms(attribute, value).collect();
    if lookup == Lookup::ClearOrPseudonym || !is_pseudonym(value) {
        values.push(value.clone());
    }
    let target = |value| ListTarget::Value { attribute: attribute.clone(), value };
    values.into_iter().map(target).collect()
}

fn entries_of(rules: &RuleSet, name: ListName) -> &[AccessListEntry] {
    match name {
        ListName::Allow => &rules.entries.0,
        ListName::Block => &rules.entries.1,
    }
}

fn is_about(entry: &AccessListEntry, namespace: Option<&str>, forms: &[ListTarget]) -> bool {
    entry.namespace.as_deref() == namespace && forms.contains(&entry.target)
}

/// Takes the entries of a namespace about one of these targets, those that expire last first.
fn take_entries(
    list: &mut Vec<AccessListEntry>,
    namespace: Option<&str>,
    forms: &[ListTarget],
) -> Vec<AccessListEntry> {
    let mut taken: Vec<_> =
        list.extract_if(.., |entry| is_about(entry, namespace, forms)).collect();
    taken.sort_by_key(|entry| std::cmp::Reverse(entry.end()));
    taken
}

//! Operators' acts that need records types: release by key, run-time lists, and queries of facts
//! and modes.

use catraca_core::digest::is_pseudonym;
use catraca_core::lists::{AccessListEntry, ListTarget};
use catraca_core::policy::{Mode, Name};
use catraca_core::refusal::Refusal;
use catraca_core::select::normalise;

use super::Engine;
use crate::error::Error;
use crate::records::{BlockRow, ListName};
use crate::rule_set::RuleSet;
use crate::store::Store;

/// The entries of the run-time lists: allowlist and blocklist.
pub(crate) type Entries = (Vec<AccessListEntry>, Vec<AccessListEntry>);

/// An entry that was added to a run-time list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedEntry {
    /// The entry as it is stored: the value of a private attribute is a pseudonym.
    pub stored: AccessListEntry,
    /// The entry that it replaced; more than one if the value was stored in several forms.
    pub replaced: Vec<AccessListEntry>,
}

impl<S: Store> Engine<S> {
    /// Ends one block that was found in the records. Returns whether it was active.
    pub fn release(&self, block: &BlockRow) -> Result<bool, Error> {
        self.run(&mut self.unblock_exchange(vec![block.subject.clone()]))
    }
}

impl<S> Engine<S> {
    /// Adds entries about values in clear, as callers send them, to a run-time list. An entry about
    /// the same value is replaced, in whichever form it is stored.
    pub fn add_to_list(&self, name: ListName, entries: Vec<AccessListEntry>) -> Vec<ListedEntry> {
        self.update_list(name, |rules, list| {
            let add = |entry: AccessListEntry| {
                let forms = self.stored_targets(&entry.target, Lookup::Clear);
                let stored = self.stored_entry(rules, entry);
                let replaced = take_entries(list, &forms);
                list.push(stored.clone());
                ListedEntry { stored, replaced }
            };
            entries.into_iter().map(add).collect()
        })
    }

    /// Removes the entry about a value from a run-time list, in whichever form it is stored, and
    /// returns it; more than one if it was stored in several. The value is given in clear, or as
    /// the pseudonym that the list shows.
    pub fn remove_from_list(&self, name: ListName, what: &ListTarget) -> Vec<AccessListEntry> {
        let forms = self.stored_targets(what, Lookup::ClearOrPseudonym);
        self.update_list(name, |_, list| take_entries(list, &forms))
    }

    /// The unexpired entry of a run-time list about a value, given in clear or as its pseudonym.
    pub fn run_time_list_entry(
        &self,
        name: ListName,
        what: &ListTarget,
    ) -> Option<AccessListEntry> {
        let rules = self.rules.load();
        let list = match name {
            ListName::Allow => &rules.entries.0,
            ListName::Block => &rules.entries.1,
        };
        let now = self.clock.now();
        let forms = self.stored_targets(what, Lookup::ClearOrPseudonym);
        let found = list.iter().find(|entry| forms.contains(&entry.target) && entry.is_live(now));
        found.cloned()
    }

    /// An entry about a value in clear, as the lists and the records store it.
    pub fn entry_to_store(&self, entry: AccessListEntry) -> AccessListEntry {
        self.stored_entry(&self.rules.load(), entry)
    }

    fn stored_entry(&self, rules: &RuleSet, mut entry: AccessListEntry) -> AccessListEntry {
        if let ListTarget::Value { attribute, value } = &mut entry.target {
            let is_private = rules.catalog.is_private(attribute);
            *value = self.digester.stored_value(attribute, value, is_private);
        }
        entry
    }

    /// The forms in which a list may store a target.
    fn stored_targets(&self, what: &ListTarget, lookup: Lookup) -> Vec<ListTarget> {
        let ListTarget::Value { attribute, value } = what else { return vec![what.clone()] };
        let mut values: Vec<String> = self.digester.pseudonyms(attribute, value).collect();
        if lookup == Lookup::ClearOrPseudonym || !is_pseudonym(value) {
            values.push(value.clone());
        }
        let target = |value| ListTarget::Value { attribute: attribute.clone(), value };
        values.into_iter().map(target).collect()
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
        change: impl FnOnce(&RuleSet, &mut Vec<AccessListEntry>) -> R,
    ) -> R {
        let _guard = self.write_lock.lock();
        let rules = self.rules.load();
        let (mut allow, mut block) = Entries::clone(&rules.entries);
        let now = self.clock.now();
        // Expired entries are removed at every change, so that the lists do not grow forever.
        allow.retain(|entry| entry.is_live(now));
        block.retain(|entry| entry.is_live(now));
        let list = match name {
            ListName::Allow => &mut allow,
            ListName::Block => &mut block,
        };
        let result = change(&rules, list);
        self.rules.store(rules.with_lists(allow, block, &self.digester).into());
        result
    }

    /// All facts about an attribute's value, set at run time or by the catalog.
    pub fn facts_about(&self, attribute: &str, raw: &str) -> Result<Vec<(Name, Name)>, Refusal> {
        let rules = self.rules.load();
        let about = normalise(&rules.catalog, attribute, raw)?;
        let names = rules.facts.names().filter(|(_, owner)| ***owner == *attribute);
        let facts = names.filter_map(|(name, _)| {
            Some((name.clone(), rules.facts.lookup(attribute, &about, name)?.clone()))
        });
        Ok(facts.collect())
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

/// Takes the entries about one of these targets, those that expire last first.
fn take_entries(list: &mut Vec<AccessListEntry>, forms: &[ListTarget]) -> Vec<AccessListEntry> {
    let mut taken: Vec<_> = list.extract_if(.., |entry| forms.contains(&entry.target)).collect();
    taken.sort_by_key(|entry| std::cmp::Reverse(entry.end()));
    taken
}

//! Operators' acts that need records types: release by key, run-time lists, and queries of facts
//! and modes.

use catraca_core::lists::{AccessListEntry, ListTarget};
use catraca_core::policy::{Mode, Name};
use catraca_core::refusal::Refusal;
use catraca_core::select::normalise;

use super::Engine;
use crate::error::Error;
use crate::records::{BlockRow, ListName};
use crate::store::Store;

/// The entries of the run-time lists: allowlist and blocklist.
pub(crate) type Entries = (Vec<AccessListEntry>, Vec<AccessListEntry>);

impl<S: Store> Engine<S> {
    /// Ends one block that was found in the records. Returns whether it was active.
    pub fn release(&self, block: &BlockRow) -> Result<bool, Error> {
        self.run(&mut self.unblock_exchange(vec![block.subject.clone()]))
    }
}

impl<S> Engine<S> {
    /// Adds entries to a run-time list. Returns, for each, the entry that it replaced. Values of
    /// private attributes are given as pseudonyms.
    pub fn add_to_list(
        &self,
        name: ListName,
        entries: Vec<AccessListEntry>,
    ) -> Vec<Option<AccessListEntry>> {
        self.update_list(name, |list| {
            let replaced = entries.iter().map(|entry| take_entry(list, &entry.target)).collect();
            list.extend(entries);
            replaced
        })
    }

    /// Removes an entry from a run-time list and returns it.
    pub fn remove_from_list(&self, name: ListName, what: &ListTarget) -> Option<AccessListEntry> {
        self.update_list(name, |list| take_entry(list, what))
    }

    /// The unexpired entry of a run-time list for this target.
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
        list.iter().find(|entry| entry.target == *what && entry.is_live(now)).cloned()
    }

    fn update_list<R>(
        &self,
        name: ListName,
        change: impl FnOnce(&mut Vec<AccessListEntry>) -> R,
    ) -> R {
        let _guard = self.write_lock.lock();
        let rules = self.rules.load();
        let (mut allow, mut block) = Entries::clone(&rules.entries);
        let now = self.clock.now();
        // Expired entries are removed at every change, so that the lists do not grow forever.
        allow.retain(|entry| entry.is_live(now));
        block.retain(|entry| entry.is_live(now));
        let result = change(match name {
            ListName::Allow => &mut allow,
            ListName::Block => &mut block,
        });
        self.rules.store(rules.with_lists(allow, block).into());
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

    /// The mode that an operator set for a policy, if any.
    pub fn mode_override(&self, policy: &str) -> Option<Mode> {
        let rules = self.rules.load();
        rules.overrides.iter().find(|(name, _)| **name == *policy).map(|(_, mode)| *mode)
    }
}

fn take_entry(list: &mut Vec<AccessListEntry>, what: &ListTarget) -> Option<AccessListEntry> {
    let index = list.iter().position(|entry| entry.target == *what)?;
    Some(list.swap_remove(index))
}

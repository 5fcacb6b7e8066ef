//! What operators' calls need beyond the acts themselves: release by key, lists entry by entry,
//! and what is in force.
//!
//! Must not shorten a block but by a release.

use catraca_core::batch::{Batch, Reply};
use catraca_core::lists::{Entry, What};
use catraca_core::policy::{Mode, Name};
use catraca_core::refusal::Refusal;
use catraca_core::select::normalise;

use super::Engine;
use crate::error::Error;
use crate::records::{BlockRow, ListName};
use crate::store::{Store, When};

/// Entries of the lists made at run time: those that pass, and those that are refused.
pub(crate) type Entries = (Vec<Entry>, Vec<Entry>);

impl<S: Store> Engine<S> {
    /// Ends one block, as the records name it; says whether it stood.
    pub fn release(&self, block: &BlockRow) -> Result<bool, Error> {
        let reply = self.store.apply(&Batch::Unblock(vec![block.key]), When::Store)?;
        self.released(block, reply)
    }
}

impl<S> Engine<S> {
    /// Tells of a block that ended; says whether it stood.
    pub(crate) fn released(&self, block: &BlockRow, reply: Reply) -> Result<bool, Error> {
        let keys = vec![(block.key, block.parts.clone())];
        self.unblocked((&block.namespace, &block.policy), keys, reply)
    }

    /// Puts entries on a list; says what stood in place of each before. Values of private
    /// attributes are given as pseudonyms.
    pub fn list(&self, name: ListName, entries: Vec<Entry>) -> Vec<Option<Entry>> {
        self.relist(name, |list| {
            let replaced = entries.iter().map(|entry| take(list, &entry.what)).collect();
            list.extend(entries);
            replaced
        })
    }

    /// Takes an entry off a list; says what stood.
    pub fn unlist(&self, name: ListName, what: &What) -> Option<Entry> {
        self.relist(name, |list| take(list, what))
    }

    /// What stands on a list, made at run time, about this.
    pub fn listed(&self, name: ListName, what: &What) -> Option<Entry> {
        let world = self.world.load();
        let list = match name {
            ListName::Allow => &world.entries.0,
            ListName::Block => &world.entries.1,
        };
        let now = self.clock.now();
        list.iter().find(|entry| entry.what == *what && entry.is_live(now)).cloned()
    }

    fn relist<R>(&self, name: ListName, change: impl FnOnce(&mut Vec<Entry>) -> R) -> R {
        let _turn = self.writing.lock();
        let world = self.world.load();
        let (mut allow, mut block) = Entries::clone(&world.entries);
        let now = self.clock.now();
        allow.retain(|entry| entry.is_live(now));
        block.retain(|entry| entry.is_live(now));
        let answer = change(match name {
            ListName::Allow => &mut allow,
            ListName::Block => &mut block,
        });
        self.world.store(world.with_lists(allow, block).into());
        answer
    }

    /// Everything known of an attribute's value, stated or from the catalog.
    pub fn facts_about(&self, attribute: &str, raw: &str) -> Result<Vec<(Name, Name)>, Refusal> {
        let world = self.world.load();
        let about = normalise(&world.catalog, attribute, raw)?;
        let names = world.facts.names().filter(|(_, owner)| ***owner == *attribute);
        let known = names.filter_map(|(name, _)| {
            Some((name.clone(), world.facts.about(attribute, &about, name)?.clone()))
        });
        Ok(known.collect())
    }

    /// The mode of a policy that an operator has overridden.
    pub fn overridden(&self, policy: &str) -> Option<Mode> {
        let world = self.world.load();
        world.overrides.iter().find(|(name, _)| **name == *policy).map(|(_, mode)| *mode)
    }
}

fn take(list: &mut Vec<Entry>, what: &What) -> Option<Entry> {
    let place = list.iter().position(|entry| entry.what == *what)?;
    Some(list.swap_remove(place))
}

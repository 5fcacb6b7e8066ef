//! The allowlist and the blocklist: standing entries for address ranges and attribute values.
//!
//! Immutable: a change builds new lists, so that a lookup never waits. Values are compared byte for
//! byte, so who builds and who asks must normalise alike. Must not decide precedence (the caller
//! asks `allowed` first) nor read the time.

mod index;
#[cfg(test)]
mod tests;

use crate::address::{Address, Range};
use crate::time::Time;

use index::Index;

/// One standing entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Whom it is about.
    pub what: What,
    /// Why it was made.
    pub reason: Option<String>,
    /// When it ends; without an end it stands until it is removed.
    pub until: Option<Time>,
}

/// Whom an entry is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum What {
    /// Every address in a range.
    Range(Range),
    /// Everyone with a value of an attribute.
    Value {
        /// The attribute.
        attribute: String,
        /// The value, normalised as subjects are.
        value: String,
    },
}

/// What a caller is known by, for a lookup.
#[derive(Clone, Copy, Debug, Default)]
pub struct Candidate<'a> {
    /// Every address of the caller.
    pub addresses: &'a [Address],
    /// Every attribute with its value.
    pub attributes: &'a [(&'a str, &'a str)],
}

/// Both lists, ready for lookups.
#[derive(Clone, Debug, Default)]
pub struct Lists {
    allow: Index,
    block: Index,
}

impl Lists {
    /// Lists of these entries. Of several entries for one target the one that ends last stands.
    pub fn new(allow: Vec<Entry>, block: Vec<Entry>) -> Self {
        Self { allow: Index::new(allow), block: Index::new(block) }
    }

    /// Whether neither list has an entry, live or ended.
    pub fn is_empty(&self) -> bool {
        self.allow.is_empty() && self.block.is_empty()
    }

    /// The entry that lets the caller pass now: of several, the one that ends last.
    pub fn allowed(&self, who: &Candidate<'_>, now: Time) -> Option<&Entry> {
        self.allow.find(who, now)
    }

    /// The entry that refuses the caller now: of several, the one that ends last, because no
    /// earlier end would let the caller pass.
    pub fn blocked(&self, who: &Candidate<'_>, now: Time) -> Option<&Entry> {
        self.block.find(who, now)
    }
}

impl Entry {
    /// The instant from which it no longer counts.
    pub fn end(&self) -> Time {
        self.until.unwrap_or(Time::FOREVER)
    }

    /// Whether it counts: until its end, and no longer at that instant.
    pub fn is_live(&self, now: Time) -> bool {
        now < self.end()
    }
}

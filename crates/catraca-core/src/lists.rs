//! The allowlist and the blocklist: entries for address ranges and attribute values.
//!
//! Lists are immutable: a change builds new ones, so that lookups need no lock. Values are compared
//! byte for byte, so entries and requests must be normalised in the same way. The allowlist has
//! precedence, because callers look it up first.

mod index;
mod namespaces;
mod range_index;
#[cfg(test)]
mod tests;

use crate::address::{Address, AddressRange};
use crate::time::Time;

use namespaces::NamespaceIndexes;

/// One entry of the allowlist or the blocklist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessListEntry {
    /// The only namespace in which it applies; absent means all.
    pub namespace: Option<String>,
    /// The callers that it matches.
    pub target: ListTarget,
    /// The operator's reason.
    pub reason: Option<String>,
    /// When it expires; absent means never.
    pub until: Option<Time>,
}

/// The callers that an entry matches.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ListTarget {
    /// Every address in a range.
    Range(AddressRange),
    /// Every caller with this value of an attribute.
    Value {
        /// The attribute.
        attribute: String,
        /// The normalised value. Lists that are set at run time have the pseudonym of a private
        /// one.
        value: String,
    },
}

/// The namespace, addresses and attributes by which a caller is looked up.
#[derive(Clone, Copy, Debug, Default)]
pub struct CallerIdentity<'a> {
    /// The namespace of the caller.
    pub namespace: &'a str,
    /// Every address of the caller.
    pub addresses: &'a [Address],
    /// Every attribute with its normalised value.
    pub attributes: &'a [(&'a str, &'a str)],
}

/// Both lists, ready for lookups.
#[derive(Clone, Debug, Default)]
pub struct Lists {
    allow: NamespaceIndexes,
    block: NamespaceIndexes,
}

impl Lists {
    /// Lists of these entries. Of several entries for one target and namespace, the one that
    /// expires last is used.
    pub fn new(allow: Vec<AccessListEntry>, block: Vec<AccessListEntry>) -> Self {
        Self { allow: NamespaceIndexes::new(allow), block: NamespaceIndexes::new(block) }
    }

    /// Whether neither list has an entry that applies in this namespace, expired ones included.
    #[inline]
    pub fn is_empty_in(&self, namespace: &str) -> bool {
        self.allow.is_empty_in(namespace) && self.block.is_empty_in(namespace)
    }

    /// Whether an entry that applies in this namespace is stored under a pseudonym of a value of
    /// this attribute. Only then must a caller's value be digested to find it.
    pub fn has_pseudonyms(&self, namespace: &str, attribute: &str) -> bool {
        self.allow.has_pseudonyms(namespace, attribute)
            || self.block.has_pseudonyms(namespace, attribute)
    }

    /// The allowlist entry that matches the caller now; of several, the one that expires last.
    pub fn find_allow_entry(
        &self,
        who: &CallerIdentity<'_>,
        now: Time,
    ) -> Option<&AccessListEntry> {
        self.allow.find(who, now)
    }

    /// The blocklist entry that matches the caller now; of several, the one that expires last,
    /// which is when the caller may pass again.
    pub fn find_block_entry(
        &self,
        who: &CallerIdentity<'_>,
        now: Time,
    ) -> Option<&AccessListEntry> {
        self.block.find(who, now)
    }
}

impl AccessListEntry {
    /// When the entry expires; [`Time::FOREVER`] if never.
    pub fn end(&self) -> Time {
        self.until.unwrap_or(Time::FOREVER)
    }

    /// Whether the entry has not expired; at the instant of `until` it has.
    pub fn is_live(&self, now: Time) -> bool {
        now < self.end()
    }
}

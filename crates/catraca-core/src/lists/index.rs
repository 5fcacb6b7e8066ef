//! The lookup index of one list in one namespace: ranges by address family, values in a sorted
//! list.
//!
//! A lookup considers every range that contains an address, because the narrowest may have expired
//! while a wider one has not.

use super::range_index::RangeIndex;
use super::{AccessListEntry, CallerIdentity, ListTarget};
use crate::address::Address;
use crate::digest::is_pseudonym;
use crate::time::Time;

/// The entries of one list.
#[derive(Clone, Debug, Default)]
pub struct Index {
    v4: RangeIndex,
    v6: RangeIndex,
    /// Entries for values, sorted by attribute and value for binary search.
    values: Vec<AccessListEntry>,
}

impl Index {
    /// Builds the index, with one entry for each target.
    pub fn new(mut entries: Vec<AccessListEntry>) -> Self {
        // `dedup_by` keeps the first of equal targets, so the one that expires last comes first.
        entries.sort_by(|left, right| {
            left.target.cmp(&right.target).then_with(|| right.end().cmp(&left.end()))
        });
        entries.dedup_by(|next, first| next.target == first.target);
        let mut v4 = Vec::new();
        let mut v6 = Vec::new();
        let mut values = Vec::new();
        for entry in entries {
            let ListTarget::Range(range) = &entry.target else {
                values.push(entry);
                continue;
            };
            let net = range.net();
            let family = if net.addr().is_ipv4() { &mut v4 } else { &mut v6 };
            family.push((net.prefix_len(), net.addr(), entry));
        }
        Self { v4: RangeIndex::new(v4), v6: RangeIndex::new(v6), values }
    }

    /// Whether the list has no entries.
    pub fn is_empty(&self) -> bool {
        self.v4.is_empty() && self.v6.is_empty() && self.values.is_empty()
    }

    /// Whether the list has an entry under a pseudonym of a value of this attribute.
    pub fn has_pseudonyms(&self, attribute: &str) -> bool {
        // Pseudonyms start with this character, so they follow each other.
        let first = self.values.partition_point(|entry| value_of(entry) < (attribute, "~"));
        let mut values = self.values[first..].iter().map(value_of);
        let starts_alike =
            |(name, value): &(&str, &str)| *name == attribute && value.starts_with('~');
        values.by_ref().take_while(starts_alike).any(|(_, value)| is_pseudonym(value))
    }

    /// The entry that matches the caller and expires last. Of entries that expire together the
    /// first is returned, in the order of the caller's addresses (wide ranges first) and then
    /// attributes.
    pub fn find(&self, who: &CallerIdentity<'_>, now: Time) -> Option<&AccessListEntry> {
        if self.is_empty() {
            return None;
        }
        let ranges = who.addresses.iter().filter_map(|address| self.find_range(*address, now));
        let values = who.attributes.iter().filter_map(|pair| self.find_value(*pair));
        ranges.chain(values).filter(|entry| entry.is_live(now)).reduce(later)
    }

    /// The entry of a range that contains an address and expires last.
    fn find_range(&self, address: Address, now: Time) -> Option<&AccessListEntry> {
        let live = |entry: &&AccessListEntry| entry.is_live(now);
        let ranges = if address.ip().is_ipv4() { &self.v4 } else { &self.v6 };
        ranges.containing(address.ip()).filter(live).reduce(later)
    }

    /// The entry for a value of an attribute.
    fn find_value(&self, wanted: (&str, &str)) -> Option<&AccessListEntry> {
        let found = self.values.binary_search_by(|entry| value_of(entry).cmp(&wanted));
        found.ok().map(|at| &self.values[at])
    }
}

/// The attribute and the value of an entry; ranges have none, and are not among the values.
fn value_of(entry: &AccessListEntry) -> (&str, &str) {
    match &entry.target {
        ListTarget::Value { attribute, value } => (attribute, value),
        ListTarget::Range(_) => ("", ""),
    }
}

/// The entry that expires later; the first if they expire together.
pub(super) fn later<'a>(
    first: &'a AccessListEntry,
    second: &'a AccessListEntry,
) -> &'a AccessListEntry {
    if second.end() > first.end() { second } else { first }
}

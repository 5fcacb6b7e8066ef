//! The lookup index of one list: ranges in prefix tries, values in a sorted list.
//!
//! A lookup considers every range that contains an address, because the narrowest may have expired
//! while a wider one has not.

use std::cmp::Ordering;
use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use prefix_trie::PrefixMap;

use super::{AccessListEntry, CallerIdentity, ListTarget};
use crate::address::Address;
use crate::time::Time;

/// The entries of one list.
#[derive(Clone, Debug, Default)]
pub struct Index {
    v4: PrefixMap<Ipv4Net, AccessListEntry>,
    v6: PrefixMap<Ipv6Net, AccessListEntry>,
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
        let mut index = Self::default();
        for entry in entries {
            index.add(entry);
        }
        index
    }

    /// Adds the next entry in sorted order.
    fn add(&mut self, entry: AccessListEntry) {
        match &entry.target {
            ListTarget::Range(range) => match range.net() {
                IpNet::V4(net) => drop(self.v4.insert(net, entry)),
                IpNet::V6(net) => drop(self.v6.insert(net, entry)),
            },
            ListTarget::Value { .. } => self.values.push(entry),
        }
    }

    /// Whether the list has no entries.
    pub fn is_empty(&self) -> bool {
        self.v4.is_empty() && self.v6.is_empty() && self.values.is_empty()
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
        match address.ip() {
            IpAddr::V4(ip) => self.v4.cover_values(&ip.into()).filter(live).reduce(later),
            IpAddr::V6(ip) => self.v6.cover_values(&ip.into()).filter(live).reduce(later),
        }
    }

    /// The entry for a value of an attribute.
    fn find_value(&self, wanted: (&str, &str)) -> Option<&AccessListEntry> {
        let order = |entry: &AccessListEntry| match &entry.target {
            ListTarget::Value { attribute, value } => {
                (attribute.as_str(), value.as_str()).cmp(&wanted)
            }
            ListTarget::Range(_) => Ordering::Less,
        };
        self.values.binary_search_by(order).ok().map(|at| &self.values[at])
    }
}

/// The entry that expires later; the first if they expire together.
fn later<'a>(first: &'a AccessListEntry, second: &'a AccessListEntry) -> &'a AccessListEntry {
    if second.end() > first.end() { second } else { first }
}

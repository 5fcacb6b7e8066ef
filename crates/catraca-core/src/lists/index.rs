//! One list's entries, arranged for lookups: ranges in prefix tries, values in order.
//!
//! Must consider every range that holds an address: the narrowest may have ended while a wider
//! one still stands.

use std::cmp::Ordering;
use std::net::IpAddr;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use prefix_trie::PrefixMap;

use super::{Candidate, Entry, What};
use crate::address::Address;
use crate::time::Time;

/// The entries of one list.
#[derive(Clone, Debug, Default)]
pub struct Index {
    v4: PrefixMap<Ipv4Net, Entry>,
    v6: PrefixMap<Ipv6Net, Entry>,
    /// Entries for values, in the order of attribute and value.
    values: Vec<Entry>,
}

impl Index {
    /// Arranges entries, one for each target.
    pub fn new(mut entries: Vec<Entry>) -> Self {
        // The later end first, so that it is the one kept.
        entries.sort_by(|left, right| {
            left.what.cmp(&right.what).then_with(|| right.end().cmp(&left.end()))
        });
        entries.dedup_by(|later, kept| later.what == kept.what);
        let mut index = Self::default();
        for entry in entries {
            index.add(entry);
        }
        index
    }

    /// Adds the next entry in order.
    fn add(&mut self, entry: Entry) {
        match &entry.what {
            What::Range(range) => match range.net() {
                IpNet::V4(net) => drop(self.v4.insert(net, entry)),
                IpNet::V6(net) => drop(self.v6.insert(net, entry)),
            },
            What::Value { .. } => self.values.push(entry),
        }
    }

    /// Whether there is nothing to look up.
    pub fn is_empty(&self) -> bool {
        self.v4.is_empty() && self.v6.is_empty() && self.values.is_empty()
    }

    /// The live entry that holds the caller and ends last; of those, the first in the order of
    /// the caller's addresses, from wide to narrow, and then attributes.
    pub fn find(&self, who: &Candidate<'_>, now: Time) -> Option<&Entry> {
        if self.is_empty() {
            return None;
        }
        let ranges = who.addresses.iter().filter_map(|address| self.range(*address, now));
        let values = who.attributes.iter().filter_map(|pair| self.value(*pair));
        ranges.chain(values).filter(|entry| entry.is_live(now)).reduce(longer)
    }

    /// The live range around an address that ends last.
    fn range(&self, address: Address, now: Time) -> Option<&Entry> {
        let live = |entry: &&Entry| entry.is_live(now);
        match address.ip() {
            IpAddr::V4(ip) => self.v4.cover_values(&ip.into()).filter(live).reduce(longer),
            IpAddr::V6(ip) => self.v6.cover_values(&ip.into()).filter(live).reduce(longer),
        }
    }

    /// The entry for a value.
    fn value(&self, wanted: (&str, &str)) -> Option<&Entry> {
        let order = |entry: &Entry| match &entry.what {
            What::Value { attribute, value } => (attribute.as_str(), value.as_str()).cmp(&wanted),
            What::Range(_) => Ordering::Less,
        };
        self.values.binary_search_by(order).ok().map(|at| &self.values[at])
    }
}

/// The entry that ends later; the first if they end together.
fn longer<'a>(first: &'a Entry, second: &'a Entry) -> &'a Entry {
    if second.end() > first.end() { second } else { first }
}

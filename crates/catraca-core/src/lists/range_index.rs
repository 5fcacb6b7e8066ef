//! Ranges of one address family, sorted for lookups of all ranges that contain an address.
//!
//! Ranges of equal prefix length lie next to each other, so a lookup is one binary search for each
//! prefix length that occurs.

use std::net::IpAddr;
use std::ops::Range;

use crate::lists::AccessListEntry;

/// The entries of ranges of one address family.
#[derive(Clone, Debug, Default)]
pub struct RangeIndex {
    /// The prefix lengths that occur, in ascending order, with their places in `entries`.
    lengths: Vec<(u8, Range<usize>)>,
    /// The first address of each range and its entry, sorted by prefix length and address.
    entries: Vec<(u128, AccessListEntry)>,
}

impl RangeIndex {
    /// Builds the index of entries with their network's first address and prefix length; no network
    /// may occur twice.
    pub fn new(mut ranges: Vec<(u8, IpAddr, AccessListEntry)>) -> Self {
        ranges.sort_by_key(|(prefix, first, _)| (*prefix, *first));
        let mut index = Self::default();
        for (prefix, first, entry) in ranges {
            index.entries.push((bits(first), entry));
            let end = index.entries.len();
            match index.lengths.last_mut() {
                Some((last, places)) if *last == prefix => places.end = end,
                _ => index.lengths.push((prefix, end - 1..end)),
            }
        }
        index
    }

    /// Whether there are no ranges.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The entries of the ranges that contain an address of this family, wide ranges first.
    pub fn containing(&self, address: IpAddr) -> impl Iterator<Item = &AccessListEntry> {
        self.lengths.iter().filter_map(move |(prefix, places)| {
            let entries = &self.entries[places.clone()];
            let wanted = network(address, *prefix);
            let found = entries.binary_search_by_key(&wanted, |(first, _)| *first);
            found.ok().map(|at| &entries[at].1)
        })
    }
}

/// An address as an integer.
fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(ip) => ip.to_bits().into(),
        IpAddr::V6(ip) => ip.to_bits(),
    }
}

/// The first address of the network that contains an address.
fn network(address: IpAddr, prefix: u8) -> u128 {
    let width: u32 = if address.is_ipv4() { 32 } else { 128 };
    let host_bits = width - u32::from(prefix);
    // The shift by 128 bits, for the prefix 0 of IPv6, has no result: all bits are cleared.
    let mask = u128::MAX.checked_shl(host_bits).unwrap_or(0);
    bits(address) & mask
}

//! A hash map by the names of a catalog, for lookups that every check makes.
//!
//! The hash is short and not keyed. That is safe for names of a catalog alone: callers choose which
//! name is looked up, but they add none, so a lookup never visits more entries than the catalog
//! has. Must not be used for values that callers send.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::policy::Name;

/// Values by the names of a catalog.
pub type NameMap<V> = HashMap<Name, V, BuildHasherDefault<NameHasher>>;

/// Hashes eight bytes of a name at a time.
#[derive(Clone, Copy, Debug, Default)]
pub struct NameHasher(u64);

/// 2^64 divided by the golden ratio: its bits are well mixed.
const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

impl NameHasher {
    /// The low half of a product hardly depends on the high bits of the word, so the high half is
    /// added to it.
    #[inline]
    fn add(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word) * u128::from(MULTIPLIER);
        self.0 = product as u64 ^ (product >> 64) as u64;
    }
}

impl Hasher for NameHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.add(u64::from_le_bytes(*word)));
        let last = rest.iter().fold(0, |word, byte| word << 8 | u64::from(*byte));
        self.add(last);
    }

    /// The end of a text, which makes the hashes of two adjacent texts differ. A name is hashed
    /// alone.
    #[inline]
    fn write_u8(&mut self, _: u8) {}

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn hash(name: &str) -> u64 {
        let mut hasher = NameHasher::default();
        hasher.write(name.as_bytes());
        hasher.finish()
    }

    #[test]
    fn names_that_differ_in_one_place_have_different_low_bits() {
        let names = (0..1_000).map(|number| format!("route-{number}-checkout"));
        let low_bits: BTreeSet<u64> = names.map(|name| hash(&name) & 0xffff).collect();
        assert!(low_bits.len() > 950, "{} of 1000 are distinct", low_bits.len());
        assert_ne!(hash("a"), hash("b"));
        assert_ne!(hash("checkout"), hash("checkout2"));
    }

    #[test]
    fn a_value_is_found_by_its_name() {
        let names = ["login", "checkout", "checkout-guest", "a", ""];
        let map: NameMap<usize> = names.iter().map(|name| ((*name).into(), name.len())).collect();
        for name in names {
            assert_eq!(map.get(name), Some(&name.len()));
        }
        assert_eq!(map.get("checkout-"), None);
    }
}

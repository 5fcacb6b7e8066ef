//! Overflow cells, which new keys of a policy share when memory is full, and their keys.
//!
//! The store has one overflow cell per family, kind and namespace, so that new keys together pass
//! at most as often as one of them could. They are behind a lock of their own, which is taken after
//! those of the shards, and only by batches that need an overflow cell. Callers cannot produce an
//! overflow key: their keys are keyed digests.

use catraca_core::cell::{Block, Cell, RatioWatch, Reference, SettledMarker};
use catraca_core::digest::Key;
use catraca_core::for_each_algorithm;
use catraca_core::time::Time;

use super::stats::TableUsage;
use super::table::Table;

/// The most leading bits of a key that may choose its shard.
pub(super) const SHARD_BITS_MAX: u32 = 16;
/// The bits of the first word that an overflow key derives from its second word: all but the shard
/// bits and the group.
const DERIVED: u64 = u32::MAX as u64;

/// A kind of cell, and its overflow cells if it is the cell of an algorithm.
pub(super) trait OverflowCell: Cell + Sized {
    /// Whether there are overflow cells of this kind.
    const HAS_OVERFLOW: bool = false;

    /// The table of overflow cells.
    fn overflow_table(_: &mut OverflowTables) -> Option<&mut Table<Self>> {
        None
    }
}

impl OverflowCell for Block {}
impl OverflowCell for RatioWatch {}
impl OverflowCell for Reference {}
impl OverflowCell for SettledMarker {}

macro_rules! overflow_tables {
    (() $($(#[$doc:meta])* $name:ident($terms:ty, $cell:ty) $field:ident;)*) => {
        /// The overflow cells of a store: at most one per family, algorithm and namespace.
        #[derive(Debug, Default)]
        pub(super) struct OverflowTables {
            $(pub $field: Table<$cell>,)*
        }

        impl OverflowTables {
            pub fn sweep(&mut self, visits: usize, now: Time) {
                $(self.$field.sweep(visits, now);)*
            }

            pub fn add_usage(&self, usage: &mut TableUsage) {
                $(usage.add(self.$field.len(), self.$field.bytes());)*
            }
        }

        $(impl OverflowCell for $cell {
            const HAS_OVERFLOW: bool = true;

            fn overflow_table(tables: &mut OverflowTables) -> Option<&mut Table<Self>> {
                Some(&mut tables.$field)
            }
        })*
    };
}

for_each_algorithm!(overflow_tables);

impl OverflowTables {
    /// Writes an overflow cell, always: there are few of them. Returns false for a kind that has
    /// none.
    pub fn put<C: OverflowCell>(&mut self, key: Key, cell: C, now: Time) -> bool {
        let Some(table) = C::overflow_table(self) else { return false };
        if let Err(cell) = table.replace(key, cell) {
            table.sweep_if_due(now, |_| ());
            table.insert(key, cell);
        }
        true
    }
}

/// The overflow key of a family, in one part of the store.
pub(super) fn overflow_key(family: u64, partition: u16) -> Key {
    // The second word identifies the family; bits of the first word are derived from the second,
    // which marks the key as an overflow key.
    let second = mix(family ^ FAMILY);
    let first = mix(second) & DERIVED;
    let whole = u128::from(first) << 64 | u128::from(second);
    // The number of the part is where other keys have their group.
    Key::from_bytes(whole.to_be_bytes()).in_group(partition)
}

/// Whether a key is an overflow key. An ordinary key is mistaken for one with a chance of 2^-32;
/// while memory is full, its counter is then an overflow cell, which does no harm.
#[inline]
pub(super) fn is_overflow_key(key: Key) -> bool {
    let [first, second] = key.words();
    (first ^ mix(second)) & DERIVED == 0
}

/// Mixes all bits of a number; a bijection, so different families have different keys.
#[inline]
fn mix(number: u64) -> u64 {
    let number = (number ^ number >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    let number = (number ^ number >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
    number ^ number >> 32
}

/// Separates families from other mixed numbers. The bytes are `catraca!` in ASCII.
const FAMILY: u64 = 0x6361_7472_6163_6121;

#[cfg(test)]
mod tests {
    use super::*;

    fn key(first: u64, second: u64) -> Key {
        Key::from_bytes((u128::from(first) << 64 | u128::from(second)).to_be_bytes())
    }

    #[test]
    fn there_is_one_key_per_family_and_part_and_no_other_key_is_one() {
        let one = overflow_key(7, 3);
        assert!(is_overflow_key(one) && one.group() == 3);
        assert_eq!(one, overflow_key(7, 3));
        assert_ne!(one, overflow_key(8, 3));
        assert_ne!(one, overflow_key(7, 4));
        assert!((0..10_000).all(|n| !is_overflow_key(key(mix(n), mix(n + 77)))));
    }
}

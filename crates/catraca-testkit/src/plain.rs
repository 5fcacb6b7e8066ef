//! The simplest cells that can run a batch: one ordered map per kind, without bounds.
//!
//! What other stores are compared with. A forgotten cell is hidden, never dropped, so that a clock
//! set back finds it again. Must not share cells, evict, or be fast.

use std::collections::BTreeMap;

use catraca_core::cell::{
    Block, Bucket, Cell, Cells, Fixed, Leases, Log, Mark, Place, Pool, Reference, Watch,
};
use catraca_core::digest::Key;
use catraca_core::time::Time;

/// Cells in ordered maps.
#[derive(Clone, Debug, Default)]
pub struct PlainCells {
    buckets: BTreeMap<Key, Bucket>,
    logs: BTreeMap<Key, Log>,
    fixed: BTreeMap<Key, Fixed>,
    leases: BTreeMap<Key, Leases>,
    blocks: BTreeMap<Key, Block>,
    watches: BTreeMap<Key, Watch>,
    marks: BTreeMap<Key, Mark>,
    references: BTreeMap<Key, Reference>,
}

impl Cells for PlainCells {
    fn place(&mut self, _: Key, _: u64, _: Time) -> Place {
        Place::Own
    }
}

fn known<C: Cell>(pool: &mut BTreeMap<Key, C>, key: Key, now: Time) -> Option<&mut C> {
    pool.get_mut(&key).filter(|cell| now < cell.forgotten_at())
}

/// The same four verbs over another field, once per kind.
macro_rules! pools {
    ($($cell:ty => $field:ident),* $(,)?) => {$(
        impl Pool<$cell> for PlainCells {
            fn get(&mut self, key: Key, now: Time) -> Option<&mut $cell> {
                known(&mut self.$field, key, now)
            }

            fn edit<R>(
                &mut self,
                key: Key,
                now: Time,
                change: impl FnOnce(&mut $cell) -> R,
            ) -> Option<R> {
                known(&mut self.$field, key, now).map(change)
            }

            fn put(&mut self, key: Key, cell: $cell, _: Time) -> bool {
                self.$field.insert(key, cell);
                true
            }

            fn remove(&mut self, key: Key, now: Time) -> bool {
                self.$field.remove(&key).is_some_and(|cell| now < cell.forgotten_at())
            }
        }
    )*};
}

pools! {
    Bucket => buckets,
    Log => logs,
    Fixed => fixed,
    Leases => leases,
    Block => blocks,
    Watch => watches,
    Mark => marks,
    Reference => references,
}

#[cfg(test)]
mod tests {
    use super::*;
    use catraca_core::limit::BucketTerms;

    #[test]
    fn a_forgotten_cell_is_hidden_and_comes_back_with_the_clock() {
        let terms = BucketTerms { size: 2, tokens: 1, period: 1_000_000 };
        let (key, start) = (Key::from_bytes([1; 16]), Time::from_micros(5_000_000));
        let mut bucket = Bucket::full(&terms, start);
        bucket.take(&terms, 1);
        let mut cells = PlainCells::default();
        assert!(cells.put(key, bucket, start));
        let mut sees =
            |micros| Pool::<Bucket>::get(&mut cells, key, Time::from_micros(micros)).is_some();
        assert!(sees(5_999_999));
        assert!(!sees(6_000_000));
        assert!(sees(5_999_999));
    }
}

//! The reference implementation of `CellStore`: one ordered map per kind of cell, without bounds.
//!
//! Other stores are compared with it. An expired cell is hidden, never deleted, so that it is
//! visible again when the clock is set back. There are no overflow cells and no eviction.

use std::collections::BTreeMap;

use catraca_core::cell::{Cell, CellTable};
use catraca_core::digest::Key;
use catraca_core::for_each_kind;
use catraca_core::time::Time;

fn live_cell<C: Cell>(table: &mut BTreeMap<Key, C>, key: Key, now: Time) -> Option<&mut C> {
    table.get_mut(&key).filter(|cell| now < cell.expires_at())
}

macro_rules! reference_cells {
    (() $($(#[$doc:meta])* $kind:ident($cell:ty) $field:ident $columns:tt)*) => {
        /// Cells in ordered maps.
        #[derive(Clone, Debug, Default)]
        pub struct ReferenceCells {
            $($field: BTreeMap<Key, $cell>,)*
        }

        $(impl CellTable<$cell> for ReferenceCells {
            fn get(&mut self, key: Key, now: Time) -> Option<&mut $cell> {
                live_cell(&mut self.$field, key, now)
            }

            fn edit<R>(
                &mut self,
                key: Key,
                now: Time,
                change: impl FnOnce(&mut $cell) -> R,
            ) -> Option<R> {
                live_cell(&mut self.$field, key, now).map(change)
            }

            fn put(&mut self, key: Key, cell: $cell, _: Time) -> bool {
                self.$field.insert(key, cell);
                true
            }

            fn remove(&mut self, key: Key, now: Time) -> bool {
                self.$field.remove(&key).is_some_and(|cell| now < cell.expires_at())
            }
        })*
    };
}

for_each_kind!(reference_cells);

#[cfg(test)]
mod tests {
    use super::*;
    use catraca_core::cell::Bucket;
    use catraca_core::limit::BucketTerms;

    #[test]
    fn a_forgotten_cell_is_hidden_and_comes_back_with_the_clock() {
        let terms = BucketTerms { size: 2, tokens: 1, period: 1_000_000 };
        let key = Key::from_bytes([1; 16]);
        let start = Time::from_micros(5_000_000);
        let mut bucket = Bucket::full(&terms, start);
        bucket.take(&terms, 1);
        let mut cells = ReferenceCells::default();
        assert!(cells.put(key, bucket, start));
        let mut is_visible =
            |micros| CellTable::<Bucket>::get(&mut cells, key, Time::from_micros(micros)).is_some();
        assert!(is_visible(5_999_999));
        assert!(!is_visible(6_000_000));
        assert!(is_visible(5_999_999));
    }
}

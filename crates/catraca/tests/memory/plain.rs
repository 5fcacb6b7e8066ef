//! Cells in ordered maps, without locks, bounds or haste: what the memory store must equal.

use std::collections::BTreeMap;

use catraca_core::cell::{
    Block, Bucket, Cell, Cells, Fixed, Leases, Log, Mark, Place, Pool, Reference, Watch,
};
use catraca_core::digest::Key;
use catraca_core::time::Time;

#[derive(Default)]
pub struct Plain {
    buckets: BTreeMap<Key, Bucket>,
    logs: BTreeMap<Key, Log>,
    fixed: BTreeMap<Key, Fixed>,
    leases: BTreeMap<Key, Leases>,
    blocks: BTreeMap<Key, Block>,
    watches: BTreeMap<Key, Watch>,
    marks: BTreeMap<Key, Mark>,
    references: BTreeMap<Key, Reference>,
}

macro_rules! pool {
    ($cell:ty, $map:ident) => {
        impl Pool<$cell> for Plain {
            fn get(&mut self, key: Key, now: Time) -> Option<&mut $cell> {
                self.$map.get_mut(&key).filter(|cell| now < cell.forgotten_at())
            }

            fn edit<R>(
                &mut self,
                key: Key,
                now: Time,
                change: impl FnOnce(&mut $cell) -> R,
            ) -> Option<R> {
                self.get(key, now).map(change)
            }

            fn put(&mut self, key: Key, cell: $cell, _: Time) -> bool {
                self.$map.insert(key, cell);
                true
            }

            fn remove(&mut self, key: Key, now: Time) -> bool {
                self.$map.remove(&key).is_some_and(|cell| now < cell.forgotten_at())
            }
        }
    };
}

pool!(Bucket, buckets);
pool!(Log, logs);
pool!(Fixed, fixed);
pool!(Leases, leases);
pool!(Block, blocks);
pool!(Watch, watches);
pool!(Mark, marks);
pool!(Reference, references);

impl Cells for Plain {
    fn place(&mut self, _: Key, _: u64, _: Time) -> Place {
        Place::Own
    }
}

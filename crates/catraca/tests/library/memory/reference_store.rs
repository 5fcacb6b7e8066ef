//! A store of ordered maps without locks or limits: the memory store must give the same replies.

use std::collections::BTreeMap;

use catraca_core::cell::{
    Block, Bucket, Cell, CellTable, FixedWindow, InFlight, RatioWatch, Reference, SettledMarker,
    SlidingWindow,
};
use catraca_core::digest::Key;
use catraca_core::time::Time;

#[derive(Default)]
pub struct ReferenceStore {
    buckets: BTreeMap<Key, Bucket>,
    logs: BTreeMap<Key, SlidingWindow>,
    fixed: BTreeMap<Key, FixedWindow>,
    leases: BTreeMap<Key, InFlight>,
    blocks: BTreeMap<Key, Block>,
    watches: BTreeMap<Key, RatioWatch>,
    marks: BTreeMap<Key, SettledMarker>,
    references: BTreeMap<Key, Reference>,
}

macro_rules! pool {
    ($cell:ty, $map:ident) => {
        impl CellTable<$cell> for ReferenceStore {
            fn get(&mut self, key: Key, now: Time) -> Option<&mut $cell> {
                self.$map.get_mut(&key).filter(|cell| now < cell.expires_at())
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
                self.$map.remove(&key).is_some_and(|cell| now < cell.expires_at())
            }
        }
    };
}

pool!(Bucket, buckets);
pool!(SlidingWindow, logs);
pool!(FixedWindow, fixed);
pool!(InFlight, leases);
pool!(Block, blocks);
pool!(RatioWatch, watches);
pool!(SettledMarker, marks);
pool!(Reference, references);

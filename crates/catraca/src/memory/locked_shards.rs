//! Several locked shards as one cell store: each key is routed to its shard.
//!
//! Takes no locks: the caller has locked the shards, in ascending order.

use catraca_core::cell::{Cell, CellTable, CounterSlot};
use catraca_core::digest::Key;
use catraca_core::time::Time;
use parking_lot::MutexGuard;
use smallvec::SmallVec;

use super::partitioned_shard::PartitionedShard;

/// The shards that a batch has locked, sorted by index.
pub(super) struct LockedShards<'a> {
    pub locked: SmallVec<[(usize, MutexGuard<'a, PartitionedShard>); 4]>,
    pub bits: u32,
}

impl LockedShards<'_> {
    /// The shard of a key. A batch names every key that it touches; overflow cells are not in
    /// shards. A key of another shard is a bug in the rules; to panic is better than to write
    /// state where it is not found.
    fn shard(&mut self, key: Key) -> &mut PartitionedShard {
        let shard_index = key.shard(self.bits);
        let index = self.locked.binary_search_by_key(&shard_index, |(shard_index, _)| *shard_index);
        let index = index.expect("a batch touches only the shards of the keys it names");
        &mut self.locked[index].1
    }
}

impl<C: Cell> CellTable<C> for LockedShards<'_>
where
    PartitionedShard: CellTable<C>,
{
    fn get(&mut self, key: Key, now: Time) -> Option<&mut C> {
        self.shard(key).get(key, now)
    }

    fn edit<R>(&mut self, key: Key, now: Time, change: impl FnOnce(&mut C) -> R) -> Option<R> {
        self.shard(key).edit(key, now, change)
    }

    fn put(&mut self, key: Key, cell: C, now: Time) -> bool {
        self.shard(key).put(key, cell, now)
    }

    fn remove(&mut self, key: Key, now: Time) -> bool {
        CellTable::<C>::remove(self.shard(key), key, now)
    }

    fn counter_slot(&mut self, key: Key, family: u64, now: Time) -> CounterSlot {
        CellTable::<C>::counter_slot(self.shard(key), key, family, now)
    }
}

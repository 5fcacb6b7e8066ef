//! Several locked shards as one set of cells: each key finds its own.
//!
//! Must not lock anything: who builds this has locked the shards, in order.

use catraca_core::cell::{Cell, Cells, Place, Pool};
use catraca_core::digest::Key;
use catraca_core::time::Time;
use parking_lot::MutexGuard;
use smallvec::SmallVec;

use super::shard::Shard;

/// Shards that a batch has locked, by their numbers.
pub(super) struct Many<'a> {
    pub locked: SmallVec<[(usize, MutexGuard<'a, Shard>); 4]>,
    pub bits: u32,
}

impl Many<'_> {
    /// The shard of a key. A batch names every key it touches, and others derived from it stay in
    /// the shard, so a key without one is a broken promise of the rules: better no state than
    /// state in the wrong place.
    fn shard(&mut self, key: Key) -> &mut Shard {
        let number = key.shard(self.bits);
        let place = self.locked.binary_search_by_key(&number, |(number, _)| *number);
        let place = place.expect("a batch touches only the shards of the keys it names");
        &mut self.locked[place].1
    }
}

impl<C: Cell> Pool<C> for Many<'_>
where
    Shard: Pool<C>,
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
        Pool::<C>::remove(self.shard(key), key, now)
    }
}

impl Cells for Many<'_> {
    fn place(&mut self, key: Key, family: u64, now: Time) -> Place {
        self.shard(key).place(key, family, now)
    }
}

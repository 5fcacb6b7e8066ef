//! Locked shards and the overflow cells of the store as one cell store.
//!
//! The lock of the overflow cells is taken when the batch touches one, after those of its shards.
//! No thread takes a shard's lock while it holds this one, so two batches cannot deadlock.

use catraca_core::cell::{Cell, CellTable, CounterSlot};
use catraca_core::digest::Key;
use catraca_core::time::Time;
use parking_lot::{Mutex, MutexGuard};

use super::overflow::{OverflowCell, OverflowTables, is_overflow_key};

/// The cells that a batch can touch.
pub(super) struct CellsWithOverflow<'m, 's, S> {
    shards: &'s mut S,
    overflow: &'m Mutex<OverflowTables>,
    locked: Option<MutexGuard<'m, OverflowTables>>,
    /// Whether the batch was given an overflow key. Without one, no key is tested.
    is_overflowing: bool,
}

impl<'m, 's, S> CellsWithOverflow<'m, 's, S> {
    #[inline]
    pub fn new(shards: &'s mut S, overflow: &'m Mutex<OverflowTables>) -> Self {
        Self { shards, overflow, locked: None, is_overflowing: false }
    }

    #[inline]
    fn has<C: OverflowCell>(&self, key: Key) -> bool {
        C::HAS_OVERFLOW && self.is_overflowing && is_overflow_key(key)
    }

    fn lock(&mut self) -> &mut OverflowTables {
        let overflow = self.overflow;
        self.locked.get_or_insert_with(|| overflow.lock())
    }
}

impl<C: Cell + OverflowCell, S: CellTable<C>> CellTable<C> for CellsWithOverflow<'_, '_, S> {
    #[inline]
    fn get(&mut self, key: Key, now: Time) -> Option<&mut C> {
        if self.has::<C>(key) {
            return C::overflow_table(self.lock())?.get(key, now);
        }
        self.shards.get(key, now)
    }

    #[inline]
    fn edit<R>(&mut self, key: Key, now: Time, change: impl FnOnce(&mut C) -> R) -> Option<R> {
        if self.has::<C>(key) {
            return C::overflow_table(self.lock())?.edit(key, now, change);
        }
        self.shards.edit(key, now, change)
    }

    #[inline]
    fn put(&mut self, key: Key, cell: C, now: Time) -> bool {
        if self.has::<C>(key) {
            return self.lock().put(key, cell, now);
        }
        self.shards.put(key, cell, now)
    }

    fn remove(&mut self, key: Key, now: Time) -> bool {
        if self.has::<C>(key) {
            let table = C::overflow_table(self.lock());
            let removed = table.and_then(|table| table.remove(key));
            return removed.is_some_and(|cell| now < cell.expires_at());
        }
        CellTable::<C>::remove(self.shards, key, now)
    }

    fn counter_slot(&mut self, key: Key, family: u64, now: Time) -> CounterSlot {
        let slot = CellTable::<C>::counter_slot(self.shards, key, family, now);
        self.is_overflowing |= matches!(slot, CounterSlot::Overflow(_));
        slot
    }
}

//! Counters: the cells that a check charges, under their own key. Without room, the key of an
//! overflow cell is returned.
//!
//! A charge must not be lost: a counter for which a slot was reserved is always inserted, even
//! beyond the budget.

use catraca_core::cell::{Cell, CellTable, CounterSlot, RatioWatch};
use catraca_core::digest::Key;
use catraca_core::for_each_algorithm;
use catraca_core::time::Time;

use super::overflow::overflow_key;
use super::partitioned_shard::CellAdmission;
use super::shard::{Shard, StoredCell};
use super::table::Table;

/// The cell of an algorithm, for which a slot is reserved.
pub(super) trait CounterCell: StoredCell<Table = Table<Self>> {}

macro_rules! counter_cells {
    (() $($(#[$doc:meta])* $name:ident($terms:ty, $cell:ty) $field:ident;)*) => {
        $(impl CounterCell for $cell {})*
    };
}

for_each_algorithm!(counter_cells);

impl<C: CounterCell> CellTable<C> for Shard {
    #[inline]
    fn get(&mut self, key: Key, now: Time) -> Option<&mut C> {
        C::table_mut(self).get(key, now)
    }

    #[inline]
    fn edit<R>(&mut self, key: Key, now: Time, change: impl FnOnce(&mut C) -> R) -> Option<R> {
        C::table_mut(self).edit(key, now, change)
    }

    #[inline]
    fn put(&mut self, key: Key, cell: C, now: Time) -> bool {
        let stored = self.try_put(key, cell, now).is_ok();
        if !stored {
            self.cold.pressure.refused_counters.add(now);
        }
        stored
    }

    fn remove(&mut self, key: Key, now: Time) -> bool {
        let removed: Option<C> = C::table_mut(self).remove(key);
        removed.is_some_and(|cell| now < cell.expires_at())
    }

    fn counter_slot(&mut self, _: Key, family: u64, now: Time) -> CounterSlot {
        if self.reserve_slot::<C>(now) {
            return CounterSlot::Own;
        }
        CellAdmission::<C>::overflow_slot(self, family, now)
    }
}

impl<C: CounterCell> CellAdmission<C> for Shard {
    #[inline]
    fn try_put(&mut self, key: Key, cell: C, now: Time) -> Result<(), C> {
        // Also overwrites an expired cell of this key, which has a slot already.
        match C::table_mut(self).replace(key, cell) {
            Ok(()) => Ok(()),
            Err(cell) => self.add(key, cell, now),
        }
    }

    fn try_reserve(&mut self, now: Time) -> bool {
        self.reserve_slot::<C>(now)
    }

    fn overflow_slot(&mut self, family: u64, now: Time) -> CounterSlot {
        self.cold.pressure.overflowed.add(now);
        CounterSlot::Overflow(overflow_key(family, self.cold.partition))
    }
}

impl Shard {
    /// Inserts a counter for a new key. One without a reservation, such as a strike, needs free
    /// bytes.
    fn add<C: CounterCell>(&mut self, key: Key, cell: C, now: Time) -> Result<(), C> {
        // A reserved slot was accounted when it was reserved.
        if !self.take_reservation() && !self.reserve::<C>(1, self.cold.limits.counters, now) {
            return Err(cell);
        }
        let table = C::table_mut(self);
        table.sweep_if_due(now, |_| ());
        table.insert(key, cell);
        Ok(())
    }

    /// Uses up one reservation of this batch, if there is one.
    fn take_reservation(&mut self) -> bool {
        let reserved = self.reserved > 0;
        self.reserved = self.reserved.saturating_sub(1);
        reserved
    }
}

/// Watched ratios use the budget of counters, but have no overflow cells.
impl CellTable<RatioWatch> for Shard {
    fn get(&mut self, key: Key, now: Time) -> Option<&mut RatioWatch> {
        self.cold.watches.get(key, now)
    }

    fn edit<R>(
        &mut self,
        key: Key,
        now: Time,
        change: impl FnOnce(&mut RatioWatch) -> R,
    ) -> Option<R> {
        self.cold.watches.edit(key, now, change)
    }

    fn put(&mut self, key: Key, cell: RatioWatch, now: Time) -> bool {
        let stored = self.try_put(key, cell, now).is_ok();
        if !stored {
            self.cold.pressure.refused_counters.add(now);
        }
        stored
    }

    fn remove(&mut self, key: Key, now: Time) -> bool {
        let removed = self.cold.watches.remove(key);
        removed.is_some_and(|cell| now < cell.expires_at())
    }
}

impl CellAdmission<RatioWatch> for Shard {
    fn try_put(&mut self, key: Key, cell: RatioWatch, now: Time) -> Result<(), RatioWatch> {
        let Err(cell) = self.cold.watches.replace(key, cell) else { return Ok(()) };
        let free = self.cold.limits.counters.saturating_sub(self.counter_bytes());
        let watches = &mut self.cold.watches;
        watches.sweep_if_due(now, |_| ());
        if free < cell.weight()
            || !watches.make_room(1, free - cell.weight(), watches.rebuild_threshold())
        {
            return Err(cell);
        }
        watches.insert(key, cell);
        Ok(())
    }
}

//! Counters: the cells that a check charges, under their own key or in an overflow cell.
//!
//! A charge must not be lost: a counter for which a slot was reserved is always inserted, even
//! beyond the budget.

use catraca_core::cell::{Bucket, CellTable, FixedWindow, InFlight, RatioWatch, SlidingWindow};
use catraca_core::digest::Key;
use catraca_core::time::Time;

use super::overflow::is_overflow_key;
use super::shard::Shard;
use super::table::Table;
use super::weighed_cell::WeighedCell;

/// The kinds of counters that have overflow cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CounterKind {
    Bucket,
    SlidingWindow,
    FixedWindow,
    InFlight,
}

/// A cell that a check charges.
pub(super) trait CounterCell: WeighedCell {
    const KIND: CounterKind;
    /// Whether the cell needs no heap memory.
    const IS_INLINE: bool;

    /// The table of counters with a key of their own.
    fn table(shard: &mut Shard) -> &mut Table<Self>;
    /// The table of overflow cells.
    fn overflow(shard: &mut Shard) -> &mut Table<Self>;
}

impl<C: CounterCell> CellTable<C> for Shard {
    #[inline]
    fn get(&mut self, key: Key, now: Time) -> Option<&mut C> {
        // For `counter_slot`, which does not get the kind of the counter.
        self.last_kind = C::KIND;
        self.table_of(key).get(key, now)
    }

    #[inline]
    fn edit<R>(&mut self, key: Key, now: Time, change: impl FnOnce(&mut C) -> R) -> Option<R> {
        self.table_of(key).edit(key, now, change)
    }

    #[inline]
    fn put(&mut self, key: Key, cell: C, now: Time) -> bool {
        // Also overwrites an expired cell of this key, which has a slot already.
        match self.table_of(key).replace(key, cell) {
            Ok(()) => true,
            Err(cell) => self.add(key, cell, now),
        }
    }

    fn remove(&mut self, key: Key, now: Time) -> bool {
        let removed: Option<C> = self.table_of(key).remove(key);
        removed.is_some_and(|cell| now < cell.expires_at())
    }
}

impl Shard {
    /// The table that contains a key. The flag is tested first, because most shards never overflow.
    #[inline]
    fn table_of<C: CounterCell>(&mut self, key: Key) -> &mut Table<C> {
        if self.overflowing && is_overflow_key(key) { C::overflow(self) } else { C::table(self) }
    }

    /// Inserts a counter for a new key. One without a reservation, such as a strike, needs free
    /// bytes.
    fn add<C: CounterCell>(&mut self, key: Key, cell: C, now: Time) -> bool {
        let is_overflow = self.overflowing && is_overflow_key(key);
        // An overflow cell is always inserted: there is at most one per family and kind. A reserved
        // slot was accounted when it was reserved.
        if !is_overflow
            && !self.take_reservation()
            && !self.reserve::<C>(1, self.cold.limits.counters, now)
        {
            self.cold.pressure.refused_counters.add(now);
            return false;
        }
        let table = self.table_of(key);
        table.sweep_if_due(now, |_| ());
        table.insert(key, cell);
        true
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
        let Err(cell) = self.cold.watches.replace(key, cell) else { return true };
        let free = self.cold.limits.counters.saturating_sub(self.counter_bytes());
        let watches = &mut self.cold.watches;
        watches.sweep_if_due(now, |_| ());
        if free < cell.weight()
            || !watches.make_room(1, free - cell.weight(), watches.rebuild_threshold())
        {
            self.cold.pressure.refused_counters.add(now);
            return false;
        }
        watches.insert(key, cell);
        true
    }

    fn remove(&mut self, key: Key, now: Time) -> bool {
        let removed = self.cold.watches.remove(key);
        removed.is_some_and(|cell| now < catraca_core::cell::Cell::expires_at(&cell))
    }
}

impl CounterCell for Bucket {
    const KIND: CounterKind = CounterKind::Bucket;
    const IS_INLINE: bool = true;

    #[inline]
    fn table(shard: &mut Shard) -> &mut Table<Self> {
        &mut shard.buckets
    }

    fn overflow(shard: &mut Shard) -> &mut Table<Self> {
        &mut shard.cold.overflow.buckets
    }
}

impl CounterCell for SlidingWindow {
    const KIND: CounterKind = CounterKind::SlidingWindow;
    const IS_INLINE: bool = false;

    #[inline]
    fn table(shard: &mut Shard) -> &mut Table<Self> {
        &mut shard.logs
    }

    fn overflow(shard: &mut Shard) -> &mut Table<Self> {
        &mut shard.cold.overflow.logs
    }
}

impl CounterCell for FixedWindow {
    const KIND: CounterKind = CounterKind::FixedWindow;
    const IS_INLINE: bool = true;

    #[inline]
    fn table(shard: &mut Shard) -> &mut Table<Self> {
        &mut shard.fixed
    }

    fn overflow(shard: &mut Shard) -> &mut Table<Self> {
        &mut shard.cold.overflow.fixed
    }
}

impl CounterCell for InFlight {
    const KIND: CounterKind = CounterKind::InFlight;
    const IS_INLINE: bool = false;

    #[inline]
    fn table(shard: &mut Shard) -> &mut Table<Self> {
        &mut shard.cold.leases
    }

    fn overflow(shard: &mut Shard) -> &mut Table<Self> {
        &mut shard.cold.overflow.leases
    }
}

//! A shard, or one part of a divided shard: its tables and their limits.
//!
//! What most decisions use comes first (`repr(C)`), so that it shares cache lines with the lock;
//! the rest is behind one pointer. A shard locks no other shard and reads no clock.

use std::sync::Arc;

use catraca_core::cell::{
    Block, Bucket, Cell, CellKind, FixedWindow, InFlight, MemoryPool, RatioWatch, Reference,
    SettledMarker, SlidingWindow,
};
use catraca_core::for_each_kind;
use catraca_core::time::Time;

use super::counter::CounterCell;
use super::options::ShardLimits;
use super::pressure::PressureCounters;
use super::references::References;
use super::table::Table;

/// Slots of each table that are searched for expired cells when there is no room.
pub(super) const RECLAIM_SLOTS: usize = 32;

/// The tables of one shard.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Shard {
    pub buckets: Table<Bucket>,
    pub blocks: Table<Block>,
    /// New counters for which this batch has reserved a slot.
    pub reserved: u32,
    pub logs: Table<SlidingWindow>,
    pub fixed: Table<FixedWindow>,
    pub cold: Box<ColdTables>,
}

/// Tables and limits that most decisions do not use.
#[derive(Debug)]
pub(super) struct ColdTables {
    pub leases: Table<InFlight>,
    pub watches: Table<RatioWatch>,
    pub marks: Table<SettledMarker>,
    pub references: References,
    pub limits: ShardLimits,
    /// The number of this part of a divided shard.
    pub partition: u16,
    pub pressure: Arc<PressureCounters>,
}

/// A kind of cell, and its table in a shard.
pub(super) trait StoredCell: Cell {
    type Table;

    fn table(shard: &Shard) -> &Self::Table;
    fn table_mut(shard: &mut Shard) -> &mut Self::Table;
}

macro_rules! stored_cells {
    ($($cell:ty => $table:ty, $($field:ident).+;)*) => {$(
        impl StoredCell for $cell {
            type Table = $table;

            #[inline]
            fn table(shard: &Shard) -> &$table {
                &shard.$($field).+
            }

            #[inline]
            fn table_mut(shard: &mut Shard) -> &mut $table {
                &mut shard.$($field).+
            }
        }
    )*};
}

// The compiler asks for every kind of core's list: the functions below need its table.
stored_cells! {
    Bucket => Table<Bucket>, buckets;
    Block => Table<Block>, blocks;
    SlidingWindow => Table<SlidingWindow>, logs;
    FixedWindow => Table<FixedWindow>, fixed;
    InFlight => Table<InFlight>, cold.leases;
    RatioWatch => Table<RatioWatch>, cold.watches;
    SettledMarker => Table<SettledMarker>, cold.marks;
    Reference => References, cold.references;
}

macro_rules! counter_bytes {
    (($shard:expr) $($(#[$doc:meta])* $kind:ident($cell:ty) $field:ident $columns:tt)*) => {{
        let mut bytes = 0;
        $(if CellKind::$kind.pool() == MemoryPool::Counters {
            bytes += <$cell>::table($shard).bytes();
        })*
        bytes
    }};
}

macro_rules! sweep {
    (
        ($shard:expr, $visits:expr, $now:expr, $wanted:expr)
        $($(#[$doc:meta])* $kind:ident($cell:ty) $field:ident $columns:tt)*
    ) => {
        $(if $wanted(CellKind::$kind.pool()) {
            <$cell>::table_mut($shard).sweep($visits, $now);
        })*
    };
}

impl Shard {
    pub fn new(limits: ShardLimits, partition: u16, pressure: Arc<PressureCounters>) -> Self {
        let cold = ColdTables {
            leases: Table::default(),
            watches: Table::default(),
            marks: Table::default(),
            references: References::default(),
            limits,
            partition,
            pressure,
        };
        Self {
            buckets: Table::default(),
            blocks: Table::default(),
            logs: Table::default(),
            fixed: Table::default(),
            cold: Box::new(cold),
            reserved: 0,
        }
    }

    /// Drops unused reservations of the previous batch. Called when a batch has locked the shard.
    #[inline]
    pub fn begin_batch(&mut self) {
        self.reserved = 0;
    }

    /// Bytes that count against the budget. Overflow cells, which the store has apart, do not.
    pub fn counter_bytes(&self) -> usize {
        for_each_kind!(counter_bytes self)
    }

    /// Removes expired cells of every kind, visiting `visits` slots of each table.
    pub fn reclaim_all(&mut self, visits: usize, now: Time) {
        for_each_kind!(sweep self, visits, now, |_| true);
    }

    /// Removes expired counters of every kind: they share one budget, so bytes freed in any table
    /// help.
    pub fn reclaim_counters(&mut self, visits: usize, now: Time) {
        for_each_kind!(sweep self, visits, now, |pool| pool == MemoryPool::Counters);
    }

    /// Makes room for `more` new counters of a kind, within `limit` bytes of all counters. Returns
    /// whether there is room.
    pub fn reserve<C: CounterCell>(&mut self, more: usize, limit: usize, now: Time) -> bool {
        // A free slot needs no new bytes, unless the cell needs heap memory.
        let has_free_slots = |shard: &Self| C::table(shard).free_slots() >= more;
        if has_free_slots(self) && (C::IS_INLINE || self.counter_bytes() < limit) {
            return true;
        }
        self.reclaim_counters(RECLAIM_SLOTS, now);
        let free = limit.saturating_sub(self.counter_bytes());
        // The search may have freed a slot.
        if has_free_slots(self) {
            return C::IS_INLINE || free > 0;
        }
        let table = C::table_mut(self);
        table.make_room(more, free, table.rebuild_threshold())
    }

    /// Reserves a slot for a new counter, if there is room for all reservations of this batch.
    pub fn reserve_slot<C: CounterCell>(&mut self, now: Time) -> bool {
        // This counts all kinds of counters, so it may ask for more slots of one kind than the
        // batch needs, but never for fewer.
        let reserved = self.reserved + 1;
        let limit = self.cold.limits.new_keys;
        let has_room = self.reserve::<C>(reserved as usize, limit, now);
        self.reserved = if has_room { reserved } else { self.reserved };
        has_room
    }
}

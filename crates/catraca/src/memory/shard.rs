//! A shard: all tables of the keys that belong to it, behind one lock.
//!
//! What most decisions use comes first (`repr(C)`), so that it shares cache lines with the lock;
//! the rest is behind one pointer. A shard locks no other shard and reads no clock.

use std::sync::Arc;

use catraca_core::cell::{
    Block, Bucket, CellStore, CounterSlot, FixedWindow, InFlight, RatioWatch, Reference,
    SettledMarker, SlidingWindow,
};
use catraca_core::digest::Key;
use catraca_core::time::Time;

use super::counter::{CounterCell, CounterKind};
use super::options::ShardLimits;
use super::overflow::overflow_key;
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
    /// The kind of counter that was looked up last. [`CellStore::counter_slot`] is called right
    /// after a failed lookup and does not name the kind.
    pub last_kind: CounterKind,
    /// Whether there may be overflow cells.
    pub overflowing: bool,
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
    pub overflow: OverflowTables,
    pub limits: ShardLimits,
    pub bits: u32,
    pub pressure: Arc<PressureCounters>,
}

/// The overflow cells of a shard: at most one per family and kind.
#[derive(Debug, Default)]
pub(super) struct OverflowTables {
    pub buckets: Table<Bucket>,
    pub logs: Table<SlidingWindow>,
    pub fixed: Table<FixedWindow>,
    pub leases: Table<InFlight>,
}

impl Shard {
    pub fn new(limits: ShardLimits, bits: u32, pressure: Arc<PressureCounters>) -> Self {
        let cold = ColdTables {
            leases: Table::default(),
            watches: Table::default(),
            marks: Table::default(),
            references: References::default(),
            overflow: OverflowTables::default(),
            limits,
            bits,
            pressure,
        };
        Self {
            buckets: Table::default(),
            blocks: Table::default(),
            logs: Table::default(),
            fixed: Table::default(),
            cold: Box::new(cold),
            reserved: 0,
            last_kind: CounterKind::Bucket,
            overflowing: false,
        }
    }

    /// Drops unused reservations of the previous batch. Called when a batch has locked the shard.
    #[inline]
    pub fn begin_batch(&mut self) {
        self.reserved = 0;
    }

    /// Bytes that count against the budget. Overflow cells do not: they are inserted even if the
    /// budget is used up.
    pub fn counter_bytes(&self) -> usize {
        self.buckets.bytes()
            + self.logs.bytes()
            + self.fixed.bytes()
            + self.cold.leases.bytes()
            + self.cold.watches.bytes()
    }

    /// Removes expired cells of every kind, visiting `visits` slots of each table.
    pub fn reclaim_all(&mut self, visits: usize, now: Time) {
        self.reclaim_counters(visits, now);
        self.blocks.sweep(visits, now, |_| ());
        self.cold.marks.sweep(visits, now, |_| ());
        self.cold.references.sweep(visits, now);
        let overflow = &mut self.cold.overflow;
        overflow.buckets.sweep(visits, now, |_| ());
        overflow.logs.sweep(visits, now, |_| ());
        overflow.fixed.sweep(visits, now, |_| ());
        overflow.leases.sweep(visits, now, |_| ());
    }

    /// Removes expired counters of every kind: they share one budget, so bytes freed in any table
    /// help.
    pub fn reclaim_counters(&mut self, visits: usize, now: Time) {
        self.buckets.sweep(visits, now, |_| ());
        self.logs.sweep(visits, now, |_| ());
        self.fixed.sweep(visits, now, |_| ());
        self.cold.leases.sweep(visits, now, |_| ());
        self.cold.watches.sweep(visits, now, |_| ());
    }

    /// Makes room for `more` new counters of a kind, within `limit` bytes of all counters. Returns
    /// whether there is room.
    pub fn reserve<C: CounterCell>(&mut self, more: usize, limit: usize, now: Time) -> bool {
        // A free slot needs no new bytes, unless the cell needs heap memory.
        let has_free_slots = |shard: &mut Self| C::table(shard).free_slots() >= more;
        if has_free_slots(self) && (C::IS_INLINE || self.counter_bytes() < limit) {
            return true;
        }
        self.reclaim_counters(RECLAIM_SLOTS, now);
        let free = limit.saturating_sub(self.counter_bytes());
        // The search may have freed a slot.
        if has_free_slots(self) {
            return C::IS_INLINE || free > 0;
        }
        let table = C::table(self);
        table.make_room(more, free, table.rebuild_threshold())
    }

    /// Reserves a slot for a new counter, if there is room for all reservations of this batch.
    fn reserve_slot<C: CounterCell>(&mut self, now: Time) -> bool {
        // This counts all kinds of counters, so it may ask for more slots of one kind than the
        // batch needs, but never for fewer.
        let reserved = self.reserved + 1;
        let limit = self.cold.limits.new_keys;
        let has_room = self.reserve::<C>(reserved as usize, limit, now);
        self.reserved = if has_room { reserved } else { self.reserved };
        has_room
    }
}

impl CellStore for Shard {
    fn counter_slot(&mut self, key: Key, family: u64, now: Time) -> CounterSlot {
        let own = match self.last_kind {
            CounterKind::Bucket => self.reserve_slot::<Bucket>(now),
            CounterKind::SlidingWindow => self.reserve_slot::<SlidingWindow>(now),
            CounterKind::FixedWindow => self.reserve_slot::<FixedWindow>(now),
            CounterKind::InFlight => self.reserve_slot::<InFlight>(now),
        };
        if own {
            return CounterSlot::Own;
        }
        // Never cleared: overflow cells may outlive the shortage of memory.
        self.overflowing = true;
        self.cold.pressure.overflowed.add(now);
        CounterSlot::Overflow(overflow_key(key, family, self.cold.bits))
    }
}

/// Does not compile if a kind of cell has no table in the shard.
const _: fn() = || {
    fn has_every_kind<S: CellStore + catraca_core::cell::CellTable<Reference>>() {}
    has_every_kind::<Shard>();
};

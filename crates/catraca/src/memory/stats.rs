//! Statistics of the memory store: cells and bytes per table, and how often a pool was full.
//!
//! Locks one shard at a time, so the totals are not of one instant.

use catraca_core::cell::Cell;

use super::pressure::PressureCounters;
use super::shard::Shard;
use super::table::Table;
use super::weighed_cell::WeighedCell;

/// Cells and bytes of the memory store. Expired cells that were not removed yet are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStats {
    /// Token buckets.
    pub buckets: TableUsage,
    /// Sliding windows, and strikes of ban rules.
    pub logs: TableUsage,
    /// Fixed windows.
    pub fixed: TableUsage,
    /// Requests in flight, one cell per key.
    pub leases: TableUsage,
    /// Watched ratios.
    pub watches: TableUsage,
    /// Overflow cells: counters that several keys share because memory was full.
    pub overflow: TableUsage,
    /// Blocks.
    pub blocks: TableUsage,
    /// Settled-markers.
    pub marks: TableUsage,
    /// References.
    pub references: TableUsage,
    /// How many times a key was counted in an overflow cell.
    pub overflowed: u64,
    /// Strikes and watched ratios that were not counted because memory was full.
    pub refused_counters: u64,
    /// Blocks that were not started because their pool was full.
    pub refused_blocks: u64,
    /// Settles that were refused because their pool was full.
    pub refused_marks: u64,
    /// References that were dropped for newer ones.
    pub dropped_references: u64,
}

/// Cells and bytes of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TableUsage {
    /// The number of cells.
    pub cells: usize,
    /// Bytes of the slots, including empty ones, and of the cells' heap allocations.
    pub bytes: usize,
}

impl MemoryStats {
    /// Bytes that count against `budget_bytes`.
    pub fn counter_bytes(&self) -> usize {
        let counters = [self.buckets, self.logs, self.fixed, self.leases, self.watches];
        counters.iter().map(|usage| usage.bytes).sum()
    }

    pub(super) fn read(&mut self, pressure: &PressureCounters) {
        self.overflowed = pressure.overflowed.read();
        self.refused_counters = pressure.refused_counters.read();
        self.refused_blocks = pressure.refused_blocks.read();
        self.refused_marks = pressure.refused_marks.read();
        self.dropped_references = pressure.dropped_references.read();
    }

    pub(super) fn add(&mut self, shard: &Shard) {
        let cold = &shard.cold;
        self.buckets.add(&shard.buckets);
        self.blocks.add(&shard.blocks);
        self.logs.add(&shard.logs);
        self.fixed.add(&shard.fixed);
        self.leases.add(&cold.leases);
        self.watches.add(&cold.watches);
        self.marks.add(&cold.marks);
        self.overflow.add(&cold.overflow.buckets);
        self.overflow.add(&cold.overflow.logs);
        self.overflow.add(&cold.overflow.fixed);
        self.overflow.add(&cold.overflow.leases);
        self.references.cells += cold.references.len();
        self.references.bytes += cold.references.bytes();
    }
}

impl TableUsage {
    fn add<C: WeighedCell + Cell>(&mut self, table: &Table<C>) {
        self.cells += table.len();
        self.bytes += table.bytes();
    }
}

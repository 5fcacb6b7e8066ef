//! What the store holds and what it had to do without, in figures.
//!
//! Must not stall anybody: one shard is looked at after the other.

use catraca_core::cell::Cell;

use super::alarms::Alarms;
use super::kept::Kept;
use super::shard::Shard;
use super::table::Table;

/// What the store holds. Cells that are forgotten and have not left yet are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Token buckets.
    pub buckets: Usage,
    /// Sliding windows and strikes.
    pub logs: Usage,
    /// Fixed windows.
    pub fixed: Usage,
    /// Leases in flight, by key.
    pub leases: Usage,
    /// Watched ratios.
    pub watches: Usage,
    /// Counters that several keys share because memory was full.
    pub overflow: Usage,
    /// Blocks.
    pub blocks: Usage,
    /// Settled-markers.
    pub marks: Usage,
    /// References.
    pub references: Usage,
    /// How often a key was counted in a shared cell.
    pub shared: u64,
    /// Strikes and watched ratios that were not kept because memory was full.
    pub refused_counters: u64,
    /// Blocks that were not started because their pool was full.
    pub refused_blocks: u64,
    /// Settles that were not done because their pool was full.
    pub refused_marks: u64,
    /// References that made room for newer ones.
    pub dropped_references: u64,
}

/// Cells of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// How many.
    pub cells: usize,
    /// Bytes of their slots, the empty ones included, and of what they have outside.
    pub bytes: usize,
}

impl Stats {
    /// Bytes that count against the budget.
    pub fn counter_bytes(&self) -> usize {
        let counters = [self.buckets, self.logs, self.fixed, self.leases, self.watches];
        counters.iter().map(|usage| usage.bytes).sum()
    }

    pub(super) fn read(&mut self, alarms: &Alarms) {
        self.shared = alarms.shared.read();
        self.refused_counters = alarms.refused_counters.read();
        self.refused_blocks = alarms.refused_blocks.read();
        self.refused_marks = alarms.refused_marks.read();
        self.dropped_references = alarms.dropped_references.read();
    }

    pub(super) fn add(&mut self, shard: &Shard) {
        let rest = &shard.rest;
        self.buckets.add(&shard.buckets);
        self.blocks.add(&shard.blocks);
        self.logs.add(&shard.logs);
        self.fixed.add(&shard.fixed);
        self.leases.add(&rest.leases);
        self.watches.add(&rest.watches);
        self.marks.add(&rest.marks);
        self.overflow.add(&rest.overflow.buckets);
        self.overflow.add(&rest.overflow.logs);
        self.overflow.add(&rest.overflow.fixed);
        self.overflow.add(&rest.overflow.leases);
        self.references.cells += rest.references.len();
        self.references.bytes += rest.references.bytes();
    }
}

impl Usage {
    fn add<C: Kept + Cell>(&mut self, table: &Table<C>) {
        self.cells += table.len();
        self.bytes += table.bytes();
    }
}

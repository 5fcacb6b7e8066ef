//! Statistics of the memory store: cells and bytes per table, and how often a pool was full.
//!
//! Locks one shard at a time, so the totals are not of one instant.

use std::ops::Index;

use catraca_core::cell::{CellKind, MemoryPool};
use catraca_core::for_each_kind;

use super::partitioned_shard::PartitionedShard;
use super::pressure::PressureCounters;
use super::shard::{Shard, StoredCell};

/// Cells and bytes of the memory store. Expired cells that were not removed yet are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryStats {
    /// By kind, in the order of [`CellKind::ALL`].
    tables: [TableUsage; CellKind::ALL.len()],
    /// Overflow cells: counters that several keys share because memory was full.
    pub overflow: TableUsage,
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

/// Cells and bytes of a kind, such as `stats[CellKind::Block]`.
impl Index<CellKind> for MemoryStats {
    type Output = TableUsage;

    fn index(&self, kind: CellKind) -> &TableUsage {
        &self.tables[kind.index()]
    }
}

macro_rules! add_tables {
    (
        ($stats:expr, $shard:expr)
        $($(#[$doc:meta])* $kind:ident($cell:ty) $field:ident $columns:tt)*
    ) => {
        $(let table = <$cell>::table($shard);
        $stats.tables[CellKind::$kind.index()].add(table.len(), table.bytes());)*
    };
}

impl MemoryStats {
    /// Bytes that count against `budget_bytes`.
    pub fn counter_bytes(&self) -> usize {
        let counters = CellKind::ALL.iter().filter(|kind| kind.pool() == MemoryPool::Counters);
        counters.map(|kind| self[*kind].bytes).sum()
    }

    pub(super) fn read(&mut self, pressure: &PressureCounters) {
        self.overflowed = pressure.overflowed.read();
        self.refused_counters = pressure.refused_counters.read();
        self.refused_blocks = pressure.refused_blocks.read();
        self.refused_marks = pressure.refused_marks.read();
        self.dropped_references = pressure.dropped_references.read();
    }

    pub(super) fn add(&mut self, shard: &PartitionedShard) {
        shard.parts().for_each(|part| self.add_part(part));
    }

    fn add_part(&mut self, shard: &Shard) {
        for_each_kind!(add_tables self, shard);
    }
}

impl TableUsage {
    pub(super) fn add(&mut self, cells: usize, bytes: usize) {
        self.cells += cells;
        self.bytes += bytes;
    }
}

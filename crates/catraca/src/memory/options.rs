//! The bounds of the memory store, and what they come to in each shard.
//!
//! Must not leave a shard so little that it holds nothing.

use catraca_core::cell::Block;

use super::overflow::SHARD_BITS_MAX;
use super::room::most_cells;

/// No pool of a shard is smaller; where bytes are few, there are fewer shards instead.
const SHARD_BYTES_MIN: usize = 8 << 10;

/// How much the memory store may hold.
///
/// ```
/// use catraca::memory::MemoryOptions;
///
/// let small = MemoryOptions { budget_bytes: 32 << 20, ..MemoryOptions::default() };
/// assert_eq!(small.block_bytes, 64 << 20);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryOptions {
    /// For counters: buckets, windows, leases, strikes and watched ratios. From seven eighths on,
    /// new keys share cells of their policy. The windows of keys that are already there may go on
    /// to grow to their limits, some four bytes a unit: exact windows cannot be had for less.
    pub budget_bytes: usize,
    /// For blocks, which are never dropped. When it is full, no automatic block is started; the
    /// last tenth is kept for operators.
    pub block_bytes: usize,
    /// For references; the oldest are dropped.
    pub reference_bytes: usize,
    /// For settled-markers. When it is full, nothing is settled.
    pub mark_bytes: usize,
    /// Parts that are locked apart: a power of two, rounded up, and fewer where bytes are few.
    pub shards: usize,
}

impl Default for MemoryOptions {
    fn default() -> Self {
        Self {
            budget_bytes: 256 << 20,
            block_bytes: 64 << 20,
            reference_bytes: 64 << 20,
            mark_bytes: 64 << 20,
            shards: 512,
        }
    }
}

impl MemoryOptions {
    /// How many bits of a key choose its shard.
    pub(super) fn bits(&self) -> u32 {
        let pools = [self.budget_bytes, self.block_bytes, self.reference_bytes, self.mark_bytes];
        let smallest = pools.into_iter().min().unwrap_or(0);
        let most = (smallest / SHARD_BYTES_MIN).max(1).ilog2();
        let wanted = self.shards.clamp(1, 1 << SHARD_BITS_MAX).next_power_of_two().ilog2();
        wanted.min(most)
    }

    pub(super) fn limits(&self) -> Limits {
        let each = |bytes: usize| (bytes >> self.bits()).max(SHARD_BYTES_MIN);
        let blocks = each(self.block_bytes);
        let operator = Share { bytes: blocks, cells: most_cells::<Block>(blocks) };
        Limits {
            counters: each(self.budget_bytes),
            newcomers: each(self.budget_bytes) / 8 * 7,
            operator,
            automatic: Share { bytes: blocks / 10 * 9, cells: operator.cells / 10 * 9 },
            references: each(self.reference_bytes),
            marks: each(self.mark_bytes),
        }
    }
}

/// What one shard may hold.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Bytes for everything that is counted.
    pub counters: usize,
    /// Bytes up to which new keys get counters of their own; the rest is for windows that grow,
    /// strikes and watched ratios.
    pub newcomers: usize,
    /// For blocks by operators.
    pub operator: Share,
    /// For all other blocks.
    pub automatic: Share,
    /// Bytes for references.
    pub references: usize,
    /// Bytes for settled-markers.
    pub marks: usize,
}

/// A part of a pool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Share {
    /// Bytes.
    pub bytes: usize,
    /// Cells, since a table only grows in powers of two.
    pub cells: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_a_power_of_two_and_fewer_where_bytes_are_few() {
        let of = |shards, budget_bytes| {
            MemoryOptions { shards, budget_bytes, ..MemoryOptions::default() }.bits()
        };
        assert_eq!(of(512, 256 << 20), 9);
        assert_eq!(of(500, 256 << 20), 9);
        assert_eq!(of(0, 256 << 20), 0);
        assert_eq!(of(512, 1 << 20), 7);
        assert_eq!(of(512, 0), 0);
        assert_eq!(of(usize::MAX, usize::MAX), 13, "blocks and the others still have 64 MiB");
    }

    #[test]
    fn a_tenth_of_the_blocks_is_for_operators() {
        let limits = MemoryOptions::default().limits();
        assert_eq!(limits.operator.cells, 896);
        assert_eq!(limits.automatic.cells, 801);
        assert!(limits.automatic.bytes < limits.operator.bytes);
    }
}

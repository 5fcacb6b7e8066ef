//! The limits of the memory store, and the share of each shard.

use catraca_core::cell::Block;

use super::overflow::SHARD_BITS_MAX;
use super::table_growth::max_cells;

/// The least bytes of each pool of a shard, so that it can hold some cells. With small limits there
/// are fewer shards instead.
const SHARD_BYTES_MIN: usize = 8 << 10;

/// How many bytes the memory store may use.
///
/// ```
/// use catraca::memory::MemoryOptions;
///
/// let small = MemoryOptions { budget_bytes: 32 << 20, ..MemoryOptions::default() };
/// assert_eq!(small.block_bytes, 64 << 20);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryOptions {
    /// For counters: buckets, windows, requests in flight, strikes and watched ratios. From seven
    /// eighths on, new keys share overflow cells of their policy. Windows of existing keys may
    /// still grow to their limits, at about four bytes per unit, because an exact window needs
    /// them.
    pub budget_bytes: usize,
    /// For blocks, which are never dropped. When it is full, no automatic block starts; the last
    /// tenth is reserved for operators.
    pub block_bytes: usize,
    /// For references. When it is full, the oldest are dropped.
    pub reference_bytes: usize,
    /// For settled-markers. When it is full, settles are refused.
    pub mark_bytes: usize,
    /// The number of shards, each with its own lock: rounded up to a power of two, and fewer if the
    /// limits are small.
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
    /// How many leading bits of a key choose its shard, in a store with so many reserved parts.
    pub(super) fn bits(&self, parts: usize) -> u32 {
        let pools = [self.budget_bytes, self.block_bytes, self.reference_bytes, self.mark_bytes];
        let smallest = pools.into_iter().min().unwrap_or(0) / (2 * parts).max(1);
        // At most so many shards that each pool of a shard has `SHARD_BYTES_MIN`.
        let max_bits = (smallest / SHARD_BYTES_MIN).max(1).ilog2();
        let wanted_bits = self.shards.clamp(1, 1 << SHARD_BITS_MAX).next_power_of_two().ilog2();
        wanted_bits.min(max_bits)
    }

    pub(super) fn limits(&self, share: PoolShare, bits: u32) -> ShardLimits {
        let per_shard = |bytes: usize| ((bytes / share.divisor()) >> bits).max(SHARD_BYTES_MIN);
        let blocks = per_shard(self.block_bytes);
        let operator = BlockQuota { bytes: blocks, cells: max_cells::<Block>(blocks) };
        ShardLimits {
            counters: per_shard(self.budget_bytes),
            new_keys: per_shard(self.budget_bytes) / 8 * 7,
            operator,
            automatic: BlockQuota { bytes: blocks / 10 * 9, cells: operator.cells / 10 * 9 },
            references: per_shard(self.reference_bytes),
            marks: per_shard(self.mark_bytes),
        }
    }
}

/// How much of each pool the tables of a shard may use.
#[derive(Clone, Copy, Debug)]
pub(super) enum PoolShare {
    /// All of it: the store is not divided.
    Whole,
    /// The half that is first come.
    Common,
    /// One of so many equal parts of the other half.
    Reserved { parts: usize },
}

impl PoolShare {
    fn divisor(self) -> usize {
        match self {
            Self::Whole => 1,
            Self::Common => 2,
            Self::Reserved { parts } => 2 * parts,
        }
    }
}

/// The limits of one shard.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShardLimits {
    /// Bytes for all counters.
    pub counters: usize,
    /// Bytes up to which new keys get their own counters. The rest is for windows that grow,
    /// strikes and watched ratios.
    pub new_keys: usize,
    /// For blocks by operators: the whole pool.
    pub operator: BlockQuota,
    /// For all other blocks: nine tenths of the pool.
    pub automatic: BlockQuota,
    /// Bytes for references.
    pub references: usize,
    /// Bytes for settled-markers.
    pub marks: usize,
}

/// A limit on blocks, in bytes and in cells.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockQuota {
    /// Bytes of slots and texts.
    pub bytes: usize,
    /// A limit on cells too: a table doubles its slots, so bytes alone would not reserve any free
    /// slot for operators.
    pub cells: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_a_power_of_two_and_fewer_where_bytes_are_few() {
        let of = |shards, budget_bytes| {
            MemoryOptions { shards, budget_bytes, ..MemoryOptions::default() }.bits(0)
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
        let limits = MemoryOptions::default().limits(PoolShare::Whole, 9);
        assert_eq!(limits.operator.cells, 896);
        assert_eq!(limits.automatic.cells, 801);
        assert!(limits.automatic.bytes < limits.operator.bytes);
    }
}

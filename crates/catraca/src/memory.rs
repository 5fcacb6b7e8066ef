//! The memory store: all cells in this process, in shards with one lock each.
//!
//! A key is a digest, so its own bits choose the shard and the slot, and nothing is hashed. Expired
//! cells count as absent and are removed a few at a time. [`MemoryOptions`] bounds the bytes. A
//! batch locks its shards in ascending order and reads the clock while it holds them, so that time
//! never runs backwards for a key. No operation may lock the whole store, and no cell may be
//! dropped while a decision could still depend on it.

mod cells_with_overflow;
mod counter;
mod locked_shards;
mod options;
mod overflow;
mod partitioned_shard;
mod pressure;
mod protected_pools;
mod references;
mod shard;
mod snapshot;
mod stats;
mod table;
mod table_growth;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use catraca_core::batch::{Batch, CheckBatch, Reply};
use catraca_core::cell::Block;
use catraca_core::digest::Key;
use catraca_core::run::{run, run_fast_path};
use catraca_core::time::Time;
use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::clock::Clock;
use crate::store::{Store, StoreError, When};
use cells_with_overflow::CellsWithOverflow;
use locked_shards::LockedShards;
use overflow::OverflowTables;
use partitioned_shard::PartitionedShard;
use pressure::{FULL_FOR, PressureCounters};

pub use catraca_core::cell::MemoryPool;
pub use options::MemoryOptions;
pub use snapshot::{RestoreOutcome, SnapshotError, SnapshotSummary};
pub use stats::{MemoryStats, TableUsage};

/// Slots of each table of a shard that [`Memory::reclaim`] visits.
const MAINTENANCE_SLOTS: usize = 512;

/// A store in the memory of this process.
///
/// ```
/// use catraca::core::cell::CellKind;
/// use catraca::{Catalog, Check, Engine};
///
/// let engine = Engine::new(Catalog::parse("[policy.api]\n by = ['ip']\n window = '9 per 1m'")?);
/// engine.check(&Check::new("api", [("ip", "198.51.100.7")]))?;
/// let memory = engine.store();
/// assert_eq!(memory.stats()[CellKind::SlidingWindow].cells, 1);
/// assert!(memory.full_pools().is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Memory {
    shards: Box<[PaddedShard]>,
    /// How many leading bits of a key choose its shard.
    bits: u32,
    /// The counters of new keys while memory is full. Locked after the shards.
    overflow: Mutex<OverflowTables>,
    clock: Arc<dyn Clock>,
    pressure: Arc<PressureCounters>,
    /// Held while a snapshot is written: two writers would use the same temporary file.
    snapshot: Mutex<()>,
}

/// Keeps shards on separate cache lines, because other threads write the neighbours. 128 bytes: x86
/// prefetches lines in pairs, and some ARM lines are that long.
#[repr(align(128))]
struct PaddedShard(Mutex<PartitionedShard>);

impl Memory {
    /// An empty store.
    pub fn new(options: MemoryOptions, clock: Arc<dyn Clock>) -> Self {
        Self::with_groups(options, [], clock)
    }

    /// An empty store in which each of these groups of keys, and all other keys together, have an
    /// equal part of one half of every pool. The other half is first come. The group of a namespace
    /// is [`namespace_group`](catraca_core::plan::namespace_group).
    pub fn with_groups(
        options: MemoryOptions,
        groups: impl IntoIterator<Item = u16>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        // Sorted, and without duplicates: two namespaces may have the same group.
        let groups: BTreeSet<u16> = groups.into_iter().collect();
        let groups: Arc<[u16]> = groups.into_iter().collect();
        let bits = options.bits(if groups.is_empty() { 0 } else { groups.len() + 1 });
        let pressure = Arc::new(PressureCounters::default());
        let shard = || PartitionedShard::new(&options, &groups, &pressure);
        let shards = (0..1_usize << bits).map(|_| PaddedShard(Mutex::new(shard()))).collect();
        let overflow = Mutex::default();
        Self { shards, bits, overflow, clock, pressure, snapshot: Mutex::new(()) }
    }

    /// Counts cells and bytes, one shard after the other.
    pub fn stats(&self) -> MemoryStats {
        let mut stats = MemoryStats::default();
        self.shards.iter().for_each(|shard| stats.add(&shard.0.lock()));
        self.overflow.lock().add_usage(&mut stats.overflow);
        stats.read(&self.pressure);
        stats
    }

    /// The pools that were full within the last minute: they shared, refused or dropped a cell.
    /// Takes no lock.
    pub fn full_pools(&self) -> Vec<MemoryPool> {
        let since = self.clock.now().before(FULL_FOR);
        MemoryPool::ALL.into_iter().filter(|pool| self.pressure.is_full(*pool, since)).collect()
    }

    /// Calls `visit` with every block, active or remembered for its level, shard by shard. The
    /// shard stays locked meanwhile, so `visit` must be short and must not call the store.
    pub fn for_each_block(&self, mut visit: impl FnMut(Key, &Block)) {
        for shard in &self.shards {
            let shard = shard.0.lock();
            let now = self.clock.now();
            shard.parts().for_each(|part| part.blocks.for_each_live(now, &mut visit));
        }
    }

    /// Removes some expired cells and frees unused slots. Traffic does this too; an embedder whose
    /// store gets little traffic calls it from time to time.
    pub fn reclaim(&self) {
        for shard in &self.shards {
            let mut shard = shard.0.lock();
            let now = self.clock.now();
            shard.parts_mut().for_each(|part| part.reclaim_all(MAINTENANCE_SLOTS, now));
        }
        self.overflow.lock().sweep(MAINTENANCE_SLOTS, self.clock.now());
    }

    #[inline]
    fn time(&self, when: When) -> Time {
        match when {
            When::Store => self.clock.now(),
            When::At(time) => time,
        }
    }

    #[inline]
    fn apply_to_one(
        &self,
        shard_index: usize,
        batch: &Batch,
        when: When,
    ) -> Result<Reply, StoreError> {
        let mut shard = self.shards[shard_index].0.lock();
        shard.begin_batch();
        // Read under the lock, so that two threads cannot write a cell in the wrong order.
        let now = self.time(when);
        if shard.is_divided() {
            return Ok(run(batch, &mut self.with_overflow(&mut *shard), now));
        }
        // Most batches charge one existing bucket. Anything else returns none and has changed
        // nothing.
        if let Some(reply) = run_fast_path(batch, &mut shard.common, now) {
            return Ok(reply);
        }
        Ok(run(batch, &mut self.with_overflow(&mut shard.common), now))
    }

    /// Applies a batch with keys of several shards. Shards are locked in ascending order, so that
    /// two batches cannot deadlock.
    #[inline(never)]
    fn apply_to_many(&self, batch: &Batch, when: When) -> Result<Reply, StoreError> {
        let mut shard_indexes: SmallVec<[usize; 4]> = SmallVec::new();
        batch.each_key(|key| shard_indexes.push(key.shard(self.bits)));
        shard_indexes.sort_unstable();
        // Two keys may be in one shard, and a mutex must not be locked twice.
        shard_indexes.dedup();
        if let [shard_index] = shard_indexes[..] {
            return self.apply_to_one(shard_index, batch, when);
        }
        let lock = |shard_index: usize| {
            let mut shard = self.shards[shard_index].0.lock();
            shard.begin_batch();
            (shard_index, shard)
        };
        let locked = shard_indexes.into_iter().map(lock).collect();
        // After the last lock: until then, another batch could still write one of these keys, at a
        // later instant.
        let now = self.time(when);
        let mut shards = LockedShards { locked, bits: self.bits };
        Ok(run(batch, &mut self.with_overflow(&mut shards), now))
    }

    #[inline]
    fn with_overflow<'m, 's, S>(&'m self, shards: &'s mut S) -> CellsWithOverflow<'m, 's, S> {
        CellsWithOverflow::new(shards, &self.overflow)
    }
}

impl Store for Memory {
    #[inline]
    fn apply(&self, batch: &Batch, when: When) -> Result<Reply, StoreError> {
        match only_key(batch) {
            Some(key) => self.apply_to_one(key.shard(self.bits), batch, when),
            None => self.apply_to_many(batch, when),
        }
    }
}

/// The only key of a check with one row and no reference, which is the most common batch.
#[inline]
fn only_key(batch: &Batch) -> Option<Key> {
    match batch {
        Batch::Check(CheckBatch { rows, new_reference: None, .. }) => match rows.as_slice() {
            [row] => Some(row.key),
            _ => None,
        },
        _ => None,
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Memory").field("shards", &self.shards.len()).finish_non_exhaustive()
    }
}

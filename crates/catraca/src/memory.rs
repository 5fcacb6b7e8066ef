//! The memory store: every cell in this process, in shards that are locked apart.
//!
//! A key's shard and place come from its own digest, so nothing is hashed; forgotten cells count as
//! absent and leave bit by bit; bytes are bounded by [`MemoryOptions`]. A batch locks its shards
//! in order and reads the clock while it holds them, so that time never runs backwards for a key.
//! Must not drop anything that could still be noticed, nor ever stop the whole store.

mod acts;
mod alarms;
mod counter;
mod kept;
mod many;
mod options;
mod overflow;
mod references;
mod room;
mod shard;
mod snapshot;
mod stats;
mod table;

use std::fmt;
use std::sync::Arc;

use catraca_core::batch::{Batch, Check, Reply};
use catraca_core::cell::Block;
use catraca_core::digest::Key;
use catraca_core::run::{run, run_quickly};
use catraca_core::time::Time;
use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::clock::Clock;
use crate::store::{Store, StoreError, When};
use alarms::{Alarms, FULL_FOR};
use many::Many;
use shard::Shard;

pub use alarms::MemoryPool;
pub use options::MemoryOptions;
pub use snapshot::{Restored, SnapshotError, Snapshotted};
pub use stats::{Stats, Usage};

/// Slots that [`Memory::tend`] visits in each table of a shard.
const TEND_SLOTS: usize = 512;

/// A store in this process.
pub struct Memory {
    shards: Box<[Padded]>,
    /// How many bits of a key choose its shard.
    bits: u32,
    clock: Arc<dyn Clock>,
    alarms: Arc<Alarms>,
    /// Only one snapshot is written at a time.
    snapshot: Mutex<()>,
}

/// A shard apart from its neighbours' cache lines, which other threads write.
#[repr(align(128))]
struct Padded(Mutex<Shard>);

impl Memory {
    /// An empty store.
    pub fn new(options: MemoryOptions, clock: Arc<dyn Clock>) -> Self {
        let (bits, limits) = (options.bits(), options.limits());
        let alarms = Arc::new(Alarms::default());
        let shard = |_| Padded(Mutex::new(Shard::new(limits, bits, Arc::clone(&alarms))));
        let shards = (0..1_usize << bits).map(shard).collect();
        Self { shards, bits, clock, alarms, snapshot: Mutex::new(()) }
    }

    /// What the store holds.
    pub fn stats(&self) -> Stats {
        let mut stats = Stats::default();
        self.shards.iter().for_each(|shard| stats.add(&shard.0.lock()));
        stats.read(&self.alarms);
        stats
    }

    /// The pools that had to share, refuse or drop something within the last minute. Takes no lock.
    pub fn full_pools(&self) -> Vec<MemoryPool> {
        let since = self.clock.now().before(FULL_FOR);
        MemoryPool::ALL.into_iter().filter(|pool| self.alarms.is_full(*pool, since)).collect()
    }

    /// Calls `visit` with every block, standing or remembered for its level, shard by shard. The
    /// shard stays locked meanwhile, so `visit` must be short and must not call the store.
    pub fn each_block(&self, mut visit: impl FnMut(Key, &Block)) {
        for shard in &self.shards {
            let shard = shard.0.lock();
            shard.blocks.each(self.clock.now(), &mut visit);
        }
    }

    /// Drops some forgotten cells and gives unused slots back. Traffic does this by itself; who has
    /// a quiet store and wants its memory back calls this now and then.
    pub fn tend(&self) {
        for shard in &self.shards {
            let mut shard = shard.0.lock();
            shard.tend(TEND_SLOTS, self.clock.now());
        }
    }

    #[inline]
    fn time(&self, when: When) -> Time {
        match when {
            When::Store => self.clock.now(),
            When::At(time) => time,
        }
    }

    #[inline]
    fn apply_to_one(&self, number: usize, batch: &Batch, when: When) -> Result<Reply, StoreError> {
        let mut shard = self.shards[number].0.lock();
        shard.begin();
        let now = self.time(when);
        if let Some(reply) = run_quickly(batch, &mut *shard, now) {
            return Ok(reply);
        }
        Ok(run(batch, &mut *shard, now))
    }

    /// Ascending order, so that no two batches ever wait for each other.
    #[inline(never)]
    fn apply_to_many(&self, batch: &Batch, when: When) -> Result<Reply, StoreError> {
        let mut numbers: SmallVec<[usize; 4]> = SmallVec::new();
        batch.each_key(|key| numbers.push(key.shard(self.bits)));
        numbers.sort_unstable();
        numbers.dedup();
        if let [number] = numbers[..] {
            return self.apply_to_one(number, batch, when);
        }
        let lock = |number: usize| {
            let mut shard = self.shards[number].0.lock();
            shard.begin();
            (number, shard)
        };
        let locked = numbers.into_iter().map(lock).collect();
        let now = self.time(when);
        Ok(run(batch, &mut Many { locked, bits: self.bits }, now))
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

/// The key of a check of one row, which is what most batches are.
#[inline]
fn only_key(batch: &Batch) -> Option<Key> {
    match batch {
        Batch::Check(Check { rows, remember: None, .. }) => match rows.as_slice() {
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

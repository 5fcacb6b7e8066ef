//! Unsynced blocks: started on this node while the store was unavailable, and still to be written
//! to it.
//!
//! A block is removed only when the store has it. The list is bounded.

use catraca_core::batch::Batch;
use catraca_core::cell::Block;
use catraca_core::cell::block::BlockProposal;
use catraca_core::digest::Key;
use catraca_core::time::Time;
use parking_lot::Mutex;

/// The maximum number of blocks. Further ones are only in the records and on this node.
const UNSYNCED_MAX: usize = 100_000;
/// Blocks in one batch.
pub(super) const BATCH: usize = 256;

/// The blocks that the store does not have yet; their ends are by this node's clock.
#[derive(Debug, Default)]
pub(super) struct UnsyncedBlocks(Mutex<Vec<UnsyncedBlock>>);

#[derive(Clone, Debug)]
struct UnsyncedBlock {
    key: Key,
    block: Block,
    /// Whether the store refused it because it moves the key to another server.
    is_moving: bool,
}

impl UnsyncedBlocks {
    /// Adds a block; ignored if the list is full.
    pub fn add(&self, key: Key, block: Block) {
        self.push(UnsyncedBlock { key, block, is_moving: false });
    }

    /// Adds a block of a key that the store is moving.
    pub fn add_moving(&self, key: Key, block: Block) {
        self.push(UnsyncedBlock { key, block, is_moving: true });
    }

    fn push(&self, block: UnsyncedBlock) {
        let mut blocks = self.0.lock();
        if blocks.len() < UNSYNCED_MAX {
            blocks.push(block);
        }
    }

    /// Removes and returns the active blocks of some keys, in batches. The caller gives back those
    /// that fail.
    pub fn take(&self, now: Time, is_wanted: impl Fn(Key) -> bool) -> Vec<Vec<(Key, Block)>> {
        let mut taken = Vec::new();
        let mut blocks = self.0.lock();
        blocks.retain(|UnsyncedBlock { key, block, .. }| {
            if block.until <= now {
                return false;
            }
            let wanted = is_wanted(*key);
            if wanted {
                taken.push((*key, block.clone()));
            }
            !wanted
        });
        drop(blocks);
        taken.chunks(BATCH).map(<[(Key, Block)]>::to_vec).collect()
    }

    /// Whether there is a block of one of these keys that the store could take.
    pub fn has(&self, is_wanted: impl Fn(Key) -> bool) -> bool {
        self.0.lock().iter().any(|unsynced| !unsynced.is_moving && is_wanted(unsynced.key))
    }

    pub fn give_back(&self, blocks: impl IntoIterator<Item = (Key, Block)>) {
        let unsynced = |(key, block)| UnsyncedBlock { key, block, is_moving: false };
        self.0.lock().extend(blocks.into_iter().map(unsynced));
    }

    /// Removes the blocks of keys that an operator released.
    pub fn forget(&self, keys: &[Key]) {
        self.0.lock().retain(|unsynced| !keys.contains(&unsynced.key));
    }

    pub fn len(&self) -> usize {
        self.0.lock().len()
    }
}

/// The batch that writes blocks to a store.
pub(super) fn blocks_to_batch(blocks: &[(Key, Block)], now: Time) -> Batch {
    let row = |(key, block): &(Key, Block)| (*key, BlockProposal::restore(block.clone(), now));
    Batch::Block(blocks.iter().map(row).collect())
}

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
pub(super) struct UnsyncedBlocks(Mutex<Vec<(Key, Block)>>);

impl UnsyncedBlocks {
    /// Adds a block; ignored if the list is full.
    pub fn add(&self, key: Key, block: Block) {
        let mut blocks = self.0.lock();
        if blocks.len() < UNSYNCED_MAX {
            blocks.push((key, block));
        }
    }

    /// Removes and returns all active blocks, in batches. The caller gives back those that fail.
    pub fn take(&self, now: Time) -> Vec<Vec<(Key, Block)>> {
        let mut blocks = std::mem::take(&mut *self.0.lock());
        blocks.retain(|(_, block)| block.until > now);
        blocks.chunks(BATCH).map(<[(Key, Block)]>::to_vec).collect()
    }

    pub fn give_back(&self, blocks: impl IntoIterator<Item = (Key, Block)>) {
        self.0.lock().extend(blocks);
    }

    /// Removes the blocks of keys that an operator released.
    pub fn forget(&self, keys: &[Key]) {
        self.0.lock().retain(|(key, _)| !keys.contains(key));
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

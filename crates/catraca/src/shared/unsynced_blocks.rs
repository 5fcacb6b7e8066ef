//! Unsynced blocks: started on this node while the store was unavailable, and still to be written
//! to it.
//!
//! A block is removed only when the store has it. The list is bounded.

use catraca_core::batch::{ActiveBlock, Batch, BlockRow};
use catraca_core::cell::Block;
use catraca_core::cell::block::{BlockNote, BlockProposal, Origin};
use catraca_core::digest::Key;
use catraca_core::limit::Penalty;
use catraca_core::time::Time;
use parking_lot::Mutex;

/// The maximum number of blocks. Further ones are only in the records and on this node.
const UNSYNCED_MAX: usize = 100_000;
/// Blocks in one batch.
pub(super) const BATCH: usize = 256;

/// A block on this node; its end is by this node's clock.
#[derive(Clone, Debug)]
pub(super) struct UnsyncedBlock {
    pub key: Key,
    pub until: Time,
    pub origin: Origin,
    pub shadow: bool,
    pub note: BlockNote,
}

/// The blocks that the store does not have yet.
#[derive(Debug, Default)]
pub(super) struct UnsyncedBlocks(Mutex<Vec<UnsyncedBlock>>);

impl UnsyncedBlock {
    /// A block of the local memory store.
    pub fn from_cell(key: Key, block: &Block) -> Self {
        Self {
            key,
            until: block.until,
            origin: block.origin,
            shadow: block.shadow,
            note: block.note.clone(),
        }
    }

    /// A block that a reply shows, with its end by this node's clock.
    pub fn from_reply(key: Key, block: &ActiveBlock, until: Time, shadow: bool) -> Self {
        Self { key, until, origin: block.origin, shadow, note: block.note.clone() }
    }
}

impl UnsyncedBlocks {
    /// Adds a block; ignored if the list is full.
    pub fn add(&self, block: UnsyncedBlock) {
        let mut blocks = self.0.lock();
        if blocks.len() < UNSYNCED_MAX {
            blocks.push(block);
        }
    }

    /// Removes and returns all active blocks, in batches. The caller gives back those that fail.
    pub fn take(&self, now: Time) -> Vec<Vec<UnsyncedBlock>> {
        let mut blocks = std::mem::take(&mut *self.0.lock());
        blocks.retain(|block| block.until > now);
        blocks.chunks(BATCH).map(<[UnsyncedBlock]>::to_vec).collect()
    }

    pub fn give_back(&self, blocks: impl IntoIterator<Item = UnsyncedBlock>) {
        self.0.lock().extend(blocks);
    }

    /// Removes the blocks of keys that an operator released.
    pub fn forget(&self, keys: &[Key]) {
        self.0.lock().retain(|block| !keys.contains(&block.key));
    }

    pub fn len(&self) -> usize {
        self.0.lock().len()
    }
}

/// The batch that writes blocks to a store: the remaining time of each, so that its end does not
/// move.
pub(super) fn blocks_to_batch(blocks: &[UnsyncedBlock], now: Time) -> Batch {
    let row = |block: &UnsyncedBlock| {
        let act = BlockProposal {
            penalty: Penalty::without_escalation(block.until.since(now)),
            origin: block.origin,
            shadow: block.shadow,
            note: block.note.clone(),
        };
        BlockRow::new(block.key, act)
    };
    Batch::Block(blocks.iter().map(row).collect())
}

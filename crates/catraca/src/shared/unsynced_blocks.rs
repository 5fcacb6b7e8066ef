//! Unsynced blocks: started on this node while the store was unavailable, and still to be written
//! to it.
//!
//! A block is removed only when the store has it, or when it has ended. The number is bounded; if
//! one is dropped, all blocks of this node must be written to the store instead.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use catraca_core::batch::Batch;
use catraca_core::cell::Block;
use catraca_core::cell::block::{BlockProposal, Origin};
use catraca_core::digest::Key;
use catraca_core::time::Time;
use parking_lot::Mutex;

/// The maximum number of keys.
const UNSYNCED_MAX: usize = 100_000;
/// Blocks in one batch.
pub(super) const BATCH: usize = 256;

/// The blocks that the store does not have yet; their ends are by this node's clock.
#[derive(Debug, Default)]
pub(super) struct UnsyncedBlocks(Mutex<HashMap<Key, UnsyncedBlock>>);

#[derive(Clone, Debug)]
struct UnsyncedBlock {
    block: Block,
    /// Whether the store refused it because it moves the key to another server.
    is_moving: bool,
}

impl UnsyncedBlocks {
    /// Adds a block. Returns a key whose block was dropped because there are too many: an automatic
    /// one, unless all are operators'.
    pub fn add(&self, key: Key, block: Block, is_moving: bool, now: Time) -> Option<Key> {
        let mut blocks = self.0.lock();
        let mut dropped = None;
        if blocks.len() >= UNSYNCED_MAX && !blocks.contains_key(&key) {
            blocks.retain(|_, unsynced| unsynced.block.until > now);
        }
        if blocks.len() >= UNSYNCED_MAX && !blocks.contains_key(&key) {
            let is_automatic = |block: &Block| block.origin != Origin::Operator;
            let automatic = || blocks.iter().find(|(_, one)| is_automatic(&one.block));
            let other = match is_automatic(&block) {
                true => None,
                false => automatic().map(|(key, _)| *key),
            };
            let Some(other) = other else { return Some(key) };
            blocks.remove(&other);
            dropped = Some(other);
        }
        insert(&mut blocks, key, UnsyncedBlock { block, is_moving });
        dropped
    }

    /// Removes and returns the active blocks of some keys, in batches, those of operators first.
    /// The caller gives back those that fail.
    pub fn take(&self, now: Time, is_wanted: impl Fn(Key) -> bool) -> Vec<Vec<(Key, Block)>> {
        let mut taken = Vec::new();
        let mut blocks = self.0.lock();
        blocks.retain(|key, UnsyncedBlock { block, .. }| {
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
        taken.sort_by_key(|(_, block)| block.origin != Origin::Operator);
        taken.chunks(BATCH).map(<[(Key, Block)]>::to_vec).collect()
    }

    /// Whether there is a block of one of these keys that the store could take.
    pub fn has(&self, is_wanted: impl Fn(Key) -> bool) -> bool {
        self.0.lock().iter().any(|(key, unsynced)| !unsynced.is_moving && is_wanted(*key))
    }

    pub fn give_back(&self, blocks: impl IntoIterator<Item = (Key, Block)>) {
        let mut all = self.0.lock();
        for (key, block) in blocks {
            insert(&mut all, key, UnsyncedBlock { block, is_moving: false });
        }
    }

    /// Removes the blocks of keys that an operator released.
    pub fn forget(&self, keys: &[Key]) {
        let mut blocks = self.0.lock();
        for key in keys {
            blocks.remove(key);
        }
    }

    pub fn len(&self) -> usize {
        self.0.lock().len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Of two blocks of a key the one that ends later is kept.
fn insert(blocks: &mut HashMap<Key, UnsyncedBlock>, key: Key, unsynced: UnsyncedBlock) {
    match blocks.entry(key) {
        Entry::Occupied(known) if known.get().block.until > unsynced.block.until => {}
        Entry::Occupied(mut known) => drop(known.insert(unsynced)),
        Entry::Vacant(entry) => drop(entry.insert(unsynced)),
    }
}

/// The key and the end of each block.
pub(super) fn ends_of(blocks: &[(Key, Block)]) -> impl Iterator<Item = (Key, Time)> {
    blocks.iter().map(|(key, block)| (*key, block.until))
}

/// The batch that writes blocks to a store.
pub(super) fn blocks_to_batch(blocks: &[(Key, Block)], now: Time) -> Batch {
    let row = |(key, block): &(Key, Block)| (*key, BlockProposal::restore(block.clone(), now));
    Batch::Block(blocks.iter().map(row).collect())
}

#[cfg(test)]
mod tests {
    use catraca_core::cell::block::BlockNote;
    use catraca_core::time::Span;

    use super::*;

    fn block(until: i64, origin: Origin) -> Block {
        Block {
            until: Time::from_micros(until),
            origin,
            shadow: false,
            level: 0,
            forget: Span::ZERO,
            note: BlockNote::default(),
        }
    }

    fn key(number: usize) -> Key {
        Key::from_bytes((number as u128).to_le_bytes())
    }

    /// Regression: each extension of a block took a place of its own, ended blocks kept theirs, and
    /// what came after that was dropped without a trace, operators' blocks included.
    #[test]
    fn a_key_takes_one_place_and_operators_blocks_are_kept_and_written_first() {
        let unsynced = UnsyncedBlocks::default();
        for until in 1..=10 {
            let added = unsynced.add(key(0), block(until, Origin::Ban), false, Time::ZERO);
            assert_eq!(added, None);
        }
        assert_eq!(unsynced.len(), 1);
        for number in 1..UNSYNCED_MAX {
            unsynced.add(key(number), block(20, Origin::Ban), false, Time::ZERO);
        }
        let now = Time::from_micros(10);
        let added = unsynced.add(key(UNSYNCED_MAX), block(20, Origin::Ban), false, now);
        assert_eq!(added, None, "the first one has ended");
        let last = key(UNSYNCED_MAX + 1);
        assert_eq!(unsynced.add(last, block(20, Origin::Ban), false, now), Some(last));
        let dropped = unsynced.add(last, block(20, Origin::Operator), false, now);
        assert!(dropped.is_some_and(|dropped| dropped != last));
        assert_eq!(unsynced.len(), UNSYNCED_MAX);
        let taken = unsynced.take(now, |_| true);
        assert_eq!(taken[0][0].0, last);
        assert_eq!(taken.iter().map(Vec::len).sum::<usize>(), UNSYNCED_MAX);
        assert!(unsynced.is_empty());
    }
}

//! Blocks that this node started alone and that the store has still to be told of.
//!
//! Must not forget one before the store has taken it, nor grow without bound.

use catraca_core::batch::{Batch, BlockRow, Standing};
use catraca_core::cell::Block;
use catraca_core::cell::block::{Act, Note, Origin};
use catraca_core::digest::Key;
use catraca_core::limit::Penalty;
use catraca_core::time::Time;
use parking_lot::Mutex;

/// Blocks at most; more are in the records, and on this node.
const BLOCKS_MAX: usize = 100_000;
/// Blocks in one batch.
pub(super) const BATCH: usize = 256;

/// A block as this node knows it; its end is by this node's clock.
#[derive(Clone, Debug)]
pub(super) struct Owed {
    pub key: Key,
    pub until: Time,
    pub origin: Origin,
    pub shadow: bool,
    pub note: Note,
}

/// What the store is owed.
#[derive(Debug, Default)]
pub(super) struct Owing(Mutex<Vec<Owed>>);

impl Owed {
    /// A block that stands on this node.
    pub fn standing(key: Key, block: &Block) -> Self {
        let (until, origin, shadow) = (block.until, block.origin, block.shadow);
        Self { key, until, origin, shadow, note: block.note.clone() }
    }

    /// A block that a reply shows, with its end by this node's clock.
    pub fn shown(key: Key, block: &Standing, until: Time, shadow: bool) -> Self {
        Self { key, until, origin: block.origin, shadow, note: block.note.clone() }
    }
}

impl Owing {
    /// Takes note of a block that stands.
    pub fn add(&self, block: Owed) {
        let mut owed = self.0.lock();
        if owed.len() < BLOCKS_MAX {
            owed.push(block);
        }
    }

    /// Everything that still stands, in batches; what fails is given back.
    pub fn take(&self, now: Time) -> Vec<Vec<Owed>> {
        let mut owed = std::mem::take(&mut *self.0.lock());
        owed.retain(|block| block.until > now);
        owed.chunks(BATCH).map(<[Owed]>::to_vec).collect()
    }

    pub fn give_back(&self, owed: impl IntoIterator<Item = Owed>) {
        self.0.lock().extend(owed);
    }

    /// Forgets keys that an operator has freed.
    pub fn forget(&self, keys: &[Key]) {
        self.0.lock().retain(|block| !keys.contains(&block.key));
    }

    pub fn len(&self) -> usize {
        self.0.lock().len()
    }
}

/// The batch that tells a store of blocks: what is left of each, so that its end stays where it is.
pub(super) fn telling(owed: &[Owed], now: Time) -> Batch {
    let row = |block: &Owed| {
        let (penalty, note) = (Penalty::fixed(block.until.since(now)), block.note.clone());
        let act = Act { penalty, origin: block.origin, shadow: block.shadow, note };
        BlockRow::new(block.key, act)
    };
    Batch::Block(owed.iter().map(row).collect())
}

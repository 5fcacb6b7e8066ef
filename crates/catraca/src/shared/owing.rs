//! Blocks that this node started alone and that the store has still to be told of.
//!
//! Must not forget one before the store has taken it, nor grow without bound.

use catraca_core::batch::{Batch, BlockRow, Standing};
use catraca_core::cell::Block;
use catraca_core::cell::block::Act;
use catraca_core::digest::Key;
use catraca_core::limit::Penalty;
use catraca_core::time::{Span, Time};
use parking_lot::Mutex;

/// Blocks at most; more are in the records, and on this node.
const BLOCKS_MAX: usize = 100_000;
/// Blocks in one batch.
const BATCH: usize = 256;

/// A block, and until when it stands by this node's clock.
#[derive(Clone, Debug)]
pub(super) struct Owed {
    pub key: Key,
    pub until: Time,
    pub act: Act,
}

/// What the store is owed.
#[derive(Debug, Default)]
pub(super) struct Owing(Mutex<Vec<Owed>>);

impl Owed {
    /// A block that stands on this node.
    pub fn standing(key: Key, block: &Block) -> Self {
        let (penalty, shadow) = (Penalty::fixed(Span::ZERO), block.shadow);
        let act = Act { penalty, origin: block.origin, shadow, note: block.note.clone() };
        Self { key, until: block.until, act }
    }
}

impl Owing {
    /// Takes note of a block that stands.
    pub fn add(&self, key: Key, standing: &Standing, shadow: bool) {
        let Standing { until, origin, note, .. } = standing;
        // Its length is told when it is sent, so that its end stays where it is.
        let penalty = Penalty::fixed(Span::ZERO);
        let act = Act { penalty, origin: *origin, shadow, note: note.clone() };
        let mut owed = self.0.lock();
        if owed.len() < BLOCKS_MAX {
            owed.push(Owed { key, until: *until, act });
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

/// The batch that tells a store of blocks.
pub(super) fn telling(owed: &[Owed], now: Time) -> Batch {
    let row = |block: &Owed| {
        let penalty = Penalty::fixed(block.until.since(now));
        BlockRow { key: block.key, act: Act { penalty, ..block.act.clone() } }
    };
    Batch::Block(owed.iter().map(row).collect())
}

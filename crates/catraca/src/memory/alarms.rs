//! What an operator should hear of: the store had to share, refuse or drop something.
//!
//! Readable without any lock. Must not be needed for a decision.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts since the start.
#[derive(Debug, Default)]
pub(super) struct Alarms {
    /// Looks at a cell that is shared because memory is full.
    pub shared: Count,
    /// Strikes and watched ratios that were not kept.
    pub refused_counters: Count,
    /// Blocks that were not started.
    pub refused_blocks: Count,
    /// Settles that were not done.
    pub refused_marks: Count,
    /// References that made room for newer ones.
    pub dropped_references: Count,
}

/// A number that only grows.
#[derive(Debug, Default)]
pub(super) struct Count(AtomicU64);

impl Count {
    pub fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    pub fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

//! What an operator should hear of: the store had to share, refuse or drop something.
//!
//! Readable without any lock. Must not be needed for a decision.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use catraca_core::time::{Span, Time};

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

/// A part of the memory with a bound of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryPool {
    /// Counters, strikes and watched ratios.
    Counters,
    /// Blocks.
    Blocks,
    /// References.
    References,
    /// Markers of settled tickets.
    Marks,
}

impl MemoryPool {
    /// Every pool.
    pub const ALL: [Self; 4] = [Self::Counters, Self::Blocks, Self::References, Self::Marks];

    /// Its name for operators.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Counters => "counters",
            Self::Blocks => "blocks",
            Self::References => "references",
            Self::Marks => "settled-markers",
        }
    }
}

impl Alarms {
    /// Whether a pool had to share, refuse or drop something at `since` or later.
    pub fn is_full(&self, pool: MemoryPool, since: Time) -> bool {
        match pool {
            MemoryPool::Counters => {
                self.shared.is_recent(since) || self.refused_counters.is_recent(since)
            }
            MemoryPool::Blocks => self.refused_blocks.is_recent(since),
            MemoryPool::References => self.dropped_references.is_recent(since),
            MemoryPool::Marks => self.refused_marks.is_recent(since),
        }
    }
}

/// How long after its last refusal a pool still counts as full.
pub(super) const FULL_FOR: Span = Span::from_secs(60);

/// A number that only grows, and when it last did.
#[derive(Debug, Default)]
pub(super) struct Count {
    total: AtomicU64,
    /// Microseconds; zero until the first event. Shards race to write it: either instant will do.
    last: AtomicI64,
}

impl Count {
    pub fn add(&self, now: Time) {
        self.total.fetch_add(1, Ordering::Relaxed);
        self.last.store(now.micros(), Ordering::Relaxed);
    }

    pub fn read(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    fn is_recent(&self, since: Time) -> bool {
        self.read() > 0 && self.last.load(Ordering::Relaxed) >= since.micros()
    }
}

//! Memory pressure: counts how often a full pool shared, refused or dropped a cell.
//!
//! Read without a lock, for metrics and `/readyz`. No decision depends on these counters.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use catraca_core::cell::MemoryPool;
use catraca_core::time::{Span, Time};

/// Totals since the start.
#[derive(Debug, Default)]
pub(super) struct PressureCounters {
    /// Uses of an overflow cell.
    pub overflowed: PressureCounter,
    /// Strikes and watched ratios that were not counted.
    pub refused_counters: PressureCounter,
    /// Blocks that were not started.
    pub refused_blocks: PressureCounter,
    /// Settles that were refused.
    pub refused_marks: PressureCounter,
    /// References that were dropped for newer ones.
    pub dropped_references: PressureCounter,
}

impl PressureCounters {
    /// Whether a pool shared, refused or dropped a cell at `since` or later.
    pub fn is_full(&self, pool: MemoryPool, since: Time) -> bool {
        match pool {
            MemoryPool::Counters => {
                self.overflowed.is_recent(since) || self.refused_counters.is_recent(since)
            }
            MemoryPool::Blocks => self.refused_blocks.is_recent(since),
            MemoryPool::References => self.dropped_references.is_recent(since),
            MemoryPool::SettledMarkers => self.refused_marks.is_recent(since),
        }
    }
}

/// How long a pool counts as full after its last event.
pub(super) const FULL_FOR: Span = Span::from_secs(60);

/// A total, and the instant of its last increase.
#[derive(Debug, Default)]
pub(super) struct PressureCounter {
    total: AtomicU64,
    /// Microseconds; zero until the first event. Threads may overwrite each other's instants; any
    /// recent one is good enough.
    last: AtomicI64,
}

impl PressureCounter {
    pub fn add(&self, now: Time) {
        // Relaxed: no other data depends on the order of these counters.
        self.total.fetch_add(1, Ordering::Relaxed);
        self.last.store(now.micros(), Ordering::Relaxed);
    }

    pub fn read(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    fn is_recent(&self, since: Time) -> bool {
        // Without an event `last` is zero, which could also be a real instant.
        self.read() > 0 && self.last.load(Ordering::Relaxed) >= since.micros()
    }
}

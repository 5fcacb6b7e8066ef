//! How long callers waited and how long leases were held: counts by bounds, one addition each.
//!
//! Must not keep anything of a caller.

use std::sync::atomic::{AtomicU64, Ordering};

use catraca_core::time::Span;

/// Upper bounds in microseconds; what is longer goes into one more bucket.
pub const BOUNDS: [u64; 15] = [
    1_000,
    2_000,
    5_000,
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    5_000_000,
    10_000_000,
    30_000_000,
    60_000_000,
    300_000_000,
];

/// How long things took, for all namespaces together.
#[derive(Debug, Default)]
pub struct LockTimes {
    /// From an attempt that had to wait to its answer.
    pub waited: Durations,
    /// From a grant to its end.
    pub held: Durations,
}

/// Durations that were counted.
#[derive(Debug, Default)]
pub struct Durations {
    buckets: [AtomicU64; BOUNDS.len() + 1],
    micros: AtomicU64,
}

impl Durations {
    /// Notes one of them.
    pub fn note(&self, span: Span) {
        let micros = span.micros().max(0).unsigned_abs();
        let place = BOUNDS.partition_point(|bound| *bound < micros);
        self.buckets[place].fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// How many there are up to each bound alone, and beyond the last.
    pub fn counts(&self) -> [u64; BOUNDS.len() + 1] {
        self.buckets.each_ref().map(|bucket| bucket.load(Ordering::Relaxed))
    }

    /// All of them together, in microseconds.
    pub fn micros(&self) -> u64 {
        self.micros.load(Ordering::Relaxed)
    }
}

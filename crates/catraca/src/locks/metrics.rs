//! Histograms of wait times and lease times.

use std::sync::atomic::{AtomicU64, Ordering};

use catraca_core::time::Span;
use tokio::time::Instant;

/// Upper bounds of the buckets in microseconds; one more bucket has longer durations.
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

/// A histogram of durations.
#[derive(Debug, Default)]
pub struct DurationHistogram {
    buckets: [AtomicU64; BOUNDS.len() + 1],
    micros: AtomicU64,
}

/// Counts a duration when it is dropped.
pub(super) struct DurationTimer<'h> {
    histogram: &'h DurationHistogram,
    since: Instant,
}

impl DurationHistogram {
    /// Counts one duration.
    #[doc(hidden)]
    pub fn observe(&self, span: Span) {
        let micros = span.micros().max(0).unsigned_abs();
        let index = BOUNDS.partition_point(|bound| *bound < micros);
        self.buckets[index].fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// Counts the time from now until the timer is dropped.
    pub(super) fn start_timer(&self) -> DurationTimer<'_> {
        DurationTimer { histogram: self, since: Instant::now() }
    }

    /// The counts of each bucket, not cumulative; the last has durations above all bounds.
    pub fn counts(&self) -> [u64; BOUNDS.len() + 1] {
        self.buckets.each_ref().map(|bucket| bucket.load(Ordering::Relaxed))
    }

    /// The sum of all durations, in microseconds.
    pub fn micros(&self) -> u64 {
        self.micros.load(Ordering::Relaxed)
    }
}

impl Drop for DurationTimer<'_> {
    fn drop(&mut self) {
        let micros = i64::try_from(self.since.elapsed().as_micros()).unwrap_or(i64::MAX);
        self.histogram.observe(Span::from_micros(micros));
    }
}

//! Histograms of latencies, whose counts are atomic.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of the histogram in microseconds; slower responses are in one more bucket.
const BOUNDS: [u64; 22] = [
    1, 2, 5, 10, 15, 20, 30, 50, 75, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000,
    100_000, 1_000_000, 10_000_000, 60_000_000,
];

/// A histogram of durations.
#[derive(Debug, Default)]
pub struct LatencyHistogram {
    buckets: [AtomicU64; BOUNDS.len() + 1],
    micros: AtomicU64,
}

/// A copy of a histogram, in seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct HistogramSnapshot {
    /// The sum of all durations.
    pub seconds: f64,
    /// Upper bound and own (not cumulative) count of each bucket; the last bound is infinite.
    pub buckets: Vec<(f64, u64)>,
}

impl LatencyHistogram {
    /// Adds a duration.
    pub fn note(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let index = BOUNDS.partition_point(|bound| *bound < micros);
        self.buckets[index].fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    /// The count of each bucket.
    pub fn counts(&self) -> [u64; BOUNDS.len() + 1] {
        self.buckets.each_ref().map(|bucket| bucket.load(Ordering::Relaxed))
    }

    /// A copy of the counts so far. Not atomic: a duration that is added meanwhile may be in one of
    /// the two only.
    pub fn snapshot(&self) -> HistogramSnapshot {
        let bounds = BOUNDS.iter().map(|micros| *micros as f64 / 1e6).chain([f64::INFINITY]);
        let seconds = self.micros.load(Ordering::Relaxed) as f64 / 1e6;
        HistogramSnapshot { seconds, buckets: bounds.zip(self.counts()).collect() }
    }
}

/// The upper bound of the bucket that contains this quantile, in thousandths; none if it is beyond
/// the last bound.
pub fn quantile(counts: &[u64], thousandths: u64) -> Option<u64> {
    let all: u64 = counts.iter().sum();
    let rank = (all * thousandths).div_ceil(1_000);
    let mut cumulative = 0;
    let bucket = counts.iter().position(|count| {
        cumulative += count;
        cumulative >= rank
    });
    BOUNDS.get(bucket?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slow_response_in_a_hundred_is_not_within_the_99() {
        let counts = |slow: u64| {
            let mut counts = [0; BOUNDS.len() + 1];
            counts[3] = 1_000 - slow;
            counts[13] = slow;
            counts
        };
        assert_eq!(quantile(&counts(10), 990), Some(10));
        assert_eq!(quantile(&counts(11), 990), Some(2_000));
        assert_eq!(quantile(&counts(11), 500), Some(10));
    }
}

//! Counts and latencies of HTTP responses; noting one costs two atomic additions.
//!
//! Latency is measured from the moment a request's head is read until its response is ready to be
//! written: it excludes the network, and the wait for a free core before that.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::StatusCode;

use crate::listener::table::{CONNECTION_LIMITS, ConnectionLimit};

/// Upper bounds of the histogram in microseconds; slower responses are in one more bucket.
const BOUNDS: [u64; 22] = [
    1, 2, 5, 10, 15, 20, 30, 50, 75, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000,
    100_000, 1_000_000, 10_000_000, 60_000_000,
];

/// Counts and latencies of HTTP responses, and of refused connections.
#[derive(Debug, Default)]
pub struct HttpMetrics {
    checks: LatencyHistogram,
    other_calls: LatencyHistogram,
    /// Responses with a 4xx status.
    client_errors: AtomicU64,
    /// Responses with a 5xx status.
    server_errors: AtomicU64,
    /// Connections refused, by the limit that was reached.
    refused: [AtomicU64; CONNECTION_LIMITS.len()],
    /// Idle connections closed to make room for new ones, by the limit that was reached.
    idle_closed: [AtomicU64; CONNECTION_LIMITS.len()],
    /// TLS handshakes that failed.
    tls_failures: AtomicU64,
}

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

    fn counts(&self) -> [u64; BOUNDS.len() + 1] {
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

impl HttpMetrics {
    /// Notes a response to a check or to another call.
    pub fn note(&self, status: StatusCode, took: Duration, is_check: bool) {
        if is_check { &self.checks } else { &self.other_calls }.note(took);
        if status.is_server_error() {
            self.server_errors.fetch_add(1, Ordering::Relaxed);
        } else if status.is_client_error() {
            self.client_errors.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a refused connection.
    pub fn note_connection_refused(&self, limit: ConnectionLimit) {
        self.refused[limit as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an idle connection that was closed to make room.
    pub fn note_idle_closed(&self, limit: ConnectionLimit) {
        self.idle_closed[limit as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Connections refused, by the limit that was reached.
    pub fn connections_refused(&self) -> [u64; CONNECTION_LIMITS.len()] {
        self.refused.each_ref().map(|count| count.load(Ordering::Relaxed))
    }

    /// Idle connections closed to make room, by the limit that was reached.
    pub fn idle_closed(&self) -> [u64; CONNECTION_LIMITS.len()] {
        self.idle_closed.each_ref().map(|count| count.load(Ordering::Relaxed))
    }

    /// Counts a failed TLS handshake.
    pub fn note_tls_failure(&self) {
        self.tls_failures.fetch_add(1, Ordering::Relaxed);
    }

    /// Failed TLS handshakes.
    pub fn tls_failures(&self) -> u64 {
        self.tls_failures.load(Ordering::Relaxed)
    }

    /// Latencies of checks.
    pub fn checks(&self) -> HistogramSnapshot {
        self.checks.snapshot()
    }

    /// Latencies of all other calls.
    pub fn other_calls(&self) -> HistogramSnapshot {
        self.other_calls.snapshot()
    }

    /// Responses with a 4xx status, and with a 5xx status.
    pub fn error_responses(&self) -> [u64; 2] {
        [&self.client_errors, &self.server_errors].map(|count| count.load(Ordering::Relaxed))
    }

    fn counts(&self) -> [u64; BOUNDS.len() + 1] {
        let mut counts = self.checks.counts();
        counts.iter_mut().zip(self.other_calls.counts()).for_each(|(all, other)| *all += other);
        counts
    }
}

/// The upper bound of the bucket that contains this quantile, in thousandths; none if it is beyond
/// the last bound.
fn quantile(counts: &[u64], thousandths: u64) -> Option<u64> {
    let all: u64 = counts.iter().sum();
    let rank = (all * thousandths).div_ceil(1_000);
    let mut cumulative = 0;
    let bucket = counts.iter().position(|count| {
        cumulative += count;
        cumulative >= rank
    });
    BOUNDS.get(bucket?).copied()
}

/// The summary that is printed at a stop: `12 responses, 1 with 4xx, 0 with 5xx, 0 connections
/// refused; 50% within 10us, ...`.
impl fmt::Display for HttpMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = self.counts();
        let all: u64 = counts.iter().sum();
        let [client_errors, server_errors] = self.error_responses();
        let refused: u64 = self.connections_refused().iter().sum();
        write!(f, "{all} responses, {client_errors} with 4xx, {server_errors} with 5xx, ")?;
        write!(f, "{refused} connections refused")?;
        if all == 0 {
            return Ok(());
        }
        for (separator, name, thousandths) in
            [(';', "50%", 500), (',', "99%", 990), (',', "99.9%", 999)]
        {
            match quantile(&counts, thousandths) {
                Some(bound) => write!(f, "{separator} {name} within {bound}us")?,
                None => write!(f, "{separator} {name} beyond a minute")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_belongs_to_its_own_bucket_and_shares_round_up() {
        let metrics = HttpMetrics::default();
        assert_eq!(
            metrics.to_string(),
            "0 responses, 0 with 4xx, 0 with 5xx, 0 connections refused"
        );
        for micros in [1, 5, 5, 6] {
            metrics.note(StatusCode::OK, Duration::from_micros(micros), micros < 5);
        }
        metrics.note(StatusCode::BAD_REQUEST, Duration::from_micros(900), true);
        metrics.note(StatusCode::BAD_GATEWAY, Duration::from_secs(120), false);
        metrics.note_connection_refused(ConnectionLimit::PerAddress);
        let expected = "6 responses, 1 with 4xx, 1 with 5xx, 1 connections refused; \
                        50% within 5us, 99% beyond a minute, 99.9% beyond a minute";
        assert_eq!(metrics.to_string(), expected);
        let checks = metrics.checks();
        let others = metrics.other_calls();
        assert_eq!((checks.seconds, others.seconds), (0.000_901, 120.000_016));
        let sum =
            |times: &HistogramSnapshot| times.buckets.iter().map(|(_, count)| count).sum::<u64>();
        assert_eq!((sum(&checks), sum(&others)), (2, 4));
        assert_eq!(others.buckets.last(), Some(&(f64::INFINITY, 1)));
    }

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

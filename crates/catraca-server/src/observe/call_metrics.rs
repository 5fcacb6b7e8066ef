//! Counts and latencies of the responses of all front ends; noting one costs two atomic additions.
//!
//! Latency is measured from the moment a request, or its head, is read until its response is ready
//! to be written: it excludes the network, and the wait for a free core before that.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::latency::{HistogramSnapshot, LatencyHistogram, quantile};

/// How a call was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallResult {
    /// As asked; a denial is such an answer.
    Done,
    /// Refused: the call is invalid, or its sender may not make it. In HTTP, a 4xx status.
    ClientError,
    /// Failed in the server. In HTTP, a 5xx status.
    ServerError,
}

/// Counts and latencies of responses.
#[derive(Debug, Default)]
pub struct CallMetrics {
    checks: LatencyHistogram,
    other_calls: LatencyHistogram,
    client_errors: AtomicU64,
    server_errors: AtomicU64,
}

impl CallMetrics {
    /// Notes a response to a check or to another call.
    pub fn note(&self, result: CallResult, took: Duration, is_check: bool) {
        if is_check { &self.checks } else { &self.other_calls }.note(took);
        match result {
            CallResult::Done => {}
            CallResult::ClientError => {
                self.client_errors.fetch_add(1, Ordering::Relaxed);
            }
            CallResult::ServerError => {
                self.server_errors.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Latencies of checks.
    pub fn checks(&self) -> HistogramSnapshot {
        self.checks.snapshot()
    }

    /// Latencies of all other calls.
    pub fn other_calls(&self) -> HistogramSnapshot {
        self.other_calls.snapshot()
    }

    /// Calls that were refused, and calls that failed in the server.
    pub fn errors(&self) -> [u64; 2] {
        [&self.client_errors, &self.server_errors].map(|count| count.load(Ordering::Relaxed))
    }

    /// The summary that is printed at a stop: `12 responses, 1 with 4xx, 0 with 5xx, 0 connections
    /// refused; 50% within 10us, ...`.
    pub fn summary(&self, refused_connections: u64) -> String {
        let mut counts = self.checks.counts();
        counts.iter_mut().zip(self.other_calls.counts()).for_each(|(all, other)| *all += other);
        let all: u64 = counts.iter().sum();
        let [client_errors, server_errors] = self.errors();
        let mut text = format!(
            "{all} responses, {client_errors} with 4xx, {server_errors} with 5xx, \
             {refused_connections} connections refused"
        );
        if all == 0 {
            return text;
        }
        for (separator, name, thousandths) in
            [(';', "50%", 500), (',', "99%", 990), (',', "99.9%", 999)]
        {
            text += &match quantile(&counts, thousandths) {
                Some(bound) => format!("{separator} {name} within {bound}us"),
                None => format!("{separator} {name} beyond a minute"),
            };
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_belongs_to_its_own_bucket_and_shares_round_up() {
        let metrics = CallMetrics::default();
        assert_eq!(
            metrics.summary(0),
            "0 responses, 0 with 4xx, 0 with 5xx, 0 connections refused"
        );
        for micros in [1, 5, 5, 6] {
            metrics.note(CallResult::Done, Duration::from_micros(micros), micros < 5);
        }
        metrics.note(CallResult::ClientError, Duration::from_micros(900), true);
        metrics.note(CallResult::ServerError, Duration::from_secs(120), false);
        let expected = "6 responses, 1 with 4xx, 1 with 5xx, 1 connections refused; \
                        50% within 5us, 99% beyond a minute, 99.9% beyond a minute";
        assert_eq!(metrics.summary(1), expected);
        let checks = metrics.checks();
        let others = metrics.other_calls();
        assert_eq!((checks.seconds, others.seconds), (0.000_901, 120.000_016));
        let sum =
            |times: &HistogramSnapshot| times.buckets.iter().map(|(_, count)| count).sum::<u64>();
        assert_eq!((sum(&checks), sum(&others)), (2, 4));
        assert_eq!(others.buckets.last(), Some(&(f64::INFINITY, 1)));
    }
}

//! Counts of the reverse proxy: its responses, the failures of upstreams, settles that were not
//! applied, and requests without their clients.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// The time between two log lines about settles that failed.
const SETTLE_LOG_INTERVAL: Duration = Duration::from_secs(10);
/// Responses by the first digit of their status.
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];

/// Who made a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseSource {
    /// The upstream.
    Upstream,
    /// A policy denied the request, or a ban replaced the response.
    Denial,
    /// The proxy: the request is invalid, has no route, or its upstream failed.
    Problem,
}

/// Every source with its label; an index of counts.
const SOURCES: [(ResponseSource, &str); 3] = [
    (ResponseSource::Upstream, "upstream"),
    (ResponseSource::Denial, "denial"),
    (ResponseSource::Problem, "problem"),
];

/// How an upstream failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpstreamCause {
    /// No connection could be made.
    Unreachable,
    /// All connections that are allowed were in use.
    Busy,
    /// The response did not begin in time.
    Timeout,
    /// The connection ended before the response, or what arrived is not HTTP.
    Broken,
    /// The response broke off.
    BrokenOff,
    /// The next part of the response did not arrive in time.
    Silent,
}

/// Every cause with its label; an index of counts.
const CAUSES: [(UpstreamCause, &str); 6] = [
    (UpstreamCause::Unreachable, "unreachable"),
    (UpstreamCause::Busy, "busy"),
    (UpstreamCause::Timeout, "timeout"),
    (UpstreamCause::Broken, "broken"),
    (UpstreamCause::BrokenOff, "broken_off"),
    (UpstreamCause::Silent, "silent"),
];

/// The counts.
#[derive(Debug, Default)]
pub struct ProxyMetrics {
    responses: [[AtomicU64; CLASSES.len()]; SOURCES.len()],
    upstream_failures: [AtomicU64; CAUSES.len()],
    settle_failures: AtomicU64,
    /// The number of settles that wait for the store.
    pub settle_retries: Arc<AtomicUsize>,
    /// The number of requests that go on without their clients.
    pub abandoned: Arc<AtomicUsize>,
    settle_logged: Mutex<Option<Instant>>,
    /// Upstreams that cannot be used, and why.
    unusable: Mutex<BTreeMap<String, String>>,
}

impl ProxyMetrics {
    /// Counts a response.
    pub fn note_response(&self, source: ResponseSource, status: u16) {
        let class = usize::from(status / 100).clamp(1, CLASSES.len()) - 1;
        self.responses[source as usize][class].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a failure of an upstream.
    pub fn note_upstream_failure(&self, cause: UpstreamCause) {
        self.upstream_failures[cause as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a settle that was not applied; returns whether it should be logged.
    pub fn note_settle_failure(&self) -> bool {
        self.settle_failures.fetch_add(1, Ordering::Relaxed);
        let mut logged = self.settle_logged.lock();
        let is_due = logged.is_none_or(|at| at.elapsed() >= SETTLE_LOG_INTERVAL);
        if is_due {
            *logged = Some(Instant::now());
        }
        is_due
    }

    /// Notes that no request can be sent to an upstream.
    pub fn note_unusable(&self, url: &str, why: String) {
        self.unusable.lock().insert(url.to_owned(), why);
    }

    /// Forgets upstreams that the catalog has no more.
    pub fn retain_unusable(&self, is_used: impl Fn(&String) -> bool) {
        self.unusable.lock().retain(|url, _| is_used(url));
    }

    /// Upstreams that cannot be used, and why.
    pub fn unusable(&self) -> Vec<(String, String)> {
        let unusable = self.unusable.lock();
        unusable.iter().map(|(url, why)| (url.clone(), why.clone())).collect()
    }

    /// Responses by source and class.
    pub fn responses(&self) -> Vec<(&'static str, &'static str, u64)> {
        let counts = SOURCES.iter().flat_map(|(source, name)| {
            let counts = CLASSES.iter().zip(&self.responses[*source as usize]);
            counts.map(|(class, count)| (*name, *class, count.load(Ordering::Relaxed)))
        });
        counts.collect()
    }

    /// Failures of upstreams by cause.
    pub fn upstream_failures(&self) -> [(&'static str, u64); CAUSES.len()] {
        CAUSES.map(|(cause, name)| {
            (name, self.upstream_failures[cause as usize].load(Ordering::Relaxed))
        })
    }

    /// Requests that go on without their clients.
    pub fn abandoned_requests(&self) -> usize {
        self.abandoned.load(Ordering::Relaxed)
    }

    /// Settles that wait for the store.
    pub fn settle_retries(&self) -> usize {
        self.settle_retries.load(Ordering::Relaxed)
    }

    /// Settles that were not applied.
    pub fn settle_failures(&self) -> u64 {
        self.settle_failures.load(Ordering::Relaxed)
    }
}

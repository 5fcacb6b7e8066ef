//! Where ended spans wait to be sent: bounded, and nobody waits for room.
//!
//! Must not block nor allocate; a span that finds no room is dropped and counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use opentelemetry::Context;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Span, SpanData, SpanProcessor};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Spans that may wait, about one kilobyte each.
const WAITING_MAX: usize = 2_048;

/// Where ended spans wait.
#[derive(Debug)]
pub struct Queue {
    waiting: Sender<SpanData>,
    /// What became of all spans.
    pub counts: Arc<Counts>,
}

/// What became of all spans.
#[derive(Debug, Default)]
pub struct Counts {
    /// Every one that ended.
    ended: AtomicU64,
    /// Taken by a collector.
    sent: AtomicU64,
    /// Found no room, or no collector that took it.
    dropped: AtomicU64,
}

impl Queue {
    /// An empty queue, and its other end.
    pub fn new() -> (Self, Receiver<SpanData>) {
        let (waiting, spans) = channel(WAITING_MAX);
        (Self { waiting, counts: Arc::default() }, spans)
    }
}

impl SpanProcessor for Queue {
    fn on_start(&self, _span: &mut Span, _context: &Context) {}

    fn on_end(&self, span: SpanData) {
        self.counts.ended.fetch_add(1, Ordering::Relaxed);
        if self.waiting.try_send(span).is_err() {
            self.counts.drop_some(1);
        }
    }

    /// Whoever sends them does it all the time.
    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    /// The owner of the sending task ends it.
    fn shutdown_with_timeout(&self, _timeout: Duration) -> OTelSdkResult {
        Ok(())
    }
}

impl Counts {
    /// Notes spans that a collector took.
    pub fn send_some(&self, spans: u64) {
        self.sent.fetch_add(spans, Ordering::Relaxed);
    }

    /// Notes spans that nobody took.
    pub fn drop_some(&self, spans: u64) {
        self.dropped.fetch_add(spans, Ordering::Relaxed);
    }

    /// Those that were sent, and those that were dropped.
    pub fn read(&self) -> [u64; 2] {
        [&self.sent, &self.dropped].map(|count| count.load(Ordering::Relaxed))
    }

    /// Those that were not sent, whether dropped or still waiting.
    pub fn lost(&self) -> u64 {
        self.ended.load(Ordering::Relaxed).saturating_sub(self.sent.load(Ordering::Relaxed))
    }
}

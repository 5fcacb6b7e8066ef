//! The queue of ended spans. It never blocks: a span that finds it full is dropped and counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use opentelemetry::Context;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Span, SpanData, SpanProcessor};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// The most spans in the queue, about one kilobyte each.
const QUEUE_MAX: usize = 2_048;

/// The sending end of the queue.
#[derive(Debug)]
pub struct SpanQueue {
    sender: Sender<SpanData>,
    /// The counts of all spans.
    pub counts: Arc<SpanCounts>,
}

/// How many spans ended, were sent and were dropped.
#[derive(Debug, Default)]
pub struct SpanCounts {
    /// All spans that ended.
    ended: AtomicU64,
    /// Accepted by the collector.
    sent: AtomicU64,
    /// Dropped because the queue was full or the collector did not accept them.
    dropped: AtomicU64,
}

impl SpanQueue {
    /// An empty queue, and its receiving end.
    pub fn new() -> (Self, Receiver<SpanData>) {
        let (sender, spans) = channel(QUEUE_MAX);
        (Self { sender, counts: Arc::default() }, spans)
    }
}

impl SpanProcessor for SpanQueue {
    fn on_start(&self, _span: &mut Span, _context: &Context) {}

    fn on_end(&self, span: SpanData) {
        self.counts.ended.fetch_add(1, Ordering::Relaxed);
        if self.sender.try_send(span).is_err() {
            self.counts.add_dropped(1);
        }
    }

    /// Nothing to do: the sending task never holds spans for longer than `LINGER`.
    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    /// Nothing to do: `Traces::close` ends the sending task.
    fn shutdown_with_timeout(&self, _timeout: Duration) -> OTelSdkResult {
        Ok(())
    }
}

impl SpanCounts {
    /// Counts spans that the collector accepted.
    pub fn add_sent(&self, spans: u64) {
        self.sent.fetch_add(spans, Ordering::Relaxed);
    }

    /// Counts dropped spans.
    pub fn add_dropped(&self, spans: u64) {
        self.dropped.fetch_add(spans, Ordering::Relaxed);
    }

    /// Spans sent, and spans dropped.
    pub fn read(&self) -> [u64; 2] {
        [&self.sent, &self.dropped].map(|count| count.load(Ordering::Relaxed))
    }

    /// Spans that were not sent, whether dropped or still in the queue.
    pub fn unsent(&self) -> u64 {
        self.ended.load(Ordering::Relaxed).saturating_sub(self.sent.load(Ordering::Relaxed))
    }
}

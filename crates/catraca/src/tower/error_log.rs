//! Log lines about failures of the limiter, which may fail for every request: the first is written,
//! and then at most one in [`PAUSE`] for each kind, with the number of those that were not.

use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The least time between two lines of one kind.
const PAUSE: Duration = Duration::from_secs(10);

/// The log of a layer; services that it makes share it.
#[derive(Debug)]
pub(super) struct ErrorLog {
    started: Instant,
    unchecked: LineLimit,
    rejected: LineLimit,
    unsettled: LineLimit,
}

impl ErrorLog {
    pub fn new() -> Self {
        Self {
            started: Instant::now(),
            unchecked: LineLimit::default(),
            rejected: LineLimit::default(),
            unsettled: LineLimit::default(),
        }
    }

    /// A request passed, because the layer is open while the limiter fails.
    pub fn on_unchecked(&self, error: &dyn Display) {
        if let Some(suppressed) = self.unchecked.next_line(self.started.elapsed()) {
            let message = "a request passed unchecked, because the limiter failed";
            tracing::error!(%error, suppressed, "{message}");
        }
    }

    /// A request got an error, because there is no decision.
    pub fn on_rejected(&self, error: &dyn Display) {
        if let Some(suppressed) = self.rejected.next_line(self.started.elapsed()) {
            let message = "a request was rejected, because it could not be checked";
            tracing::error!(%error, suppressed, "{message}");
        }
    }

    /// The outcome of a response was lost.
    pub fn on_unsettled(&self, error: &dyn Display) {
        if let Some(suppressed) = self.unsettled.next_line(self.started.elapsed()) {
            let message = "a response could not be settled; its check keeps what it holds";
            tracing::error!(%error, suppressed, "{message}");
        }
    }
}

/// Bounds the lines of one kind.
#[derive(Debug, Default)]
struct LineLimit {
    /// When the next line may be written, in microseconds since the start of the log.
    next: AtomicU64,
    suppressed: AtomicU64,
}

impl LineLimit {
    /// The number of lines that were suppressed since the last one, if a line is due now.
    fn next_line(&self, elapsed: Duration) -> Option<u64> {
        let now = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
        let due = self.next.load(Ordering::Relaxed);
        let next = now.saturating_add(PAUSE.as_micros() as u64);
        // Of several threads that find a line due, one writes it.
        let is_due = now >= due
            && self.next.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if !is_due {
            self.suppressed.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        Some(self.suppressed.swap(0, Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_is_written_and_later_ones_count_those_between() {
        let limit = LineLimit::default();
        let at = |millis| limit.next_line(Duration::from_millis(millis));
        assert_eq!(at(5), Some(0));
        assert_eq!([at(5), at(6), at(10_004)], [None; 3]);
        assert_eq!(at(10_005), Some(3));
        assert_eq!(at(99_999), Some(0), "the failures have paused");
    }
}

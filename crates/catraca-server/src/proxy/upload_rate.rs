//! How fast a client sends the body of its request. Only the time in which the proxy waits for the
//! client counts: an upstream that reads slowly is not the client's fault.

use std::time::Duration;

use tokio::time::Instant;

use crate::config::ProxyTimeouts;

/// The least that a client must send.
#[derive(Clone, Copy, Debug)]
pub struct UploadRateMin {
    /// The waiting time over which the rate is measured, again and again.
    pub span: Duration,
    /// Bytes per second of waiting; zero for no limit.
    pub bytes_per_second: u64,
}

impl UploadRateMin {
    /// The rate of the settings.
    pub fn new(timeouts: &ProxyTimeouts) -> Self {
        Self { span: timeouts.first_byte, bytes_per_second: timeouts.upload_rate_min }
    }
}

/// The bytes of a body since the last measurement, and how long they were waited for. What was
/// sent before does not count: a client could send much at first, and then nearly nothing.
#[derive(Debug, Default)]
pub struct UploadRate {
    bytes: u64,
    waited: Duration,
    since: Option<Instant>,
}

impl UploadRate {
    /// Notes that the client has not sent the next part yet.
    pub fn on_wait(&mut self) {
        self.since.get_or_insert_with(Instant::now);
    }

    /// Notes a part.
    pub fn on_part(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
        if let Some(since) = self.since.take() {
            self.waited += since.elapsed();
        }
    }

    /// Whether the client was slower than it must be. Begins a new measurement after `span`.
    pub fn is_below(&mut self, min: UploadRateMin) -> bool {
        if self.waited <= min.span {
            return false;
        }
        let is_below = self.bytes < self.waited.as_secs().saturating_mul(min.bytes_per_second);
        self.bytes = 0;
        self.waited = Duration::ZERO;
        is_below
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN: UploadRateMin =
        UploadRateMin { span: Duration::from_secs(60), bytes_per_second: 100 };

    fn rate(bytes: u64, seconds: u64) -> UploadRate {
        UploadRate { bytes, waited: Duration::from_secs(seconds), since: None }
    }

    #[test]
    fn only_waiting_counts_and_only_after_the_span() {
        for (bytes, seconds, is_below) in [
            (0, 60, false),
            (1, 61, true),
            (6_099, 61, true),
            (6_100, 61, false),
            (1_000_000, 9_000, false),
        ] {
            assert_eq!(rate(bytes, seconds).is_below(MIN), is_below, "{bytes} in {seconds} s");
        }
        assert!(!rate(0, 9_000).is_below(UploadRateMin { bytes_per_second: 0, ..MIN }));
    }

    #[test]
    fn a_fast_start_does_not_pay_for_a_slow_rest() {
        let mut rate = rate(1_000_000, 61);
        assert!(!rate.is_below(MIN));
        rate.on_part(10);
        rate.waited += Duration::from_secs(61);
        assert!(rate.is_below(MIN));
    }
}

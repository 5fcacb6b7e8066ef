//! What was answered and how fast: counts and a histogram that cost two atomic additions.
//!
//! The time is that from a request's head being read to its answer being ready to be written; it
//! knows nothing of the network, nor of the wait for a free core before that. Bounds are those of
//! a Prometheus histogram. Must not keep anything of a request.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::StatusCode;

/// Upper bounds in microseconds; what is slower goes into one more bucket.
const BOUNDS: [u64; 22] = [
    1, 2, 5, 10, 15, 20, 30, 50, 75, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000,
    100_000, 1_000_000, 10_000_000, 60_000_000,
];

/// What was answered.
#[derive(Debug, Default)]
pub struct Tally {
    buckets: [AtomicU64; BOUNDS.len() + 1],
    /// Answers that say the request was wrong.
    refused: AtomicU64,
    /// Answers that say we were.
    failed: AtomicU64,
    /// Connections sent away because there were too many.
    shed: AtomicU64,
}

impl Tally {
    /// Notes an answer.
    pub fn note(&self, status: StatusCode, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let place = BOUNDS.partition_point(|bound| *bound < micros);
        self.buckets[place].fetch_add(1, Ordering::Relaxed);
        if status.is_server_error() {
            self.failed.fetch_add(1, Ordering::Relaxed);
        } else if status.is_client_error() {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Notes a connection that was sent away.
    pub fn note_shed(&self) {
        self.shed.fetch_add(1, Ordering::Relaxed);
    }

    fn counts(&self) -> [u64; BOUNDS.len() + 1] {
        self.buckets.each_ref().map(|bucket| bucket.load(Ordering::Relaxed))
    }
}

/// The bound within which this many thousandths of the answers lie; none beyond the last.
fn within(counts: &[u64], thousandths: u64) -> Option<u64> {
    let all: u64 = counts.iter().sum();
    let wanted = (all * thousandths).div_ceil(1_000);
    let mut seen = 0;
    let place = counts.iter().position(|count| {
        seen += count;
        seen >= wanted
    });
    BOUNDS.get(place?).copied()
}

/// One line for the log: `12 answers, 1 refused, 0 failed, 0 shed; 50% within 10us, ...`.
impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = self.counts();
        let all: u64 = counts.iter().sum();
        let [refused, failed, shed] =
            [&self.refused, &self.failed, &self.shed].map(|count| count.load(Ordering::Relaxed));
        write!(f, "{all} answers, {refused} refused, {failed} failed, {shed} shed")?;
        if all == 0 {
            return Ok(());
        }
        for (mark, name, share) in [(';', "50%", 500), (',', "99%", 990), (',', "99.9%", 999)] {
            match within(&counts, share) {
                Some(bound) => write!(f, "{mark} {name} within {bound}us")?,
                None => write!(f, "{mark} {name} beyond a minute")?,
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
        let tally = Tally::default();
        assert_eq!(tally.to_string(), "0 answers, 0 refused, 0 failed, 0 shed");
        for micros in [1, 5, 5, 6] {
            tally.note(StatusCode::OK, Duration::from_micros(micros));
        }
        tally.note(StatusCode::BAD_REQUEST, Duration::from_micros(900));
        tally.note(StatusCode::BAD_GATEWAY, Duration::from_secs(120));
        tally.note_shed();
        let expected = "6 answers, 1 refused, 1 failed, 1 shed; 50% within 5us, \
                        99% beyond a minute, 99.9% beyond a minute";
        assert_eq!(tally.to_string(), expected);
    }

    #[test]
    fn one_slow_answer_in_a_hundred_is_not_within_the_99() {
        let counts = |slow: u64| {
            let mut counts = [0; BOUNDS.len() + 1];
            counts[3] = 1_000 - slow;
            counts[13] = slow;
            counts
        };
        assert_eq!(within(&counts(10), 990), Some(10));
        assert_eq!(within(&counts(11), 990), Some(2_000));
        assert_eq!(within(&counts(11), 500), Some(10));
    }
}

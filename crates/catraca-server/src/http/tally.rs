//! What was answered and how fast: counts and a histogram that cost two atomic additions.
//!
//! The time is that from a request's head being read to its answer being ready to be written; it
//! knows nothing of the network, nor of the wait for a free core before that. Bounds are those of
//! a Prometheus histogram. Must not keep anything of a request.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::http::StatusCode;

use super::connection_table::{LIMITS, Limit};

/// Upper bounds in microseconds; what is slower goes into one more bucket.
const BOUNDS: [u64; 22] = [
    1, 2, 5, 10, 15, 20, 30, 50, 75, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000,
    100_000, 1_000_000, 10_000_000, 60_000_000,
];

/// What was answered.
#[derive(Debug, Default)]
pub struct Tally {
    checks: Clocked,
    others: Clocked,
    /// Answers that say the request was wrong.
    refused: AtomicU64,
    /// Answers that say we were.
    failed: AtomicU64,
    /// Connections refused because there were too many, by the limit.
    shed: [AtomicU64; LIMITS.len()],
    /// Idle connections closed to make room, by the limit.
    idle_closed: [AtomicU64; LIMITS.len()],
    /// Connections that did not speak TLS as they should.
    strange: AtomicU64,
}

/// How long some answers took.
#[derive(Debug, Default)]
pub struct Clocked {
    buckets: [AtomicU64; BOUNDS.len() + 1],
    micros: AtomicU64,
}

/// The same in seconds, as it was at one moment: each bucket's upper bound and own count.
#[derive(Clone, Debug, PartialEq)]
pub struct Times {
    /// All of them together.
    pub seconds: f64,
    /// Upper bounds, the last one without end, and how many are in each bucket alone.
    pub buckets: Vec<(f64, u64)>,
}

impl Clocked {
    /// Notes one of them.
    pub fn note(&self, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let place = BOUNDS.partition_point(|bound| *bound < micros);
        self.buckets[place].fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(micros, Ordering::Relaxed);
    }

    fn counts(&self) -> [u64; BOUNDS.len() + 1] {
        self.buckets.each_ref().map(|bucket| bucket.load(Ordering::Relaxed))
    }

    /// All of them so far.
    pub fn times(&self) -> Times {
        let bounds = BOUNDS.iter().map(|micros| *micros as f64 / 1e6).chain([f64::INFINITY]);
        let seconds = self.micros.load(Ordering::Relaxed) as f64 / 1e6;
        Times { seconds, buckets: bounds.zip(self.counts()).collect() }
    }
}

impl Tally {
    /// Notes an answer, to a check or to another call.
    pub fn note(&self, status: StatusCode, took: Duration, is_check: bool) {
        if is_check { &self.checks } else { &self.others }.note(took);
        if status.is_server_error() {
            self.failed.fetch_add(1, Ordering::Relaxed);
        } else if status.is_client_error() {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Notes a connection that a limit refused.
    pub fn note_shed(&self, limit: Limit) {
        self.shed[limit as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Notes an idle connection that was closed to make room.
    pub fn note_idle_closed(&self, limit: Limit) {
        self.idle_closed[limit as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Connections refused, by the limit.
    pub fn shed(&self) -> [u64; LIMITS.len()] {
        self.shed.each_ref().map(|count| count.load(Ordering::Relaxed))
    }

    /// Idle connections closed to make room, by the limit.
    pub fn idle_closed(&self) -> [u64; LIMITS.len()] {
        self.idle_closed.each_ref().map(|count| count.load(Ordering::Relaxed))
    }

    /// Notes a connection that did not speak TLS as it should.
    pub fn note_strange(&self) {
        self.strange.fetch_add(1, Ordering::Relaxed);
    }

    /// Connections that did not speak TLS as they should.
    pub fn strange(&self) -> u64 {
        self.strange.load(Ordering::Relaxed)
    }

    /// How long checks took.
    pub fn checks(&self) -> Times {
        self.checks.times()
    }

    /// How long other calls took.
    pub fn others(&self) -> Times {
        self.others.times()
    }

    /// Answers that say the request was wrong, and that we were.
    pub fn unhappy(&self) -> [u64; 2] {
        [&self.refused, &self.failed].map(|count| count.load(Ordering::Relaxed))
    }

    fn counts(&self) -> [u64; BOUNDS.len() + 1] {
        let (mut all, others) = (self.checks.counts(), self.others.counts());
        all.iter_mut().zip(others).for_each(|(all, other)| *all += other);
        all
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
        let [refused, failed] = self.unhappy();
        let shed: u64 = self.shed().iter().sum();
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
            tally.note(StatusCode::OK, Duration::from_micros(micros), micros < 5);
        }
        tally.note(StatusCode::BAD_REQUEST, Duration::from_micros(900), true);
        tally.note(StatusCode::BAD_GATEWAY, Duration::from_secs(120), false);
        tally.note_shed(Limit::PerAddress);
        let expected = "6 answers, 1 refused, 1 failed, 1 shed; 50% within 5us, \
                        99% beyond a minute, 99.9% beyond a minute";
        assert_eq!(tally.to_string(), expected);
        let (checks, others) = (tally.checks(), tally.others());
        assert_eq!((checks.seconds, others.seconds), (0.000_901, 120.000_016));
        let sum = |times: &Times| times.buckets.iter().map(|(_, count)| count).sum::<u64>();
        assert_eq!((sum(&checks), sum(&others)), (2, 4));
        assert_eq!(others.buckets.last(), Some(&(f64::INFINITY, 1)));
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

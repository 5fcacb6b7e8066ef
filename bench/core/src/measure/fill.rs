//! Fills an empty subject to 2^20 keys: resident bytes per key on the way, and the slowest insert.

use std::time::{Duration, Instant};

use super::{FILL_LIMIT, Measure};
use crate::case::MILLION;
use crate::machine::{self, Load};
use crate::results::Figures;
use crate::subject::Subject;

/// The fill levels span two doublings, so that no table is met only at its luckiest size.
const FROM: u64 = 1 << 18;
const TO: u64 = 1 << 20;
const LEVELS: u64 = 16;

/// Inserts between two looks at the run queue.
const GLANCE: u64 = 1024;

/// The fill case.
pub struct Fill;

impl Measure for Fill {
    fn run<S: Subject>(self, make: impl FnOnce(u64) -> S) -> Figures {
        let bytes = KeyBytes::start();
        let load = Load::start();
        let subject = make(TO);
        let mut slowest = Slowest::start();
        let mut per_key = Vec::new();
        let mut at_million = 0.0;
        let mut held = 0;
        for level in levels() {
            for number in held..level {
                slowest.time(number, || assert!(subject.hit_number(number), "key {number} denied"));
            }
            held = level;
            match level {
                MILLION => at_million = bytes.per_key(level),
                _ => per_key.push(bytes.per_key(level)),
            }
        }
        summary(&per_key, at_million, &slowest, load.foreign())
    }
}

/// Sixteen even levels, and 1M between them.
fn levels() -> Vec<u64> {
    let even = (0..LEVELS).map(|step| FROM + (TO - FROM) * step / (LEVELS - 1));
    let mut levels: Vec<u64> = even.chain([MILLION]).collect();
    levels.sort_unstable();
    levels
}

fn summary(per_key: &[f64], at_million: f64, slowest: &Slowest, foreign: f64) -> Figures {
    let mut figures = Figures::default();
    figures.put("bytes_1m", at_million);
    figures.put("bytes_mean", per_key.iter().sum::<f64>() / per_key.len() as f64);
    figures.put("bytes_max", per_key.iter().copied().fold(0.0, f64::max));
    figures.put("worst_ms", slowest.wall.as_secs_f64() * 1e3);
    figures.put("worst_run_ms", slowest.run.as_secs_f64() * 1e3);
    figures.put("foreign", foreign);
    figures
}

/// Resident bytes gained since the start, per key.
pub struct KeyBytes(u64);

impl KeyBytes {
    /// Takes the base before the subject exists.
    pub fn start() -> Self {
        KeyBytes(machine::resident_bytes())
    }

    /// The gain, shared among `keys`.
    pub fn per_key(&self, keys: u64) -> f64 {
        machine::resident_bytes().saturating_sub(self.0) as f64 / keys as f64
    }
}

/// The slowest insert up to 1M keys: by the clock, and less the time the thread only queued for a
/// core, which is the machine's doing and not the subject's.
struct Slowest {
    start: Instant,
    wall: Duration,
    run: Duration,
    queued: Duration,
}

impl Slowest {
    fn start() -> Self {
        let queued = machine::thread_queued();
        Slowest { start: Instant::now(), wall: Duration::ZERO, run: Duration::ZERO, queued }
    }

    #[inline]
    fn time(&mut self, number: u64, insert: impl FnOnce()) {
        let clock = Instant::now();
        insert();
        let took = clock.elapsed();
        if number < MILLION && took > self.run {
            self.note(took);
        }
        if number.is_multiple_of(GLANCE) {
            self.queued = machine::thread_queued();
            assert!(self.start.elapsed() < FILL_LIMIT, "{number} keys took {FILL_LIMIT:?}");
        }
    }

    fn note(&mut self, took: Duration) {
        let queued = machine::thread_queued();
        self.wall = self.wall.max(took);
        self.run = self.run.max(took.saturating_sub(queued - self.queued));
        self.queued = queued;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_span_two_doublings_and_meet_one_million() {
        let levels = levels();
        assert_eq!(levels.len(), 17);
        assert_eq!((levels[0], levels[16]), (1 << 18, 1 << 20));
        assert!(levels.contains(&MILLION));
        assert!(levels.windows(2).all(|pair| pair[0] < pair[1]));
    }
}

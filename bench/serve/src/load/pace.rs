//! When requests are due and which keys they carry: random, repeatable, and bounded.

use std::time::{Duration, Instant};

use super::Keys;

/// When requests are due.
pub struct Pace(Option<Rate>);

/// Random instants at a mean rate.
pub struct Rate {
    /// The next instant.
    pub next: Instant,
    mean: f64,
    random: Random,
}

/// Draws keys.
pub struct Draw {
    keys: Keys,
    turn: u64,
    random: Random,
}

/// A small generator: the same numbers in every run.
struct Random(u64);

impl Pace {
    /// A rate, or none.
    pub fn new(rate: Option<f64>, begun: Instant) -> Self {
        let random = || Random(0x9e37_79b9_7f4a_7c15);
        Self(rate.map(|rate| Rate { next: begun, mean: 1.0 / rate, random: random() }))
    }

    /// The rate of an open loop.
    pub fn open(&mut self) -> Option<&mut Rate> {
        self.0.as_mut()
    }
}

impl Rate {
    /// Moves to the next instant: gaps are exponential, as if many callers asked on their own.
    pub fn advance(&mut self) {
        let uniform = (self.random.next() >> 11) as f64 / (1u64 << 53) as f64;
        let gap = -(1.0 - uniform).ln() * self.mean;
        self.next += Duration::from_secs_f64(gap);
    }
}

impl Draw {
    /// Keys to draw from.
    pub fn new(keys: Keys) -> Self {
        Self { keys, turn: 0, random: Random(0xd1b5_4a32_d192_ed03) }
    }

    /// The next key.
    pub fn next(&mut self) -> u64 {
        match self.keys {
            Keys::Random(keys) => self.random.next() % keys,
            Keys::Turn(keys) => {
                self.turn += 1;
                self.turn % keys
            }
        }
    }
}

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_gap_is_that_of_the_rate() {
        let begun = Instant::now();
        let mut pace = Pace::new(Some(10_000.0), begun);
        let rate = pace.open().expect("a rate");
        (0..100_000).for_each(|_| rate.advance());
        let seconds = (rate.next - begun).as_secs_f64();
        assert!((9.8..10.2).contains(&seconds), "{seconds}");
    }
}

//! The random number generator of the test kit: splitmix64.
//!
//! Seeds are recorded in failures and in tests, so the sequence of a seed must never change.

/// A reproducible random sequence.
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
}

impl Rng {
    /// The sequence of a seed.
    pub fn new(seed: u64) -> Rng {
        Rng { state: seed }
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// An integer from `low` to `high`, both included.
    pub fn within(&mut self, low: i64, high: i64) -> i64 {
        let span = high.abs_diff(low) + 1;
        low + (self.next_u64() % span) as i64
    }

    /// True in `percent` of the cases.
    pub fn chance(&mut self, percent: i64) -> bool {
        self.within(1, 100) <= percent
    }

    /// One of the choices.
    pub fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.within(0, choices.len() as i64 - 1) as usize].clone()
    }

    /// A value in `percent` of the cases.
    pub fn maybe<T>(&mut self, percent: i64, make: impl FnOnce(&mut Rng) -> T) -> Option<T> {
        if self.chance(percent) { Some(make(self)) } else { None }
    }

    /// An independent sequence.
    pub fn fork(&mut self) -> Rng {
        Rng::new(self.next_u64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_the_published_one() {
        let mut rng = Rng::new(1_234_567);
        assert_eq!(rng.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(rng.next_u64(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn bounds_are_included_and_reached() {
        let mut rng = Rng::new(7);
        let numbers: Vec<i64> = (0..200).map(|_| rng.within(-1, 2)).collect();
        assert!((-1..=2).all(|number| numbers.contains(&number)));
        assert!(numbers.iter().all(|number| (-1..=2).contains(number)));
    }
}

//! The only source of chance in the test kit: a splitmix64 sequence.
//!
//! It must give the same sequence for the same seed, on every machine, for ever.

/// A reproducible sequence of choices.
#[derive(Clone, Debug)]
pub struct Dice {
    state: u64,
}

impl Dice {
    /// The sequence of that seed.
    pub fn new(seed: u64) -> Dice {
        Dice { state: seed }
    }

    /// The next 64 bits.
    pub fn roll(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// A whole number from `low` to `high`, both included.
    pub fn within(&mut self, low: i64, high: i64) -> i64 {
        let span = high.abs_diff(low) + 1;
        low + (self.roll() % span) as i64
    }

    /// True in `percent` of the cases.
    pub fn chance(&mut self, percent: i64) -> bool {
        self.within(1, 100) <= percent
    }

    /// One of the choices.
    pub fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.within(0, choices.len() as i64 - 1) as usize].clone()
    }

    /// Something in `percent` of the cases.
    pub fn maybe<T>(&mut self, percent: i64, make: impl FnOnce(&mut Dice) -> T) -> Option<T> {
        if self.chance(percent) { Some(make(self)) } else { None }
    }

    /// The seed of an independent sequence.
    pub fn fork(&mut self) -> Dice {
        Dice::new(self.roll())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_the_published_one() {
        let mut dice = Dice::new(1_234_567);
        assert_eq!(dice.roll(), 6_457_827_717_110_365_317);
        assert_eq!(dice.roll(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn bounds_are_included_and_reached() {
        let mut dice = Dice::new(7);
        let rolls: Vec<i64> = (0..200).map(|_| dice.within(-1, 2)).collect();
        assert!((-1..=2).all(|number| rolls.contains(&number)));
        assert!(rolls.iter().all(|number| (-1..=2).contains(number)));
    }
}

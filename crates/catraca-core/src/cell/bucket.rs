//! A token bucket: exact refill without rounding, debt as a negative balance.
//!
//! Elapsed time times the rate accumulates in `rem`; every whole period of it becomes a token.
//! Must not know prices or blocks.

use super::{Cell, Second, instant_of, second_after};
use crate::limit::BucketTerms;
use crate::museum::{Bug, planted};
use crate::time::{Span, Time};

/// The state of one bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// When it was last written.
    pub at: Time,
    /// Whole tokens; negative is debt.
    pub tokens: i64,
    /// What has accumulated towards the next token, below the period.
    pub rem: i64,
    /// Under which refill `rem` was counted.
    pub tag: u32,
    /// When it is full again and may be forgotten.
    pub forget: Second,
}

impl Cell for Bucket {
    #[inline]
    fn forgotten_at(&self) -> Time {
        instant_of(self.forget)
    }
}

impl Bucket {
    /// An untouched bucket.
    #[inline]
    pub fn full(terms: &BucketTerms, now: Time) -> Self {
        Self { at: now, tokens: terms.size, rem: 0, tag: terms.tag(), forget: second_after(now) }
    }

    /// The bucket as of `now`, under these terms.
    #[inline(always)]
    pub fn refilled(&self, terms: &BucketTerms, now: Time) -> Self {
        let now = now.max(self.at);
        let rem = if self.tag == terms.tag() { self.rem } else { 0 };
        // A debt made under a fast refill may be more than a slow one can count back exactly. The
        // floor is never above zero, and costs a division.
        let owned = if self.tokens < 0 { self.tokens.max(terms.floor()) } else { self.tokens };
        let (tokens, rem) = refill(terms, owned, rem, now.since(self.at).micros());
        Self { at: now, tokens, rem, tag: terms.tag(), forget: self.forget }
    }

    /// Takes (or with a negative amount returns) tokens, never above the size nor below the
    /// arithmetic floor; says what was taken.
    #[inline(always)]
    pub fn take(&mut self, terms: &BucketTerms, amount: i64) -> i64 {
        let wanted = self.tokens.saturating_sub(amount);
        let ceiling = if planted(Bug::RefundUncapped) { i64::MAX } else { terms.size };
        let lowest = if wanted < 0 { terms.floor() } else { 0 };
        let after = wanted.clamp(lowest, ceiling);
        let taken = self.tokens - after;
        self.tokens = after;
        if after >= terms.size {
            self.rem = 0;
        }
        self.forget = second_after(self.full_at(terms));
        taken
    }

    /// When at least `need` tokens are there, if nobody takes any.
    #[inline]
    pub fn fits_at(&self, terms: &BucketTerms, need: i64) -> Time {
        self.reaches(terms, need)
    }

    /// When the bucket is full.
    #[inline(always)]
    pub fn full_at(&self, terms: &BucketTerms) -> Time {
        self.reaches(terms, terms.size)
    }

    #[inline(always)]
    fn reaches(&self, terms: &BucketTerms, tokens: i64) -> Time {
        if self.tokens >= tokens {
            return self.at;
        }
        let missing = (tokens - self.tokens) * terms.period - self.rem;
        let rounds_down = planted(Bug::RetryRoundsDown);
        let wait =
            if rounds_down { missing / terms.tokens } else { ceil_div(missing, terms.tokens) };
        self.at.after(Span::from_micros(wait))
    }
}

/// Adds `elapsed * tokens` to the remainder and turns whole periods into tokens, up to the size.
#[inline(always)]
fn refill(terms: &BucketTerms, tokens: i64, rem: i64, elapsed: i64) -> (i64, i64) {
    if planted(Bug::RefillFloat) {
        return refill_in_floats(terms, tokens, elapsed);
    }
    if tokens >= terms.size {
        let kept = if planted(Bug::BurstAfterIdle) { 2 * terms.size } else { terms.size };
        return (tokens.min(kept), 0);
    }
    let missing = (terms.size - tokens) * terms.period - rem;
    // Compared by division first: an idle century must not overflow the product.
    if elapsed >= ceil_div(missing, terms.tokens) {
        let burst = if planted(Bug::BurstAfterIdle) && elapsed > terms.period { 1 } else { 0 };
        return (terms.size + burst, 0);
    }
    let gained = rem + elapsed * terms.tokens;
    if gained < terms.period && !planted(Bug::RefillDropsRemainder) {
        return (tokens, gained);
    }
    let rem = if planted(Bug::RefillDropsRemainder) { 0 } else { gained % terms.period };
    (tokens + gained / terms.period, rem)
}

#[cold]
fn refill_in_floats(terms: &BucketTerms, tokens: i64, elapsed: i64) -> (i64, i64) {
    let rate = terms.tokens as f64 / terms.period as f64;
    let gained = (elapsed / 1000) as f64 * 1000.0 * rate;
    (((tokens as f64 + gained) as i64).min(terms.size), 0)
}

#[inline]
fn ceil_div(numerator: i64, denominator: i64) -> i64 {
    // Most refills come down to one token per period, and a division is the dearest step here.
    if denominator == 1 { numerator } else { (numerator + denominator - 1) / denominator }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(size: i64, tokens: i64, period: i64) -> BucketTerms {
        BucketTerms { size, tokens, period }
    }

    fn at(micros: i64) -> Time {
        Time::from_micros(micros)
    }

    /// covers: B-19, 001-07
    #[test]
    fn debt_waits_as_long_as_the_central_bank_says() {
        let pf = terms(100, 1, 30_000_000);
        let mut bucket = Bucket::full(&pf, at(0));
        bucket.take(&pf, 95);
        assert_eq!(bucket.take(&pf, 20), 20);
        assert_eq!(bucket.tokens, -15);
        assert_eq!(bucket.fits_at(&pf, 1), at(480_000_000));
    }

    /// covers: B-30, 001-04
    #[test]
    fn refill_loses_nothing_however_often_it_is_touched() {
        let odd = terms(1_000, 7, 3);
        let mut often = Bucket::full(&odd, at(0));
        often.take(&odd, 1_000);
        let once = often.refilled(&odd, at(100));
        for micros in 0..=100 {
            often = often.refilled(&odd, at(micros));
        }
        assert_eq!((often.tokens, often.rem), (once.tokens, once.rem));
        assert_eq!(once.tokens, 700 / 3);
    }

    #[test]
    fn an_idle_century_fills_and_does_not_overflow() {
        let daily = terms(200, 1, 2_160_000_000);
        let mut bucket = Bucket::full(&daily, at(0));
        bucket.take(&daily, 200);
        let later = bucket.refilled(&daily, Time::from_micros(100 * 365 * 86_400_000_000));
        assert_eq!((later.tokens, later.rem), (200, 0));
    }

    #[test]
    fn a_charge_stops_at_the_arithmetic_floor() {
        let slow = terms(10, 1, 86_400_000_000);
        let mut bucket = Bucket::full(&slow, at(0));
        let taken = bucket.take(&slow, i64::MAX);
        assert_eq!(bucket.tokens, slow.floor());
        assert_eq!(taken, 10 - slow.floor());
        assert!(bucket.full_at(&slow) <= Time::FOREVER);
    }

    #[test]
    fn a_debt_that_slower_terms_cannot_count_stops_at_their_floor() {
        let (fast, slow) = (terms(1_000, 1, 12_000), terms(1_000, 1, 86_400_000_000));
        let mut bucket = Bucket::full(&fast, at(0));
        bucket.take(&fast, 1_000_001_000);
        let later = bucket.refilled(&slow, at(1));
        assert_eq!(later.tokens, slow.floor());
        assert!(later.full_at(&slow) <= Time::FOREVER);
    }

    #[test]
    fn other_terms_drop_the_remainder_and_count_the_time_since() {
        let slow = terms(10, 1, 1_000);
        let fast = terms(10, 1, 100);
        let mut bucket = Bucket::full(&slow, at(0));
        bucket.take(&slow, 10);
        let halfway = bucket.refilled(&slow, at(500));
        assert_eq!((halfway.tokens, halfway.rem), (0, 500));
        let changed = halfway.refilled(&fast, at(650));
        assert_eq!((changed.tokens, changed.rem), (1, 50));
    }
}

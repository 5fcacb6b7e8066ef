//! Token bucket: refill in exact integer arithmetic, debt as a negative balance.
//!
//! The refill is `tokens` per `period` (microseconds). Elapsed microseconds times `tokens`
//! accumulate in `rem`, and every whole `period` in `rem` is one token. No product exceeds 2^53,
//! which docs/batch.md shows term by term.

use super::{Cell, Second, instant_of, second_after};
use crate::limit::BucketTerms;
use crate::time::{Span, Time};

/// The state of one bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// The instant to which `tokens` and `rem` are refilled.
    pub at: Time,
    /// Whole tokens; negative for debt.
    pub tokens: i64,
    /// The remainder towards the next token: from 0 to below `period`.
    pub rem: i64,
    /// A fingerprint of the refill under which `rem` was counted.
    pub tag: u32,
    /// When the bucket is full again, under the terms of the last write. A full bucket is equal to
    /// none.
    pub forget: Second,
}

impl Cell for Bucket {
    #[inline]
    fn expires_at(&self) -> Time {
        instant_of(self.forget)
    }
}

impl Bucket {
    /// A full bucket, as it is before its first charge.
    #[inline]
    pub fn full(terms: &BucketTerms, now: Time) -> Self {
        Self {
            at: now,
            tokens: terms.size,
            rem: 0,
            tag: terms.refill_tag(),
            forget: second_after(now),
        }
    }

    /// The bucket refilled to `now` under these terms. An instant before the last write changes
    /// nothing.
    #[inline(always)]
    pub fn refill_to(&self, terms: &BucketTerms, now: Time) -> Self {
        let now = now.max(self.at);
        // `rem` is in units of 1/period of a token, so it has no meaning under another refill.
        let rem = if self.tag == terms.refill_tag() { self.rem } else { 0 };
        // A debt from a faster refill can be so large that the time to refill it slowly exceeds
        // 2^53; it is raised to the floor of these terms. The floor is at most zero and costs a
        // division, so it is not computed for a positive balance.
        let balance = if self.tokens < 0 { self.tokens.max(terms.floor()) } else { self.tokens };
        let (tokens, rem) = refill(terms, balance, rem, now.since(self.at).micros());
        // `forget` stays that of the last write: a refill is no write (docs/semantics.md, 8).
        Self { at: now, tokens, rem, tag: terms.refill_tag(), forget: self.forget }
    }

    /// Takes tokens, or gives them back if `amount` is negative. The result is at most the size and
    /// at least the arithmetic floor. Returns the tokens taken.
    #[inline(always)]
    pub fn take(&mut self, terms: &BucketTerms, amount: i64) -> i64 {
        let target = self.tokens.saturating_sub(amount);
        // The floor costs a division, and is never above zero.
        let lowest = if target < 0 { terms.floor() } else { 0 };
        let after = target.clamp(lowest, terms.size);
        let taken = self.tokens - after;
        self.tokens = after;
        // A full bucket accumulates nothing.
        if after >= terms.size {
            self.rem = 0;
        }
        self.forget = second_after(self.full_at(terms));
        taken
    }

    /// When at least `need` tokens are available if no other request comes.
    #[inline]
    pub fn fits_at(&self, terms: &BucketTerms, need: i64) -> Time {
        self.reaches_at(terms, need)
    }

    /// When the bucket is full.
    #[inline(always)]
    pub fn full_at(&self, terms: &BucketTerms) -> Time {
        self.reaches_at(terms, terms.size)
    }

    /// When the bucket has this many tokens, rounded up to a microsecond: at that instant the check
    /// must pass.
    #[inline(always)]
    fn reaches_at(&self, terms: &BucketTerms, tokens: i64) -> Time {
        if self.tokens >= tokens {
            return self.at;
        }
        let missing = (tokens - self.tokens) * terms.period - self.rem;
        self.at.after(Span::from_micros(ceil_div(missing, terms.tokens)))
    }
}

/// Adds `elapsed * tokens` to the remainder and converts whole periods into tokens, up to the size.
/// `elapsed` is in microseconds.
#[inline(always)]
fn refill(terms: &BucketTerms, tokens: i64, rem: i64, elapsed: i64) -> (i64, i64) {
    if tokens >= terms.size {
        // The catalog may have reduced the size.
        return (terms.size, 0);
    }
    let missing = (terms.size - tokens) * terms.period - rem;
    // Compared by division before anything is multiplied: after a long idle time `elapsed * tokens`
    // would overflow.
    if elapsed >= ceil_div(missing, terms.tokens) {
        return (terms.size, 0);
    }
    let gained = rem + elapsed * terms.tokens;
    // No whole token yet: saves the division and the modulo.
    if gained < terms.period {
        return (tokens, gained);
    }
    (tokens + gained / terms.period, gained % terms.period)
}

#[inline]
fn ceil_div(numerator: i64, denominator: i64) -> i64 {
    // Most refills are one token per period after division by the gcd, and a division is the most
    // expensive step here. The sum fits in 64 bits; in doubles it would not be exact, so the script
    // divides in another way (docs/batch.md, 4).
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
        let uneven = terms(1_000, 7, 3);
        let mut often = Bucket::full(&uneven, at(0));
        often.take(&uneven, 1_000);
        let once = often.refill_to(&uneven, at(100));
        for micros in 0..=100 {
            often = often.refill_to(&uneven, at(micros));
        }
        assert_eq!((often.tokens, often.rem), (once.tokens, once.rem));
        assert_eq!(once.tokens, 700 / 3);
    }

    #[test]
    fn an_idle_century_fills_and_does_not_overflow() {
        let daily = terms(200, 1, 2_160_000_000);
        let mut bucket = Bucket::full(&daily, at(0));
        bucket.take(&daily, 200);
        let later = bucket.refill_to(&daily, Time::from_micros(100 * 365 * 86_400_000_000));
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
        let fast = terms(1_000, 1, 12_000);
        let slow = terms(1_000, 1, 86_400_000_000);
        let mut bucket = Bucket::full(&fast, at(0));
        bucket.take(&fast, 1_000_001_000);
        let later = bucket.refill_to(&slow, at(1));
        assert_eq!(later.tokens, slow.floor());
        assert!(later.full_at(&slow) <= Time::FOREVER);
    }

    #[test]
    fn other_terms_drop_the_remainder_and_count_the_time_since() {
        let slow = terms(10, 1, 1_000);
        let fast = terms(10, 1, 100);
        let mut bucket = Bucket::full(&slow, at(0));
        bucket.take(&slow, 10);
        let halfway = bucket.refill_to(&slow, at(500));
        assert_eq!((halfway.tokens, halfway.rem), (0, 500));
        let changed = halfway.refill_to(&fast, at(650));
        assert_eq!((changed.tokens, changed.rem), (1, 50));
    }
}

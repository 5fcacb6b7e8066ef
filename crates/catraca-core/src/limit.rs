//! Limits: the numbers of one algorithm (bucket, window, fixed window or in-flight leases).
//!
//! Batches carry these numbers to the stores, so a store does not need the catalog. The units in
//! use are stored in cells.

mod share;

use smallvec::SmallVec;

use crate::time::Span;

/// The largest integer that every store, Lua's doubles included, computes exactly.
pub const EXACT_MAX: i64 = 1 << 53;

/// The algorithm of a policy with its numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Limit {
    /// A token bucket.
    Bucket(BucketTerms),
    /// One exact sliding window, or several that must all admit the request.
    Window(SmallVec<[WindowTerms; 1]>),
    /// A fixed window that starts at its first charged unit, or at multiples of its length.
    Fixed(FixedTerms),
    /// Concurrent requests, one lease each.
    Inflight(InflightTerms),
    /// Nothing is counted: the policy only bans on outcomes.
    Unlimited,
}

/// A bucket of `size` tokens that gains `tokens` every `period`, both divided by their greatest
/// common divisor so that products stay within exact arithmetic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketTerms {
    /// Capacity, after the policy's margin.
    pub size: i64,
    /// Tokens gained per period.
    pub tokens: i64,
    /// The period in microseconds.
    pub period: i64,
}

/// At most `limit` units of age less than `span`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowTerms {
    /// Units admitted inside the span.
    pub limit: i64,
    /// The length of the window.
    pub span: Span,
}

/// At most `limit` units from the opening of the window to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedTerms {
    /// Units admitted per window.
    pub limit: i64,
    /// The length of the window.
    pub span: Span,
    /// Whether windows start at multiples of the span instead of at the first unit.
    pub aligned: bool,
}

/// At most `limit` leases at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InflightTerms {
    /// Leases at once.
    pub limit: i64,
    /// How long a lease lives if it is not released.
    pub hold: Span,
}

/// How long a block lasts, and how repeated offences lengthen it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Penalty {
    /// The length of the first block.
    pub first: Span,
    /// Each further block is this many times longer than the one before.
    pub factor: i64,
    /// No block lasts longer.
    pub max: Span,
    /// How long after a block's end its level still counts; zero for blocks of a fixed length.
    pub forget: Span,
}

impl Penalty {
    /// A block of one length that does not escalate.
    pub const fn without_escalation(span: Span) -> Self {
        Self { first: span, factor: 1, max: span, forget: Span::ZERO }
    }

    /// Whether repeated offences lengthen the block.
    pub fn escalates(&self) -> bool {
        self.forget > Span::ZERO
    }

    /// The length of the block at `level`; the first offence has level zero.
    pub fn length(&self, level: u32) -> Span {
        let mut span = self.first.min(self.max);
        for _ in 0..level {
            // Stop early: `level` may be large, and further steps would not change the span.
            if self.factor == 1 || span >= self.max {
                break;
            }
            span = span.times(self.factor).min(self.max);
        }
        span
    }
}

impl BucketTerms {
    /// The lowest balance from which a refill to `size` is still computed exactly: the missing
    /// tokens times the period must not exceed [`EXACT_MAX`].
    #[inline]
    pub fn floor(&self) -> i64 {
        self.size - EXACT_MAX / self.period
    }

    /// The refill as a rate, such as `2 per 1m`: per second, minute, hour or day, the first of them
    /// in which it is a whole number.
    pub fn refill_text(&self) -> String {
        let units = [1, 60, 3_600, 86_400].map(Span::from_secs);
        let whole = units.into_iter().find(|unit| unit.micros() % self.period == 0);
        let unit = whole.unwrap_or(Span::from_micros(self.period));
        format!("{} per {unit}", self.tokens * (unit.micros() / self.period))
    }

    /// How long an empty bucket takes to fill, rounded up.
    pub fn time_to_fill(&self) -> Span {
        Span::from_micros((self.size * self.period + self.tokens - 1) / self.tokens)
    }

    /// A hash of the refill rate. A cell stores it beside its fraction of a token, which has no
    /// meaning under another rate.
    #[inline]
    pub fn refill_tag(&self) -> u32 {
        let mixed = (self.tokens as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
            ^ (self.period as u64).wrapping_mul(0xC2B2_AE3D_27D4_EB4F);
        (mixed ^ (mixed >> 32)) as u32
    }
}

impl Limit {
    /// The largest cost that can ever be admitted, if the algorithm has one.
    #[inline]
    pub fn capacity(&self) -> Option<i64> {
        match self {
            Self::Bucket(terms) => Some(terms.size),
            Self::Window(windows) => windows.iter().map(|window| window.limit).min(),
            Self::Fixed(terms) => Some(terms.limit),
            Self::Inflight(_) | Self::Unlimited => None,
        }
    }

    /// The algorithm's name in the catalog; `none` for a policy without a limit.
    pub fn algorithm(&self) -> &'static str {
        match self {
            Self::Bucket(_) => "bucket",
            Self::Window(_) => "window",
            Self::Fixed(_) => "fixed",
            Self::Inflight(_) => "inflight",
            Self::Unlimited => "none",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refills_are_written_in_the_smallest_unit_that_is_whole() {
        let told = |tokens, period| BucketTerms { size: 1, tokens, period }.refill_text();
        assert_eq!(told(1, 10_000), "100 per 1s");
        assert_eq!(told(1, 30_000_000), "2 per 1m");
        assert_eq!(told(1, 2_400), "25000 per 1m");
        assert_eq!(told(1, 2_160_000_000), "40 per 24h");
        assert_eq!(told(3, 7_000_000), "3 per 7s");
    }

    #[test]
    fn an_empty_bucket_takes_whole_microseconds_to_fill_rounded_up() {
        let micros =
            |size, tokens| BucketTerms { size, tokens, period: 1_000 }.time_to_fill().micros();
        assert_eq!(micros(10, 1), 10_000);
        assert_eq!(micros(9, 3), 3_000);
        assert_eq!(micros(10, 3), 3_334);
        assert_eq!(micros(11, 3), 3_667);
    }

    #[test]
    fn a_limit_has_the_name_that_the_catalog_uses() {
        let span = Span::from_secs(1);
        let window = WindowTerms { limit: 1, span };
        let limits = [
            Limit::Bucket(BucketTerms { size: 1, tokens: 1, period: 1 }),
            Limit::Window([window].into_iter().collect()),
            Limit::Fixed(FixedTerms { limit: 1, span, aligned: false }),
            Limit::Inflight(InflightTerms { limit: 1, hold: span }),
            Limit::Unlimited,
        ];
        let names = limits.map(|limit| limit.algorithm());
        assert_eq!(names, ["bucket", "window", "fixed", "inflight", "none"]);
    }
}

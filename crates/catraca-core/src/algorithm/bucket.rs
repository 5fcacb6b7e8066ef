//! Token bucket: refill in exact integer arithmetic, debt as a negative balance.
//!
//! The refill is `tokens` per `period` (microseconds). Elapsed microseconds times `tokens`
//! accumulate in `rem`, and every whole `period` in `rem` is one token. No product exceeds 2^53,
//! which docs/batch.md shows term by term.

pub(super) mod shared_buckets;

use super::{
    Algorithm, CounterPosition, CounterState, LimitOptions, RowFigures, TermsWriter, part_of,
};
use crate::cell::{Cell, CellTable, Second, instant_of, second_after};
use crate::codec::wire::{Reader, Writer};
use crate::codec::{CodecError, Fields};
use crate::limit::EXACT_MAX;
use crate::located::{
    FieldSchema, Node, Report, SourceLocation, TableFields, TableSchema, ValueSchema, scalar,
};
use crate::time::{Span, Time};

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

/// The fields of `bucket`.
static BUCKET: TableSchema = TableSchema {
    name: "bucket",
    fields: &[
        FieldSchema::new("size", SIZE, "the units of a full bucket").require(),
        FieldSchema::new("refill", ValueSchema::Rate, "how many units come back, and how often")
            .require(),
    ],
};

const SIZE: ValueSchema = ValueSchema::Integer { least: 1, most: EXACT_MAX - 1 };

impl Algorithm for BucketTerms {
    type Cell = Bucket;
    type RowState = Bucket;

    const FIELD: FieldSchema = FieldSchema::new(
        "bucket",
        ValueSchema::Table(&BUCKET),
        "`{ size, refill }`: a token bucket that starts full; refills are exact, without rounding \
         errors; size × period is below 2^53",
    );
    const OPTIONS: &'static [&'static str] = &["block", "cost", "credit", "margin"];

    fn read(report: &mut Report, node: Node<'_>, options: LimitOptions) -> Option<Self> {
        let fields = TableFields::read_item(report, node, &BUCKET)?;
        let size = fields.require(report, "size", "100");
        let size = size.and_then(|node| scalar::between(report, node, 1, EXACT_MAX - 1));
        let refill = fields.require(report, "refill", "\"2 per 1m\"");
        let refill = refill.and_then(|node| scalar::rate_above_zero(report, node));
        let size = size?;
        let (tokens, period) = refill?.in_lowest_terms();
        // The margin lowers the limit below what the upstream allows, but never to nothing.
        let size = options.margin.map_or(size, |margin| margin.of(size).max(1));
        let terms = Self { size, tokens, period };
        terms.check_exact(report, node.location).then_some(terms)
    }

    fn check_charge(&self, report: &mut Report, location: SourceLocation, charge: i64) -> bool {
        // Only buckets multiply a cost by a period.
        let most = EXACT_MAX / self.period.max(1);
        let is_exact = charge <= most;
        if !is_exact {
            let message = format!(
                "with this refill a cost above {most} cannot be counted exactly: cost times the \
                 refill's period in microseconds, reduced, is beyond 2^53"
            );
            let fix = format!("write costs of at most {most}, or the refill with a shorter period");
            report.error("inexact", location, message, fix);
        }
        is_exact
    }

    fn describe(&self) -> String {
        format!("bucket of {}, refill {}", self.size, self.refill_text())
    }

    fn remark(&self) -> &'static str {
        "starts full"
    }

    fn write_terms(&self, to: &mut impl TermsWriter, _: u64) {
        to.numbers(&[self.size, self.tokens, self.period]);
        to.raw(&self.refill_tag().to_le_bytes());
    }

    #[inline]
    fn largest_cost(&self) -> Option<i64> {
        Some(self.size)
    }

    /// A smaller bucket that fills in the same time. If its longer period could not be computed
    /// exactly, the period is kept and the tokens per period are divided, rounded up.
    fn share(&self, nodes: i64) -> Self {
        let size = part_of(self.size, nodes);
        let divisor = gcd(self.tokens, nodes);
        // `tokens / nodes` per period, in whole numbers: both sides divided by their divisor.
        let tokens = self.tokens / divisor;
        let period = self.period.checked_mul(nodes / divisor);
        let fits = |period: &i64| size.checked_mul(*period).is_some_and(|all| all <= EXACT_MAX);
        match period.filter(fits) {
            Some(period) => Self { size, tokens, period },
            None => Self { size, tokens: part_of(self.tokens, nodes), period: self.period },
        }
    }

    #[inline]
    fn reported_span(&self) -> Option<Span> {
        Some(self.time_to_fill())
    }

    #[inline]
    fn load<C: CellTable<Bucket>>(
        &self,
        at: CounterPosition<'_>,
        cells: &mut C,
    ) -> CounterState<Bucket> {
        // `refill_to` never moves `at` backwards, so `at` is the later of `now` and the last write.
        let found = cells.get(at.key, at.now).map(|cell| cell.refill_to(self, at.now));
        let bucket = found.unwrap_or_else(|| Bucket::full(self, at.now));
        CounterState { state: bucket, now: bucket.at, exists: found.is_some() }
    }

    #[inline]
    fn free<C: CellTable<Bucket>>(
        &self,
        bucket: &Bucket,
        _: CounterPosition<'_>,
        _: &mut C,
    ) -> i64 {
        bucket.tokens
    }

    /// Takes tokens, or gives them back if `units` is negative. Returns the tokens taken.
    #[inline]
    fn charge<C: CellTable<Bucket>>(
        &self,
        bucket: &mut Bucket,
        at: CounterPosition<'_>,
        cells: &mut C,
        units: i64,
        _: u64,
    ) -> i64 {
        let taken = bucket.take(self, units);
        // A bucket that did not change is not written: a write would replace the instant at which
        // it is forgotten.
        if taken != 0 {
            bucket.keep_for(at.shared);
            cells.put(at.key, *bucket, at.now);
        }
        taken
    }

    /// A bucket has no entries, so the refund is a negative charge, up to the size.
    fn refund<C: CellTable<Bucket>>(
        &self,
        bucket: &mut Bucket,
        at: CounterPosition<'_>,
        cells: &mut C,
        _: Time,
        units: i64,
    ) -> i64 {
        -self.charge(bucket, at, cells, -units, 0)
    }

    #[inline]
    fn figures<C: CellTable<Bucket>>(
        &self,
        bucket: &Bucket,
        _: CounterPosition<'_>,
        _: &mut C,
        need: i64,
    ) -> RowFigures {
        RowFigures {
            limit: Some(self.size),
            free: bucket.tokens,
            fits_at: (need <= self.size).then(|| bucket.fits_at(self, need)),
            full_at: bucket.full_at(self),
            windows: Box::default(),
        }
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
    #[inline]
    pub fn time_to_fill(&self) -> Span {
        Span::from_micros(ceil_div(self.size * self.period, self.tokens))
    }

    /// A hash of the refill rate. A cell stores it beside its fraction of a token, which has no
    /// meaning under another rate.
    #[inline]
    pub fn refill_tag(&self) -> u32 {
        let mixed = (self.tokens as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
            ^ (self.period as u64).wrapping_mul(0xC2B2_AE3D_27D4_EB4F);
        (mixed ^ (mixed >> 32)) as u32
    }

    /// Whether every store computes the refill exactly; reports it if not.
    fn check_exact(&self, report: &mut Report, location: SourceLocation) -> bool {
        let full = i128::from(self.size) * i128::from(self.period);
        let tokens = i128::from(self.tokens);
        // The time to fill the bucket, rounded up to microseconds, is multiplied by the tokens
        // again.
        let refilled = (full + tokens - 1) / tokens * tokens;
        let is_exact = full.max(refilled) <= i128::from(EXACT_MAX);
        if !is_exact {
            let message = "the bucket cannot be counted exactly: size times the refill's period in \
                           microseconds, reduced, is beyond 2^53";
            let size = (EXACT_MAX / self.period).max(1);
            let fix =
                format!("write a size of at most {size}, or the refill with a shorter period");
            report.error("inexact", location, message, fix);
        }
        is_exact
    }
}

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
    /// When the bucket is full again, under the terms of the last write and those of the tiers that
    /// shared it then. A full bucket is equal to none.
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

impl Fields for Bucket {
    fn write(&self, to: &mut Writer<'_>) {
        to.time(self.at);
        to.write_signed(self.tokens);
        to.write_signed(self.rem);
        to.word(self.tag);
        to.number(u64::from(self.forget));
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, CodecError> {
        Ok(Self {
            at: from.time("at")?,
            tokens: from.balance("tokens")?,
            rem: from.balance("rem")?,
            tag: from.word()?,
            forget: from.small("forget")?,
        })
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

fn gcd(mut one: i64, mut other: i64) -> i64 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one.max(1)
}

#[cfg(test)]
mod tests;

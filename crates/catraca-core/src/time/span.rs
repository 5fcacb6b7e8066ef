//! Durations: how they are written in a catalog, and their arithmetic.
//!
//! Ambiguous texts are errors: there are no fractions, no numbers without a unit, and no months.

use std::fmt;

use super::{LARGEST, clamp};

/// A duration in microseconds, never negative, from [`Span::ZERO`] to [`Span::FOREVER`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(i64);

/// Why a text is not a duration.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SpanError {
    /// Not a number and a unit.
    Malformed {
        /// What was written.
        text: String,
    },
    /// A number alone.
    NoUnit {
        /// What was written.
        text: String,
    },
    /// A number with a point or a comma.
    Fraction {
        /// What was written.
        text: String,
    },
    /// Units that are repeated, or not in the order from large to small.
    Order {
        /// What was written.
        text: String,
    },
    /// More than [`LONGEST_DAYS`].
    TooLong {
        /// What was written.
        text: String,
    },
}

impl fmt::Display for SpanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed { text } => write!(
                f,
                "`{text}` is not a duration: write a number and a unit, such as 500ms, 10s, 15m, \
                 24h or 7d"
            ),
            Self::NoUnit { text } => write!(
                f,
                "`{text}` has no unit: write {text}s for seconds, or {text}ms, {text}m, {text}h, \
                 {text}d"
            ),
            Self::Fraction { text } => write!(
                f,
                "`{text}` has a fraction: write whole numbers in smaller units, such as 1h30m or \
                 1500ms"
            ),
            Self::Order { text } => write!(
                f,
                "`{text}` has its units out of order: write the larger first, each once, such as \
                 1h30m"
            ),
            Self::TooLong { text } => write!(
                f,
                "`{text}` is too long: the longest duration is {LONGEST_DAYS}d; write forever for \
                 no end"
            ),
        }
    }
}

impl std::error::Error for SpanError {}

impl Span {
    /// A duration of zero.
    pub const ZERO: Self = Self(0);
    /// A duration without end; adding to it does not change it.
    pub const FOREVER: Self = Self(LARGEST);

    /// A span from microseconds, clamped to the range.
    #[inline]
    pub const fn from_micros(micros: i64) -> Self {
        Self(clamp(micros))
    }

    /// A span from milliseconds, clamped to the range.
    #[inline]
    pub const fn from_millis(millis: i64) -> Self {
        Self::from_micros(millis.saturating_mul(1_000))
    }

    /// A span from seconds, clamped to the range.
    #[inline]
    pub const fn from_secs(secs: i64) -> Self {
        Self::from_micros(secs.saturating_mul(1_000_000))
    }

    /// The duration in microseconds.
    #[inline]
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// The duration in milliseconds, rounded up, so that a caller who waits that long waits enough.
    #[inline]
    pub const fn ceil_millis(self) -> i64 {
        ceil(self.0, 1_000)
    }

    /// The duration in seconds, rounded up.
    #[inline]
    pub const fn ceil_secs(self) -> i64 {
        ceil(self.0, 1_000_000)
    }

    /// Whether this is [`Span::FOREVER`].
    #[inline]
    pub const fn is_forever(self) -> bool {
        self.0 == LARGEST
    }

    /// The sum; past the range it is [`Span::FOREVER`].
    #[inline]
    pub const fn plus(self, other: Self) -> Self {
        Self::from_micros(self.0.saturating_add(other.0))
    }

    /// The product; past the range it is [`Span::FOREVER`]. Forever stays forever, except times
    /// zero.
    #[inline]
    pub const fn times(self, times: i64) -> Self {
        Self::from_micros(self.0.saturating_mul(times))
    }
}

/// The same notation as in a catalog. One day is written as `24h`, as it is in most catalogs; days
/// are used from two days on.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_forever() {
            return f.write_str("forever");
        }
        if *self == Self::ZERO {
            return f.write_str("0s");
        }
        let mut rest = self.0;
        let largest = usize::from(rest < 2 * UNITS[0].1);
        for (name, micros) in &UNITS[largest..] {
            if rest >= *micros {
                write!(f, "{}{name}", rest / micros)?;
            }
            rest %= micros;
        }
        Ok(())
    }
}

/// Reads a duration: `500ms`, `10s`, `15m`, `24h`, `7d`, `1h30m` or `forever`.
///
/// Zero is valid here; callers that need a longer duration check for it.
pub fn parse_span(text: &str) -> Result<Span, SpanError> {
    let trimmed = text.trim();
    if trimmed == "forever" {
        return Ok(Span::FOREVER);
    }
    let terms = terms(trimmed).ok_or_else(|| diagnose(trimmed))?;
    if !terms.is_sorted_by(|left, right| left.unit > right.unit) {
        return Err(SpanError::Order { text: trimmed.to_owned() });
    }
    total(&terms).ok_or_else(|| SpanError::TooLong { text: trimmed.to_owned() })
}

/// One number with its unit, such as the `30m` of `1h30m`.
struct Term<'a> {
    digits: &'a str,
    /// Microseconds.
    unit: i64,
}

/// Splits a text into numbers with units; `None` if it contains anything else.
fn terms(mut text: &str) -> Option<Vec<Term<'_>>> {
    let mut terms = Vec::new();
    while !text.is_empty() {
        let (digits, rest) = text.split_at(leading(text, |c| c.is_ascii_digit()));
        let (name, rest) = rest.split_at(leading(rest, char::is_alphabetic));
        let known = UNITS.iter().find(|unit| unit.0 == name || (name == "µs" && unit.0 == "us"));
        let &(_, unit) = known.filter(|_| !digits.is_empty())?;
        terms.push(Term { digits, unit });
        text = rest;
    }
    (!terms.is_empty()).then_some(terms)
}

/// The sum of the terms; `None` if it is out of range.
fn total(terms: &[Term<'_>]) -> Option<Span> {
    let sum = terms.iter().try_fold(0_i64, |sum, term| {
        let count: i64 = term.digits.parse().ok()?;
        sum.checked_add(count.checked_mul(term.unit)?)
    })?;
    (sum <= LONGEST_DAYS * UNITS[0].1).then_some(Span(sum))
}

/// Finds the mistake in a text that is not a duration.
fn diagnose(text: &str) -> SpanError {
    let text = text.to_owned();
    let fraction = |c| c == '.' || c == ',';
    let numeric = text.starts_with(|c: char| c.is_ascii_digit());
    if numeric && text.chars().all(|c| c.is_ascii_digit()) {
        SpanError::NoUnit { text }
    } else if numeric && text.contains(fraction) {
        SpanError::Fraction { text }
    } else {
        SpanError::Malformed { text }
    }
}

/// The length in bytes of the characters at the start of a text that satisfy a test.
fn leading(text: &str, test: impl Fn(char) -> bool) -> usize {
    text.find(|c| !test(c)).unwrap_or(text.len())
}

/// Division that rounds up, of numbers that are not negative.
const fn ceil(amount: i64, by: i64) -> i64 {
    amount / by + (amount % by != 0) as i64
}

/// The longest duration that can be written, in days: 100 years. Instants end in the year 2255, and
/// a longer duration that starts now would end after them, which means never.
pub const LONGEST_DAYS: i64 = 36_500;

/// Units with their microseconds, the largest first.
const UNITS: [(&str, i64); 6] = [
    ("d", 86_400_000_000),
    ("h", 3_600_000_000),
    ("m", 60_000_000),
    ("s", 1_000_000),
    ("ms", 1_000),
    ("us", 1),
];

//! Rates, such as `10 per 15m`, and percentages, as they are written in a catalog.
//!
//! Rates have whole numbers and are never rounded. A text that is almost a rate is an error with
//! the corrected text.

mod percent;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use crate::time::{Span, SpanError, parse_span};

pub use percent::{Percent, PercentError};

/// An amount per duration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate {
    /// The amount; never negative.
    pub amount: i64,
    /// The duration; never zero or forever.
    pub per: Span,
}

/// Why a text is not a rate.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RateError {
    /// Almost a rate: the error suggests what was probably meant.
    Misspelt {
        /// What was written.
        text: String,
        /// What was probably meant.
        meant: Rate,
    },
    /// An amount alone.
    NoPeriod {
        /// What was written.
        text: String,
    },
    /// Below zero.
    Negative {
        /// What was written.
        text: String,
    },
    /// An amount with a point or a comma.
    Fraction {
        /// What was written.
        text: String,
    },
    /// More than every store can count exactly.
    TooMuch {
        /// What was written.
        text: String,
    },
    /// A duration of zero, or forever.
    Endless {
        /// What was written.
        text: String,
    },
    /// The duration is invalid.
    Duration {
        /// What was written.
        text: String,
        /// What is wrong with the duration.
        cause: SpanError,
    },
    /// Any other text.
    Malformed {
        /// What was written.
        text: String,
    },
}

impl fmt::Display for RateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Misspelt { text, meant } => write!(f, "`{text}` is not a rate: write `{meant}`"),
            Self::NoPeriod { text } => {
                write!(f, "`{text}` is not a rate: say per how long, such as `{text} per 1m`")
            }
            Self::Negative { text } => write!(
                f,
                "`{text}` is negative: write an amount of zero or more, such as `10 per 15m`"
            ),
            Self::Fraction { text } => write!(
                f,
                "`{text}` has a fraction: amounts are whole numbers, so lengthen the duration \
                 instead (`5 per 2s`, not `2.5 per 1s`) or group digits with underscores \
                 (`25_000 per 1m`)"
            ),
            Self::TooMuch { text } => {
                write!(f, "`{text}` is too much: the largest amount is 9007199254740991")
            }
            Self::Endless { text } => write!(
                f,
                "`{text}` has no usable duration: a rate needs one above zero and with an end, \
                 such as `10 per 15m`"
            ),
            Self::Duration { text, cause } => write!(f, "in the rate `{text}`, {cause}"),
            Self::Malformed { text } => write!(
                f,
                "`{text}` is not a rate: write an amount per a duration, such as `10 per 15m`"
            ),
        }
    }
}

impl std::error::Error for RateError {}

impl Rate {
    /// Reads `10 per 15m`; the amount may group its digits, as in `25_000 per 1m`.
    pub fn parse(text: &str) -> Result<Self, RateError> {
        let text = text.trim();
        let Some((amount, per)) = text.split_once(" per ") else { return Err(diagnose(text)) };
        let amount = parse_amount(text, amount.trim())?;
        let per = parse_span(per).map_err(|cause| match guess(text) {
            Some(meant) => RateError::Misspelt { text: text.to_owned(), meant },
            None => RateError::Duration { text: text.to_owned(), cause },
        })?;
        if per == Span::ZERO || per.is_forever() {
            return Err(RateError::Endless { text: text.to_owned() });
        }
        Ok(Self { amount, per })
    }

    /// The amount and the period in microseconds, divided by their greatest common divisor, so that
    /// products with either are as small as possible.
    pub fn in_lowest_terms(self) -> (i64, i64) {
        let shared = gcd(self.amount, self.per.micros()).max(1);
        (self.amount / shared, self.per.micros() / shared)
    }
}

impl FromStr for Rate {
    type Err = RateError;

    fn from_str(text: &str) -> Result<Self, RateError> {
        Self::parse(text)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} per {}", self.amount, self.per)
    }
}

/// Reads the amount of the rate `text`.
fn parse_amount(text: &str, amount: &str) -> Result<i64, RateError> {
    let owned = || text.to_owned();
    if amount.starts_with('-') {
        return Err(RateError::Negative { text: owned() });
    }
    if !is_whole(amount) {
        return Err(diagnose(text));
    }
    // Digits and underscores alone fail to parse only if the number is too large.
    let read = amount.replace('_', "").parse().ok().filter(|read| *read <= Span::FOREVER.micros());
    read.ok_or_else(|| RateError::TooMuch { text: owned() })
}

/// Whether a text consists of digits, with underscores only between them.
fn is_whole(text: &str) -> bool {
    text.split('_').all(|group| !group.is_empty() && group.bytes().all(|b| b.is_ascii_digit()))
}

/// Finds the mistake in a text that is not a rate.
fn diagnose(text: &str) -> RateError {
    let owned = text.to_owned();
    let amount = text.split([' ', '/']).next().unwrap_or_default();
    if let Some(meant) = guess(text) {
        RateError::Misspelt { text: owned, meant }
    } else if is_whole(text) {
        RateError::NoPeriod { text: owned }
    } else if amount.starts_with('-') {
        RateError::Negative { text: owned }
    } else if amount.starts_with(|c: char| c.is_ascii_digit()) && amount.contains(['.', ',']) {
        RateError::Fraction { text: owned }
    } else {
        RateError::Malformed { text: owned }
    }
}

/// The rate that was probably meant by `10/15m`, `10 per minute` or `10 requests every 2 hours`.
fn guess(text: &str) -> Option<Rate> {
    let spaced = text.to_ascii_lowercase().replace('/', " per ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let separator =
        words.iter().position(|word| matches!(*word, "per" | "every" | "each" | "in" | "a"))?;
    let amount = words.first()?;
    let period = words.get(separator + 1..)?;
    let per = guess_span(period)?;
    let exact = 0..=Span::FOREVER.micros();
    let amount = amount.replace('_', "").parse().ok().filter(|read| exact.contains(read))?;
    // At most one word, such as `requests`, between the amount and the separator.
    (separator <= 2 && per > Span::ZERO && !per.is_forever()).then_some(Rate { amount, per })
}

/// The duration that was probably meant by `minute`, `15 minutes`, `15mins` or `15M`.
fn guess_span(words: &[&str]) -> Option<Span> {
    let joined = words.concat();
    let digits = joined.find(|c: char| !c.is_ascii_digit())?;
    let (count, unit) = joined.split_at(digits);
    let count = if count.is_empty() { "1" } else { count };
    let unit = match unit {
        "second" | "seconds" | "sec" | "secs" | "s" => "s",
        "minute" | "minutes" | "min" | "mins" | "m" => "m",
        "hour" | "hours" | "hr" | "hrs" | "h" => "h",
        "day" | "days" | "d" => "d",
        "week" | "weeks" | "w" => return parse_span(&format!("{count}d")).ok().map(|d| d.times(7)),
        other => other,
    };
    parse_span(&format!("{count}{unit}")).ok()
}

/// The greatest common divisor of two numbers that are not negative.
fn gcd(left: i64, right: i64) -> i64 {
    if right == 0 { left } else { gcd(right, left % right) }
}

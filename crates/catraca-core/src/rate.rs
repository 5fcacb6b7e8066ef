//! Amounts per time, and shares of a whole, as people write them in a catalog.
//!
//! A rate is the sentence `10 per 15m`. Must not round: what cannot be said in whole numbers is
//! refused with the sentence that says it.

mod percent;
#[cfg(test)]
mod tests;

use std::fmt;
use std::str::FromStr;

use crate::time::{Span, SpanError, parse_span};

pub use percent::{Percent, PercentError};

/// So much per so long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rate {
    /// How much, never negative.
    pub amount: i64,
    /// Per how long, never zero or forever.
    pub per: Span,
}

/// Why a text is not a rate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RateError {
    /// Almost a rate: what was meant is clear, and is said back.
    #[error("`{text}` is not a rate: write `{meant}`")]
    Misspelt {
        /// What was written.
        text: String,
        /// What it seems to mean.
        meant: Rate,
    },
    /// An amount alone.
    #[error("`{text}` is not a rate: say per how long, such as `{text} per 1m`")]
    NoPeriod {
        /// What was written.
        text: String,
    },
    /// Below zero.
    #[error("`{text}` is negative: write an amount of zero or more, such as `10 per 15m`")]
    Negative {
        /// What was written.
        text: String,
    },
    /// An amount with a point or a comma.
    #[error(
        "`{text}` has a fraction: amounts are whole numbers, so lengthen the duration instead \
         (`5 per 2s`, not `2.5 per 1s`) or group digits with underscores (`25_000 per 1m`)"
    )]
    Fraction {
        /// What was written.
        text: String,
    },
    /// More than every store can count.
    #[error("`{text}` is too much: the largest amount is 9007199254740991")]
    TooMuch {
        /// What was written.
        text: String,
    },
    /// Per no time, or per all time.
    #[error(
        "`{text}` has no usable duration: a rate needs one above zero and with an end, \
         such as `10 per 15m`"
    )]
    Endless {
        /// What was written.
        text: String,
    },
    /// The duration is not one.
    #[error("in the rate `{text}`, {cause}")]
    Duration {
        /// What was written.
        text: String,
        /// What is wrong with the duration.
        cause: SpanError,
    },
    /// Nothing like a rate.
    #[error("`{text}` is not a rate: write an amount per a duration, such as `10 per 15m`")]
    Malformed {
        /// What was written.
        text: String,
    },
}

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

    /// The amount and the period in microseconds, divided by what they share, so that products
    /// of either stay as small as they can be.
    pub fn reduced(self) -> (i64, i64) {
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
    // Digits and underscores alone can only fail by their size.
    let read = amount.replace('_', "").parse().ok().filter(|read| *read <= Span::FOREVER.micros());
    read.ok_or_else(|| RateError::TooMuch { text: owned() })
}

/// Whether a text is digits, with underscores only between them.
fn is_whole(text: &str) -> bool {
    text.split('_').all(|group| !group.is_empty() && group.bytes().all(|b| b.is_ascii_digit()))
}

/// Names the mistake in a text that is not a rate.
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

/// What a misspelt rate seems to mean: `10/15m`, `10 per minute`, `10 requests every 2 hours`.
fn guess(text: &str) -> Option<Rate> {
    let spaced = text.to_ascii_lowercase().replace('/', " per ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let hinge =
        words.iter().position(|word| matches!(*word, "per" | "every" | "each" | "in" | "a"))?;
    let (amount, period) = (words.first()?, words.get(hinge + 1..)?);
    let per = guess_span(period)?;
    let exact = 0..=Span::FOREVER.micros();
    let amount = amount.replace('_', "").parse().ok().filter(|read| exact.contains(read))?;
    (hinge <= 2 && per > Span::ZERO && !per.is_forever()).then_some(Rate { amount, per })
}

/// What a misspelt duration seems to mean: `minute`, `15 minutes`, `15mins`, `15M`.
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

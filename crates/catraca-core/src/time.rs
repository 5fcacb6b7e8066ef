//! Instants and durations in whole microseconds.
//!
//! They have at most 53 bits, because Redis scripts compute with doubles and every store must
//! compute the same integers. This module must not read a clock: `now` is always an argument.

mod rfc3339;
mod span;
mod std_types;
#[cfg(test)]
mod tests;

use std::fmt;

pub use span::{LONGEST_DAYS, Span, SpanError, parse_span};

/// The largest integer that every store represents exactly.
const LARGEST: i64 = (1 << 53) - 1;

/// An instant: microseconds since the Unix epoch, from [`Time::ZERO`] to [`Time::FOREVER`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(i64);

/// Why a text is not an instant.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TimeError {
    /// Not RFC 3339.
    Malformed {
        /// What was written.
        text: String,
    },
    /// Earlier than the Unix epoch.
    TooEarly {
        /// What was written.
        text: String,
    },
}

impl fmt::Display for TimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed { text } => write!(
                f,
                "`{text}` is not an instant: write RFC 3339 with a zone, such as \
                 2026-01-01T00:30:00Z"
            ),
            Self::TooEarly { text } => {
                write!(f, "`{text}` is too early: the first instant is 1970-01-01T00:00:00Z")
            }
        }
    }
}

impl std::error::Error for TimeError {}

impl Time {
    /// The Unix epoch.
    pub const ZERO: Self = Self(0);
    /// The instant that never comes; adding or subtracting a span does not change it.
    pub const FOREVER: Self = Self(LARGEST);
    /// The largest instant, which is [`Time::FOREVER`].
    pub const MAX: Self = Self::FOREVER;

    /// An instant from microseconds since the epoch, clamped to the range.
    #[inline]
    pub const fn from_micros(micros: i64) -> Self {
        Self(clamp(micros))
    }

    /// An instant from milliseconds since the epoch, clamped to the range.
    #[inline]
    pub const fn from_millis(millis: i64) -> Self {
        Self::from_micros(millis.saturating_mul(1_000))
    }

    /// Microseconds since the epoch.
    #[inline]
    pub const fn micros(self) -> i64 {
        self.0
    }

    /// Whether this is the instant that never comes.
    #[inline]
    pub const fn is_forever(self) -> bool {
        self.0 == LARGEST
    }

    /// The instant one span later; past the range it is [`Time::FOREVER`].
    #[inline]
    pub const fn after(self, span: Span) -> Self {
        Self::from_micros(self.0.saturating_add(span.micros()))
    }

    /// The instant one span earlier, at the earliest [`Time::ZERO`]; forever stays forever.
    #[inline]
    pub const fn before(self, span: Span) -> Self {
        if self.is_forever() { self } else { Self::from_micros(self.0 - span.micros()) }
    }

    /// The time from `earlier` to this instant: zero if it is not later, and forever if it never
    /// comes.
    #[inline]
    pub const fn since(self, earlier: Self) -> Span {
        if self.0 <= earlier.0 {
            Span::ZERO
        } else if self.is_forever() {
            Span::FOREVER
        } else {
            Span::from_micros(self.0 - earlier.0)
        }
    }

    /// Reads RFC 3339. Digits below the microsecond are dropped. An instant past the range is
    /// [`Time::FOREVER`]: `9999-12-31T23:59:59Z` is commonly written for "never".
    pub fn parse_rfc3339(text: &str) -> Result<Self, TimeError> {
        match rfc3339::parse(text.trim()) {
            Some(..0) => Err(TimeError::TooEarly { text: text.to_owned() }),
            Some(micros) => Ok(Self::from_micros(micros)),
            None => Err(TimeError::Malformed { text: text.to_owned() }),
        }
    }

    /// Writes RFC 3339 in UTC, with no fraction, three or six digits, as many as needed.
    pub fn to_rfc3339(self) -> String {
        rfc3339::write(self)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_rfc3339())
    }
}

/// Clamps microseconds to the range of instants and spans.
const fn clamp(micros: i64) -> i64 {
    match micros {
        ..0 => 0,
        LARGEST.. => LARGEST,
        _ => micros,
    }
}

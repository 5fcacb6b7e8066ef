//! Percentages, exact to a hundredth of a percent.
//!
//! Must not use floating point: every store must compute the same result.

use std::fmt;
use std::str::FromStr;

/// A percentage from 0% to 100%, in hundredths of a percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Percent(u32);

/// Why a text is not a percentage.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PercentError {
    /// Not a number and a percent sign.
    Malformed {
        /// What was written.
        text: String,
    },
    /// More than two digits after the point.
    TooFine {
        /// What was written.
        text: String,
    },
    /// More than 100%.
    TooMuch {
        /// What was written.
        text: String,
    },
}

impl fmt::Display for PercentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed { text } => write!(
                f,
                "`{text}` is not a percentage: write a number and a percent sign, such as 20% or \
                 7.5%"
            ),
            Self::TooFine { text } => write!(
                f,
                "`{text}` is too fine: write at most two digits after the point, such as 7.25%"
            ),
            Self::TooMuch { text } => {
                write!(f, "`{text}` is more than the whole: write at most 100%")
            }
        }
    }
}

impl std::error::Error for PercentError {}

impl Percent {
    /// Reads `20%` or `7.5%`.
    pub fn parse(text: &str) -> Result<Self, PercentError> {
        let text = text.trim();
        let malformed = || PercentError::Malformed { text: text.to_owned() };
        let number = text.strip_suffix('%').ok_or_else(malformed)?.trim_end();
        let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(fraction) {
            return Err(malformed());
        }
        if fraction.len() > 2 {
            return Err(PercentError::TooFine { text: text.to_owned() });
        }
        // Two digits after the point make the text a number of hundredths.
        let hundredths = format!("{whole}{fraction:0<2}").parse().ok();
        let share = hundredths.filter(|hundredths| *hundredths <= WHOLE).map(Self);
        share.ok_or_else(|| PercentError::TooMuch { text: text.to_owned() })
    }

    /// A percentage from hundredths of a percent; more than 100% becomes 100%.
    pub const fn from_hundredths(hundredths: u32) -> Self {
        Self(if hundredths > WHOLE { WHOLE } else { hundredths })
    }

    /// The percentage in hundredths of a percent.
    pub const fn hundredths(self) -> u32 {
        self.0
    }

    /// This percentage of an amount, rounded down.
    pub const fn of(self, amount: i64) -> i64 {
        // The result is not larger than the amount, so it fits in 64 bits again.
        (amount as i128 * self.0 as i128).div_euclid(WHOLE as i128) as i64
    }

    /// Whether `part` is more than this percentage of `whole`; equal is not more.
    pub const fn is_exceeded_by(self, part: i64, whole: i64) -> bool {
        part as i128 * WHOLE as i128 > whole as i128 * self.0 as i128
    }
}

impl FromStr for Percent {
    type Err = PercentError;

    fn from_str(text: &str) -> Result<Self, PercentError> {
        Self::parse(text)
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = self.0 / 100;
        let fraction = self.0 % 100;
        match fraction {
            0 => write!(f, "{whole}%"),
            tenths if tenths % 10 == 0 => write!(f, "{whole}.{}%", tenths / 10),
            _ => write!(f, "{whole}.{fraction:02}%"),
        }
    }
}

/// One hundred percent, in hundredths.
const WHOLE: u32 = 10_000;

//! A scalar of a JSON line, and its conversion to text, instant or status.
//!
//! Errors must not contain the value: it may be private.

use std::borrow::Cow;

use catraca::Time;
use catraca::core::request::STATUSES;

use super::time;

/// A text or a number.
#[derive(Clone, Debug, PartialEq)]
pub enum JsonScalar<'a> {
    /// A text.
    Text(Cow<'a, str>),
    /// A number; f64 is exact for statuses and for instants in microseconds.
    Number(f64),
}

impl<'a> JsonScalar<'a> {
    /// The text.
    pub fn text(self, name: &str) -> Result<Cow<'a, str>, String> {
        match self {
            Self::Text(text) => Ok(text),
            Self::Number(_) => Err(format!("the {name} is a number, but must be a text")),
        }
    }

    /// The value as an instant.
    pub fn time(&self) -> Result<Time, String> {
        match self {
            Self::Text(text) => time::text(text),
            Self::Number(number) => time::number(*number),
        }
    }

    /// The value as a status; empty, `-` and 0 mean that no response was sent.
    pub fn status(&self) -> Result<Option<u16>, String> {
        let number = match self {
            Self::Text(text) if matches!(&**text, "" | "-") => return Ok(None),
            Self::Text(text) => text.parse().ok(),
            Self::Number(number) => Some(*number),
        };
        let whole = number.filter(|n| n.fract() == 0.0 && (0.0..1000.0).contains(n));
        let status = whole.ok_or("the status is not a whole number below 1000")?;
        // 0 and 000 are outside of STATUSES.
        Ok(Some(status as u16).filter(|status| STATUSES.contains(status)))
    }
}

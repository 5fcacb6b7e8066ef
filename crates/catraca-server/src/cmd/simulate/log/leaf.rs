//! A value somewhere in a JSON line, and what it can be read as.
//!
//! Must not echo a value: it may be private.

use std::borrow::Cow;

use catraca::Time;
use catraca::core::request::STATUSES;

use super::time;

/// A text or a number.
#[derive(Clone, Debug, PartialEq)]
pub enum Leaf<'a> {
    /// A text.
    Text(Cow<'a, str>),
    /// A number; statuses and instants in microseconds are exact as such.
    Number(f64),
}

impl<'a> Leaf<'a> {
    /// As a text.
    pub fn text(self, name: &str) -> Result<Cow<'a, str>, String> {
        match self {
            Self::Text(text) => Ok(text),
            Self::Number(_) => Err(format!("the {name} is a number where a text is due")),
        }
    }

    /// As an instant.
    pub fn time(&self) -> Result<Time, String> {
        match self {
            Self::Text(text) => time::text(text),
            Self::Number(number) => time::number(*number),
        }
    }

    /// As a status; what was never answered is written as nothing, a dash or zero.
    pub fn status(&self) -> Result<Option<u16>, String> {
        let number = match self {
            Self::Text(text) if matches!(&**text, "" | "-") => return Ok(None),
            Self::Text(text) => text.parse().ok(),
            Self::Number(number) => Some(*number),
        };
        let whole = number.filter(|n| n.fract() == 0.0 && (0.0..1000.0).contains(n));
        let status = whole.ok_or("the status is not a whole number below 1000")?;
        // A server that never answered writes 0, or 000.
        Ok(Some(status as u16).filter(|status| STATUSES.contains(status)))
    }
}

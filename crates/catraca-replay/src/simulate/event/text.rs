//! Deserializes the scalars of a line: texts, whole numbers and instants.
//!
//! Errors must not contain the value of a subject's attribute: it may be private.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use catraca::Time;
use serde::de::{Deserialize, Deserializer, Error, Visitor};

use super::{At, TimeNotation};

/// A text, borrowed from the line unless it has escapes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventText<'a>(Cow<'a, str>);

/// A whole number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole(pub i64);

/// An HTTP status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status(pub u16);

impl Deref for EventText<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'a> From<&'a str> for EventText<'a> {
    fn from(text: &'a str) -> Self {
        Self(Cow::Borrowed(text))
    }
}

impl From<String> for EventText<'_> {
    fn from(text: String) -> Self {
        Self(Cow::Owned(text))
    }
}

impl<'a> From<Cow<'a, str>> for EventText<'a> {
    fn from(text: Cow<'a, str>) -> Self {
        Self(text)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for EventText<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // `deserialize_str` would fail with serde's own message, which contains the value.
        deserializer.deserialize_any(EventTextVisitor)
    }
}

struct EventTextVisitor;

impl<'de> Visitor<'de> for EventTextVisitor {
    type Value = EventText<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(EventText(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(EventText(Cow::Owned(text.to_owned())))
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Self::Value, E> {
        Err(E::custom("takes a text: put the number in quotes"))
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Self::Value, E> {
        self.visit_i64(0)
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Self::Value, E> {
        self.visit_i64(0)
    }
}

impl<'de> Deserialize<'de> for Whole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_i64(WholeVisitor)
    }
}

struct WholeVisitor;

impl Visitor<'_> for WholeVisitor {
    type Value = Whole;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number")
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Whole, E> {
        Ok(Whole(number))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Whole, E> {
        i64::try_from(number).map(Whole).map_err(|_| out_of_range(number))
    }

    /// Integers beyond 64 bits arrive here too, because serde_json parses them as floats.
    fn visit_f64<E: Error>(self, number: f64) -> Result<Whole, E> {
        if number.fract() == 0.0 && number.abs() >= i64::MAX as f64 {
            return Err(out_of_range(number));
        }
        Err(E::custom(format_args!(
            "{number} is written with a fraction or an exponent; write a whole number"
        )))
    }
}

fn out_of_range<E: Error>(number: impl fmt::Display) -> E {
    E::custom(format_args!("{number} is out of range"))
}

impl<'de> Deserialize<'de> for Status {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Whole(number) = Whole::deserialize(deserializer)?;
        let status = u16::try_from(number).ok();
        status.map(Self).ok_or_else(|| Error::custom(format_args!("{number} is not a status")))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for At<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AtVisitor)
    }
}

struct AtVisitor;

impl<'de> Visitor<'de> for AtVisitor {
    type Value = At<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("whole milliseconds or RFC 3339")
    }

    fn visit_i64<E: Error>(self, millis: i64) -> Result<At<'de>, E> {
        let time = Time::from_millis(millis);
        if millis < 0 {
            return Err(E::custom(format_args!(
                "{millis} is before 1970-01-01T00:00:00Z, which is 0"
            )));
        }
        if time.is_forever() {
            return Err(too_late(millis));
        }
        Ok(At { time, written: TimeNotation::Millis(millis) })
    }

    fn visit_u64<E: Error>(self, millis: u64) -> Result<At<'de>, E> {
        self.visit_i64(i64::try_from(millis).map_err(|_| too_late(millis))?)
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<At<'de>, E> {
        WholeVisitor.visit_f64(number).and_then(|Whole(millis)| self.visit_i64(millis))
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<At<'de>, E> {
        at_text(EventText(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<At<'de>, E> {
        at_text(EventText(Cow::Owned(text.to_owned())))
    }
}

fn at_text<E: Error>(text: EventText<'_>) -> Result<At<'_>, E> {
    let time = Time::parse_rfc3339(&text).map_err(E::custom)?;
    if time.is_forever() {
        return Err(too_late(&*text));
    }
    Ok(At { time, written: TimeNotation::Text(text) })
}

fn too_late<E: Error>(at: impl fmt::Display) -> E {
    E::custom(format_args!("{at} is too late: time is counted up to {}", Time::FOREVER))
}

//! Parses the instants of steps: an offset from the start of the scenario, or RFC 3339.
//!
//! Unlike a duration in a catalog, an offset may have a fraction, such as `59.999s`. A fraction
//! finer than a microsecond is an error: rounding it would move the instant.

use catraca_core::time::{Span, Time, parse_span};

/// Parses an instant.
pub(super) fn instant(start: Time, text: &str) -> Result<Time, String> {
    // The year of RFC 3339 has four digits; no offset has a dash.
    if text.as_bytes().get(4) == Some(&b'-') {
        return Time::parse_rfc3339(text).map_err(|error| error.to_string());
    }
    offset(text).map(|offset| start.after(offset))
}

/// Parses a length of time with an optional fraction.
pub(super) fn offset(text: &str) -> Result<Span, String> {
    let text = text.trim();
    let Some((whole, rest)) = text.split_once('.') else {
        return parse_span(text).map_err(|error| error.to_string());
    };
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (fraction, unit) = rest.split_at(digits);
    let larger = parse_span(&format!("{whole}{unit}")).map_err(|_| invalid_instant(text))?;
    let of_unit = parse_span(&format!("1{unit}")).map_err(|_| invalid_instant(text))?;
    let smaller = part(fraction, of_unit).ok_or_else(|| invalid_instant(text))?;
    Ok(larger.plus(smaller))
}

/// A decimal fraction of a unit, if it is a whole number of microseconds.
fn part(fraction: &str, unit: Span) -> Option<Span> {
    let digits: i128 = fraction.parse().ok()?;
    let scale = 10_i128.checked_pow(u32::try_from(fraction.len()).ok()?)?;
    let micros = digits.checked_mul(i128::from(unit.micros()))?;
    if micros % scale != 0 {
        return None;
    }
    i64::try_from(micros / scale).ok().map(Span::from_micros)
}

fn invalid_instant(text: &str) -> String {
    format!(
        "`{text}` is not an instant: write an offset such as 0s, 59.999s, 1h30m, 15m or 1us, \
         no finer than a microsecond, or RFC 3339"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(text: &str) -> Option<i64> {
        offset(text).ok().map(Span::micros)
    }

    #[test]
    fn offsets_take_every_unit_and_a_fraction() {
        assert_eq!(micros("0s"), Some(0));
        assert_eq!(micros("59.999s"), Some(59_999_000));
        assert_eq!(micros("1m59.999999s"), Some(119_999_999));
        assert_eq!(micros("1h30m"), Some(5_400_000_000));
        assert_eq!(micros("1us"), Some(1));
        assert_eq!(micros("0.001ms"), Some(1));
    }

    #[test]
    fn what_is_finer_than_a_microsecond_or_no_time_is_refused() {
        for text in ["0.0000001s", "1.5", "1.s", ".5s", "soon", "1.5us", "-1s", "1.5s2m"] {
            assert_eq!(micros(text), None, "{text}");
        }
    }

    #[test]
    fn an_instant_may_be_written_out() {
        let start = Time::parse_rfc3339("2026-01-01T00:00:00Z").unwrap();
        let named = instant(start, "2026-01-01T00:15:00Z").unwrap();
        assert_eq!(named, instant(start, "15m").unwrap());
        assert!(instant(start, "2026-13-01T00:00:00Z").is_err());
    }
}

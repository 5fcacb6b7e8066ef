//! Conversions between our instants and durations and those of the standard library.

#![expect(clippy::disallowed_types, reason = "users of the library have the types of std")]

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{Span, Time};

/// Rounded up to a microsecond, so that a wait or a block is never shorter than asked for. A
/// duration past the range, such as [`Duration::MAX`], is [`Span::FOREVER`].
impl From<Duration> for Span {
    fn from(duration: Duration) -> Self {
        let micros = duration.as_nanos().div_ceil(1_000);
        Self::from_micros(i64::try_from(micros).unwrap_or(i64::MAX))
    }
}

/// [`Span::FOREVER`] is [`Duration::MAX`].
impl From<Span> for Duration {
    fn from(span: Span) -> Self {
        match span.is_forever() {
            true => Self::MAX,
            false => Self::from_micros(span.micros().unsigned_abs()),
        }
    }
}

/// Digits below the microsecond are dropped. An instant before 1970 is [`Time::ZERO`], and one past
/// the range is [`Time::FOREVER`].
impl From<SystemTime> for Time {
    fn from(time: SystemTime) -> Self {
        let since_epoch = time.duration_since(UNIX_EPOCH).unwrap_or_default();
        Self::from_micros(i64::try_from(since_epoch.as_micros()).unwrap_or(i64::MAX))
    }
}

/// [`Time::FOREVER`] is its microsecond in the year 2255.
impl From<Time> for SystemTime {
    fn from(time: Time) -> Self {
        UNIX_EPOCH + Duration::from_micros(time.micros().unsigned_abs())
    }
}

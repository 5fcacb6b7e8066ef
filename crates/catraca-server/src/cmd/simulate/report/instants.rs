//! Instants on a page: as short as the history allows.

use catraca::{Span, Time};

use super::super::summary::{Instant, Picture};

/// How a page writes instants.
#[derive(Clone, Copy)]
pub struct Instants {
    /// Whether the history counts from zero.
    offsets: bool,
    /// Whether it stays within one day.
    one_day: bool,
}

impl Instants {
    /// The way of a run's history.
    pub fn of(picture: &Picture) -> Self {
        let Some((first, last)) = picture.span else {
            return Self { offsets: false, one_day: true };
        };
        let day = |instant: Instant| instant.time.micros() / 86_400_000_000;
        let is_offset = first.to_string() != first.time.to_string();
        Self { offsets: is_offset, one_day: day(first) == day(last) }
    }

    /// A minute.
    pub fn minute(self, time: Time) -> String {
        self.show(time, Span::from_secs(60))
    }

    /// An instant, as exact as slots of this length need it.
    pub fn show(self, time: Time, width: Span) -> String {
        if self.offsets {
            return time.since(Time::ZERO).to_string();
        }
        let text = time.to_rfc3339();
        let (date, clock) = text.split_once('T').unwrap_or((&text, ""));
        let clock = clock.trim_end_matches('Z');
        let clock = match width.micros() {
            0..1_000_000 => clock,
            1_000_000..60_000_000 => clock.get(..8).unwrap_or(clock),
            _ => clock.get(..5).unwrap_or(clock),
        };
        match (self.one_day, width.micros() >= 86_400_000_000) {
            (_, true) => date.to_owned(),
            (true, false) => clock.to_owned(),
            (false, false) => format!("{} {clock}", date.get(5..).unwrap_or(date)),
        }
    }
}

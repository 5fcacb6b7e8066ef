//! The format of instants in a report: as short as the history allows.

use catraca::{Span, Time};
use catraca_replay::simulate::{HistoryInstant, SummaryData};

/// The format of instants in one report.
#[derive(Clone, Copy)]
pub struct InstantFormat {
    /// Whether the history has offsets from zero instead of dates.
    offsets: bool,
    /// Whether the history is within one day, so that the date can be left out.
    one_day: bool,
}

impl InstantFormat {
    /// The format for the history of a run.
    pub fn of(data: &SummaryData) -> Self {
        let Some((first, last)) = data.span else {
            return Self { offsets: false, one_day: true };
        };
        let day = |instant: HistoryInstant| instant.time.micros() / 86_400_000_000;
        // `HistoryInstant` displays offsets as durations, and dates as `Time` does.
        let is_offset = first.to_string() != first.time.to_string();
        Self { offsets: is_offset, one_day: day(first) == day(last) }
    }

    /// Formats an instant to the minute.
    pub fn minute(self, time: Time) -> String {
        self.show(time, Span::from_secs(60))
    }

    /// Formats an instant with the precision that slots of this width need.
    pub fn show(self, time: Time, width: Span) -> String {
        if self.offsets {
            return time.since(Time::ZERO).to_string();
        }
        let text = time.to_rfc3339();
        let (date, clock) = text.split_once('T').unwrap_or((&text, ""));
        let clock = clock.trim_end_matches('Z');
        let clock = match width.micros() {
            0..1_000_000 => clock,
            // `08:42:00`, then `08:42`.
            1_000_000..60_000_000 => clock.get(..8).unwrap_or(clock),
            _ => clock.get(..5).unwrap_or(clock),
        };
        match (self.one_day, width.micros() >= 86_400_000_000) {
            (_, true) => date.to_owned(),
            (true, false) => clock.to_owned(),
            // Month and day are enough in a history of several days.
            (false, false) => format!("{} {clock}", date.get(5..).unwrap_or(date)),
        }
    }
}

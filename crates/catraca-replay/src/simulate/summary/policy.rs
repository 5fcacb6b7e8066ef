//! The tally of one policy: allowed and denied rows, their timeline, and the worst minute.

use catraca::{DecisionRow, Reason, Time};

use super::timeline::{Timeline, TimelineSlot};

/// The counts of one policy.
#[derive(Default)]
pub struct PolicyTally {
    /// Allowed rows.
    pub allowed: u64,
    /// Denied rows, including `blocked`.
    pub denied: u64,
    /// Denied rows with an active block.
    pub blocked: u64,
    /// The rows over time.
    pub timeline: Timeline,
    /// The denials per minute.
    pub minutes: DenialsPerMinute,
}

/// Finds the minute with the most denials. Time never goes back in a run, so only the current
/// minute is counted.
#[derive(Default)]
pub struct DenialsPerMinute {
    current: Option<(i64, u64)>,
    worst: Option<(i64, u64)>,
}

impl PolicyTally {
    /// Counts a row of a decision.
    pub fn count(&mut self, row: &DecisionRow, at: Time) {
        self.timeline.at(at).count(row.allowed, row.reason);
        if row.allowed {
            self.allowed += 1;
            return;
        }
        self.denied += 1;
        self.blocked += u64::from(row.reason == Reason::Blocked);
        self.minutes.count(at);
    }
}

impl TimelineSlot {
    /// Counts one decision or row.
    pub fn count(&mut self, allowed: bool, reason: Reason) {
        match (allowed, reason) {
            (true, _) => self.allowed += 1,
            (false, Reason::Blocked) => self.blocked += 1,
            (false, _) => self.denied += 1,
        }
    }
}

impl DenialsPerMinute {
    /// Counts one denial.
    pub fn count(&mut self, at: Time) {
        let minute = at.micros() / 60_000_000;
        let before = self.current.filter(|(open, _)| *open == minute).map_or(0, |(_, count)| count);
        let current = (minute, before + 1);
        self.current = Some(current);
        if self.worst.is_none_or(|(_, most)| current.1 > most) {
            self.worst = Some(current);
        }
    }

    /// The first minute with the most denials, and their number.
    pub fn worst(&self) -> Option<(Time, u64)> {
        let (minute, denied) = self.worst?;
        Some((Time::from_micros(minute.saturating_mul(60_000_000)), denied))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_minute_is_the_first_of_the_fullest() {
        let mut minutes = DenialsPerMinute::default();
        assert_eq!(minutes.worst(), None);
        for minute in [1, 1, 2, 2, 3, 3, 3, 9, 9, 9] {
            minutes.count(Time::from_millis(minute * 60_000 + 59_999));
        }
        assert_eq!(minutes.worst(), Some((Time::from_millis(180_000), 3)));
    }
}

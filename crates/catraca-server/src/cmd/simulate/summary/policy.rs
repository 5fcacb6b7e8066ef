//! What one policy did: how many it let pass and denied, when, and its worst minute.

use catraca::{Reason, Row, Time};

use super::timeline::{Slot, Timeline};

/// The counts of one policy.
#[derive(Default)]
pub struct PolicyTally {
    /// Rows with room.
    pub allowed: u64,
    /// Rows without, for any reason.
    pub denied: u64,
    /// Those of them that were denied because a block stood.
    pub blocked: u64,
    /// When.
    pub timeline: Timeline,
    /// When the denials were thickest.
    pub minutes: Minutes,
}

/// The minute with most denials. Time never runs back, so one minute at a time is enough.
#[derive(Default)]
pub struct Minutes {
    current: Option<(i64, u64)>,
    worst: Option<(i64, u64)>,
}

impl PolicyTally {
    /// Counts a row of a decision.
    pub fn count(&mut self, row: &Row, at: Time) {
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

impl Slot {
    /// Counts one verdict.
    pub fn count(&mut self, allowed: bool, reason: Reason) {
        match (allowed, reason) {
            (true, _) => self.allowed += 1,
            (false, Reason::Blocked) => self.blocked += 1,
            (false, _) => self.denied += 1,
        }
    }
}

impl Minutes {
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

    /// The first minute with most denials, and how many.
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
        let mut minutes = Minutes::default();
        assert_eq!(minutes.worst(), None);
        for minute in [1, 1, 2, 2, 3, 3, 3, 9, 9, 9] {
            minutes.count(Time::from_millis(minute * 60_000 + 59_999));
        }
        assert_eq!(minutes.worst(), Some((Time::from_millis(180_000), 3)));
    }
}

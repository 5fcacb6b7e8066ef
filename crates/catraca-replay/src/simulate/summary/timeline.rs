//! Counts over time, in at most [`SLOTS_MAX`] slots of equal width.
//!
//! The length of a history is not known in advance, so slots are merged into wider ones whenever
//! there are too many.

use catraca::{Span, Time};

/// The most slots of a timeline.
pub const SLOTS_MAX: usize = 240;

/// Widths of a slot in microseconds. Each is a multiple of the previous one, so that slots can be
/// merged exactly.
const WIDTHS: [i64; 16] = [
    1_000,
    10_000,
    100_000,
    1_000_000,
    5_000_000,
    15_000_000,
    60_000_000,
    5 * 60_000_000,
    15 * 60_000_000,
    HOUR,
    3 * HOUR,
    12 * HOUR,
    24 * HOUR,
    7 * 24 * HOUR,
    28 * 24 * HOUR,
    364 * 24 * HOUR,
];
const HOUR: i64 = 3_600_000_000;

/// Counts over time.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// The index of the width in [`WIDTHS`].
    step: usize,
    /// The number of the first slot, counted from the epoch.
    base: i64,
    slots: Vec<TimelineSlot>,
}

/// The counts of one slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimelineSlot {
    /// Allowed.
    pub allowed: u64,
    /// Denied without an active block.
    pub denied: u64,
    /// Denied with an active block.
    pub blocked: u64,
    /// Blocks started.
    pub started: u64,
}

/// The slots that several timelines are drawn on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    step: usize,
    base: i64,
    /// Number of slots.
    pub slots: usize,
}

impl Timeline {
    /// The slot of an instant. An instant before the first slot is counted in the first.
    pub fn at(&mut self, time: Time) -> &mut TimelineSlot {
        if self.slots.is_empty() {
            self.base = self.number(time);
        }
        // Widens the slots until the instant fits; at the widest, the last slot takes the rest.
        while self.number(time) - self.base >= SLOTS_MAX as i64 && self.step + 1 < WIDTHS.len() {
            *self = self.on(&self.axis_at(self.step + 1));
        }
        let index = (self.number(time) - self.base).clamp(0, SLOTS_MAX as i64 - 1) as usize;
        if index >= self.slots.len() {
            self.slots.resize(index + 1, TimelineSlot::default());
        }
        &mut self.slots[index]
    }

    /// The narrowest axis that both timelines fit on.
    pub fn axis_with(&self, other: &Self) -> Axis {
        let mut step = self.step.max(other.step);
        loop {
            let axis = match (self.slots.is_empty(), other.slots.is_empty()) {
                (_, true) => self.axis_at(step),
                (true, false) => other.axis_at(step),
                (false, false) => self.axis_at(step).with(&other.axis_at(step)),
            };
            if axis.slots <= SLOTS_MAX || step + 1 == WIDTHS.len() {
                return axis;
            }
            step += 1;
        }
    }

    /// The same counts on an axis whose slots are at least as wide.
    pub fn on(&self, axis: &Axis) -> Self {
        let factor = WIDTHS[axis.step] / WIDTHS[self.step];
        let mut slots = vec![TimelineSlot::default(); axis.slots];
        for (number, slot) in (self.base..).zip(&self.slots) {
            let index = (number / factor - axis.base).clamp(0, axis.slots as i64 - 1) as usize;
            slots[index].add(slot);
        }
        Self { step: axis.step, base: axis.base, slots }
    }

    /// The slots, each with its start.
    pub fn slots(&self) -> impl Iterator<Item = (Time, &TimelineSlot)> {
        let width = WIDTHS[self.step];
        (self.base..).map(move |number| Time::from_micros(number * width)).zip(&self.slots)
    }

    /// The width of a slot.
    pub fn width(&self) -> Span {
        Span::from_micros(WIDTHS[self.step])
    }

    /// The largest number of decisions in a slot.
    pub fn peak(&self) -> u64 {
        self.slots.iter().map(TimelineSlot::decisions).max().unwrap_or_default()
    }

    fn number(&self, time: Time) -> i64 {
        time.micros() / WIDTHS[self.step]
    }

    fn axis_at(&self, step: usize) -> Axis {
        let factor = WIDTHS[step] / WIDTHS[self.step];
        let base = self.base / factor;
        let last = (self.base + self.slots.len().max(1) as i64 - 1) / factor;
        Axis { step, base, slots: (last - base + 1) as usize }
    }
}

impl TimelineSlot {
    /// Number of decisions.
    pub fn decisions(&self) -> u64 {
        self.allowed + self.denied + self.blocked
    }

    fn add(&mut self, other: &Self) {
        self.allowed += other.allowed;
        self.denied += other.denied;
        self.blocked += other.blocked;
        self.started += other.started;
    }
}

impl Axis {
    fn with(self, other: &Self) -> Self {
        let base = self.base.min(other.base);
        let end = (self.base + self.slots as i64).max(other.base + other.slots as i64);
        Self { step: self.step, base, slots: (end - base) as usize }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeline(millis: impl IntoIterator<Item = i64>) -> Timeline {
        let mut timeline = Timeline::default();
        for at in millis {
            timeline.at(Time::from_millis(at)).allowed += 1;
        }
        timeline
    }

    fn total(timeline: &Timeline) -> u64 {
        timeline.slots.iter().map(|slot| slot.allowed).sum()
    }

    #[test]
    fn every_width_is_a_multiple_of_the_one_before() {
        assert!(WIDTHS.windows(2).all(|pair| pair[1] % pair[0] == 0 && pair[1] > pair[0]));
    }

    #[test]
    fn slots_grow_with_the_history_and_nothing_is_lost() {
        let short = timeline(0..200);
        assert_eq!((short.width(), short.slots.len()), (Span::from_millis(1), 200));
        for reach in [10_000, 1_000_000, 100_000_000, 10_000_000_000, 4_000_000_000_000] {
            let long = timeline((0..=1_000).map(|part| 7_777 + part * reach / 1_000));
            assert_eq!(total(&long), 1_001, "{reach}");
            assert!(long.slots.len() <= SLOTS_MAX, "{reach}: {}", long.slots.len());
        }
    }

    #[test]
    fn a_slot_begins_on_a_round_instant() {
        let day = timeline((0..86_400).map(|second| second * 1_000));
        assert_eq!((day.width(), day.slots.len()), (Span::from_secs(900), 96));
        let starts: Vec<_> = day.slots().map(|(start, _)| start).take(2).collect();
        assert_eq!(starts, [Time::ZERO, Time::from_millis(900_000)]);
    }

    #[test]
    fn two_timelines_share_an_axis() {
        let short = timeline([5_000, 6_000]);
        let long = timeline([0, 600_000]);
        let axis = short.axis_with(&long);
        assert_eq!(axis, long.axis_with(&short));
        let one = short.on(&axis);
        let other = long.on(&axis);
        assert_eq!((one.slots.len(), total(&one)), (other.slots.len(), 2));
        assert_eq!(one.slots[1].allowed + one.slots[0].allowed, 2);
        let nothing = Timeline::default();
        assert_eq!(nothing.axis_with(&long), long.axis_with(&long));
        assert_eq!(total(&nothing.on(&axis)), 0);
    }
}

//! A watched ratio: outcomes counted in slices of time, the oldest dropped whole.
//!
//! Must not decide what the ratio means: the batch says when it is too high.

use super::Cell;
use crate::time::{Span, Time};

/// How many slices a watched time is cut into.
pub const SLICES: usize = 24;

/// The counts of the last slices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    /// (part, whole) per slice, by slice number modulo their count.
    pub slices: Box<[(u32, u32); SLICES]>,
    /// The number of the newest slice, counted from the epoch.
    pub newest: i64,
    /// The length of a slice.
    pub slice: Span,
}

impl Cell for Watch {
    fn forgotten_at(&self) -> Time {
        let end = (self.newest + SLICES as i64).saturating_mul(self.slice.micros());
        Time::from_micros(end.min(Time::FOREVER.micros()))
    }

    fn heap_bytes(&self) -> usize {
        size_of::<[(u32, u32); SLICES]>()
    }
}

impl Watch {
    /// Nothing counted yet.
    pub fn new(per: Span, now: Time) -> Self {
        let slice = slice_of(per);
        Self { slices: Box::new([(0, 0); SLICES]), newest: now.micros() / slice.micros(), slice }
    }

    /// Counts one outcome; starts again if the length of a slice changed.
    pub fn count(&mut self, per: Span, now: Time, in_part: bool) {
        if self.slice != slice_of(per) {
            *self = Self::new(per, now);
        }
        self.advance(now);
        let (part, whole) = &mut self.slices[index(self.newest)];
        *whole = whole.saturating_add(1);
        *part = part.saturating_add(u32::from(in_part));
    }

    /// The (part, whole) of all slices that count.
    pub fn totals(&self) -> (i64, i64) {
        self.slices.iter().fold((0, 0), |(part, whole), slice| {
            (part + i64::from(slice.0), whole + i64::from(slice.1))
        })
    }

    /// The same as it is at another instant.
    pub fn totals_at(&mut self, now: Time) -> (i64, i64) {
        self.advance(now);
        self.totals()
    }

    fn advance(&mut self, now: Time) {
        let present = (now.micros() / self.slice.micros()).max(self.newest);
        let stale = (present - self.newest).min(SLICES as i64);
        for number in present - stale + 1..=present {
            self.slices[index(number)] = (0, 0);
        }
        self.newest = present;
    }
}

fn index(number: i64) -> usize {
    number.rem_euclid(SLICES as i64) as usize
}

fn slice_of(per: Span) -> Span {
    Span::from_micros((per.micros() / SLICES as i64).max(1))
}

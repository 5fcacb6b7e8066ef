//! Fixed window: starts with its first charged unit, or at a multiple of its span on the clock, and
//! ends as a whole.

use super::{Cell, Second, instant_of, second_after};
use crate::limit::FixedTerms;
use crate::time::{Span, Time};

/// The state of one fixed window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FixedWindow {
    /// The start of the window.
    pub start: Time,
    /// Units charged in the window.
    pub used: i64,
    /// When the window ends, under the span of the last write.
    pub forget: Second,
}

impl Cell for FixedWindow {
    #[inline]
    fn expires_at(&self) -> Time {
        instant_of(self.forget)
    }
}

impl FixedWindow {
    /// A new window at `now`, without units.
    pub fn open(terms: &FixedTerms, now: Time) -> Self {
        let start = if terms.aligned { align_down(now, terms.span) } else { now };
        Self { start, used: 0, forget: second_after(start.after(terms.span)) }
    }

    /// The window, unless it has ended by `now`.
    pub fn still_open(self, terms: &FixedTerms, now: Time) -> Option<Self> {
        (now < self.end(terms)).then_some(self)
    }

    /// The end: the first instant after the window.
    pub fn end(&self, terms: &FixedTerms) -> Time {
        self.start.after(terms.span)
    }

    /// Charges units, or gives them back if `units` is negative.
    pub fn charge(&mut self, terms: &FixedTerms, units: i64) {
        // Capped at 2^53, up to which every store counts exactly.
        self.used = (self.used + units).clamp(0, crate::limit::EXACT_MAX);
        self.forget = second_after(self.end(terms));
    }
}

/// The last multiple of the span since the Unix epoch, at or before `now`.
fn align_down(now: Time, span: Span) -> Time {
    Time::from_micros(now.micros() - now.micros().rem_euclid(span.micros()))
}

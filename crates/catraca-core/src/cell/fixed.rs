//! A fixed window: opens at its first charged unit, or at the clock, and is gone at its end.
//!
//! Must not slide: that is what `log` is for.

use super::{Cell, Second, instant_of, second_after};
use crate::limit::FixedTerms;
use crate::time::{Span, Time};

/// The state of one fixed window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fixed {
    /// When the window opened.
    pub start: Time,
    /// Units charged in it.
    pub used: i64,
    /// When it may be forgotten.
    pub forget: Second,
}

impl Cell for Fixed {
    #[inline]
    fn forgotten_at(&self) -> Time {
        instant_of(self.forget)
    }
}

impl Fixed {
    /// The window that would open at `now`, with nothing used.
    pub fn open(terms: &FixedTerms, now: Time) -> Self {
        let start = if terms.aligned { aligned(now, terms.span) } else { now };
        Self { start, used: 0, forget: second_after(start.after(terms.span)) }
    }

    /// The window if it is still open at `now`.
    pub fn still_open(self, terms: &FixedTerms, now: Time) -> Option<Self> {
        (now < self.end(terms)).then_some(self)
    }

    /// When the window is over.
    pub fn end(&self, terms: &FixedTerms) -> Time {
        self.start.after(terms.span)
    }

    /// Charges units, or with a negative amount returns them.
    pub fn charge(&mut self, terms: &FixedTerms, units: i64) {
        self.used = (self.used + units).clamp(0, crate::limit::EXACT_MAX);
        self.forget = second_after(self.end(terms));
    }
}

fn aligned(now: Time, span: Span) -> Time {
    Time::from_micros(now.micros() - now.micros().rem_euclid(span.micros()))
}

//! Watched ratio: outcomes counted in 24 slices of time, of which the oldest is dropped as a whole.
//!
//! The cell only counts. The batch says which ratio is too high.

use super::Cell;
use crate::codec::wire::{Reader, Writer};
use crate::codec::{CodecError, Fields};
use crate::time::{Span, Time};

/// The number of slices of a watched span.
pub const SLICES: usize = 24;

/// The counts of the last slices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RatioWatch {
    /// (part, whole) of each slice; slice number modulo [`SLICES`] is the index.
    pub slices: Box<[(u32, u32); SLICES]>,
    /// The number of the newest slice, counted from the Unix epoch.
    pub newest: i64,
    /// The length of a slice.
    pub slice: Span,
}

impl Cell for RatioWatch {
    const IS_INLINE: bool = false;

    fn expires_at(&self) -> Time {
        // When the newest slice is 24 slices old, none counts any more.
        let end = (self.newest + SLICES as i64).saturating_mul(self.slice.micros());
        Time::from_micros(end.min(Time::FOREVER.micros()))
    }

    fn heap_bytes(&self) -> usize {
        size_of::<[(u32, u32); SLICES]>()
    }
}

impl RatioWatch {
    /// A cell without outcomes.
    pub fn new(per: Span, now: Time) -> Self {
        let slice = slice_of(per);
        Self { slices: Box::new([(0, 0); SLICES]), newest: now.micros() / slice.micros(), slice }
    }

    /// Counts one outcome. Starts from empty if the catalog changed the span.
    pub fn count(&mut self, per: Span, now: Time, in_part: bool) {
        if self.slice != slice_of(per) {
            *self = Self::new(per, now);
        }
        self.advance(now);
        let (part, whole) = &mut self.slices[index_of(self.newest)];
        *whole = whole.saturating_add(1);
        *part = part.saturating_add(u32::from(in_part));
    }

    /// The sums of part and whole over all slices.
    pub fn totals(&self) -> (i64, i64) {
        self.slices.iter().fold((0, 0), |(part, whole), slice| {
            (part + i64::from(slice.0), whole + i64::from(slice.1))
        })
    }

    /// The sums of part and whole, as of another instant.
    pub fn totals_at(&mut self, now: Time) -> (i64, i64) {
        self.advance(now);
        self.totals()
    }

    /// Moves the newest slice to `now`, and clears the slices in between.
    fn advance(&mut self, now: Time) {
        // Time never runs backwards for a cell, even if the clock of the store does.
        let present = (now.micros() / self.slice.micros()).max(self.newest);
        // The slices between the newest and the present one are from an earlier round: they must be
        // zero before they count. After a long idle time these are all slices.
        let skipped = (present - self.newest).min(SLICES as i64);
        for number in present - skipped + 1..=present {
            self.slices[index_of(number)] = (0, 0);
        }
        self.newest = present;
    }
}

impl Fields for RatioWatch {
    fn write(&self, to: &mut Writer<'_>) {
        to.span(self.slice);
        to.number(self.newest as u64);
        for (part, whole) in self.slices.iter() {
            to.number(u64::from(*part));
            to.number(u64::from(*whole));
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, CodecError> {
        let slice = from.span("slice")?;
        // The number of a slice is an instant divided by this length.
        if slice == Span::ZERO {
            return Err(CodecError::Range { field: "slice" });
        }
        let newest = from.amount("newest")?;
        let mut slices = Box::new([(0, 0); SLICES]);
        for (part, whole) in slices.iter_mut() {
            *part = from.small("part")?;
            *whole = from.small("whole")?;
        }
        Ok(Self { slices, newest, slice })
    }
}

/// The index of a slice, by its number since the Unix epoch.
fn index_of(number: i64) -> usize {
    number.rem_euclid(SLICES as i64) as usize
}

/// The length of a slice: at least a microsecond, since instants are divided by it.
fn slice_of(per: Span) -> Span {
    Span::from_micros((per.micros() / SLICES as i64).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_leave_with_their_slice() {
        let per = Span::from_secs(24);
        let at = |seconds: i64| Time::from_micros(seconds * 1_000_000);
        let mut watch = RatioWatch::new(per, at(0));
        watch.count(per, at(0), true);
        watch.count(per, at(1), false);
        assert_eq!(watch.totals_at(at(1)), (1, 2));
        assert_eq!(watch.totals_at(at(24)), (0, 1));
        assert_eq!(watch.totals_at(at(99)), (0, 0));
    }

    #[test]
    fn memory_is_counted_with_the_slices() {
        let watch = RatioWatch::new(Span::from_secs(24), Time::ZERO);
        assert_eq!(watch.heap_bytes(), SLICES * 2 * size_of::<u32>());
    }
}

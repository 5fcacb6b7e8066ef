//! Encodes counters: buckets, sliding windows, fixed windows, in-flight leases and watched ratios.
//!
//! Decoding refuses numbers that the arithmetic of the cell could not have produced.

use smallvec::SmallVec;

use super::wire::{Reader, Writer};
use super::{CellKind, Codec, CodecError, Fields};
use crate::cell::ratio_watch::SLICES;
use crate::cell::sliding_window::WindowEntries;
use crate::cell::{Bucket, FixedWindow, InFlight, RatioWatch, SlidingWindow};
use crate::limit::EXACT_MAX;
use crate::time::{Span, Time};

impl Codec for Bucket {
    const KIND: CellKind = CellKind::Bucket;
}

impl Fields for Bucket {
    fn write(&self, to: &mut Writer<'_>) {
        to.time(self.at);
        to.write_signed(self.tokens);
        to.write_signed(self.rem);
        to.word(self.tag);
        to.number(u64::from(self.forget));
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, CodecError> {
        Ok(Self {
            at: from.time("at")?,
            tokens: from.balance("tokens")?,
            rem: from.balance("rem")?,
            tag: from.word()?,
            forget: from.small("forget")?,
        })
    }
}

impl Codec for FixedWindow {
    const KIND: CellKind = CellKind::FixedWindow;
}

impl Fields for FixedWindow {
    fn write(&self, to: &mut Writer<'_>) {
        to.time(self.start);
        to.number(self.used as u64);
        to.number(u64::from(self.forget));
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, CodecError> {
        Ok(Self {
            start: from.time("start")?,
            used: from.amount("used")?,
            forget: from.small("forget")?,
        })
    }
}

impl Codec for SlidingWindow {
    const KIND: CellKind = CellKind::SlidingWindow;
}

impl Fields for SlidingWindow {
    fn write(&self, to: &mut Writer<'_>) {
        to.number(u64::from(self.forget));
        to.count(self.per_window.len());
        self.per_window.iter().for_each(|entries| write_entries(entries, to));
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, CodecError> {
        let forget = from.small("forget")?;
        let mut per_window = SmallVec::new();
        for _ in 0..from.count()? {
            per_window.push(read_entries(from)?);
        }
        Ok(Self { forget, per_window })
    }
}

/// For each entry its units, then the microseconds since the previous entry. Zero units end the
/// list.
fn write_entries(entries: &WindowEntries, to: &mut Writer<'_>) {
    let mut last = 0;
    for (at, units) in entries.entries() {
        to.number(units as u64);
        to.number((at.micros() - last) as u64);
        last = at.micros();
    }
    to.number(0);
}

fn read_entries(from: &mut Reader<'_>) -> Result<WindowEntries, CodecError> {
    let mut entries = WindowEntries::default();
    let mut last = 0;
    loop {
        let units = from.amount("units")?;
        if units == 0 {
            return Ok(entries);
        }
        if units > EXACT_MAX - entries.used_units() {
            return Err(CodecError::Range { field: "units" });
        }
        let at = last + from.amount("entries")?;
        // Entries of one instant are merged, so two of them cannot be valid.
        if entries.newest().is_some() && at == last {
            return Err(CodecError::Order { field: "entries" });
        }
        if at > Time::MAX.micros() {
            return Err(CodecError::Range { field: "entries" });
        }
        entries.push(Time::from_micros(at), units);
        last = at;
    }
}

impl Codec for InFlight {
    const KIND: CellKind = CellKind::InFlight;
}

impl Fields for InFlight {
    fn write(&self, to: &mut Writer<'_>) {
        to.count(self.live.len());
        for (end, id) in &self.live {
            to.time(*end);
            to.long(*id);
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, CodecError> {
        let mut live = Vec::new();
        for _ in 0..from.count()? {
            live.push((from.time("end")?, from.long()?));
        }
        // Leases are found by binary search.
        if !live.is_sorted() {
            return Err(CodecError::Order { field: "live" });
        }
        Ok(Self { live })
    }
}

impl Codec for RatioWatch {
    const KIND: CellKind = CellKind::RatioWatch;
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

//! The bytes of what is counted: buckets, logs, fixed windows, leases, watched ratios.
//!
//! Must not let a number through that the cell's own arithmetic could not have made.

use smallvec::SmallVec;

use super::wire::{Reader, Writer};
use super::{Codec, CodecError, Fields, Kind};
use crate::cell::log::Track;
use crate::cell::watch::SLICES;
use crate::cell::{Bucket, Fixed, Leases, Log, Watch};
use crate::limit::EXACT_MAX;
use crate::time::{Span, Time};

impl Codec for Bucket {
    const KIND: Kind = Kind::Bucket;
}

impl Fields for Bucket {
    fn write(&self, to: &mut Writer<'_>) {
        to.time(self.at);
        to.signed(self.tokens);
        to.signed(self.rem);
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

impl Codec for Fixed {
    const KIND: Kind = Kind::Fixed;
}

impl Fields for Fixed {
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

impl Codec for Log {
    const KIND: Kind = Kind::Log;
}

impl Fields for Log {
    fn write(&self, to: &mut Writer<'_>) {
        to.number(u64::from(self.forget));
        to.count(self.tracks.len());
        self.tracks.iter().for_each(|track| write_track(track, to));
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, CodecError> {
        let forget = from.small("forget")?;
        let mut tracks = SmallVec::new();
        for _ in 0..from.count()? {
            tracks.push(read_track(from)?);
        }
        Ok(Self { forget, tracks })
    }
}

/// Units, then the time since the entry before; no units end the track.
fn write_track(track: &Track, to: &mut Writer<'_>) {
    let mut last = 0;
    for (at, units) in track.entries() {
        to.number(units as u64);
        to.number((at.micros() - last) as u64);
        last = at.micros();
    }
    to.number(0);
}

fn read_track(from: &mut Reader<'_>) -> Result<Track, CodecError> {
    let mut track = Track::default();
    let mut last = 0;
    loop {
        let units = from.amount("units")?;
        if units == 0 {
            return Ok(track);
        }
        if units > EXACT_MAX - track.used() {
            return Err(CodecError::Range { field: "units" });
        }
        let at = last + from.amount("entries")?;
        if track.newest().is_some() && at == last {
            return Err(CodecError::Order { field: "entries" });
        }
        if at > Time::MAX.micros() {
            return Err(CodecError::Range { field: "entries" });
        }
        track.push(Time::from_micros(at), units);
        last = at;
    }
}

impl Codec for Leases {
    const KIND: Kind = Kind::Leases;
}

impl Fields for Leases {
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
        if !live.is_sorted() {
            return Err(CodecError::Order { field: "live" });
        }
        Ok(Self { live })
    }
}

impl Codec for Watch {
    const KIND: Kind = Kind::Watch;
}

impl Fields for Watch {
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
        // Instants are divided by it.
        if slice == Span::ZERO {
            return Err(CodecError::Range { field: "slice" });
        }
        let newest = from.amount("newest")?;
        let mut slices = Box::new([(0, 0); SLICES]);
        for (part, whole) in slices.iter_mut() {
            (*part, *whole) = (from.small("part")?, from.small("whole")?);
        }
        Ok(Self { slices, newest, slice })
    }
}

//! The entries of one window, packed as variable-length gaps: about three bytes per request instead
//! of sixteen.
//!
//! An entry is `gap << 1 | many`, followed by the units if `many` is set; otherwise it is one unit.
//! A gap is the number of microseconds since the previous entry. Entries are added at the end and
//! removed at the front, so they are always in order of time.

use super::WindowTerms;
use crate::codec::CodecError;
use crate::codec::wire::{Reader, Writer};
use crate::limit::EXACT_MAX;
use crate::time::{Span, Time};

/// The entries of one window, oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WindowEntries {
    bytes: Vec<u8>,
    /// The offset of the oldest live entry. The bytes before it are free for reuse. Offsets fit in
    /// 32 bits: the catalog refuses more than 10,000 units per key.
    head: u32,
    /// The offset of the newest entry.
    tail: u32,
    /// The instant of the oldest live entry.
    first: Time,
    /// The instant of the newest entry.
    last: Time,
    /// The sum of all live units, so that a check does not read the entries.
    used: i64,
}

/// One decoded entry.
#[derive(Clone, Copy)]
struct PackedEntry {
    /// Microseconds since the previous entry.
    gap: i64,
    units: i64,
    /// The offset of the next entry.
    next: usize,
}

impl WindowEntries {
    /// The sum of all live units.
    pub fn used_units(&self) -> i64 {
        self.used
    }

    /// The instant of the newest entry; `None` if there is none.
    pub fn newest(&self) -> Option<Time> {
        (!self.is_empty()).then_some(self.last)
    }

    /// Bytes on the heap.
    pub fn heap_bytes(&self) -> usize {
        self.bytes.capacity()
    }

    /// Drops the entries whose age is at least `span`.
    pub fn prune(&mut self, span: Span, now: Time) {
        while !self.is_empty() && self.has_left(span, now) {
            self.pop();
        }
    }

    fn has_left(&self, span: Span, now: Time) -> bool {
        now.since(self.first) >= span
    }

    /// Adds units at an instant. An instant before the newest entry becomes that of the newest,
    /// which keeps the order. The caller must keep the sum below 2^53.
    pub fn push(&mut self, at: Time, units: i64) {
        if units <= 0 {
            return;
        }
        // An empty list has no order to keep: `last` may be later than `at`, from an entry that was
        // removed.
        let at = if self.is_empty() { at } else { at.max(self.last) };
        if self.is_empty() {
            self.clear();
            self.first = at;
            // The gap of the first entry is not used: `first` has its instant.
            self.append(0, units);
        } else if at > self.last {
            self.append(at.since(self.last).micros(), units);
        } else {
            // Units of the same instant share one entry.
            self.grow_newest(units);
        }
        self.used += units;
        self.last = at;
    }

    /// Drops the oldest units until at most `limit` remain.
    pub fn trim(&mut self, limit: i64) {
        while self.used > limit && !self.is_empty() {
            let oldest = self.entry_at(self.head as usize).units;
            if self.used - oldest >= limit {
                self.pop();
            } else {
                // Only part of the oldest entry is above the limit.
                let excess = self.used - limit;
                self.refund(self.first, excess);
            }
        }
    }

    /// Removes units from the entry at exactly `at`. Returns how many it had. Rewrites all entries,
    /// which is acceptable because refunds are rare.
    pub fn refund(&mut self, at: Time, units: i64) -> i64 {
        let mut refunded = 0;
        let entries: Vec<(Time, i64)> = self.entries().collect();
        self.clear();
        for (instant, counted) in entries {
            let returned = if instant == at { counted.min(units - refunded) } else { 0 };
            refunded += returned;
            // An entry without units is not pushed, so it disappears.
            self.push(instant, counted - returned);
        }
        refunded
    }

    /// When `need` units fit if no other request comes; `None` if they never do.
    pub fn fits_at(&self, window: &WindowTerms, now: Time, need: i64) -> Option<Time> {
        if need > window.limit {
            return None;
        }
        // The oldest entries leave first: frees them one by one until the amount fits.
        let mut used = self.used;
        let mut fits = now;
        let mut entries = self.entries();
        while used > window.limit - need {
            let (at, units) = entries.next()?;
            used -= units;
            fits = now.max(at.after(window.span));
        }
        Some(fits)
    }

    /// All live entries, oldest first.
    pub fn entries(&self) -> impl Iterator<Item = (Time, i64)> + '_ {
        let mut offset = self.head as usize;
        let mut at = self.first;
        std::iter::from_fn(move || {
            if offset >= self.bytes.len() {
                return None;
            }
            let entry = self.entry_at(offset);
            // The gap of the oldest entry refers to an entry that was removed.
            if offset > self.head as usize {
                at = at.after(Span::from_micros(entry.gap));
            }
            offset = entry.next;
            Some((at, entry.units))
        })
    }

    fn is_empty(&self) -> bool {
        self.head as usize >= self.bytes.len()
    }

    fn clear(&mut self) {
        // Keeps the allocation.
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.clear();
        *self = Self { bytes, ..Self::default() };
    }

    fn pop(&mut self) {
        let oldest = self.entry_at(self.head as usize);
        self.used -= oldest.units;
        self.head = oldest.next as u32;
        if !self.is_empty() {
            // `first` moves to the next entry, whose gap refers to the entry just removed.
            let gap = self.entry_at(self.head as usize).gap;
            self.first = self.first.after(Span::from_micros(gap));
        }
    }

    fn grow_newest(&mut self, units: i64) {
        let newest = self.entry_at(self.tail as usize);
        self.bytes.truncate(self.tail as usize);
        self.append(newest.gap, newest.units + units);
    }

    fn append(&mut self, gap: i64, units: i64) {
        // Two numbers of at most ten bytes each.
        let mut entry = [0; 20];
        // One unit is the common case and needs no second number.
        let many = units != 1;
        let mut length = write_varint(&mut entry, 0, (gap as u64) << 1 | u64::from(many));
        if many {
            length = write_varint(&mut entry, length, units as u64);
        }
        self.make_room(length);
        self.tail = self.bytes.len() as u32;
        self.bytes.extend_from_slice(&entry[..length]);
    }

    /// Makes room for `more` bytes: reuses the bytes of removed entries if they are an eighth of
    /// the list, otherwise grows by an eighth. Growing by doubling would waste half of the memory
    /// of a full window.
    fn make_room(&mut self, more: usize) {
        let length = self.bytes.len();
        if length + more <= self.bytes.capacity() {
            return;
        }
        let dead = self.head as usize;
        if dead >= length / 8 && dead > 0 {
            // `tail` is not moved: `append` sets it next.
            self.bytes.drain(..dead);
            self.head = 0;
        } else {
            self.bytes.reserve_exact(more.max(length / 8).max(8));
        }
    }

    fn entry_at(&self, offset: usize) -> PackedEntry {
        let (word, next) = read_varint(&self.bytes, offset);
        let gap = (word >> 1) as i64;
        if word & 1 == 0 {
            return PackedEntry { gap, units: 1, next };
        }
        let (units, next) = read_varint(&self.bytes, next);
        PackedEntry { gap, units: units as i64, next }
    }
}

impl WindowEntries {
    /// For each entry its units, then the microseconds since the previous entry. Zero units end the
    /// list.
    pub(super) fn write(&self, to: &mut Writer<'_>) {
        let mut last = 0;
        for (at, units) in self.entries() {
            to.number(units as u64);
            to.number((at.micros() - last) as u64);
            last = at.micros();
        }
        to.number(0);
    }

    pub(super) fn read(from: &mut Reader<'_>) -> Result<Self, CodecError> {
        let mut entries = Self::default();
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
}

/// Writes seven bits per byte, the lowest first; the top bit says that another byte follows.
/// Returns the offset after the last byte.
fn write_varint(into: &mut [u8; 20], mut offset: usize, mut word: u64) -> usize {
    while word >= 0x80 {
        into[offset] = word as u8 | 0x80;
        word >>= 7;
        offset += 1;
    }
    into[offset] = word as u8;
    offset + 1
}

fn read_varint(bytes: &[u8], mut offset: usize) -> (u64, usize) {
    let mut word = 0;
    let mut shift = 0;
    while let Some(byte) = bytes.get(offset) {
        word |= u64::from(byte & 0x7F) << shift;
        offset += 1;
        if byte & 0x80 == 0 {
            break;
        }
        shift += 7;
    }
    (word, offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: i64) -> Time {
        Time::from_micros(micros)
    }

    /// covers: 002-25, B-36
    #[test]
    fn a_thousand_units_of_one_instant_are_a_thousand() {
        let mut track = WindowEntries::default();
        (0..1_000).for_each(|_| track.push(at(5), 1));
        assert_eq!(track.used_units(), 1_000);
        assert_eq!(track.entries().collect::<Vec<_>>(), [(at(5), 1_000)]);
    }

    #[test]
    fn entries_read_back_as_written_through_any_mixture() {
        let mut track = WindowEntries::default();
        let mut model: Vec<(i64, i64)> = Vec::new();
        let mut state = 7_u64;
        for step in 0..20_000_i64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let now = step * 37 + (state >> 60) as i64;
            let units = (state >> 33) as i64 % 4;
            track.push(at(now), units);
            if units > 0 {
                match model.last_mut() {
                    Some(last) if last.0 == now => last.1 += units,
                    _ => model.push((now, units)),
                }
            }
            track.prune(Span::from_micros(2_000), at(now));
            model.retain(|(instant, _)| now - instant < 2_000);
            let expected: i64 = model.iter().map(|(_, units)| units).sum();
            assert_eq!(track.used_units(), expected, "at step {step}");
        }
        let read: Vec<_> = track.entries().map(|(t, units)| (t.micros(), units)).collect();
        assert_eq!(read, model);
    }

    #[test]
    fn a_full_window_of_120_stays_small() {
        let mut track = WindowEntries::default();
        for request in 0..1_000 {
            track.push(at(request * 500_000), 1);
            track.prune(Span::from_secs(60), at(request * 500_000));
        }
        assert_eq!(track.used_units(), 120);
        assert!(track.heap_bytes() < 480, "{} bytes", track.heap_bytes());
    }

    #[test]
    fn refund_and_trim_take_from_the_right_end() {
        let mut track = WindowEntries::default();
        for micros in 1..=5 {
            track.push(at(micros), 10);
        }
        assert_eq!(track.refund(at(3), 4), 4);
        assert_eq!(track.refund(at(9), 4), 0);
        track.trim(20);
        let left: Vec<_> = track.entries().map(|(t, units)| (t.micros(), units)).collect();
        assert_eq!(left, [(4, 10), (5, 10)]);
        track.trim(15);
        assert_eq!(track.entries().next(), Some((at(4), 5)));
    }

    #[test]
    fn entries_that_sum_to_more_than_every_store_counts_exactly_are_refused() {
        let read = |units: [i64; 2]| {
            // The version of the layout, which the entries do not use.
            let mut bytes = vec![1];
            let mut to = Writer::new(&mut bytes);
            for units in units {
                to.number(units as u64);
                to.number(1);
            }
            to.number(0);
            let entries = WindowEntries::read(&mut Reader::new(&bytes)?)?;
            Ok(entries.used_units())
        };
        assert_eq!(read([3, EXACT_MAX - 3]), Ok(EXACT_MAX));
        assert_eq!(read([3, EXACT_MAX - 2]), Err(CodecError::Range { field: "units" }));
    }
}

//! Meter: reads and charges the counter of one row, for any algorithm.
//!
//! Buckets and fixed windows are copied into the meter and written back by `put`. Sliding windows
//! and leases are edited in place, since they can be large.

use crate::cell::{
    Bucket, CellStore, CellTable, CounterSlot, FixedWindow, InFlight, SlidingWindow,
};
use crate::digest::Key;
use crate::limit::{BucketTerms, FixedTerms, InflightTerms, Limit, WindowTerms};
use crate::time::Time;

/// The counter of one row at an instant.
pub struct Meter<'a> {
    limit: &'a Limit,
    /// The key of the counter: the row's own, or that of an overflow cell.
    key: Key,
    /// Whether the counter is an overflow cell, which other keys use too.
    pub is_overflow: bool,
    /// The instant of the row: `now`, or the last write of the counter if that is later. Then the
    /// clock of a shared store was set back.
    pub now: Time,
    /// The copy of a small cell.
    state: CounterState,
}

enum CounterState {
    Bucket(Bucket),
    Fixed(Option<FixedWindow>),
    /// The cell is edited in the store.
    InPlace,
}

/// The figures of a row in a reply.
#[derive(Clone, Copy, Debug)]
pub struct RowFigures {
    /// The limit; `None` if nothing is counted. Of several windows, that of the tightest.
    pub limit: Option<i64>,
    /// Free units; negative for a bucket in debt.
    pub free: i64,
    /// When `need` units are free if no other request comes; `None` if that never happens.
    pub fits_at: Option<Time>,
    /// When all units are free.
    pub full_at: Time,
}

impl<'a> Meter<'a> {
    /// Finds the counter of `key` and advances it to `now`: refills a bucket, drops entries and
    /// leases that have ended.
    #[inline]
    pub fn read<C: CellStore>(
        limit: &'a Limit,
        key: Key,
        family: u64,
        cells: &mut C,
        now: Time,
    ) -> Self {
        let mut meter = Self { limit, key, is_overflow: false, now, state: CounterState::InPlace };
        // Only a key without a counter can be sent to an overflow cell: a counter that exists keeps
        // its cell, however full the memory is. The slot is reserved before the verdict is known; a
        // peek or a denied check leaves it unused, and the next batch drops the reservation.
        if !meter.load(cells)
            && let CounterSlot::Overflow(other) = cells.counter_slot(key, family, now)
        {
            meter = Self { key: other, is_overflow: true, ..meter };
            meter.load(cells);
        }
        meter
    }

    /// Advances the cell to `now`. Returns whether the cell exists.
    #[inline]
    fn load<C: CellStore>(&mut self, cells: &mut C) -> bool {
        match self.limit {
            Limit::Bucket(terms) => self.load_bucket(terms, cells),
            Limit::Window(windows) => self.load_sliding(windows, cells),
            Limit::Fixed(terms) => self.load_fixed(terms, cells),
            Limit::Inflight(_) => self.load_leases(cells),
            // Nothing is stored, so no overflow cell is needed either.
            Limit::Unlimited => true,
        }
    }

    #[inline]
    fn load_bucket<C: CellTable<Bucket>>(&mut self, terms: &BucketTerms, cells: &mut C) -> bool {
        // `refill_to` never moves `at` backwards, so `at` is the later of `now` and the last write.
        let found = cells.get(self.key, self.now).map(|cell| cell.refill_to(terms, self.now));
        let bucket = found.unwrap_or_else(|| Bucket::full(terms, self.now));
        self.now = bucket.at;
        self.state = CounterState::Bucket(bucket);
        found.is_some()
    }

    fn load_fixed<C: CellTable<FixedWindow>>(&mut self, terms: &FixedTerms, cells: &mut C) -> bool {
        let found = cells.get(self.key, self.now).copied();
        self.now = found.map_or(self.now, |window| self.now.max(window.start));
        // Judged with the span of this batch: it may differ from the span of the last write.
        let open = found.and_then(|window| window.still_open(terms, self.now));
        self.state = CounterState::Fixed(open);
        // A cell whose window has ended still exists: its next window needs no new slot.
        found.is_some()
    }

    fn load_sliding<C: CellTable<SlidingWindow>>(
        &mut self,
        windows: &[WindowTerms],
        cells: &mut C,
    ) -> bool {
        let Some(sliding) = cells.get(self.key, self.now) else { return false };
        // The catalog has changed the number of windows. Entries cannot be assigned to the new
        // windows, so counting starts from empty.
        if sliding.per_window.len() != windows.len() {
            // Expired until its next charge, so `get` does not return it again in this batch.
            *sliding = SlidingWindow::new(windows);
        }
        self.now = sliding.effective_now(self.now);
        // Pruned with the spans of this batch, and saved even for a peek: entries that have left
        // their window must not return if a later batch has a longer span (docs/semantics.md, 8).
        sliding.prune(windows, self.now);
        true
    }

    fn load_leases<C: CellTable<InFlight>>(&mut self, cells: &mut C) -> bool {
        // `self.now` does not move: leases store their ends, not the instant of the last write.
        cells.get(self.key, self.now).map(|leases| leases.prune(self.now)).is_some()
    }

    /// Free units; `i64::MAX` if nothing is counted.
    #[inline]
    pub fn free<C: CellStore>(&self, cells: &mut C) -> i64 {
        match (self.limit, &self.state) {
            (Limit::Bucket(_), CounterState::Bucket(bucket)) => bucket.tokens,
            (Limit::Fixed(terms), CounterState::Fixed(window)) => {
                terms.limit - window.map_or(0, |window| window.used)
            }
            (Limit::Window(windows), _) => {
                let sliding: Option<&mut SlidingWindow> = cells.get(self.key, self.now);
                sliding.map_or_else(|| smallest_limit(windows), |sliding| sliding.free(windows))
            }
            // Leases that have ended were dropped by `read`.
            (Limit::Inflight(terms), _) => {
                let leases: Option<&mut InFlight> = cells.get(self.key, self.now);
                terms.limit - leases.map_or(0, |leases| leases.live.len() as i64)
            }
            _ => i64::MAX,
        }
    }

    /// Charges units, or one lease for in-flight rows. Returns the amount charged.
    #[inline]
    pub fn charge<C: CellStore>(&mut self, cells: &mut C, units: i64, lease: u64) -> i64 {
        match self.limit {
            Limit::Inflight(terms) => self.take_lease(terms, cells, lease),
            // A charge of zero writes nothing: it opens no window and moves no expiry. In-flight
            // rows come first because their charge is one lease, independent of `units`.
            _ if units == 0 => 0,
            Limit::Bucket(terms) => self.charge_bucket(terms, cells, units),
            Limit::Window(windows) => {
                self.edit_sliding(windows, cells, |sliding, now| {
                    sliding.charge(windows, now, units)
                });
                units
            }
            Limit::Fixed(terms) => self.charge_fixed(terms, cells, units),
            Limit::Unlimited => 0,
        }
    }

    /// Counts the units of a denied check, for policies with `count_denied`. Each window then
    /// contains at most its limit.
    pub fn count_denied<C: CellStore>(&mut self, cells: &mut C, units: i64) {
        match self.limit {
            Limit::Window(windows) if units > 0 => {
                self.edit_sliding(windows, cells, |sliding, now| {
                    sliding.charge_and_trim(windows, now, units)
                });
            }
            Limit::Fixed(terms) if units > 0 => {
                // `used` becomes `min(limit, used + units)` and is never lowered: `free` is
                // negative if the limit was reduced. `clamp` needs `units >= 0`, which the guard
                // ensures.
                let counted = self.free(cells).clamp(0, units);
                self.charge_fixed(terms, cells, counted);
            }
            // A bucket has no `count_denied` (docs/semantics.md, 1).
            _ => {}
        }
    }

    /// Gives back units of the charge made at `at`. Returns how many.
    pub fn refund<C: CellStore>(&mut self, cells: &mut C, at: Time, units: i64) -> i64 {
        match self.limit {
            // A bucket has no entries, so the refund is a negative charge, up to the size.
            Limit::Bucket(terms) => -self.charge_bucket(terms, cells, -units),
            Limit::Window(windows) => self.refund_sliding(windows, cells, at, units),
            Limit::Fixed(terms) => self.refund_fixed(terms, cells, at, units),
            Limit::Inflight(_) | Limit::Unlimited => 0,
        }
    }

    /// Ends a lease of an in-flight row before its time.
    pub fn release_lease<C: CellStore>(&mut self, cells: &mut C, lease: u64) {
        // `get` instead of `edit`: a removal keeps the allocation, so the cell's size is the same.
        let leases: Option<&mut InFlight> = cells.get(self.key, self.now);
        leases.map(|leases| leases.release(lease));
    }

    /// The figures of the row, for a check that needs `need` units.
    #[inline]
    pub fn figures<C: CellStore>(&self, cells: &mut C, need: i64) -> RowFigures {
        let now = self.now;
        match (self.limit, &self.state) {
            (Limit::Bucket(terms), CounterState::Bucket(bucket)) => RowFigures {
                limit: Some(terms.size),
                free: bucket.tokens,
                fits_at: (need <= terms.size).then(|| bucket.fits_at(terms, need)),
                full_at: bucket.full_at(terms),
            },
            (Limit::Fixed(terms), CounterState::Fixed(window)) => {
                fixed_figures(terms, *window, now, need)
            }
            (Limit::Window(windows), _) => sliding_figures(
                windows,
                cells.get(self.key, now).map(|sliding| &*sliding),
                now,
                need,
            ),
            (Limit::Inflight(terms), _) => {
                in_flight_figures(terms, cells.get(self.key, now).map(|leases| &*leases), now)
            }
            _ => RowFigures { limit: None, free: i64::MAX, fits_at: Some(now), full_at: now },
        }
    }

    /// Takes tokens, or gives them back if `units` is negative. Returns the tokens taken.
    #[inline]
    fn charge_bucket<C: CellTable<Bucket>>(
        &mut self,
        terms: &BucketTerms,
        cells: &mut C,
        units: i64,
    ) -> i64 {
        let CounterState::Bucket(bucket) = &mut self.state else { return 0 };
        let taken = bucket.take(terms, units);
        // A bucket that did not change is not written: a write would replace the instant at which
        // it is forgotten.
        if taken != 0 {
            cells.put(self.key, *bucket, self.now);
        }
        taken
    }

    /// Adds units to the open window, or opens one. Negative for a refund.
    fn charge_fixed<C: CellTable<FixedWindow>>(
        &mut self,
        terms: &FixedTerms,
        cells: &mut C,
        units: i64,
    ) -> i64 {
        let CounterState::Fixed(window) = &mut self.state else { return 0 };
        // A window opens with its first unit, so a charge of zero must not open one.
        if units == 0 {
            return 0;
        }
        let mut open = window.unwrap_or_else(|| FixedWindow::open(terms, self.now));
        open.charge(terms, units);
        *window = Some(open);
        cells.put(self.key, open, self.now);
        units
    }

    fn refund_fixed<C: CellTable<FixedWindow>>(
        &mut self,
        terms: &FixedTerms,
        cells: &mut C,
        at: Time,
        units: i64,
    ) -> i64 {
        let CounterState::Fixed(Some(window)) = &self.state else { return 0 };
        // A charge before the start was made in an earlier window, which has ended: its units are
        // free already.
        let units = if at >= window.start { units.min(window.used) } else { 0 };
        -self.charge_fixed(terms, cells, -units)
    }

    fn refund_sliding<C: CellTable<SlidingWindow>>(
        &mut self,
        windows: &[WindowTerms],
        cells: &mut C,
        at: Time,
        units: i64,
    ) -> i64 {
        let refund = |sliding: &mut SlidingWindow| sliding.refund(windows, at, units);
        cells.edit(self.key, self.now, refund).unwrap_or(0)
    }

    fn take_lease<C: CellTable<InFlight>>(
        &mut self,
        terms: &InflightTerms,
        cells: &mut C,
        lease: u64,
    ) -> i64 {
        let take = |leases: &mut InFlight| leases.take(terms, self.now, lease);
        // `edit` accounts for the new size; without a cell there is nothing to edit. `put` cannot
        // fail here: `counter_slot` has reserved the slot.
        if cells.edit(self.key, self.now, take).is_none() {
            let mut leases = InFlight::default();
            take(&mut leases);
            cells.put(self.key, leases, self.now);
        }
        1
    }

    /// Changes the cell in place, or creates it.
    fn edit_sliding<C: CellTable<SlidingWindow>>(
        &mut self,
        windows: &[WindowTerms],
        cells: &mut C,
        change: impl Fn(&mut SlidingWindow, Time),
    ) {
        if cells.edit(self.key, self.now, |sliding| change(sliding, self.now)).is_none() {
            let mut sliding = SlidingWindow::new(windows);
            change(&mut sliding, self.now);
            cells.put(self.key, sliding, self.now);
        }
    }
}

fn smallest_limit(windows: &[WindowTerms]) -> i64 {
    windows.iter().map(|window| window.limit).min().unwrap_or(0)
}

fn sliding_figures(
    windows: &[WindowTerms],
    sliding: Option<&SlidingWindow>,
    now: Time,
    need: i64,
) -> RowFigures {
    // An absent cell has the figures of an empty one. Declared here to outlive the reference.
    let empty;
    let sliding = match sliding {
        Some(sliding) => sliding,
        None => {
            empty = SlidingWindow::new(windows);
            &empty
        }
    };
    let tightest = sliding.tightest(windows);
    RowFigures {
        limit: tightest.map(|(window, _)| window.limit),
        free: tightest.map_or(0, |(_, free)| free),
        fits_at: sliding.fits_at(windows, now, need),
        full_at: sliding.full_at(windows, now),
    }
}

fn fixed_figures(
    terms: &FixedTerms,
    window: Option<FixedWindow>,
    now: Time,
    need: i64,
) -> RowFigures {
    let free = terms.limit - window.map_or(0, |window| window.used);
    // An open window in which everything was refunded is as good as none: the quota is full now.
    let end = window.filter(|window| window.used > 0).map_or(now, |window| window.end(terms));
    RowFigures {
        limit: Some(terms.limit),
        free,
        fits_at: (need <= terms.limit).then_some(if free >= need { now } else { end }),
        full_at: end,
    }
}

fn in_flight_figures(terms: &InflightTerms, leases: Option<&InFlight>, now: Time) -> RowFigures {
    let live = leases.map_or(0, |leases| leases.live.len() as i64);
    RowFigures {
        limit: Some(terms.limit),
        free: terms.limit - live,
        // A check always takes one lease, so `need` does not matter.
        fits_at: Some(leases.map_or(now, |leases| leases.fits_at(terms, now))),
        full_at: leases.map_or(now, |leases| leases.full_at(now)),
    }
}

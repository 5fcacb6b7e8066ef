//! A meter: one row's counter, whatever its algorithm, from first look to last figure.
//!
//! Copies small cells, works on large ones in place. Must not know blocks or verdicts.

use crate::cell::{Bucket, Cells, Fixed, Leases, Log, Place, Pool};
use crate::digest::Key;
use crate::limit::{BucketTerms, FixedTerms, InflightTerms, Limit, WindowTerms};
use crate::time::Time;

/// One row's counter as of an instant.
pub struct Meter<'a> {
    limit: &'a Limit,
    /// Where the counter lives.
    key: Key,
    /// Whether other keys live there too.
    pub shared: bool,
    /// The instant used: never before the counter's last write.
    pub now: Time,
    /// Small cells are carried by value.
    state: State,
}

enum State {
    Bucket(Bucket),
    Fixed(Option<Fixed>),
    /// The cell is worked on where it lies.
    InPlace,
}

/// What a row shows.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    /// The limit shown.
    pub limit: Option<i64>,
    /// What is free; negative is debt.
    pub free: i64,
    /// When `need` fits; `None` if never.
    pub fits_at: Option<Time>,
    /// When the full quota is back.
    pub full_at: Time,
}

impl<'a> Meter<'a> {
    /// Finds the counter of `key` and brings it to `now`.
    #[inline]
    pub fn read<C: Cells>(
        limit: &'a Limit,
        key: Key,
        family: u64,
        cells: &mut C,
        now: Time,
    ) -> Self {
        let mut meter = Self { limit, key, shared: false, now, state: State::InPlace };
        if !meter.load(cells)
            && let Place::Shared(other) = cells.place(key, family, now)
        {
            meter = Self { key: other, shared: true, ..meter };
            meter.load(cells);
        }
        meter
    }

    /// Brings the cell to `now`; says whether there was one.
    #[inline]
    fn load<C: Cells>(&mut self, cells: &mut C) -> bool {
        match self.limit {
            Limit::Bucket(terms) => self.load_bucket(terms, cells),
            Limit::Window(windows) => self.load_log(windows, cells),
            Limit::Fixed(terms) => self.load_fixed(terms, cells),
            Limit::Inflight(_) => self.load_leases(cells),
            Limit::Unlimited => true,
        }
    }

    #[inline]
    fn load_bucket<C: Pool<Bucket>>(&mut self, terms: &BucketTerms, cells: &mut C) -> bool {
        let found = cells.get(self.key, self.now).map(|cell| cell.refilled(terms, self.now));
        let bucket = found.unwrap_or_else(|| Bucket::full(terms, self.now));
        self.now = bucket.at;
        self.state = State::Bucket(bucket);
        found.is_some()
    }

    fn load_fixed<C: Pool<Fixed>>(&mut self, terms: &FixedTerms, cells: &mut C) -> bool {
        let found = cells.get(self.key, self.now).copied();
        self.now = found.map_or(self.now, |window| self.now.max(window.start));
        let open = found.and_then(|window| window.still_open(terms, self.now));
        self.state = State::Fixed(open);
        found.is_some()
    }

    fn load_log<C: Pool<Log>>(&mut self, windows: &[WindowTerms], cells: &mut C) -> bool {
        let Some(log) = cells.get(self.key, self.now) else { return false };
        if log.tracks.len() != windows.len() {
            *log = Log::new(windows);
        }
        self.now = log.instant(self.now);
        log.prune(windows, self.now);
        true
    }

    fn load_leases<C: Pool<Leases>>(&mut self, cells: &mut C) -> bool {
        cells.get(self.key, self.now).map(|leases| leases.prune(self.now)).is_some()
    }

    /// What is free now.
    #[inline]
    pub fn free<C: Cells>(&self, cells: &mut C) -> i64 {
        match (self.limit, &self.state) {
            (Limit::Bucket(_), State::Bucket(bucket)) => bucket.tokens,
            (Limit::Fixed(terms), State::Fixed(window)) => {
                terms.limit - window.map_or(0, |window| window.used)
            }
            (Limit::Window(windows), _) => {
                let log: Option<&mut Log> = cells.get(self.key, self.now);
                log.map_or_else(|| smallest(windows), |log| log.free(windows))
            }
            (Limit::Inflight(terms), _) => {
                let leases: Option<&mut Leases> = cells.get(self.key, self.now);
                terms.limit - leases.map_or(0, |leases| leases.live.len() as i64)
            }
            _ => i64::MAX,
        }
    }

    /// Charges units (a lease for in-flight rows); says how many.
    #[inline]
    pub fn charge<C: Cells>(&mut self, cells: &mut C, units: i64, lease: u64) -> i64 {
        match self.limit {
            Limit::Inflight(terms) => self.take_lease(terms, cells, lease),
            _ if units == 0 => 0,
            Limit::Bucket(terms) => self.take(terms, cells, units),
            Limit::Window(windows) => {
                self.with_log(windows, cells, |log, now| log.charge(windows, now, units));
                units
            }
            Limit::Fixed(terms) => self.use_fixed(terms, cells, units),
            Limit::Unlimited => 0,
        }
    }

    /// Records a denied amount and keeps at most the limit.
    pub fn count_denied<C: Cells>(&mut self, cells: &mut C, units: i64) {
        match self.limit {
            Limit::Window(windows) if units > 0 => {
                self.with_log(windows, cells, |log, now| log.charge_trimmed(windows, now, units));
            }
            Limit::Fixed(terms) if units > 0 => {
                let free = self.free(cells).clamp(0, units);
                self.use_fixed(terms, cells, free);
            }
            _ => {}
        }
    }

    /// Takes units back from the charge made at `at`; says how many.
    pub fn refund<C: Cells>(&mut self, cells: &mut C, at: Time, units: i64) -> i64 {
        match self.limit {
            Limit::Bucket(terms) => -self.take(terms, cells, -units),
            Limit::Window(windows) => self.refund_log(windows, cells, at, units),
            Limit::Fixed(terms) => self.refund_fixed(terms, cells, at, units),
            Limit::Inflight(_) | Limit::Unlimited => 0,
        }
    }

    /// Returns a lease.
    pub fn give_back<C: Cells>(&mut self, cells: &mut C, lease: u64) {
        let leases: Option<&mut Leases> = cells.get(self.key, self.now);
        leases.map(|leases| leases.give_back(lease));
    }

    /// The figures a row shows.
    #[inline]
    pub fn figures<C: Cells>(&self, cells: &mut C, need: i64) -> Figures {
        let now = self.now;
        match (self.limit, &self.state) {
            (Limit::Bucket(terms), State::Bucket(bucket)) => Figures {
                limit: Some(terms.size),
                free: bucket.tokens,
                fits_at: (need <= terms.size).then(|| bucket.fits_at(terms, need)),
                full_at: bucket.full_at(terms),
            },
            (Limit::Fixed(terms), State::Fixed(window)) => fixed_figures(terms, *window, now, need),
            (Limit::Window(windows), _) => {
                log_figures(windows, cells.get(self.key, now).map(|log| &*log), now, need)
            }
            (Limit::Inflight(terms), _) => {
                lease_figures(terms, cells.get(self.key, now).map(|leases| &*leases), now)
            }
            _ => Figures { limit: None, free: i64::MAX, fits_at: Some(now), full_at: now },
        }
    }

    #[inline]
    fn take<C: Pool<Bucket>>(&mut self, terms: &BucketTerms, cells: &mut C, units: i64) -> i64 {
        let State::Bucket(bucket) = &mut self.state else { return 0 };
        let taken = bucket.take(terms, units);
        if taken != 0 {
            cells.put(self.key, *bucket, self.now);
        }
        taken
    }

    fn use_fixed<C: Pool<Fixed>>(&mut self, terms: &FixedTerms, cells: &mut C, units: i64) -> i64 {
        let State::Fixed(window) = &mut self.state else { return 0 };
        if units == 0 {
            return 0;
        }
        let mut open = window.unwrap_or_else(|| Fixed::open(terms, self.now));
        open.charge(terms, units);
        *window = Some(open);
        cells.put(self.key, open, self.now);
        units
    }

    fn refund_fixed<C: Pool<Fixed>>(
        &mut self,
        terms: &FixedTerms,
        cells: &mut C,
        at: Time,
        units: i64,
    ) -> i64 {
        let State::Fixed(Some(window)) = &self.state else { return 0 };
        let same =
            at >= window.start || crate::museum::planted(crate::museum::Bug::RefundIntoNextWindow);
        let units = if same { units.min(window.used) } else { 0 };
        -self.use_fixed(terms, cells, -units)
    }

    fn refund_log<C: Pool<Log>>(
        &mut self,
        windows: &[WindowTerms],
        cells: &mut C,
        at: Time,
        units: i64,
    ) -> i64 {
        let refund = |log: &mut Log| log.refund(windows, at, units);
        cells.edit(self.key, self.now, refund).unwrap_or(0)
    }

    fn take_lease<C: Pool<Leases>>(
        &mut self,
        terms: &InflightTerms,
        cells: &mut C,
        lease: u64,
    ) -> i64 {
        let take = |leases: &mut Leases| leases.take(terms, self.now, lease);
        if cells.edit(self.key, self.now, take).is_none() {
            let mut leases = Leases::default();
            take(&mut leases);
            cells.put(self.key, leases, self.now);
        }
        1
    }

    fn with_log<C: Pool<Log>>(
        &mut self,
        windows: &[WindowTerms],
        cells: &mut C,
        change: impl Fn(&mut Log, Time),
    ) {
        if cells.edit(self.key, self.now, |log| change(log, self.now)).is_none() {
            let mut log = Log::new(windows);
            change(&mut log, self.now);
            cells.put(self.key, log, self.now);
        }
    }
}

fn smallest(windows: &[WindowTerms]) -> i64 {
    windows.iter().map(|window| window.limit).min().unwrap_or(0)
}

fn log_figures(windows: &[WindowTerms], log: Option<&Log>, now: Time, need: i64) -> Figures {
    let empty;
    let log = match log {
        Some(log) => log,
        None => {
            empty = Log::new(windows);
            &empty
        }
    };
    let tightest = log.tightest(windows);
    Figures {
        limit: tightest.map(|(window, _)| window.limit),
        free: tightest.map_or(0, |(_, free)| free),
        fits_at: log.fits_at(windows, now, need),
        full_at: log.full_at(windows, now),
    }
}

fn fixed_figures(terms: &FixedTerms, window: Option<Fixed>, now: Time, need: i64) -> Figures {
    let free = terms.limit - window.map_or(0, |window| window.used);
    let end = window.filter(|window| window.used > 0).map_or(now, |window| window.end(terms));
    Figures {
        limit: Some(terms.limit),
        free,
        fits_at: (need <= terms.limit).then_some(if free >= need { now } else { end }),
        full_at: end,
    }
}

fn lease_figures(terms: &InflightTerms, leases: Option<&Leases>, now: Time) -> Figures {
    let live = leases.map_or(0, |leases| leases.live.len() as i64);
    Figures {
        limit: Some(terms.limit),
        free: terms.limit - live,
        fits_at: Some(leases.map_or(now, |leases| leases.fits_at(terms, now))),
        full_at: leases.map_or(now, |leases| leases.full_at(now)),
    }
}

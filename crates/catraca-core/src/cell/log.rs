//! The exact sliding window: every unit with its own instant, kept in a few bytes each.
//!
//! One log holds one track per window of the policy. Must not approximate: a unit is free exactly
//! one span after it came.

mod track;

use smallvec::SmallVec;

use super::{Cell, Second, instant_of, second_after};
use crate::limit::{EXACT_MAX, WindowTerms};
use crate::time::Time;

pub use track::Track;

/// The units of one key, one track per window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// When all units have left.
    pub forget: Second,
    /// The units of each window, in the order of the policy.
    pub tracks: SmallVec<[Track; 1]>,
}

impl Cell for Log {
    #[inline]
    fn forgotten_at(&self) -> Time {
        instant_of(self.forget)
    }

    fn heap_bytes(&self) -> usize {
        let spilled = if self.tracks.spilled() { self.tracks.capacity() } else { 0 };
        let bytes: usize = self.tracks.iter().map(Track::heap_bytes).sum();
        bytes + spilled * size_of::<Track>()
    }
}

impl Log {
    /// Nothing recorded yet.
    pub fn new(windows: &[WindowTerms]) -> Self {
        Self { forget: 0, tracks: windows.iter().map(|_| Track::default()).collect() }
    }

    /// The instant to use at `now`: never before the newest unit.
    pub fn instant(&self, now: Time) -> Time {
        self.tracks.iter().filter_map(Track::newest).fold(now, Time::max)
    }

    /// Forgets the units that have left each window.
    pub fn prune(&mut self, windows: &[WindowTerms], now: Time) {
        for (track, window) in self.tracks.iter_mut().zip(windows) {
            track.prune(window.span, now);
        }
    }

    /// The units free in the tightest window; call after `prune`.
    pub fn free(&self, windows: &[WindowTerms]) -> i64 {
        let free =
            self.tracks.iter().zip(windows).map(|(track, window)| window.limit - track.used());
        free.min().unwrap_or(0)
    }

    /// The tightest window and what is free in it, the first of equals.
    pub fn tightest<'w>(&self, windows: &'w [WindowTerms]) -> Option<(&'w WindowTerms, i64)> {
        let free =
            self.tracks.iter().zip(windows).map(|(t, window)| (window, window.limit - t.used()));
        free.min_by_key(|(_, free)| *free)
    }

    /// Records units at `now` in every window.
    pub fn charge(&mut self, windows: &[WindowTerms], now: Time, units: i64) {
        let units = units.min(self.countable());
        for track in &mut self.tracks {
            track.push(now, units);
        }
        self.reckon(windows);
    }

    /// Records units and forgets the oldest above each limit.
    pub fn charge_trimmed(&mut self, windows: &[WindowTerms], now: Time, units: i64) {
        let units = units.min(self.countable());
        for (track, window) in self.tracks.iter_mut().zip(windows) {
            track.push(now, units);
            track.trim(window.limit);
        }
        self.reckon(windows);
    }

    /// Takes units back from the entry of one instant; says how many of them the first window still
    /// had.
    pub fn refund(&mut self, windows: &[WindowTerms], at: Time, units: i64) -> i64 {
        let refunded = self.tracks.iter_mut().map(|track| track.refund(at, units)).max();
        let refunded = refunded.unwrap_or(0);
        // What changes nothing writes nothing: the last write still says when to forget.
        if refunded > 0 {
            self.reckon(windows);
        }
        refunded
    }

    /// When `need` units fit in every window, if nobody comes; `None` if they never do.
    pub fn fits_at(&self, windows: &[WindowTerms], now: Time, need: i64) -> Option<Time> {
        let mut latest = now;
        for (track, window) in self.tracks.iter().zip(windows) {
            latest = latest.max(track.fits_at(window, now, need)?);
        }
        Some(latest)
    }

    /// When every unit has left every window.
    pub fn full_at(&self, windows: &[WindowTerms], now: Time) -> Time {
        let ends =
            self.tracks.iter().zip(windows).filter_map(|(track, window)| {
                track.newest().map(|newest| newest.after(window.span))
            });
        ends.fold(now, Time::max)
    }

    /// What the fullest window could still count exactly: all windows count the same.
    fn countable(&self) -> i64 {
        EXACT_MAX - self.tracks.iter().map(Track::used).max().unwrap_or(0)
    }

    fn reckon(&mut self, windows: &[WindowTerms]) {
        self.forget = second_after(self.full_at(windows, Time::ZERO));
    }
}

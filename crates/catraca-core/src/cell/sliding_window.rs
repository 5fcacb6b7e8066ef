//! Sliding window: the exact instant of every unit, in a few bytes each (docs/adr/0005).
//!
//! A policy can have several windows; the cell has one list of entries per window. Exact means that
//! a unit is free precisely one span after it was charged.

mod entries;

use smallvec::SmallVec;

use super::{Cell, Second, instant_of, second_after};
use crate::limit::{EXACT_MAX, WindowTerms};
use crate::time::Time;

pub use entries::WindowEntries;

/// The charged units of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlidingWindow {
    /// When the last unit leaves its window, under the terms of the last write.
    pub forget: Second,
    /// The entries of each window, in the order of the policy.
    pub per_window: SmallVec<[WindowEntries; 1]>,
}

impl Cell for SlidingWindow {
    #[inline]
    fn expires_at(&self) -> Time {
        instant_of(self.forget)
    }

    fn heap_bytes(&self) -> usize {
        // One window is stored inline; more are on the heap.
        let spilled = if self.per_window.spilled() { self.per_window.capacity() } else { 0 };
        let bytes: usize = self.per_window.iter().map(WindowEntries::heap_bytes).sum();
        bytes + spilled * size_of::<WindowEntries>()
    }
}

impl SlidingWindow {
    /// A cell without units. It counts as expired until the first charge sets `forget`.
    pub fn new(windows: &[WindowTerms]) -> Self {
        Self { forget: 0, per_window: windows.iter().map(|_| WindowEntries::default()).collect() }
    }

    /// The instant to use at `now`: never before the newest unit, since entries are in order of
    /// time.
    pub fn effective_now(&self, now: Time) -> Time {
        self.per_window.iter().filter_map(WindowEntries::newest).fold(now, Time::max)
    }

    /// Drops the units that have left each window.
    pub fn prune(&mut self, windows: &[WindowTerms], now: Time) {
        for (entries, window) in self.per_window.iter_mut().zip(windows) {
            entries.prune(window.span, now);
        }
    }

    /// Free units in the tightest window. Call [`Self::prune`] before.
    pub fn free(&self, windows: &[WindowTerms]) -> i64 {
        let free = self
            .per_window
            .iter()
            .zip(windows)
            .map(|(entries, window)| window.limit - entries.used_units());
        free.min().unwrap_or(0)
    }

    /// The tightest window and its free units; if several are equal, the first.
    pub fn tightest<'w>(&self, windows: &'w [WindowTerms]) -> Option<(&'w WindowTerms, i64)> {
        let free = self
            .per_window
            .iter()
            .zip(windows)
            .map(|(entries, window)| (window, window.limit - entries.used_units()));
        free.min_by_key(|(_, free)| *free)
    }

    /// Adds units at `now` to every window.
    pub fn charge(&mut self, windows: &[WindowTerms], now: Time, units: i64) {
        let units = units.min(self.remaining_exact());
        for entries in &mut self.per_window {
            entries.push(now, units);
        }
        self.update_expiry(windows);
    }

    /// Adds units to every window, then drops the oldest above each limit.
    pub fn charge_and_trim(&mut self, windows: &[WindowTerms], now: Time, units: i64) {
        let units = units.min(self.remaining_exact());
        for (entries, window) in self.per_window.iter_mut().zip(windows) {
            entries.push(now, units);
            entries.trim(window.limit);
        }
        self.update_expiry(windows);
    }

    /// Removes units from the entry at `at`, in every window that still has it. Returns the largest
    /// number removed from a window: a shorter window may have dropped the entry already.
    pub fn refund(&mut self, windows: &[WindowTerms], at: Time, units: i64) -> i64 {
        let refunded = self.per_window.iter_mut().map(|entries| entries.refund(at, units)).max();
        let refunded = refunded.unwrap_or(0);
        // A refund that removes nothing is no write, so it must not change the expiry.
        if refunded > 0 {
            self.update_expiry(windows);
        }
        refunded
    }

    /// When `need` units fit in every window if no other request comes; `None` if they never do.
    pub fn fits_at(&self, windows: &[WindowTerms], now: Time, need: i64) -> Option<Time> {
        let mut latest = now;
        for (entries, window) in self.per_window.iter().zip(windows) {
            latest = latest.max(entries.fits_at(window, now, need)?);
        }
        Some(latest)
    }

    /// When every unit has left every window.
    pub fn full_at(&self, windows: &[WindowTerms], now: Time) -> Time {
        let ends = self.per_window.iter().zip(windows).filter_map(|(entries, window)| {
            entries.newest().map(|newest| newest.after(window.span))
        });
        ends.fold(now, Time::max)
    }

    /// Units that can be added before the fullest window exceeds 2^53, the largest number that
    /// every store counts exactly. The same cap applies to all windows, so that their entries stay
    /// equal: Redis stores one list for all windows.
    fn remaining_exact(&self) -> i64 {
        EXACT_MAX - self.per_window.iter().map(WindowEntries::used_units).max().unwrap_or(0)
    }

    /// Sets the expiry: the window is empty when its last unit has left.
    fn update_expiry(&mut self, windows: &[WindowTerms]) {
        // `Time::ZERO` instead of `now`: a cell without entries has expired.
        self.forget = second_after(self.full_at(windows, Time::ZERO));
    }
}

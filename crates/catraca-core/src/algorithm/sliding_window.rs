//! Sliding window: the exact instant of every unit, in a few bytes each (docs/adr/0005).
//!
//! A policy can have several windows; the cell has one list of entries per window. Exact means that
//! a unit is free precisely one span after it was charged.

mod entries;
mod terms;

use smallvec::SmallVec;

use super::{Algorithm, CounterPosition, CounterState, LimitOptions, RowFigures, TermsWriter};
use crate::batch::WindowFigures;
use crate::cell::{Cell, CellTable, Second, instant_of, second_after};
use crate::codec::wire::{Reader, Writer};
use crate::codec::{CodecError, Fields};
use crate::limit::EXACT_MAX;
use crate::located::{FieldSchema, Node, Report};
use crate::time::{Span, Time};

pub use entries::WindowEntries;
pub use terms::{WindowList, WindowTerms};

impl Algorithm for WindowList {
    type Cell = SlidingWindow;
    type RowState = ();

    const FIELD: FieldSchema = terms::FIELD;
    const OPTIONS: &'static [&'static str] = &["block", "cost", "count_denied"];

    fn read(report: &mut Report, node: Node<'_>, _: LimitOptions) -> Option<Self> {
        terms::read(report, node)
    }

    fn describe(&self) -> String {
        let all = self.iter().map(|window| format!("{} per {}", window.limit, window.span));
        format!("window {}", all.collect::<Vec<_>>().join(" and "))
    }

    fn remark(&self) -> &'static str {
        match self.len() {
            1 => "never more in any such span",
            _ => "never more in any such span; all apply",
        }
    }

    fn write_terms(&self, to: &mut impl TermsWriter, _: u64) {
        to.raw(&[u8::try_from(self.len()).unwrap_or(u8::MAX)]);
        let windows = self.iter().take(u8::MAX.into());
        windows.for_each(|window| to.numbers(&[window.limit, window.span.micros()]));
    }

    #[inline]
    fn largest_cost(&self) -> Option<i64> {
        self.iter().map(|window| window.limit).min()
    }

    fn share(&self, nodes: i64) -> Self {
        self.iter().map(|window| window.share(nodes)).collect()
    }

    /// A span drops units that a longer one still counts, and counted denials drop those above
    /// their limit.
    fn counts_apart_from(&self, other: &Self, count_denied: bool) -> bool {
        let spans = |windows: &Self| windows.iter().map(|window| window.span).collect::<Vec<_>>();
        if count_denied { self != other } else { spans(self) != spans(other) }
    }

    #[inline]
    fn reported_span(&self) -> Option<Span> {
        self.first().map(|window| window.span)
    }

    fn longest_window(&self) -> Option<Span> {
        self.iter().map(|window| window.span).max()
    }

    fn load<C: CellTable<SlidingWindow>>(
        &self,
        at: CounterPosition<'_>,
        cells: &mut C,
    ) -> CounterState<()> {
        let Some(sliding) = cells.get(at.key, at.now) else {
            return CounterState { state: (), now: at.now, exists: false };
        };
        let now = sliding.effective_now(at.now);
        if sliding.per_window.len() != self.len() {
            // By `edit`, because its size changes.
            cells.edit(at.key, now, |sliding| sliding.change_windows(self, now));
            return CounterState { state: (), now, exists: true };
        }
        // Pruned with the spans of this batch: entries that have left their window do not return if
        // a later batch has a longer span (docs/semantics.md, 8).
        sliding.prune(self, now);
        CounterState { state: (), now, exists: true }
    }

    fn free<C: CellTable<SlidingWindow>>(
        &self,
        (): &(),
        at: CounterPosition<'_>,
        cells: &mut C,
    ) -> i64 {
        match cells.get(at.key, at.now) {
            Some(sliding) => sliding.free(self),
            None => self.largest_cost().unwrap_or(0),
        }
    }

    fn charge<C: CellTable<SlidingWindow>>(
        &self,
        (): &mut (),
        at: CounterPosition<'_>,
        cells: &mut C,
        units: i64,
        _: u64,
    ) -> i64 {
        edit_or_create(self, at, cells, |sliding| sliding.charge(self, at.now, units));
        units
    }

    fn count_denied<C: CellTable<SlidingWindow>>(
        &self,
        (): &mut (),
        at: CounterPosition<'_>,
        cells: &mut C,
        units: i64,
    ) {
        edit_or_create(self, at, cells, |sliding| sliding.charge_and_trim(self, at.now, units));
    }

    fn refund<C: CellTable<SlidingWindow>>(
        &self,
        (): &mut (),
        at: CounterPosition<'_>,
        cells: &mut C,
        charged_at: Time,
        units: i64,
    ) -> i64 {
        let refund = |sliding: &mut SlidingWindow| sliding.refund(self, charged_at, units);
        cells.edit(at.key, at.now, refund).unwrap_or(0)
    }

    fn figures<C: CellTable<SlidingWindow>>(
        &self,
        (): &(),
        at: CounterPosition<'_>,
        cells: &mut C,
        need: i64,
    ) -> RowFigures {
        // An absent cell has the figures of an empty one. Declared here to outlive the reference.
        let empty;
        let sliding = match cells.get(at.key, at.now) {
            Some(sliding) => &*sliding,
            None => {
                empty = SlidingWindow::new(self);
                &empty
            }
        };
        let tightest = sliding.tightest(self);
        RowFigures {
            limit: tightest.map(|(window, _)| window.limit),
            free: tightest.map_or(0, |(_, free)| free),
            fits_at: sliding.fits_at(self, at.now, need),
            full_at: sliding.full_at(self, at.now),
            windows: sliding.figures_per_window(self, at.now, need),
        }
    }
}

/// Changes the cell in place, or creates it.
fn edit_or_create<C: CellTable<SlidingWindow>>(
    windows: &WindowList,
    at: CounterPosition<'_>,
    cells: &mut C,
    change: impl Fn(&mut SlidingWindow),
) {
    if cells.edit(at.key, at.now, &change).is_none() {
        let mut sliding = SlidingWindow::new(windows);
        change(&mut sliding);
        cells.put(at.key, sliding, at.now);
    }
}

/// The charged units of one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlidingWindow {
    /// When the last unit leaves its window, under the terms of the last write.
    pub forget: Second,
    /// The entries of each window, in the order of the policy.
    pub per_window: SmallVec<[WindowEntries; 1]>,
}

impl Cell for SlidingWindow {
    const IS_INLINE: bool = false;

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

    /// Assigns the units to another number of windows: the catalog has changed it. Every
    /// window has the newest units of one history, so the one with the most has all that
    /// are known.
    fn change_windows(&mut self, windows: &[WindowTerms], now: Time) {
        let most = self.per_window.iter().max_by_key(|entries| entries.used_units());
        let most = most.cloned().unwrap_or_default();
        self.per_window = windows.iter().map(|_| most.clone()).collect();
        self.prune(windows, now);
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

    /// The figures of each window, if there are several.
    fn figures_per_window(
        &self,
        windows: &[WindowTerms],
        now: Time,
        need: i64,
    ) -> Box<[WindowFigures]> {
        if windows.len() < 2 {
            return Box::default();
        }
        let figures = self.per_window.iter().zip(windows).map(|(entries, window)| {
            let free = window.limit - entries.used_units();
            let fits_at = || entries.fits_at(window, now, need).unwrap_or(Time::FOREVER);
            let empty_at = entries.newest().map_or(now, |newest| newest.after(window.span));
            let full_at = empty_at.max(now);
            WindowFigures { free, fits_at: (free < need).then(fits_at), full_at }
        });
        figures.collect()
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

impl Fields for SlidingWindow {
    fn write(&self, to: &mut Writer<'_>) {
        to.number(u64::from(self.forget));
        to.count(self.per_window.len());
        self.per_window.iter().for_each(|entries| entries.write(to));
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, CodecError> {
        let forget = from.small("forget")?;
        let mut per_window = SmallVec::new();
        for _ in 0..from.count()? {
            per_window.push(WindowEntries::read(from)?);
        }
        Ok(Self { forget, per_window })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_number_of_windows_keeps_the_units_that_they_count() {
        let terms = |limit, seconds| WindowTerms { limit, span: Span::from_secs(seconds) };
        let at = |seconds: i64| Time::from_micros(seconds * 1_000_000);
        let two = [terms(9, 10), terms(9, 60)];
        let mut sliding = SlidingWindow::new(&two);
        sliding.charge(&two, at(0), 2);
        sliding.charge(&two, at(20), 1);
        sliding.prune(&two, at(20));
        let three = [terms(9, 30), terms(9, 5), terms(9, 60)];
        sliding.change_windows(&three, at(25));
        let used: Vec<i64> = sliding.per_window.iter().map(WindowEntries::used_units).collect();
        assert_eq!(used, [3, 0, 3]);
        sliding.change_windows(&[terms(9, 20)], at(25));
        assert_eq!(sliding.per_window.len(), 1);
        assert_eq!(sliding.per_window[0].used_units(), 1);
    }

    #[test]
    fn a_refund_that_removes_nothing_does_not_change_the_expiry() {
        let terms = |seconds| [WindowTerms { limit: 9, span: Span::from_secs(seconds) }];
        let at = |seconds: i64| Time::from_micros(seconds * 1_000_000);
        let mut sliding = SlidingWindow::new(&terms(60));
        sliding.charge(&terms(60), at(1), 5);
        let before = sliding.expires_at();
        assert_eq!(sliding.refund(&terms(20), at(2), 1), 0);
        assert_eq!(sliding.expires_at(), before);
        assert_eq!(sliding.refund(&terms(20), at(1), 1), 1);
        assert!(sliding.expires_at() < before);
    }

    #[test]
    fn charges_stop_at_the_largest_number_that_every_store_counts() {
        let terms = [WindowTerms { limit: 9, span: Span::from_secs(1) }];
        let mut sliding = SlidingWindow::new(&terms);
        sliding.charge(&terms, Time::ZERO, EXACT_MAX - 3);
        sliding.charge(&terms, Time::ZERO, 10);
        assert_eq!(sliding.per_window[0].used_units(), EXACT_MAX);
    }

    #[test]
    fn the_heap_has_the_entries_and_the_list_of_several_windows() {
        let terms = |seconds| WindowTerms { limit: 9, span: Span::from_secs(seconds) };
        let mut one = SlidingWindow::new(&[terms(1)]);
        assert_eq!(one.heap_bytes(), 0);
        one.charge(&[terms(1)], Time::ZERO, 5);
        assert_eq!(one.heap_bytes(), one.per_window[0].heap_bytes());
        assert!(one.heap_bytes() > 1);
        let two = SlidingWindow::new(&[terms(1), terms(2)]);
        assert_eq!(two.heap_bytes(), 2 * size_of::<WindowEntries>());
    }
}

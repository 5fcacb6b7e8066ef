//! The sliding window of section 1: a list of charges and their instants.
//!
//! Entries expire exactly as section 8 says, because a changed span makes the expiry visible.

use super::{Micros, whole_second};

/// One list of entries per window of the policy.
#[derive(Clone, Debug, Default)]
pub struct Window {
    lists: Vec<Vec<Entry>>,
    /// The longest span at the last write.
    span: Micros,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    at: Micros,
    units: i64,
}

impl Window {
    /// Drops expired entries (section 8); every call does this first.
    pub fn touch(&mut self, windows: &[(i64, Micros)], now: Micros) {
        let newest = self.lists.iter().flatten().map(|entry| entry.at).max();
        let expired = newest.is_some_and(|at| now >= whole_second(at + self.span));
        if expired {
            self.lists.clear();
        }
        // Of another number of windows, all begin with the list that has the most units.
        if self.lists.len() != windows.len() {
            let units = |list: &&Vec<Entry>| list.iter().map(|entry| entry.units).sum::<i64>();
            let most = self.lists.iter().max_by_key(units).cloned().unwrap_or_default();
            self.lists = vec![most; windows.len()];
        }
        for (list, &(_, span)) in self.lists.iter_mut().zip(windows) {
            list.retain(|entry| now - entry.at < span);
        }
    }

    /// `(limit, free)` of each window.
    pub fn free(&self, windows: &[(i64, Micros)], now: Micros) -> Vec<(i64, i64)> {
        let free = |(index, &(limit, span)): (usize, &(i64, Micros))| {
            (
                limit,
                limit
                    - self.counted_entries(index, span, now).map(|entry| entry.units).sum::<i64>(),
            )
        };
        windows.iter().enumerate().map(free).collect()
    }

    /// The first instant at which every window has `need` units free.
    pub fn ready_at(&self, windows: &[(i64, Micros)], need: i64, now: Micros) -> Micros {
        let one = |(index, (limit, free)): (usize, (i64, i64))| {
            debug_assert!(need <= limit, "a request above the limit was denied before");
            self.one_ready_at(index, windows[index].1, need - free, now)
        };
        self.free(windows, now).into_iter().enumerate().map(one).max().unwrap_or(now)
    }

    /// The instant at which `missing` more units have left one window, oldest first.
    pub fn one_ready_at(&self, index: usize, span: Micros, missing: i64, now: Micros) -> Micros {
        let mut missing = missing;
        let mut ready = now;
        for entry in self.counted_entries(index, span, now) {
            if missing <= 0 {
                break;
            }
            missing -= entry.units;
            ready = entry.at + span;
        }
        ready
    }

    /// The first instant at which no entry counts any more.
    pub fn full_at(&self, windows: &[(i64, Micros)], now: Micros) -> Micros {
        let mut full = now;
        for (index, &(_, span)) in windows.iter().enumerate() {
            for entry in self.counted_entries(index, span, now) {
                full = full.max(entry.at + span);
            }
        }
        full
    }

    /// The first instant at which no entry of one window counts any more.
    pub fn one_full_at(&self, index: usize, span: Micros, now: Micros) -> Micros {
        let ends = self.counted_entries(index, span, now).map(|entry| entry.at + span);
        ends.max().unwrap_or(now)
    }

    /// Adds an entry of `units` to each window; none for 0.
    pub fn charge(&mut self, windows: &[(i64, Micros)], units: i64, now: Micros) {
        if units > 0 {
            self.record_span(windows);
            self.lists.iter_mut().for_each(|list| list.push(Entry { at: now, units }));
        }
    }

    /// Removes up to `units` from the entry of `instant` in each window where it still counts;
    /// returns the largest number removed from one window.
    pub fn refund(
        &mut self,
        windows: &[(i64, Micros)],
        units: i64,
        instant: Micros,
        now: Micros,
    ) -> i64 {
        let mut most = 0;
        for (list, &(_, span)) in self.lists.iter_mut().zip(windows) {
            let still = |entry: &&mut Entry| entry.at == instant && now - entry.at < span;
            most = most.max(take(list.iter_mut().filter(still), units));
            list.retain(|entry| entry.units > 0);
        }
        if most > 0 {
            self.record_span(windows);
        }
        most
    }

    /// Counts a denial of `units`, then drops the oldest units above each limit.
    pub fn count_denied(&mut self, windows: &[(i64, Micros)], units: i64, now: Micros) {
        self.charge(windows, units, now);
        for (index, (_, free)) in self.free(windows, now).into_iter().enumerate() {
            let span = windows[index].1;
            take(self.lists[index].iter_mut().filter(|entry| now - entry.at < span), -free);
            self.lists[index].retain(|entry| entry.units > 0);
        }
    }

    fn record_span(&mut self, windows: &[(i64, Micros)]) {
        self.span = windows.iter().map(|window| window.1).max().unwrap_or(0);
    }

    /// The entries of one window that still count, oldest first.
    fn counted_entries(
        &self,
        index: usize,
        span: Micros,
        now: Micros,
    ) -> impl Iterator<Item = &Entry> {
        let list = self.lists.get(index).map_or(&[][..], |list| &list[..]);
        list.iter().filter(move |entry| now - entry.at < span)
    }
}

/// Removes up to `units` from the entries in turn; returns how many.
fn take<'a>(entries: impl Iterator<Item = &'a mut Entry>, units: i64) -> i64 {
    let mut left = units.max(0);
    for entry in entries {
        let part = entry.units.min(left);
        entry.units -= part;
        left -= part;
    }
    units.max(0) - left
}

//! Availability of a calendar: which ranges are taken and which are free.
//!
//! The answer is only advice, since another caller can take a free range at any time. Nothing is
//! changed.

use super::LockTable;
use crate::lock::name::CalendarName;
use crate::lock::reply::{Availability, Busy, LeaseState, LeaseTarget};
use crate::lock::requests::AvailabilityQuery;
use crate::time::Time;

/// The most busy ranges in one reply.
pub const BUSY_MAX: usize = 10_000;

impl LockTable {
    /// The busy and free ranges of a calendar within a range. The caller can exclude a lease of its
    /// own.
    pub fn availability(&self, query: &AvailabilityQuery, now: Time) -> Availability {
        let now = self.now.max(now);
        let mut page = Vec::new();
        let mut next = None;
        for busy in self.busy(query, now) {
            if page.len() == BUSY_MAX {
                next = Some(busy.start);
                break;
            }
            page.push(busy);
        }
        Availability::of(query, page, next)
    }

    fn busy<'b>(
        &'b self,
        query: &'b AvailabilityQuery,
        now: Time,
    ) -> impl Iterator<Item = Busy> + 'b {
        let name = CalendarName { tenant: query.tenant.clone(), calendar: query.calendar.clone() };
        let calendar = self.calendars.get(&name);
        // Ranges are disjoint, so of those that begin before, only the last can reach into this
        // range.
        let first = calendar
            .and_then(|all| all.range(..=query.from).next_back())
            .map_or(query.from, |(start, _)| *start);
        let range = first..query.to.max(first);
        let keys = calendar.into_iter().flat_map(move |all| all.range(range.clone()));
        keys.filter_map(move |(_, key)| {
            let entry = self.leases.get(key)?;
            let lease = &entry.lease;
            let LeaseTarget::Slot(_, range) = &lease.target else { return None };
            // A confirmed slot that is due to be forgotten may not have been removed yet.
            let is_past = lease.state == LeaseState::Confirmed && entry.due <= now;
            let is_live = !is_past && now < lease.expires_at;
            let counts = is_live && query.excluded_lease != Some(*key);
            let (start, end) = range.occupied_range();
            let start = start.max(query.from);
            let end = end.min(query.to);
            (counts && start < end).then_some(Busy {
                start,
                end,
                state: lease.state,
                fence: lease.fence,
                free_at: lease.expires_at,
            })
        })
    }
}

impl Availability {
    /// The free ranges between busy ones, which must be sorted. `next` is where a later page
    /// continues.
    pub fn of(query: &AvailabilityQuery, busy: Vec<Busy>, next: Option<Time>) -> Self {
        let mut free = Vec::new();
        let mut from = query.from;
        for range in &busy {
            free.extend(free_range(query, from, range.start));
            from = range.end;
        }
        free.extend(free_range(query, from, next.unwrap_or(query.to)));
        Self { busy, free, next }
    }
}

/// A gap between busy ranges, unless it is empty or too short to be reported.
fn free_range(query: &AvailabilityQuery, from: Time, to: Time) -> Option<(Time, Time)> {
    let is_long_enough = from < to && to.since(from) >= query.min_length;
    is_long_enough.then_some((from, to))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Span;

    fn at(micros: i64) -> Time {
        Time::from_micros(micros)
    }

    fn busy(start: i64, end: i64) -> Busy {
        let state = LeaseState::Confirmed;
        Busy { start: at(start), end: at(end), state, fence: 1, free_at: Time::FOREVER }
    }

    fn query(min_length: i64) -> AvailabilityQuery {
        AvailabilityQuery {
            tenant: None,
            calendar: "c".into(),
            from: at(0),
            to: at(100),
            min_length: Span::from_micros(min_length),
            excluded_lease: None,
        }
    }

    fn free(min_length: i64, taken: Vec<Busy>, next: Option<Time>) -> Vec<(i64, i64)> {
        let free = Availability::of(&query(min_length), taken, next).free;
        free.into_iter().map(|(from, to)| (from.micros(), to.micros())).collect()
    }

    #[test]
    fn what_is_between_busy_ranges_is_free() {
        assert_eq!(free(0, Vec::new(), None), [(0, 100)]);
        let taken = vec![busy(0, 10), busy(20, 30), busy(30, 40)];
        assert_eq!(free(0, taken.clone(), None), [(10, 20), (40, 100)]);
        // What is after the page is not known yet.
        assert_eq!(free(0, taken, Some(at(60))), [(10, 20), (40, 60)]);
    }

    #[test]
    fn a_free_range_of_exactly_the_wanted_length_is_reported() {
        let taken = vec![busy(10, 30), busy(41, 95)];
        assert_eq!(free(10, taken.clone(), None), [(0, 10), (30, 41)]);
        assert_eq!(free(11, taken.clone(), None), [(30, 41)]);
        assert_eq!(free(12, taken, None), []);
    }
}

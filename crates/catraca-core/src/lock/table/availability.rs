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

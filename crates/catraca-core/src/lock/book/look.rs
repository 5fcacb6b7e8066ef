//! Looking at a calendar: what is taken and what is free, right now.
//!
//! It is advice: only a hold is a promise. Must change nothing.

use super::Book;
use crate::lock::name::CalendarName;
use crate::lock::op::Look;
use crate::lock::reply::{Availability, Busy, State, What};
use crate::time::Time;

/// The most taken ranges in one answer.
pub const BUSY_MAX: usize = 10_000;

impl Book {
    /// What is taken and what is free in a range of a calendar. What the asker holds itself does
    /// not count.
    pub fn look(&self, asked: &Look, now: Time) -> Availability {
        let now = self.now.max(now);
        let (mut some, mut next) = (Vec::new(), None);
        for busy in self.busy(asked, now) {
            if some.len() == BUSY_MAX {
                next = Some(busy.start);
                break;
            }
            some.push(busy);
        }
        Availability::of(asked, some, next)
    }

    fn busy<'b>(&'b self, asked: &'b Look, now: Time) -> impl Iterator<Item = Busy> + 'b {
        let (tenant, calendar) = (asked.tenant.clone(), asked.calendar.clone());
        let calendar = self.calendars.get(&CalendarName { tenant, calendar });
        // Disjoint, so only one that begins before can reach into the range.
        let first = calendar
            .and_then(|all| all.range(..=asked.from).next_back())
            .map_or(asked.from, |(start, _)| *start);
        let range = first..asked.to.max(first);
        let keys = calendar.into_iter().flat_map(move |all| all.range(range.clone()));
        keys.filter_map(move |(_, key)| {
            let lease = self.leases.get(key)?;
            let view = &lease.view;
            let What::Slot(_, range) = &view.what else { return None };
            let (start, end) = range.taken();
            // One that is long past may not have been put away yet.
            let past = view.state == State::Confirmed && lease.due <= now;
            let live = !past && now < view.expires_at;
            let counts = live && asked.without != Some(*key);
            let (start, end) = (start.max(asked.from), end.min(asked.to));
            (counts && start < end).then_some(Busy {
                start,
                end,
                state: view.state,
                fence: view.fence,
                free_at: view.expires_at,
            })
        })
    }
}

impl Availability {
    /// What is free between ranges that are taken, in order, up to where one looks on.
    pub fn of(asked: &Look, busy: Vec<Busy>, next: Option<Time>) -> Self {
        let (mut free, mut from) = (Vec::new(), asked.from);
        for one in &busy {
            free.extend(gap(asked, from, one.start));
            from = one.end;
        }
        free.extend(gap(asked, from, next.unwrap_or(asked.to)));
        Self { busy, free, next }
    }
}

fn gap(asked: &Look, from: Time, to: Time) -> Option<(Time, Time)> {
    let long = from < to && to.since(from) >= asked.min_length;
    long.then_some((from, to))
}

//! Slots: ranges of time that never overlap in one calendar.
//!
//! What is stored of a calendar is always disjoint, expired holds included, so only the range that
//! begins last before a new one ends can overlap it: one look, however full the calendar is. Must
//! not leave an expired hold beside a new one.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Book, calendars, request};
use crate::lock::id::LeaseKey;
use crate::lock::name::CalendarName;
use crate::lock::op::{Hold, Move, Proof, Range};
use crate::lock::reply::{Acquired, Confirmed, Conflict, Ended, Moved, State, View, What};
use crate::museum::{Bug, planted};
use crate::time::Time;

impl Book {
    /// Takes a range of time in some calendars, all or none.
    pub fn hold(&mut self, asked: &Hold, now: Time) -> Acquired {
        self.begin(now);
        let print = request::of_hold(asked);
        if let Some(before) = self.repeated(print) {
            return before;
        }
        let names = calendars(asked.tenant.as_deref(), &asked.calendars);
        if let Some(conflict) = self.overlap(&names, asked.range) {
            return Acquired::Conflict(conflict);
        }
        if let Err(refusal) = self.room() {
            return Acquired::Refused(refusal);
        }
        let what = What::Slot(names, asked.range);
        Acquired::Granted(Box::new(self.grant(what, &asked.kind, &asked.lease, print)))
    }

    /// Takes what is held for good. Once it is, it stays so. With `again`, a hold that is over is
    /// taken anew if nobody else has any of it.
    pub fn confirm(&mut self, proof: &Proof, again: bool, now: Time) -> Confirmed {
        self.begin(now);
        let Some(view) = self.shown(proof) else { return Confirmed::NotHolder };
        let What::Slot(names, range) = view.what.clone() else { return Confirmed::NotHolder };
        match view.state {
            State::Held | State::Confirmed => Confirmed::Done(Box::new(self.settle_slot(view))),
            State::Expired => {
                let still_free = self.overlap(&names, range).is_none();
                if again && still_free {
                    return Confirmed::Done(Box::new(self.revive(view)));
                }
                Confirmed::Over { state: State::Expired, still_free }
            }
            state => Confirmed::Over { state, still_free: self.overlap(&names, range).is_none() },
        }
    }

    /// Gives a slot back, confirmed or not.
    pub fn cancel(&mut self, proof: &Proof, now: Time) -> Ended {
        self.begin(now);
        let view = self.shown(proof).filter(|view| matches!(view.what, What::Slot(..)));
        self.finish(proof.key, view.map(|view| view.state))
    }

    /// Puts a slot somewhere else, or leaves it where it is.
    pub fn relocate(&mut self, asked: &Move, now: Time) -> Moved {
        self.begin(now);
        let Some(mut view) = self.shown(&asked.proof) else { return Moved::NotHolder };
        let What::Slot(names, range) = view.what.clone() else { return Moved::NotHolder };
        if !view.state.is_live() {
            return Moved::Over(view.state);
        }
        let tenant = view.tenant().map(Box::<str>::from);
        let there = match &asked.calendars {
            Some(others) => calendars(tenant.as_deref(), others),
            None => names.clone(),
        };
        let then = Range { start: asked.start, end: asked.end, ..range };
        self.vacate(&names, range.taken().0, view.key);
        if let Some(conflict) = self.overlap(&there, then) {
            self.occupy(&names, range.taken().0, view.key);
            return Moved::Conflict(conflict);
        }
        self.occupy(&there, then.taken().0, view.key);
        view.what = What::Slot(there, then);
        self.renumber(&mut view);
        Moved::Done(Box::new(view))
    }

    fn settle_slot(&mut self, mut view: View) -> View {
        view.state = State::Confirmed;
        view.expires_at = Time::FOREVER;
        self.redate(&view);
        view
    }

    /// An expired hold whose time nobody took, in force again with a new number.
    fn revive(&mut self, mut view: View) -> View {
        let request = self.leases.get(&view.key).and_then(|lease| lease.request);
        self.forget(view.key);
        view.fence = self.next_fence();
        view.acquired_at = self.now;
        view.state = State::Confirmed;
        view.expires_at = Time::FOREVER;
        self.tally.revived(view.tenant(), &view.kind);
        self.insert(view.clone(), request);
        view
    }

    /// Gives a lease in force a new number.
    fn renumber(&mut self, view: &mut View) {
        let tenant: Option<Box<str>> = view.tenant().map(Box::from);
        let fences = self.tenants.entry(tenant).or_default();
        fences.remove(&view.fence);
        self.live.remove(&view.fence);
        view.fence = self.next_fence();
        self.live.insert(view.fence, view.key);
        let tenant: Option<Box<str>> = view.tenant().map(Box::from);
        self.tenants.entry(tenant).or_default().insert(view.fence);
        self.redate(view);
    }

    pub(super) fn occupy(&mut self, names: &[Arc<CalendarName>], start: Time, key: LeaseKey) {
        for name in names {
            self.calendars.entry(Arc::clone(name)).or_default().insert(start, key);
        }
    }

    pub(super) fn vacate(&mut self, names: &[Arc<CalendarName>], start: Time, key: LeaseKey) {
        for name in names {
            let Some(calendar) = self.calendars.get_mut(&**name) else { continue };
            if calendar.get(&start) == Some(&key) {
                calendar.remove(&start);
            }
            if calendar.is_empty() {
                self.calendars.remove(&**name);
            }
        }
    }

    /// The first calendar in which somebody has part of a range, and who.
    pub(super) fn overlap(
        &mut self,
        names: &[Arc<CalendarName>],
        range: Range,
    ) -> Option<Box<Conflict>> {
        let taken = range.taken();
        names.iter().find_map(|name| {
            let key = self.overlapping(name, taken)?;
            self.conflict(key, &name.calendar)
        })
    }

    fn overlapping(&mut self, name: &CalendarName, (start, end): (Time, Time)) -> Option<LeaseKey> {
        loop {
            let calendar = self.calendars.get(name)?;
            let key = last_before(calendar, end)?;
            let What::Slot(_, other) = &self.leases.get(&key)?.view.what else { return None };
            let other_end = other.taken().1;
            let touches = planted(Bug::LockOverlapInclusive) && other_end == start;
            if other_end <= start && !touches {
                return None;
            }
            if self.lease(key)?.state.is_live() {
                return Some(key);
            }
            // It was over, and is gone from the calendar: whoever is before it may overlap, too.
            if planted(Bug::LockExpiredHoldStays) {
                return None;
            }
        }
    }
}

/// Whoever begins last before an instant.
fn last_before(calendar: &BTreeMap<Time, LeaseKey>, end: Time) -> Option<LeaseKey> {
    calendar.range(..end).next_back().map(|(_, key)| *key)
}

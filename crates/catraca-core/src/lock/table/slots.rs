//! Slots: ranges of time that never overlap in one calendar.
//!
//! The stored ranges of a calendar are always disjoint, including those of expired holds. Therefore
//! only the range that begins last before the end of a new one can overlap it, and one lookup
//! decides, however full the calendar is. An expired hold must be removed before a new one is
//! inserted beside it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{LockTable, calendars, idempotency};
use crate::lock::id::LeaseKey;
use crate::lock::name::CalendarName;
use crate::lock::reply::{
    AcquireReply, ConfirmReply, Conflict, Lease, LeaseState, LeaseTarget, MoveReply, ReleaseReply,
};
use crate::lock::requests::{Hold, Move, Proof, TimeRange};
use crate::time::Time;

impl LockTable {
    /// Holds a range of time in calendars, all or none.
    pub fn hold(&mut self, request: &Hold, now: Time) -> AcquireReply {
        self.begin(now);
        let digest = idempotency::digest_hold(request);
        if let Some(reply) = self.reply_to_repeat(digest) {
            return reply;
        }
        let names = calendars(request.tenant.as_deref(), &request.calendars);
        if let Some(conflict) = self.overlap(&names, request.range) {
            return AcquireReply::Conflict(conflict);
        }
        if let Err(refusal) = self.ensure_room() {
            return AcquireReply::Refused(refusal);
        }
        let target = LeaseTarget::Slot(names, request.range);
        AcquireReply::Granted(Box::new(self.grant(target, &request.kind, &request.lease, digest)))
    }

    /// Confirms a held slot; it never expires. With `again`, an expired hold is confirmed too, if
    /// its range is still free.
    pub fn confirm(&mut self, proof: &Proof, again: bool, now: Time) -> ConfirmReply {
        self.begin(now);
        let Some(lease) = self.lease_of_proof(proof) else { return ConfirmReply::NotHolder };
        let LeaseTarget::Slot(names, range) = lease.target.clone() else {
            return ConfirmReply::NotHolder;
        };
        match lease.state {
            LeaseState::Held | LeaseState::Confirmed => {
                ConfirmReply::Done(Box::new(self.confirm_held(lease)))
            }
            LeaseState::Expired => {
                let still_free = self.overlap(&names, range).is_none();
                if again && still_free {
                    return ConfirmReply::Done(Box::new(self.revive(lease)));
                }
                ConfirmReply::Over { state: LeaseState::Expired, still_free }
            }
            state => {
                ConfirmReply::Over { state, still_free: self.overlap(&names, range).is_none() }
            }
        }
    }

    /// Cancels a slot, held or confirmed.
    pub fn cancel(&mut self, proof: &Proof, now: Time) -> ReleaseReply {
        self.begin(now);
        let lease = self
            .lease_of_proof(proof)
            .filter(|lease| matches!(lease.target, LeaseTarget::Slot(..)));
        self.end_by_holder(proof.key, lease.map(|lease| lease.state))
    }

    /// Moves a slot to another range or calendar. On a conflict it stays where it is.
    pub fn relocate(&mut self, request: &Move, now: Time) -> MoveReply {
        self.begin(now);
        let Some(mut lease) = self.lease_of_proof(&request.proof) else {
            return MoveReply::NotHolder;
        };
        let LeaseTarget::Slot(names, range) = lease.target.clone() else {
            return MoveReply::NotHolder;
        };
        if !lease.state.is_live() {
            return MoveReply::Over(lease.state);
        }
        let tenant = lease.tenant().map(Box::<str>::from);
        let new_names = match &request.calendars {
            Some(others) => calendars(tenant.as_deref(), others),
            None => names.clone(),
        };
        let new_range = TimeRange { start: request.start, end: request.end, ..range };
        // Removed first: the new range may overlap the old one of the same slot.
        self.vacate(&names, range.occupied_range().0, lease.key);
        if let Some(conflict) = self.overlap(&new_names, new_range) {
            self.occupy(&names, range.occupied_range().0, lease.key);
            return MoveReply::Conflict(conflict);
        }
        self.occupy(&new_names, new_range.occupied_range().0, lease.key);
        lease.target = LeaseTarget::Slot(new_names, new_range);
        // A move takes a new range, so like a grant it needs a higher fence.
        self.assign_new_fence(&mut lease);
        MoveReply::Done(Box::new(lease))
    }

    fn confirm_held(&mut self, mut lease: Lease) -> Lease {
        lease.state = LeaseState::Confirmed;
        lease.expires_at = Time::FOREVER;
        self.update_lease(&lease);
        lease
    }

    /// Confirms an expired hold whose range is still free. It gets a new fence, as a new grant
    /// would.
    fn revive(&mut self, mut lease: Lease) -> Lease {
        let request = self.leases.get(&lease.key).and_then(|entry| entry.request);
        // Removes the tombstone, which has another due time, before the lease is inserted again.
        self.forget(lease.key);
        lease.fence = self.next_fence();
        lease.acquired_at = self.now;
        lease.state = LeaseState::Confirmed;
        lease.expires_at = Time::FOREVER;
        self.counters.on_revived(lease.tenant(), &lease.kind);
        self.insert(lease.clone(), request);
        lease
    }

    /// Gives a live lease a new fence.
    fn assign_new_fence(&mut self, lease: &mut Lease) {
        let tenant: Option<Box<str>> = lease.tenant().map(Box::from);
        let old_fence = lease.fence;
        lease.fence = self.next_fence();
        self.live.remove(&old_fence);
        self.live.insert(lease.fence, lease.key);
        let fences = self.tenants.entry(tenant).or_default();
        fences.remove(&old_fence);
        fences.insert(lease.fence);
        self.update_lease(lease);
    }

    pub(super) fn occupy(&mut self, names: &[Arc<CalendarName>], start: Time, key: LeaseKey) {
        for name in names {
            self.calendars.entry(Arc::clone(name)).or_default().insert(start, key);
        }
    }

    pub(super) fn vacate(&mut self, names: &[Arc<CalendarName>], start: Time, key: LeaseKey) {
        for name in names {
            let Some(calendar) = self.calendars.get_mut(&**name) else { continue };
            // Another lease may begin at the same instant by now.
            if calendar.get(&start) == Some(&key) {
                calendar.remove(&start);
            }
            if calendar.is_empty() {
                self.calendars.remove(&**name);
            }
        }
    }

    /// The conflict in the first calendar in which part of a range is taken.
    pub(super) fn overlap(
        &mut self,
        names: &[Arc<CalendarName>],
        range: TimeRange,
    ) -> Option<Box<Conflict>> {
        let (start, end) = range.occupied_range();
        names.iter().find_map(|name| {
            let key = self.find_overlap(name, start, end)?;
            self.conflict(key, &name.calendar)
        })
    }

    /// The live lease in a calendar that overlaps a range.
    fn find_overlap(&mut self, name: &CalendarName, start: Time, end: Time) -> Option<LeaseKey> {
        loop {
            let calendar = self.calendars.get(name)?;
            let key = last_before(calendar, end)?;
            let LeaseTarget::Slot(_, other) = &self.leases.get(&key)?.lease.target else {
                return None;
            };
            let other_end = other.occupied_range().1;
            if other_end <= start {
                return None;
            }
            if self.current_lease(key)?.state.is_live() {
                return Some(key);
            }
            // The hold had expired, and `current_lease` has removed it from the calendar. The range
            // before it can overlap too.
        }
    }
}

/// The lease that begins last before an instant.
fn last_before(calendar: &BTreeMap<Time, LeaseKey>, end: Time) -> Option<LeaseKey> {
    calendar.range(..end).next_back().map(|(_, key)| *key)
}

//! Locks on names: acquire, renew, release, and the operators' force and clear.
//!
//! A lease is ended only by its proof or by its fence, never by a name alone: the name may belong
//! to another lease by now.

use std::ops::RangeInclusive;
use std::sync::Arc;

use super::{LockTable, idempotency, lock_names};
use crate::lock::id::LeaseKey;
use crate::lock::name::LockName;
use crate::lock::reply::{AcquireReply, Lease, LeaseState, LeaseTarget, ReleaseReply, RenewReply};
use crate::lock::requests::{Acquire, Proof};
use crate::lock::terms::VersionPolicy;
use crate::time::{Span, Time};

impl LockTable {
    /// Acquires names, all or none.
    pub fn acquire(&mut self, request: &Acquire, now: Time) -> AcquireReply {
        self.begin(now);
        // A repeated request gets the same lease, even though that lease now holds the names.
        let digest = idempotency::digest_acquire(request);
        if let Some(reply) = self.reply_to_repeat(digest) {
            return reply;
        }
        let names = lock_names(request.tenant.as_deref(), &request.kind, &request.keys);
        if let Some(conflict) = self.first_conflict(&names) {
            return conflict;
        }
        if let Err(refusal) = self.ensure_room() {
            return AcquireReply::Refused(refusal);
        }
        // Last, since it raises the versions: after this nothing may fail.
        if request.policy == VersionPolicy::Monotonic
            && let Err(stale) = self.raise_versions(&names, &request.lease)
        {
            return stale;
        }
        let lease = self.grant(LeaseTarget::Names(names), &request.kind, &request.lease, digest);
        AcquireReply::Granted(Box::new(lease))
    }

    /// Extends a held lease, at most to its `hold_until`.
    pub fn renew(&mut self, proof: &Proof, ttl: Span, now: Time) -> RenewReply {
        self.begin(now);
        let Some(mut lease) = self.lease_of_proof(proof) else { return RenewReply::NotHolder };
        if !lease.state.is_live() {
            return RenewReply::Over(lease.state);
        }
        // A confirmed slot never expires.
        if lease.state == LeaseState::Confirmed {
            return RenewReply::AtMost(Box::new(lease));
        }
        let new_end = self.now.after(ttl).min(lease.hold_until);
        if new_end <= lease.expires_at && lease.expires_at >= lease.hold_until {
            return RenewReply::AtMost(Box::new(lease));
        }
        // A renewal with a shorter TTL never shortens a lease.
        lease.expires_at = lease.expires_at.max(new_end);
        // A restored lease lasts `ttl` again, which must not be less than its holder was promised.
        lease.ttl = ttl.max(lease.expires_at.since(self.now));
        self.update_lease(&lease);
        RenewReply::Extended(Box::new(lease))
    }

    /// Releases a lock.
    pub fn release(&mut self, proof: &Proof, now: Time) -> ReleaseReply {
        self.begin(now);
        let lease = self
            .lease_of_proof(proof)
            .filter(|lease| matches!(lease.target, LeaseTarget::Names(_)));
        self.end_by_holder(proof.key, lease.map(|lease| lease.state))
    }

    /// Ends a lease in this state on behalf of its holder.
    pub(super) fn end_by_holder(
        &mut self,
        key: LeaseKey,
        state: Option<LeaseState>,
    ) -> ReleaseReply {
        match state {
            Some(LeaseState::Held | LeaseState::Confirmed) => {
                self.end(key, LeaseState::Released);
                ReleaseReply::Released
            }
            Some(LeaseState::Released) => ReleaseReply::Already,
            Some(LeaseState::Expired) => ReleaseReply::Expired,
            // An operator ended the lease, so the caller is not its holder any more.
            Some(LeaseState::Forced) | None => ReleaseReply::NotHolder,
        }
    }

    /// Ends a lease by its fence, for an operator. Its names stay taken for the cool-down, so that
    /// its holder can notice, but not longer than the lease would have lasted.
    pub fn force(&mut self, fence: i64, cool_down: Span, now: Time) -> Option<Lease> {
        self.begin(now);
        let key = *self.live.get(&fence)?;
        let lease = self.current_lease(key)?;
        if !lease.state.is_live() {
            return None;
        }
        self.end(key, LeaseState::Forced);
        let cool_until = self.now.after(cool_down).min(lease.expires_at);
        if let (LeaseTarget::Names(names), true) = (&lease.target, cool_until > self.now) {
            // `end` has freed the names; they are taken again, and must not be reported as free.
            for name in names {
                self.names.insert(Arc::clone(name), key);
            }
            self.freed.retain(|name| !names.contains(name));
        }
        let entry = self.leases.get_mut(&key)?;
        entry.cool_until = cool_until;
        Some(entry.lease.clone())
    }

    /// Ends leases of a tenant with these fences, for an operator; at most `most` are looked at.
    /// Confirmed slots stay. Returns how many ended, and the fence to continue after unless all
    /// were looked at.
    pub fn clear(
        &mut self,
        tenant: Option<&str>,
        fences: RangeInclusive<i64>,
        most: usize,
        now: Time,
    ) -> (usize, Option<i64>) {
        self.begin(now);
        let page: Vec<i64> = match self.tenants.get(&tenant.map(Box::from)) {
            // `BTreeSet::range` panics if the start is above the end.
            Some(theirs) if fences.start() <= fences.end() => {
                theirs.range(fences).take(most).copied().collect()
            }
            _ => Vec::new(),
        };
        let next = (page.len() == most).then(|| page.last().copied()).flatten();
        let mut ended = 0;
        for fence in page {
            let key = self.live.get(&fence).copied();
            let state = key.and_then(|key| self.current_lease(key)).map(|lease| lease.state);
            if let (Some(key), Some(LeaseState::Held)) = (key, state) {
                self.end(key, LeaseState::Forced);
                ended += 1;
            }
        }
        (ended, next)
    }

    /// The lease of a proof, if the caller may access it.
    pub(super) fn lease_of_proof(&mut self, proof: &Proof) -> Option<Lease> {
        let lease = self.current_lease(proof.key)?;
        let may_access = proof.tenant.is_none() || lease.tenant() == proof.tenant.as_deref();
        may_access.then_some(lease)
    }

    /// A lease as it is now; an expired one is ended first.
    pub(super) fn current_lease(&mut self, key: LeaseKey) -> Option<Lease> {
        let lease = &self.leases.get(&key)?.lease;
        if lease.state == LeaseState::Held && self.has_passed(lease.expires_at) {
            self.end(key, LeaseState::Expired);
        }
        self.leases.get(&key).map(|entry| entry.lease.clone())
    }

    /// Whether an instant has come. A lease is free at the very instant of its end.
    pub(super) fn has_passed(&self, instant: Time) -> bool {
        instant <= self.now
    }

    /// The conflict for the first name that is taken.
    fn first_conflict(&mut self, names: &[Arc<LockName>]) -> Option<AcquireReply> {
        names.iter().find_map(|name| {
            let key = self.holder(name)?;
            self.conflict(key, &name.key).map(AcquireReply::Conflict)
        })
    }

    /// The lease that holds a name. An expired one is ended first.
    fn holder(&mut self, name: &LockName) -> Option<LeaseKey> {
        let key = *self.names.get(name)?;
        let state = self.current_lease(key)?.state;
        let cool_until = self.leases.get(&key)?.cool_until;
        match state {
            LeaseState::Held | LeaseState::Confirmed => Some(key),
            // In its cool-down the name is still taken.
            LeaseState::Forced if self.now < cool_until => Some(key),
            LeaseState::Forced => {
                if let Some((name, _)) = self.names.remove_entry(name) {
                    self.freed.push(name);
                }
                None
            }
            LeaseState::Released | LeaseState::Expired => None,
        }
    }

    /// Stores a changed lease, and when it is due.
    pub(super) fn update_lease(&mut self, lease: &Lease) {
        let due = super::due(lease);
        if let Some(entry) = self.leases.get_mut(&lease.key) {
            self.due.remove(&(entry.due, lease.key));
            self.due.insert((due, lease.key));
            entry.due = due;
            entry.lease = lease.clone();
        }
    }
}

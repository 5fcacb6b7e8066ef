//! Names: taking them all or none, renewing, giving back, and what operators do.
//!
//! Must not end anything by a name alone: whoever shows the proof of a lease can end that lease.

use std::sync::Arc;

use super::{Book, lock_names, request};
use crate::lock::id::LeaseKey;
use crate::lock::name::LockName;
use crate::lock::op::{Acquire, Proof};
use crate::lock::reply::{Acquired, Conflict, Ended, Renewed, State, View, What};
use crate::lock::terms::VersionPolicy;
use crate::museum::{Bug, planted};
use crate::time::{Span, Time};

impl Book {
    /// Takes some names, all or none.
    pub fn acquire(&mut self, asked: &Acquire, now: Time) -> Acquired {
        self.begin(now);
        let print = request::of_acquire(asked);
        if let Some(before) = self.repeated(print) {
            return before;
        }
        let names = lock_names(asked.tenant.as_deref(), &asked.kind, &asked.keys);
        if let Some(conflict) = self.taken(&names) {
            return conflict;
        }
        if let Err(refusal) = self.room() {
            return Acquired::Refused(refusal);
        }
        if asked.policy == VersionPolicy::Monotonic
            && let Err(stale) = self.raise_versions(&names, &asked.lease)
        {
            return stale;
        }
        let view = self.grant(What::Names(names), &asked.kind, &asked.lease, print);
        Acquired::Granted(Box::new(view))
    }

    /// The same without asking whether anybody holds them, for tests of the tests.
    pub fn seize(&mut self, asked: &Acquire, now: Time) -> Acquired {
        self.begin(now);
        let names = lock_names(asked.tenant.as_deref(), &asked.kind, &asked.keys);
        let view = self.grant(What::Names(names), &asked.kind, &asked.lease, None);
        Acquired::Granted(Box::new(view))
    }

    /// Who has the first of the names that somebody has.
    pub fn met(&mut self, asked: &Acquire, now: Time) -> Option<Box<Conflict>> {
        self.begin(now);
        let names = lock_names(asked.tenant.as_deref(), &asked.kind, &asked.keys);
        match self.taken(&names) {
            Some(Acquired::Conflict(conflict)) => Some(conflict),
            _ => None,
        }
    }

    /// Puts away the lease of a name if it is over.
    pub fn settle(&mut self, name: &LockName, now: Time) {
        self.begin(now);
        self.holder(name);
    }

    /// Makes a lease last longer: only its holder, only while it lasts, only so far.
    pub fn renew(&mut self, proof: &Proof, ttl: Span, now: Time) -> Renewed {
        self.begin(now);
        let Some(mut view) = self.shown(proof) else { return Renewed::NotHolder };
        if planted(Bug::LockRenewByAnyone) && view.state == State::Expired {
            view.state = State::Held;
            view.expires_at = self.now.after(ttl);
        }
        if !view.state.is_live() {
            return Renewed::Over(view.state);
        }
        if view.state == State::Confirmed {
            return Renewed::AtMost(Box::new(view));
        }
        let wanted = self.now.after(ttl).min(view.hold_until);
        if wanted <= view.expires_at && view.expires_at >= view.hold_until {
            return Renewed::AtMost(Box::new(view));
        }
        view.expires_at = view.expires_at.max(wanted);
        // What a disk brings back lasts this long: never less than its holder was told.
        view.ttl = ttl.max(view.expires_at.since(self.now));
        self.redate(&view);
        Renewed::Extended(Box::new(view))
    }

    /// Gives names back.
    pub fn release(&mut self, proof: &Proof, now: Time) -> Ended {
        self.begin(now);
        let view = self.shown(proof).filter(|view| matches!(view.what, What::Names(_)));
        if planted(Bug::LockReleaseByName) {
            self.release_by_name(view.as_ref());
        }
        self.finish(proof.key, view.map(|view| view.state))
    }

    pub(super) fn finish(&mut self, key: LeaseKey, state: Option<State>) -> Ended {
        match state {
            Some(State::Held | State::Confirmed) => {
                self.end(key, State::Released);
                Ended::Released
            }
            Some(State::Released) => Ended::Already,
            Some(State::Expired) => Ended::Expired,
            Some(State::Forced) | None => Ended::NotHolder,
        }
    }

    /// Of what kind the lease of a proof is, if the caller may touch it.
    pub fn kind_of(&mut self, proof: &Proof) -> Option<Box<str>> {
        self.shown(proof).map(|view| view.kind)
    }

    /// An operator ends a lease by its number. Its names stay taken for a moment, at most as long
    /// as it would have lasted, so that its holder can notice.
    pub fn force(&mut self, fence: i64, cool_down: Span, now: Time) -> Option<View> {
        self.begin(now);
        let key = *self.live.get(&fence)?;
        let view = self.lease(key)?;
        if !view.state.is_live() {
            return None;
        }
        self.end(key, State::Forced);
        let cool_until = self.now.after(cool_down).min(view.expires_at);
        if let (What::Names(names), true) = (&view.what, cool_until > self.now) {
            for name in names {
                self.names.insert(Arc::clone(name), key);
            }
            self.freed.retain(|name| !names.contains(name));
        }
        let lease = self.leases.get_mut(&key)?;
        lease.cool_until = cool_until;
        Some(lease.view.clone())
    }

    /// An operator ends leases of a tenant up to a number, some at a time: locks and holds, and
    /// nothing that is confirmed. Gives how many, and where to go on unless that was all.
    pub fn clear(
        &mut self,
        tenant: Option<&str>,
        (after, upto): (i64, i64),
        most: usize,
        now: Time,
    ) -> (usize, Option<i64>) {
        self.begin(now);
        let fences = self.tenants.get(&tenant.map(Box::from));
        let range = after.saturating_add(1)..=upto;
        let some: Vec<i64> = match fences {
            Some(fences) if range.start() <= range.end() => {
                fences.range(range).take(most).copied().collect()
            }
            _ => Vec::new(),
        };
        let next = (some.len() == most).then(|| some.last().copied()).flatten();
        let mut ended = 0;
        for fence in some {
            let key = self.live.get(&fence).copied();
            let state = key.and_then(|key| self.lease(key)).map(|view| view.state);
            if let (Some(key), Some(State::Held)) = (key, state) {
                self.end(key, State::Forced);
                ended += 1;
            }
        }
        (ended, next)
    }

    /// The lease whose proof was shown, if the caller may touch it.
    pub(super) fn shown(&mut self, proof: &Proof) -> Option<View> {
        let view = self.lease(proof.key)?;
        let ours = proof.tenant.is_none() || view.tenant() == proof.tenant.as_deref();
        ours.then_some(view)
    }

    /// A lease as it is now: one whose time is over has ended.
    pub(super) fn lease(&mut self, key: LeaseKey) -> Option<View> {
        let view = &self.leases.get(&key)?.view;
        if view.state == State::Held && self.is_over(view.expires_at) {
            self.end(key, State::Expired);
        }
        self.leases.get(&key).map(|lease| lease.view.clone())
    }

    pub(super) fn is_over(&self, expires_at: Time) -> bool {
        if planted(Bug::LockExpiryInclusive) {
            return expires_at < self.now;
        }
        expires_at <= self.now
    }

    /// The first of some names that somebody has.
    fn taken(&mut self, names: &[Arc<LockName>]) -> Option<Acquired> {
        names.iter().find_map(|name| {
            let key = self.holder(name)?;
            self.conflict(key, &name.key).map(Acquired::Conflict)
        })
    }

    /// Who has a name, put away if its time is over.
    fn holder(&mut self, name: &LockName) -> Option<LeaseKey> {
        let key = *self.names.get(name)?;
        let state = self.lease(key)?.state;
        let cool_until = self.leases.get(&key)?.cool_until;
        match state {
            State::Held | State::Confirmed => Some(key),
            State::Forced if self.now < cool_until => Some(key),
            State::Forced => {
                if let Some((name, _)) = self.names.remove_entry(name) {
                    self.freed.push(name);
                }
                None
            }
            State::Released | State::Expired => None,
        }
    }

    /// A lease's new end.
    pub(super) fn redate(&mut self, view: &View) {
        let due = super::due(view);
        if let Some(lease) = self.leases.get_mut(&view.key) {
            self.due.remove(&(lease.due, view.key));
            self.due.insert((due, view.key));
            lease.due = due;
            lease.view = view.clone();
        }
    }

    /// The mistake of ending whatever has the name now.
    fn release_by_name(&mut self, view: Option<&View>) {
        let Some(What::Names(names)) = view.map(|view| &view.what) else { return };
        for name in names {
            if let Some(key) = self.holder(name) {
                self.end(key, State::Released);
            }
        }
    }
}

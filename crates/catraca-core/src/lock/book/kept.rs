//! Leases as they are kept on a disk, and how they come back.
//!
//! Must not bring a lease back for less time than its holder was told.

use super::{Book, what};
use crate::lock::id::LeaseKey;
use crate::lock::kept::KeptLease;
use crate::lock::reply::{State, View, What};
use crate::time::{Span, Time};

impl Book {
    /// How much longer the longest lease that is not confirmed lasts.
    pub fn left(&mut self, now: Time) -> Span {
        self.now = self.now.max(now);
        let held = self.live.values().filter_map(|key| self.leases.get(key));
        let held = held.filter(|lease| lease.view.state == State::Held);
        held.map(|lease| lease.view.expires_at.since(self.now)).max().unwrap_or_default()
    }

    /// A lease as it is to be kept, if it is in force.
    pub fn keep(&self, key: LeaseKey) -> Option<KeptLease> {
        let lease = self.leases.get(&key).filter(|lease| lease.view.state.is_live())?;
        let (view, request) = (&lease.view, lease.request);
        let (names, range) = match &view.what {
            What::Names(names) => (names.iter().map(|name| name.key.clone()).collect(), None),
            What::Slot(names, range) => {
                (names.iter().map(|name| name.calendar.clone()).collect(), Some(*range))
            }
        };
        Some(KeptLease {
            key,
            tenant: view.tenant().map(Box::from),
            kind: view.kind.clone(),
            names,
            range,
            fence: view.fence,
            version: view.version,
            label: view.label.clone(),
            meta: view.meta.clone(),
            acquired_at: view.acquired_at,
            expires_at: view.expires_at,
            hold_until: view.hold_until,
            ttl: view.ttl,
            state: view.state,
            request,
        })
    }

    /// Leases in force that are not confirmed, as they are to be kept when a process ends in order:
    /// each lasts as long as it has left, from whenever it is brought back.
    pub fn held(&mut self, now: Time) -> impl Iterator<Item = KeptLease> + '_ {
        self.now = self.now.max(now);
        let kept = self.live.values().filter_map(|key| self.keep(*key));
        let held = kept.filter(|kept| kept.state == State::Held && self.now < kept.expires_at);
        held.map(|kept| KeptLease { ttl: kept.expires_at.since(self.now), ..kept })
    }

    /// Brings a lease back. What is held lasts its whole TTL again: never shorter than its holder
    /// was told, whatever the clock did while nobody looked.
    pub fn restore(&mut self, kept: KeptLease, now: Time) {
        self.now = self.now.max(now);
        self.raise(kept.fence);
        let expires_at = match kept.state {
            State::Confirmed => Time::FOREVER,
            _ => self.now.after(kept.ttl),
        };
        let what = what(kept.tenant.as_deref(), &kept.kind, &kept.names, kept.range);
        let view = View {
            key: kept.key,
            fence: kept.fence,
            kind: kept.kind,
            what,
            version: kept.version,
            label: kept.label,
            meta: kept.meta,
            acquired_at: kept.acquired_at,
            expires_at,
            hold_until: kept.hold_until.max(expires_at),
            ttl: kept.ttl,
            state: kept.state,
        };
        self.tally.granted(view.tenant(), &view.kind);
        self.insert(view, kept.request);
    }
}

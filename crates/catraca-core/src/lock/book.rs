//! The state of one namespace's locks and slots, and the rules that change it.
//!
//! `leases` takes, renews and ends; `slots` keeps ranges apart; `look` reads calendars; `request`
//! lets a call be repeated; `versions` keeps the highest; `sweep` puts away; `kept` is for disks.
//! Expiry is data: a lease is held while now is before its end, whether or not anybody has put it
//! away. Must not look at a clock: `now` comes with every operation.

mod apply;
mod back;
mod kept;
mod leases;
pub mod look;
pub mod part;
pub mod request;
mod slots;
mod sweep;
mod versions;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::id::LeaseKey;
use super::name::{CalendarName, LockName};
use super::op::{Range, Wanted};
use super::refusal::LockRefusal;
use super::reply::{Conflict, State, View, What};
use super::tally::Tally;
use super::{LEASES_MAX, PAST_KEPT, SLOT_TOMBSTONE, TOMBSTONE};
use crate::museum::{Bug, planted};
use crate::time::{Span, Time};
use versions::Versions;

pub use part::{Part, StoredLease};

/// The locks and slots of one namespace.
#[derive(Debug, Default)]
pub struct Book {
    /// The latest instant that was ever told; time does not go back.
    now: Time,
    /// The last number that was given out.
    fence: i64,
    leases: HashMap<LeaseKey, Lease>,
    names: BTreeMap<Arc<LockName>, LeaseKey>,
    /// By what is taken, from its first instant; always disjoint, expired ones included.
    calendars: BTreeMap<Arc<CalendarName>, BTreeMap<Time, LeaseKey>>,
    /// Leases in force, as far as this knows, by their numbers.
    live: BTreeMap<i64, LeaseKey>,
    tenants: BTreeMap<Option<Box<str>>, BTreeSet<i64>>,
    /// When something is next to be done about a lease.
    due: BTreeSet<(Time, LeaseKey)>,
    requests: HashMap<[u8; 16], ([u8; 16], LeaseKey)>,
    versions: Versions,
    tally: Tally,
    /// Names that became free since somebody last asked.
    freed: Vec<Arc<LockName>>,
    /// Leases that ended since somebody last asked.
    gone: Vec<Gone>,
    /// Leases that are kept elsewhere, and count as any.
    elsewhere: usize,
}

#[derive(Debug)]
struct Lease {
    view: View,
    /// The digests of the request's name and of what it asked for.
    request: Option<([u8; 16], [u8; 16])>,
    due: Time,
    /// An operator ended it, and nobody else may have its names before this.
    cool_until: Time,
}

/// A lease that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone {
    /// Which one.
    pub key: LeaseKey,
    /// Whether it was a confirmed slot.
    pub confirmed: bool,
    /// How long it was held.
    pub lasted: Span,
}

impl Book {
    /// Numbers continue above this one.
    pub fn raise(&mut self, fence: i64) {
        self.fence = self.fence.max(fence);
    }

    /// The last number that was given out, or could have been.
    pub const fn fence(&self) -> i64 {
        self.fence
    }

    /// What became of every attempt.
    pub const fn tally(&self) -> &Tally {
        &self.tally
    }

    /// An attempt that met somebody else and is over.
    pub fn missed(&mut self, tenant: Option<&str>, kind: &str) {
        self.tally.missed(tenant, kind);
    }

    /// How many leases are kept, ended ones that are remembered included.
    pub fn len(&self) -> usize {
        self.leases.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.leases.is_empty()
    }

    /// Names that became free since this was last asked.
    pub fn take_freed(&mut self) -> Vec<Arc<LockName>> {
        std::mem::take(&mut self.freed)
    }

    /// Leases that ended since this was last asked.
    pub fn take_gone(&mut self) -> Vec<Gone> {
        std::mem::take(&mut self.gone)
    }

    /// A lease by its number, if it is in force.
    pub fn find(&mut self, fence: i64, now: Time) -> Option<View> {
        self.sweep(now);
        let view = &self.leases.get(self.live.get(&fence)?)?.view;
        (self.now < view.expires_at).then(|| view.clone())
    }

    /// Leases in force with numbers above one, lowest first.
    pub fn list(
        &mut self,
        after: i64,
        now: Time,
        mut visit: impl FnMut(&View) -> std::ops::ControlFlow<()>,
    ) {
        self.sweep(now);
        for (_, key) in self.live.range(after.saturating_add(1)..) {
            let Some(lease) = self.leases.get(key) else { continue };
            if self.now < lease.view.expires_at && visit(&lease.view).is_break() {
                return;
            }
        }
    }

    /// Takes a grant back as if it had never been: it could not be kept.
    pub fn undo(&mut self, key: LeaseKey) {
        let Some(lease) = self.leases.get(&key).filter(|lease| lease.view.state.is_live()) else {
            return;
        };
        let (tenant, kind) = (lease.view.tenant().map(Box::<str>::from), lease.view.kind.clone());
        self.lower_versions(key);
        self.free(key);
        self.forget(key);
        self.tally.undone(tenant.as_deref(), &kind);
    }

    /// Begins an operation: time moves, and a little of what is over is put away.
    fn begin(&mut self, now: Time) {
        self.sweep(now);
    }

    fn next_fence(&mut self) -> i64 {
        let clock = if planted(Bug::LockFenceCounts) { 0 } else { self.now.micros() };
        self.fence = (self.fence + 1).max(clock);
        self.fence
    }

    fn room(&self) -> Result<(), LockRefusal> {
        let full = self.leases.len() + self.elsewhere >= LEASES_MAX;
        if full { Err(LockRefusal::Full { max: LEASES_MAX }) } else { Ok(()) }
    }

    /// A new lease, in force from now on.
    fn grant(
        &mut self,
        what: What,
        kind: &str,
        wanted: &Wanted,
        request: Option<([u8; 16], [u8; 16])>,
    ) -> View {
        let fence = self.next_fence();
        let hold_until = self.now.after(wanted.hold_max.max(wanted.ttl));
        // A clock that is behind the holder's makes every lease shorter than was told.
        let shortened = Span::from_micros(wanted.ttl.micros() / 2);
        let lasts = if planted(Bug::LockCallersClock) { shortened } else { wanted.ttl };
        let view = View {
            key: wanted.key,
            fence,
            kind: kind.into(),
            what,
            version: wanted.version.unwrap_or(fence),
            label: wanted.label.clone(),
            meta: wanted.meta.clone(),
            acquired_at: self.now,
            expires_at: self.now.after(lasts),
            hold_until,
            ttl: wanted.ttl,
            state: State::Held,
        };
        self.tally.granted(view.tenant(), kind);
        self.insert(view.clone(), request);
        view
    }

    fn insert(&mut self, view: View, request: Option<([u8; 16], [u8; 16])>) {
        let key = view.key;
        if let Some((name, print)) = request {
            self.requests.insert(name, (print, key));
        }
        match &view.what {
            What::Names(names) => {
                for name in names {
                    self.names.insert(Arc::clone(name), key);
                }
            }
            What::Slot(calendars, range) => self.occupy(calendars, range.taken().0, key),
        }
        self.live.insert(view.fence, key);
        self.tenants.entry(view.tenant().map(Box::from)).or_default().insert(view.fence);
        let due = due(&view);
        self.due.insert((due, key));
        self.leases.insert(key, Lease { view, request, due, cool_until: Time::ZERO });
    }

    /// Ends a lease. It is remembered for a while, to tell who asks.
    fn end(&mut self, key: LeaseKey, how: State) {
        let Some(lease) = self.leases.get(&key) else { return };
        let (view, was) = (&lease.view, lease.view.state);
        let (tenant, kind) = (view.tenant().map(Box::<str>::from), view.kind.clone());
        let at = if how == State::Expired { view.expires_at.min(self.now) } else { self.now };
        let lasted = at.since(view.acquired_at);
        let kept = if matches!(view.what, What::Slot(..)) { SLOT_TOMBSTONE } else { TOMBSTONE };
        let stays = (how == State::Expired && planted(Bug::LockExpiredHoldStays))
            .then(|| view.what.clone());
        self.free(key);
        if let Some(What::Slot(calendars, range)) = stays {
            self.occupy(&calendars, range.taken().0, key);
        }
        self.tally.ended(tenant.as_deref(), &kind, how);
        self.gone.push(Gone { key, confirmed: was == State::Confirmed, lasted });
        if let Some(lease) = self.leases.get_mut(&key) {
            lease.view.state = how;
            self.due.remove(&(lease.due, key));
            lease.due = at.after(kept);
            self.due.insert((lease.due, key));
        }
    }

    /// Frees what a lease takes; the lease itself stays.
    fn free(&mut self, key: LeaseKey) {
        let Some(lease) = self.leases.get(&key) else { return };
        let (what, fence) = (lease.view.what.clone(), lease.view.fence);
        let tenant: Option<Box<str>> = lease.view.tenant().map(Box::from);
        self.live.remove(&fence);
        if let Some(fences) = self.tenants.get_mut(&tenant) {
            fences.remove(&fence);
            if fences.is_empty() {
                self.tenants.remove(&tenant);
            }
        }
        match what {
            What::Names(names) => self.unname(names, key),
            What::Slot(calendars, range) => self.vacate(&calendars, range.taken().0, key),
        }
    }

    fn unname(&mut self, names: Vec<Arc<LockName>>, key: LeaseKey) {
        for name in names {
            if self.names.get(&*name) == Some(&key) {
                self.names.remove(&*name);
                self.freed.push(name);
            }
        }
    }

    fn conflict(&self, key: LeaseKey, taken: &str) -> Option<Box<Conflict>> {
        let lease = self.leases.get(&key)?;
        let free_at = match lease.view.state {
            State::Forced => lease.cool_until,
            _ => lease.view.expires_at,
        };
        Some(Box::new(Conflict { taken: taken.into(), holder: lease.view.clone(), free_at }))
    }
}

/// When something is next to be done about a lease that is in force.
fn due(view: &View) -> Time {
    match (&view.what, view.state) {
        (What::Slot(_, range), State::Confirmed) => range.taken().1.after(PAST_KEPT),
        _ => view.expires_at,
    }
}

/// What a lease is about, from its names.
fn what(tenant: Option<&str>, kind: &str, names: &[Box<str>], range: Option<Range>) -> What {
    match range {
        Some(range) => What::Slot(calendars(tenant, names), range),
        None => What::Names(lock_names(tenant, kind, names)),
    }
}

fn lock_names(tenant: Option<&str>, kind: &str, keys: &[Box<str>]) -> Vec<Arc<LockName>> {
    let name = |key: &str| {
        let (tenant, kind) = (tenant.map(Box::from), kind.into());
        Arc::new(LockName { tenant, kind, key: key.into() })
    };
    keys.iter().map(|key| name(key)).collect()
}

fn calendars(tenant: Option<&str>, names: &[Box<str>]) -> Vec<Arc<CalendarName>> {
    let name = |calendar: &str| {
        let (tenant, calendar) = (tenant.map(Box::from), calendar.into());
        Arc::new(CalendarName { tenant, calendar })
    };
    names.iter().map(|calendar| name(calendar)).collect()
}

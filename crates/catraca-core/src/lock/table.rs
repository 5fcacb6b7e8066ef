//! Lock table: the locks and slots of one namespace, and the rules that change them.
//!
//! The rules are in the submodules: `leases` acquires, renews and ends; `slots` keeps ranges
//! disjoint; `availability` reads calendars; `idempotency` recognizes repeated requests; `versions`
//! stores the highest version of a name; `sweep` removes what has expired; `persist` converts
//! leases for storage. A lease is held while `now < expires_at`, whether or not it was removed.
//! `now` is an argument of every operation: the table reads no clock.

mod apply;
pub mod availability;
pub mod idempotency;
mod leases;
pub mod partial_load;
mod persist;
mod slots;
mod sweep;
mod undo;
mod versions;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::counters::LockCounters;
use super::id::LeaseKey;
use super::name::{CalendarName, LockName};
use super::refusal::LockRefusal;
use super::reply::{Conflict, Lease, LeaseState, LeaseTarget};
use super::requests::{LeaseRequest, TimeRange};
use super::{CONFIRMED_RETENTION, LEASES_MAX, SLOT_TOMBSTONE, TOMBSTONE};
use crate::time::{Span, Time};
use idempotency::RequestDigest;
use versions::Versions;

pub use partial_load::{PartialLockTable, StoredLease};

/// The locks and slots of one namespace.
#[derive(Debug, Default)]
pub struct LockTable {
    /// The latest instant of any operation. Earlier ones are raised to it, so time never runs
    /// backwards.
    now: Time,
    /// The last fence that was given out.
    fence: i64,
    leases: HashMap<LeaseKey, LeaseEntry>,
    /// The lease that has each name, including leases in their cool-down.
    names: BTreeMap<Arc<LockName>, LeaseKey>,
    /// The leases in each calendar, by the first instant that they occupy. The ranges are always
    /// disjoint, including those of holds that have expired but were not removed.
    calendars: BTreeMap<Arc<CalendarName>, BTreeMap<Time, LeaseKey>>,
    /// Leases that are held or confirmed, by fence. Some may have expired and not been removed.
    live: BTreeMap<i64, LeaseKey>,
    /// The fences of each tenant's live leases.
    tenants: BTreeMap<Option<Box<str>>, BTreeSet<i64>>,
    /// When each lease expires, or if it has ended, when it is forgotten.
    due: BTreeSet<(Time, LeaseKey)>,
    /// By the digest of a request id: the digest of its parameters, and its lease.
    requests: HashMap<[u8; 16], ([u8; 16], LeaseKey)>,
    versions: Versions,
    counters: LockCounters,
    /// Names that became free and were not yet reported.
    freed: Vec<Arc<LockName>>,
    /// Leases that ended and were not yet reported.
    ended: Vec<LeaseEnd>,
    /// Leases of the namespace that were not loaded into this table; they count towards the
    /// maximum.
    elsewhere: usize,
}

/// A lease in the table, ended or not.
#[derive(Debug)]
struct LeaseEntry {
    lease: Lease,
    /// The digests of the request id, and of the parameters of the request.
    request: Option<RequestDigest>,
    /// The instant of its entry in `LockTable::due`.
    due: Time,
    /// The end of the cool-down: until then the names of a lease that an operator ended stay taken.
    cool_until: Time,
}

/// A lease that has ended, for metrics and records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseEnd {
    /// The key of the lease.
    pub key: LeaseKey,
    /// Whether it was a confirmed slot.
    pub confirmed: bool,
    /// How long it was held.
    pub lasted: Span,
}

impl LockTable {
    /// Raises the last fence: later ones are higher.
    pub fn raise_fence(&mut self, fence: i64) {
        self.fence = self.fence.max(fence);
    }

    /// The last fence that was given out, or an upper bound of it.
    pub const fn fence(&self) -> i64 {
        self.fence
    }

    /// Counters of attempts and leases, by tenant and kind.
    pub const fn counters(&self) -> &LockCounters {
        &self.counters
    }

    /// Counts an attempt that failed because the lock or slot was taken.
    fn count_conflict(&mut self, tenant: Option<&str>, kind: &str) {
        self.counters.on_conflict(tenant, kind);
    }

    /// How many leases the table has, including ended ones that are still remembered.
    pub fn len(&self) -> usize {
        self.leases.len()
    }

    /// Whether the table has no leases.
    pub fn is_empty(&self) -> bool {
        self.leases.is_empty()
    }

    /// Takes the names that became free since the last call.
    pub fn take_freed(&mut self) -> Vec<Arc<LockName>> {
        std::mem::take(&mut self.freed)
    }

    /// Takes the leases that ended since the last call.
    pub fn take_ended(&mut self) -> Vec<LeaseEnd> {
        std::mem::take(&mut self.ended)
    }

    /// The lease with a fence, unless it has ended.
    pub fn find(&mut self, fence: i64, now: Time) -> Option<Lease> {
        self.sweep(now);
        let lease = &self.leases.get(self.live.get(&fence)?)?.lease;
        (self.now < lease.expires_at).then(|| lease.clone())
    }

    /// Visits live leases with a fence above `after`, in order.
    pub fn list(
        &mut self,
        after: i64,
        now: Time,
        mut visit: impl FnMut(&Lease) -> std::ops::ControlFlow<()>,
    ) {
        self.sweep(now);
        for (_, key) in self.live.range(after.saturating_add(1)..) {
            // An expired lease may not have been removed yet: `sweep` removes a limited number per
            // call.
            let Some(entry) = self.leases.get(key) else { continue };
            if self.now < entry.lease.expires_at && visit(&entry.lease).is_break() {
                return;
            }
        }
    }

    /// Reverts a grant that could not be persisted, including its counters and versions. The caller
    /// was not answered, so no client knows of it.
    pub fn undo(&mut self, key: LeaseKey) {
        let Some(entry) = self.leases.get(&key).filter(|entry| entry.lease.state.is_live()) else {
            return;
        };
        let tenant = entry.lease.tenant().map(Box::<str>::from);
        let kind = entry.lease.kind.clone();
        self.lower_versions(key);
        self.free(key);
        self.forget(key);
        self.counters.on_undone(tenant.as_deref(), &kind);
    }

    /// Begins an operation: advances the instant, and removes some expired leases.
    fn begin(&mut self, now: Time) {
        self.sweep(now);
    }

    fn next_fence(&mut self) -> i64 {
        // `max(last + 1, microseconds)`: higher than every fence before a restart or failover, even
        // if the last one was lost, as long as the clock is not behind by more than the outage
        // (docs/adr/0015).
        self.fence = (self.fence + 1).max(self.now.micros());
        self.fence
    }

    fn ensure_room(&self) -> Result<(), LockRefusal> {
        let is_full = self.leases.len() + self.elsewhere >= LEASES_MAX;
        if is_full { Err(LockRefusal::Full { max: LEASES_MAX }) } else { Ok(()) }
    }

    /// Creates a lease that is held from now on.
    fn grant(
        &mut self,
        target: LeaseTarget,
        kind: &str,
        wanted: &LeaseRequest,
        request: Option<RequestDigest>,
    ) -> Lease {
        let fence = self.next_fence();
        // A `ttl` above `hold_max` still applies to the first period.
        let hold_until = self.now.after(wanted.hold_max.max(wanted.ttl));
        let lease = Lease {
            key: wanted.key,
            fence,
            kind: kind.into(),
            target,
            version: wanted.version.unwrap_or(fence),
            label: wanted.label.clone(),
            meta: wanted.meta.clone(),
            acquired_at: self.now,
            expires_at: self.now.after(wanted.ttl),
            hold_until,
            ttl: wanted.ttl,
            state: LeaseState::Held,
        };
        self.counters.on_granted(lease.tenant(), kind);
        self.insert(lease.clone(), request);
        lease
    }

    /// Inserts a live lease into all indexes.
    fn insert(&mut self, lease: Lease, request: Option<RequestDigest>) {
        let key = lease.key;
        if let Some((id, parameters)) = request {
            self.requests.insert(id, (parameters, key));
        }
        match &lease.target {
            LeaseTarget::Names(names) => {
                for name in names {
                    self.names.insert(Arc::clone(name), key);
                }
            }
            LeaseTarget::Slot(calendars, range) => {
                self.occupy(calendars, range.occupied_range().0, key)
            }
        }
        self.live.insert(lease.fence, key);
        self.tenants.entry(lease.tenant().map(Box::from)).or_default().insert(lease.fence);
        let due = due(&lease);
        self.due.insert((due, key));
        self.leases.insert(key, LeaseEntry { lease, request, due, cool_until: Time::ZERO });
    }

    /// Ends a lease. It is remembered as a tombstone, to answer its holder how it ended.
    fn end(&mut self, key: LeaseKey, how: LeaseState) {
        let Some(entry) = self.leases.get(&key) else { return };
        let lease = &entry.lease;
        let confirmed = lease.state == LeaseState::Confirmed;
        let tenant = lease.tenant().map(Box::<str>::from);
        let kind = lease.kind.clone();
        // Expiry is noticed late, so the end is `expires_at`, not `now`. Never in the future.
        let at = if how == LeaseState::Expired { lease.expires_at.min(self.now) } else { self.now };
        let lasted = at.since(lease.acquired_at);
        let remembered_for =
            if matches!(lease.target, LeaseTarget::Slot(..)) { SLOT_TOMBSTONE } else { TOMBSTONE };
        self.free(key);
        self.counters.on_ended(tenant.as_deref(), &kind, how);
        self.ended.push(LeaseEnd { key, confirmed, lasted });
        if let Some(entry) = self.leases.get_mut(&key) {
            entry.lease.state = how;
            // The tombstone is due for removal instead of the lease.
            self.due.remove(&(entry.due, key));
            entry.due = at.after(remembered_for);
            self.due.insert((entry.due, key));
        }
    }

    /// Frees the names or the range of a lease. The entry itself stays.
    fn free(&mut self, key: LeaseKey) {
        let Some(entry) = self.leases.get(&key) else { return };
        let target = entry.lease.target.clone();
        let fence = entry.lease.fence;
        let tenant: Option<Box<str>> = entry.lease.tenant().map(Box::from);
        self.live.remove(&fence);
        if let Some(fences) = self.tenants.get_mut(&tenant) {
            fences.remove(&fence);
            if fences.is_empty() {
                self.tenants.remove(&tenant);
            }
        }
        match target {
            LeaseTarget::Names(names) => self.free_names(names, key),
            LeaseTarget::Slot(calendars, range) => {
                self.vacate(&calendars, range.occupied_range().0, key)
            }
        }
    }

    /// Frees the names that still belong to a lease.
    fn free_names(&mut self, names: Vec<Arc<LockName>>, key: LeaseKey) {
        for name in names {
            // The name may have been granted to another lease since.
            if self.names.get(&*name) == Some(&key) {
                self.names.remove(&*name);
                self.freed.push(name);
            }
        }
    }

    /// The conflict with a lease that has the name or calendar `taken`.
    fn conflict(&self, key: LeaseKey, taken: &str) -> Option<Box<Conflict>> {
        let entry = self.leases.get(&key)?;
        let free_at = match entry.lease.state {
            LeaseState::Forced => entry.cool_until,
            _ => entry.lease.expires_at,
        };
        Some(Box::new(Conflict { taken: taken.into(), holder: entry.lease.clone(), free_at }))
    }
}

/// When a live lease has to be looked at: when it expires, or for a confirmed slot, when it is
/// forgotten.
fn due(lease: &Lease) -> Time {
    match (&lease.target, lease.state) {
        (LeaseTarget::Slot(_, range), LeaseState::Confirmed) => {
            range.occupied_range().1.after(CONFIRMED_RETENTION)
        }
        _ => lease.expires_at,
    }
}

/// The target of a lease: names, or a range of time in calendars.
fn lease_target(
    tenant: Option<&str>,
    kind: &str,
    names: &[Box<str>],
    range: Option<TimeRange>,
) -> LeaseTarget {
    match range {
        Some(range) => LeaseTarget::Slot(calendars(tenant, names), range),
        None => LeaseTarget::Names(lock_names(tenant, kind, names)),
    }
}

fn lock_names(tenant: Option<&str>, kind: &str, keys: &[Box<str>]) -> Vec<Arc<LockName>> {
    let names = keys.iter().map(|key| {
        let tenant = tenant.map(Box::from);
        Arc::new(LockName { tenant, kind: kind.into(), key: key.clone() })
    });
    names.collect()
}

fn calendars(tenant: Option<&str>, names: &[Box<str>]) -> Vec<Arc<CalendarName>> {
    let calendars = names.iter().map(|calendar| {
        let tenant = tenant.map(Box::from);
        Arc::new(CalendarName { tenant, calendar: calendar.clone() })
    });
    calendars.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lock::requests::{Acquire, Proof};
    use crate::lock::terms::VersionPolicy;

    fn acquire(name: &str, lease: LeaseRequest) -> Acquire {
        let keys = vec![name.into()];
        Acquire { tenant: None, kind: "k".into(), keys, lease, policy: VersionPolicy::Opaque }
    }

    #[test]
    fn a_lease_is_in_the_table_until_its_tombstone_is_forgotten() {
        let mut table = LockTable::default();
        assert!(table.is_empty());
        let key = LeaseKey::from_bytes([1; 16]);
        let ttl = Span::from_secs(1);
        table.acquire(&acquire("a", LeaseRequest::new(key, ttl, ttl)), Time::ZERO);
        assert_eq!(table.len(), 1);
        table.release(&Proof { key, tenant: None }, Time::ZERO);
        assert_eq!(table.len(), 1);
        table.sweep(Time::ZERO.after(TOMBSTONE));
        assert!(table.is_empty());
    }

    #[test]
    fn names_of_a_forced_lease_are_reported_free_unless_they_cool_down() {
        let ttl = Span::from_secs(10);
        let freed_after = |cool_down| {
            let mut table = LockTable::default();
            let key = LeaseKey::from_bytes([1; 16]);
            table.acquire(&acquire("a", LeaseRequest::new(key, ttl, ttl)), Time::ZERO);
            table.force(table.fence(), cool_down, Time::ZERO);
            table.take_freed().len()
        };
        assert_eq!(freed_after(Span::ZERO), 1);
        assert_eq!(freed_after(Span::from_secs(1)), 0);
    }

    #[test]
    fn leases_that_were_not_loaded_count_towards_the_maximum() {
        let key = LeaseKey::from_bytes([1; 16]);
        let ttl = Span::from_secs(1);
        for (elsewhere, is_full) in [(LEASES_MAX - 2, false), (LEASES_MAX - 1, true)] {
            let mut table = LockTable::default();
            table.acquire(&acquire("a", LeaseRequest::new(key, ttl, ttl)), Time::ZERO);
            table.elsewhere = elsewhere;
            assert_eq!(table.ensure_room().is_err(), is_full, "{elsewhere}");
        }
    }
}

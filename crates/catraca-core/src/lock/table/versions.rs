//! The highest version of each name whose kind has the monotonic version policy.
//!
//! A version is remembered for a day after it was raised, so that their number is bounded.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::LockTable;
use crate::lock::id::LeaseKey;
use crate::lock::name::LockName;
use crate::lock::persistence::PersistedVersion;
use crate::lock::refusal::LockRefusal;
use crate::lock::reply::{AcquireReply, Lease, LeaseTarget};
use crate::lock::requests::LeaseRequest;
use crate::lock::{VERSION_RETENTION, VERSIONS_MAX};
use crate::time::Time;

/// The highest versions of a namespace.
#[derive(Debug, Default)]
pub(super) struct Versions {
    last: BTreeMap<Arc<LockName>, HighestVersion>,
    /// When each version expires.
    due: BTreeSet<(Time, Arc<LockName>)>,
    /// Whether a version expired since the last call of `take_forgotten`.
    forgotten: bool,
    /// Versions of the namespace that were not loaded; they count towards the maximum.
    pub(super) elsewhere: usize,
}

/// The highest version of one name.
#[derive(Clone, Copy, Debug)]
struct HighestVersion {
    version: i64,
    until: Time,
    /// The grant that raised it and the previous value, so that the grant can be reverted. Unknown
    /// for a restored version.
    by: Option<(LeaseKey, Option<(i64, Time)>)>,
}

impl LockTable {
    /// Raises the versions of names, all or none.
    pub(super) fn raise_versions(
        &mut self,
        names: &[Arc<LockName>],
        request: &LeaseRequest,
    ) -> Result<(), AcquireReply> {
        let version = request.version.ok_or(AcquireReply::Refused(LockRefusal::NoVersion))?;
        // Every name is compared before any version is raised.
        for name in names {
            let last = self.versions.last(name, self.now).filter(|last| version <= *last);
            if let Some(last) = last {
                return Err(AcquireReply::Stale { name: Arc::clone(name), last });
            }
        }
        if !self.versions.has_room(names.len()) {
            return Err(AcquireReply::Refused(LockRefusal::Full { max: VERSIONS_MAX }));
        }
        names.iter().for_each(|name| self.versions.raise(name, version, request.key, self.now));
        Ok(())
    }

    /// The versions that a grant raised, as they are persisted.
    pub fn raised_versions(&self, lease: &Lease) -> Vec<PersistedVersion> {
        let LeaseTarget::Names(names) = &lease.target else { return Vec::new() };
        let versions = names.iter().filter_map(|name| {
            let last = self.versions.raised_by(name, lease.key)?;
            let name = LockName::clone(name);
            Some(PersistedVersion { name, version: last.version, until: last.until })
        });
        versions.collect()
    }

    /// The versions that a grant raised, as they are persisted when it is reverted: their previous
    /// values, or an expired one if there was none.
    pub fn lowered_versions(&self, key: LeaseKey) -> Vec<PersistedVersion> {
        let Some(LeaseTarget::Names(names)) =
            self.leases.get(&key).map(|entry| &entry.lease.target)
        else {
            return Vec::new();
        };
        let versions = names.iter().filter_map(|name| {
            let last = self.versions.raised_by(name, key)?;
            let (_, before) = last.by?;
            // A version that has already expired counts as none.
            let (version, until) = before.unwrap_or((last.version, Time::ZERO));
            Some(PersistedVersion { name: LockName::clone(name), version, until })
        });
        versions.collect()
    }

    /// Restores a version.
    pub fn restore_version(&mut self, persisted: PersistedVersion) {
        let last = HighestVersion { version: persisted.version, until: persisted.until, by: None };
        self.versions.set(&Arc::new(persisted.name), last);
    }

    /// Whether a version expired since the last call.
    pub fn take_versions_expired(&mut self) -> bool {
        std::mem::take(&mut self.versions.forgotten)
    }

    /// Reverts the versions that a grant raised.
    pub(super) fn lower_versions(&mut self, key: LeaseKey) {
        let Some(LeaseTarget::Names(names)) =
            self.leases.get(&key).map(|entry| entry.lease.target.clone())
        else {
            return;
        };
        names.iter().for_each(|name| self.versions.lower(name, key));
    }
}

impl Versions {
    fn last(&self, name: &LockName, now: Time) -> Option<i64> {
        self.last.get(name).filter(|last| now < last.until).map(|last| last.version)
    }

    /// The version of a name, if this grant raised it last.
    fn raised_by(&self, name: &LockName, key: LeaseKey) -> Option<&HighestVersion> {
        self.last.get(name).filter(|last| last.by.is_some_and(|(by, _)| by == key))
    }

    /// Whether `more` names fit. Counts as if all were new.
    fn has_room(&self, more: usize) -> bool {
        self.last.len() + self.elsewhere + more <= VERSIONS_MAX
    }

    fn raise(&mut self, name: &Arc<LockName>, version: i64, key: LeaseKey, now: Time) {
        let before = self.last.get(name).map(|last| (last.version, last.until));
        let until = now.after(VERSION_RETENTION);
        self.set(name, HighestVersion { version, until, by: Some((key, before)) });
    }

    fn lower(&mut self, name: &Arc<LockName>, key: LeaseKey) {
        let Some((_, before)) = self.raised_by(name, key).and_then(|last| last.by) else { return };
        match before {
            Some((version, until)) => self.set(name, HighestVersion { version, until, by: None }),
            None => {
                if let Some(last) = self.last.remove(&**name) {
                    self.due.remove(&(last.until, Arc::clone(name)));
                }
            }
        }
    }

    fn set(&mut self, name: &Arc<LockName>, last: HighestVersion) {
        if let Some(before) = self.last.insert(Arc::clone(name), last) {
            self.due.remove(&(before.until, Arc::clone(name)));
        }
        self.due.insert((last.until, Arc::clone(name)));
    }

    pub(super) fn sweep(&mut self, now: Time, most: usize) {
        for _ in 0..most {
            let has_expired = self.due.first().is_some_and(|(until, _)| *until <= now);
            let Some((_, name)) = has_expired.then(|| self.due.pop_first()).flatten() else {
                return;
            };
            self.last.remove(&*name);
            self.forgotten = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_that_were_not_loaded_count_towards_the_maximum() {
        let versions = |elsewhere| Versions { elsewhere, ..Versions::default() };
        assert!(versions(VERSIONS_MAX - 2).has_room(2));
        assert!(!versions(VERSIONS_MAX - 1).has_room(2));
        assert!(!versions(VERSIONS_MAX).has_room(1));
    }
}

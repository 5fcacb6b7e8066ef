//! The highest version of each name that asked for monotonic ones.
//!
//! Kept a day after it was last raised. Must not grow without bound.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Book;
use crate::lock::id::LeaseKey;
use crate::lock::kept::KeptVersion;
use crate::lock::name::LockName;
use crate::lock::op::Wanted;
use crate::lock::refusal::LockRefusal;
use crate::lock::reply::{Acquired, View, What};
use crate::lock::{VERSION_KEPT, VERSIONS_MAX};
use crate::time::Time;

#[derive(Debug, Default)]
pub(super) struct Versions {
    last: BTreeMap<Arc<LockName>, Last>,
    due: BTreeSet<(Time, Arc<LockName>)>,
    /// Whether any was forgotten since somebody last asked.
    forgotten: bool,
    /// Versions that are kept elsewhere, and count as any.
    pub(super) elsewhere: usize,
}

#[derive(Clone, Copy, Debug)]
struct Last {
    version: i64,
    until: Time,
    /// Which grant raised it, and from what; unknown of what was brought back.
    by: Option<(LeaseKey, Option<(i64, Time)>)>,
}

impl Book {
    /// Raises the versions of some names, all or none.
    pub(super) fn raise_versions(
        &mut self,
        names: &[Arc<LockName>],
        wanted: &Wanted,
    ) -> Result<(), Acquired> {
        let version = wanted.version.ok_or(Acquired::Refused(LockRefusal::NoVersion))?;
        for name in names {
            let last = self.versions.last(name, self.now).filter(|last| version <= *last);
            if let Some(last) = last {
                return Err(Acquired::Stale { name: Arc::clone(name), last });
            }
        }
        if !self.versions.has_room(names.len()) {
            return Err(Acquired::Refused(LockRefusal::Full { max: VERSIONS_MAX }));
        }
        names.iter().for_each(|name| self.versions.raise(name, version, wanted.key, self.now));
        Ok(())
    }

    /// The versions that a grant raised, as they are to be kept.
    pub fn raised(&self, view: &View) -> Vec<KeptVersion> {
        let What::Names(names) = &view.what else { return Vec::new() };
        let kept = names.iter().filter_map(|name| {
            let last = self.versions.by(name, view.key)?;
            let (version, until) = (last.version, last.until);
            Some(KeptVersion { name: LockName::clone(name), version, until })
        });
        kept.collect()
    }

    /// The versions that a grant raised, as they are to be kept once it is taken back: what they
    /// were before, or what nobody remembers.
    pub fn lowered(&self, key: LeaseKey) -> Vec<KeptVersion> {
        let Some(What::Names(names)) = self.leases.get(&key).map(|lease| &lease.view.what) else {
            return Vec::new();
        };
        let kept = names.iter().filter_map(|name| {
            let last = self.versions.by(name, key)?;
            let (_, before) = last.by?;
            let (version, until) = before.unwrap_or((last.version, Time::ZERO));
            Some(KeptVersion { name: LockName::clone(name), version, until })
        });
        kept.collect()
    }

    /// Brings a version back.
    pub fn restore_version(&mut self, kept: KeptVersion) {
        let last = Last { version: kept.version, until: kept.until, by: None };
        self.versions.set(&Arc::new(kept.name), last);
    }

    /// Whether a version was forgotten since this was last asked.
    pub fn take_forgotten(&mut self) -> bool {
        std::mem::take(&mut self.versions.forgotten)
    }

    /// Puts back what a grant raised that is taken back.
    pub(super) fn lower_versions(&mut self, key: LeaseKey) {
        let Some(What::Names(names)) = self.leases.get(&key).map(|lease| lease.view.what.clone())
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

    fn by(&self, name: &LockName, key: LeaseKey) -> Option<&Last> {
        self.last.get(name).filter(|last| last.by.is_some_and(|(by, _)| by == key))
    }

    /// Whether so many more names fit.
    fn has_room(&self, more: usize) -> bool {
        self.last.len() + self.elsewhere + more <= VERSIONS_MAX
    }

    fn raise(&mut self, name: &Arc<LockName>, version: i64, key: LeaseKey, now: Time) {
        let before = self.last.get(name).map(|last| (last.version, last.until));
        let (until, by) = (now.after(VERSION_KEPT), Some((key, before)));
        self.set(name, Last { version, until, by });
    }

    fn lower(&mut self, name: &Arc<LockName>, key: LeaseKey) {
        let Some((_, before)) = self.by(name, key).and_then(|last| last.by) else { return };
        match before {
            Some((version, until)) => self.set(name, Last { version, until, by: None }),
            None => {
                if let Some(last) = self.last.remove(&**name) {
                    self.due.remove(&(last.until, Arc::clone(name)));
                }
            }
        }
    }

    fn set(&mut self, name: &Arc<LockName>, last: Last) {
        if let Some(before) = self.last.insert(Arc::clone(name), last) {
            self.due.remove(&(before.until, Arc::clone(name)));
        }
        self.due.insert((last.until, Arc::clone(name)));
    }

    pub(super) fn sweep(&mut self, now: Time, most: usize) {
        for _ in 0..most {
            let over = self.due.first().is_some_and(|(until, _)| *until <= now);
            let Some((_, name)) = over.then(|| self.due.pop_first()).flatten() else { return };
            self.last.remove(&*name);
            self.forgotten = true;
        }
    }
}

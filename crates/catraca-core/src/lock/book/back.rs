//! Putting a slot back as it was: a change that could not be kept never was.
//!
//! Must not undo what somebody did since, nor put a slot where somebody else is by now.

use super::{Book, Lease, StoredLease};
use crate::lock::id::LeaseKey;
use crate::lock::reply::{View, What};
use crate::time::Time;

impl Book {
    /// A lease as it is at an instant, ended or not, so that it can be put back.
    pub fn snapshot(&mut self, key: LeaseKey, now: Time) -> Option<StoredLease> {
        self.begin(now);
        self.lease(key)?;
        self.as_it_is(key)
    }

    /// Takes a confirmation or a move back: the slot is again what it was before it was made this.
    /// Says whether it is; it stays as it is if anybody has changed it since, or has its place.
    pub fn put_back(&mut self, before: &StoredLease, made: &View) -> bool {
        let key = made.key;
        let Some(current) = self.as_it_is(key).filter(|current| current.view == *made) else {
            return false;
        };
        self.free(key);
        self.forget(key);
        let fits = !before.view.state.is_live() || !self.is_taken(&before.view);
        if fits && !before.view.state.is_live() {
            self.tally.undone(made.tenant(), &made.kind);
        }
        self.bring(if fits { before.clone() } else { current });
        fits
    }

    fn is_taken(&mut self, view: &View) -> bool {
        match &view.what {
            What::Slot(names, range) => self.overlap(names, *range).is_some(),
            What::Names(_) => true,
        }
    }

    fn as_it_is(&self, key: LeaseKey) -> Option<StoredLease> {
        let Lease { view, request, due, cool_until } = self.leases.get(&key)?;
        let (request, due, cool_until) = (*request, *due, *cool_until);
        Some(StoredLease { view: view.clone(), request, due, cool_until })
    }
}

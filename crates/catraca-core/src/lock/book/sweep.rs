//! Putting away what is over, a little with every operation.
//!
//! Whether a lease is held never depends on this: it only gives memory back. Must not take long.

use super::Book;
use crate::lock::SWEEP;
use crate::lock::id::LeaseKey;
use crate::lock::reply::{State, What};
use crate::time::Time;

/// Tables of fewer places are left as they are.
const SMALL: usize = 1_024;

impl Book {
    /// Puts away some of what is over; says whether there is more.
    pub fn sweep(&mut self, now: Time) -> bool {
        self.now = self.now.max(now);
        self.versions.sweep(self.now, SWEEP);
        for _ in 0..SWEEP {
            let first = self.due.first().copied();
            let Some((due, key)) = first.filter(|(due, _)| self.is_over(*due)) else {
                self.shrink();
                return false;
            };
            self.due.remove(&(due, key));
            self.attend(key);
        }
        true
    }

    /// Does what is due: a lease that is over ends, one that ended is forgotten.
    fn attend(&mut self, key: LeaseKey) {
        let Some(lease) = self.leases.get(&key) else { return };
        match lease.view.state {
            State::Held => self.end(key, State::Expired),
            State::Confirmed => {
                self.end(key, State::Expired);
                self.forget(key);
            }
            State::Released | State::Expired | State::Forced => self.forget(key),
        }
    }

    pub(super) fn forget(&mut self, key: LeaseKey) {
        let Some(lease) = self.leases.remove(&key) else { return };
        self.due.remove(&(lease.due, key));
        if let Some((name, _)) = lease.request
            && self.requests.get(&name).is_some_and(|(_, owner)| *owner == key)
        {
            self.requests.remove(&name);
        }
        // Its names are still its own only while nobody else may have them.
        if let What::Names(names) = lease.view.what {
            self.unname(names, key);
        }
    }

    /// Gives back the room of tables that are mostly empty. It costs as much as what is left in
    /// them, and happens only once that is a quarter.
    fn shrink(&mut self) {
        let wide = |room: usize, full: usize| room > SMALL && full < room / 4;
        if wide(self.leases.capacity(), self.leases.len()) {
            self.leases.shrink_to(self.leases.len() * 2);
        }
        if wide(self.requests.capacity(), self.requests.len()) {
            self.requests.shrink_to(self.requests.len() * 2);
        }
    }
}

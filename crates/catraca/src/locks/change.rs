//! A change of a slot that is being put on disk, and what becomes of it if that fails.
//!
//! What a disk did not take in time it may take later, so what is taken back in memory is taken
//! back on disk too, by a deed that comes after. Must not take back what another call was told of.

use catraca_core::lock::LeaseKey;
use catraca_core::lock::book::StoredLease;
use catraca_core::lock::kept::LockDeed;
use catraca_core::lock::reply::{State, View};

use super::Locks;
use super::error::LockError;
use super::room::{Inner, Room};

/// Changes of one slot that are being written.
#[derive(Default)]
pub(super) struct Changing {
    count: usize,
    /// One of them is on disk.
    kept: bool,
    /// One of them was taken back.
    undone: bool,
}

/// One of them, until it is dropped.
pub(super) struct Change<'r> {
    room: &'r Room,
    before: StoredLease,
    made: View,
}

impl<'r> Change<'r> {
    /// A slot was this, and has been made that.
    pub fn begin(room: &'r Room, inner: &mut Inner, before: StoredLease, made: &View) -> Self {
        inner.changing.entry(made.key).or_default().count += 1;
        Self { room, before, made: made.clone() }
    }
}

impl Drop for Change<'_> {
    fn drop(&mut self) {
        let mut inner = self.room.inner.lock();
        let Some(changing) = inner.changing.get_mut(&self.made.key) else { return };
        changing.count -= 1;
        if changing.count == 0 {
            inner.changing.remove(&self.made.key);
        }
    }
}

impl Locks {
    /// A change is on disk, or else it is taken back.
    pub(super) fn settled(
        &self,
        change: &Change<'_>,
        written: Result<(), LockError>,
    ) -> Result<(), LockError> {
        let (room, key) = (change.room, change.made.key);
        let mut inner = room.inner.lock();
        let changing = inner.changing.entry(key).or_default();
        match written {
            Ok(()) if changing.undone => Err(self.unkept("it was taken back meanwhile".to_owned())),
            Ok(()) => {
                changing.kept = true;
                Ok(())
            }
            Err(error) => {
                if !changing.kept && change.before.view != change.made {
                    self.take_back(room, &mut inner, change);
                }
                Err(error)
            }
        }
    }

    /// While the room is locked: what comes later is written later.
    fn take_back(&self, room: &Room, inner: &mut Inner, change: &Change<'_>) {
        if !inner.book.put_back(&change.before, &change.made) {
            return;
        }
        inner.changing.entry(change.made.key).or_default().undone = true;
        self.note(vec![room.counter(inner, change.made.key)]);
        inner.hand_off(self.clock.now());
    }
}

impl Room {
    /// What the disk has to know of a lease whose change was taken back.
    fn counter(&self, inner: &Inner, key: LeaseKey) -> LockDeed {
        let kept = inner.book.keep(key);
        match kept.filter(|lease| lease.state == State::Confirmed || inner.logged) {
            Some(lease) => LockDeed::Keep(self.namespace.clone(), Box::new(lease)),
            None => LockDeed::Drop(self.namespace.clone(), key),
        }
    }
}

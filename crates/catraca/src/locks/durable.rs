//! What must be on disk before it is answered.
//!
//! The numbers that may be given out, and the longest time that a lease may last, are kept ahead of
//! the need, so that hardly any grant waits for a disk; with `fsync` every grant does. Must not
//! answer what the next start could not keep.

use std::sync::atomic::Ordering;

use catraca_core::lock::Durability;
use catraca_core::lock::kept::{KeptFence, LockDeed};
use catraca_core::lock::reply::View;
use catraca_core::time::Span;

use super::Locks;
use super::error::LockError;
use super::room::Room;

/// How far ahead numbers are kept: as many as there are microseconds in ten minutes.
const AHEAD: i64 = 600_000_000;

/// What is to be written, and whether anybody waits for it.
#[derive(Default)]
pub(super) struct Due {
    pub deeds: Vec<LockDeed>,
    pub wait: bool,
    fence: KeptFence,
}

impl Room {
    /// What a grant or a renewal needs of the disk.
    pub fn due(&self, view: &View, ttl: Span, durability: Durability) -> Due {
        let mut inner = self.inner.lock();
        // What made room for it goes to the disk with it: both must never come back.
        let mut due = Due { deeds: self.gone(&mut inner), ..Due::default() };
        let logged = durability == Durability::Fsync;
        // A lease that is on disk is brought back, and needs nobody to wait for its end.
        let longest = if logged { Span::ZERO } else { ttl };
        let unsure = view.fence > inner.sure.ceiling || longest > inner.sure.longest;
        let scarce = inner.kept.ceiling.saturating_sub(view.fence) < AHEAD / 2;
        if unsure || scarce {
            inner.kept.ceiling = inner.kept.ceiling.max(view.fence.saturating_add(AHEAD));
            inner.kept.longest = inner.kept.longest.max(longest);
            due.deeds.push(LockDeed::Fence(self.namespace.clone(), inner.kept));
        }
        due.fence = inner.kept;
        due.wait = unsure || logged;
        if logged {
            inner.logged = true;
            let kept = inner.book.keep(view.key).map(Box::new);
            due.deeds.extend(kept.map(|lease| LockDeed::Keep(self.namespace.clone(), lease)));
        }
        due
    }

    /// What a new grant needs of the disk: a version is a memory, so whoever relies on it waits
    /// until it is kept.
    pub fn due_first(&self, view: &View, durability: Durability) -> Due {
        let mut due = self.due(view, view.ttl, durability);
        let raised = self.inner.lock().book.raised(view);
        due.wait |= !raised.is_empty();
        let raised = raised.into_iter().map(Box::new);
        due.deeds.extend(raised.map(|kept| LockDeed::Version(self.namespace.clone(), kept)));
        due
    }

    /// The disk has it.
    fn sure(&self, fence: KeptFence) {
        let mut inner = self.inner.lock();
        inner.sure.ceiling = inner.sure.ceiling.max(fence.ceiling);
        inner.sure.longest = inner.sure.longest.max(fence.longest);
    }
}

impl Locks {
    /// Writes what is due, and waits for it if somebody must.
    pub(super) async fn write(&self, room: &Room, due: Due) -> Result<(), LockError> {
        let Some(journal) = self.journal.as_ref().filter(|_| !due.deeds.is_empty()) else {
            return Ok(());
        };
        let written = journal.write(due.deeds);
        if !due.wait {
            return Ok(());
        }
        written.await.map_err(|why| self.unkept(why))?;
        room.sure(due.fence);
        Ok(())
    }

    /// What must be on disk is not; it is counted, for whoever looks after the disk.
    pub(super) fn unkept(&self, why: String) -> LockError {
        self.unkept.fetch_add(1, Ordering::Relaxed);
        LockError::Unkept { why }
    }

    /// Writes something that nobody waits for.
    pub(super) fn note(&self, deeds: Vec<LockDeed>) {
        if let Some(journal) = self.journal.as_ref().filter(|_| !deeds.is_empty()) {
            drop(journal.write(deeds));
        }
    }
}

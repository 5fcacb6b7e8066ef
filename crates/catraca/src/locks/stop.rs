//! Ending in order, and taking up where the process before left off.
//!
//! A stop in order puts every lease on disk with the time that it has left, so that the next start
//! brings them back and refuses nobody. Must not leave on disk what would bring a lease back after
//! its end, nor open a namespace while lost leases may be in force.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use catraca_core::digest::Secret;
use catraca_core::lock::Durability;
use catraca_core::lock::kept::{KeptFence, KeptLease, LockDeed};
use catraca_core::time::{Span, Time};

use super::journal::Journal;
use super::room::{Inner, Room};
use super::{Locks, StandingLock};
use crate::clock::Clock;

/// Leases that a stop puts on disk at most, which bounds how long it takes. A namespace that has no
/// room among them is waited for at the next start.
pub(super) const KEPT_AT_STOP: usize = 100_000;

impl Locks {
    /// Locks that know what was kept, and keep grants like this from now on. A namespace whose
    /// leases may have been lost grants nothing until the longest of them would have run out.
    pub fn open(
        clock: Arc<dyn Clock>,
        secret: &Secret,
        (journal, durability): (Arc<dyn Journal>, Durability),
        standing: impl IntoIterator<Item = StandingLock>,
    ) -> Self {
        let mut locks = Self::new(clock, secret);
        locks.journal = Some(journal);
        let now = locks.clock.now();
        for one in standing {
            match one {
                StandingLock::Fence(namespace, kept) => {
                    locks.made(&namespace).inner.lock().resume(kept, now);
                }
                StandingLock::Lease(namespace, lease) => {
                    locks.made(&namespace).inner.lock().bring_back(*lease, now);
                }
                StandingLock::Version(namespace, kept) => {
                    locks.made(&namespace).inner.lock().book.restore_version(*kept);
                }
            }
        }
        if durability == Durability::Memory {
            locks.note(locks.all().iter().flat_map(|room| room.lives_in_memory(now)).collect());
        }
        locks
    }

    /// Grants nothing any more, and puts on disk what is in force and that the process ends in
    /// order.
    pub async fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        let (now, mut most) = (self.clock.now(), KEPT_AT_STOP);
        let mut deeds = Vec::new();
        for room in self.all() {
            let (fence, leases) = room.shut(now, most);
            most -= leases.len();
            deeds.extend(leases);
            deeds.push(fence);
        }
        if let (Some(journal), false) = (&self.journal, deeds.is_empty()) {
            // If it cannot be written, the next start is as careful as after a crash.
            let _ = journal.write(deeds).await;
        }
    }

    /// For how long some namespace grants nothing because lost leases may be in force.
    pub fn starting(&self) -> Option<Span> {
        let now = self.clock.now();
        let waits = self.all().into_iter().map(|room| room.inner.lock().closed_until.since(now));
        waits.max().filter(|wait| *wait > Span::ZERO)
    }
}

impl Inner {
    /// Takes up where the process before left off.
    fn resume(&mut self, kept: KeptFence, now: Time) {
        self.book.raise(kept.ceiling);
        self.closed_until = now.after(kept.left.unwrap_or(kept.longest));
        // What is kept next says again that the end was not in order, until it is; and what this
        // start waits for, the next one does too.
        let longest = kept.longest.max(kept.left.unwrap_or_default());
        self.kept = KeptFence { longest, left: None, ..kept };
    }

    /// A lease that is on disk is in force again, and its end will be told to the disk.
    fn bring_back(&mut self, lease: KeptLease, now: Time) {
        self.logged = true;
        self.book.restore(lease, now);
    }

    /// How much longer nothing may be granted, whatever is in the book: leases of a process before
    /// this one may be in force, or an operator has ended one a moment ago.
    fn unsettled(&self, now: Time) -> Span {
        let cooling = self.cooling.last().map_or(Time::ZERO, |(until, _)| *until);
        self.closed_until.max(cooling).since(now)
    }
}

impl Room {
    /// Leases that were brought back are from now on what all others are where grants are not put
    /// on disk: lost with a crash, and then waited for. On disk they could come back after their
    /// end, when somebody else has their names. The first grant and the first renewal wait for a
    /// write that comes after this one.
    fn lives_in_memory(&self, now: Time) -> Vec<LockDeed> {
        let mut inner = self.inner.lock();
        let held: Vec<KeptLease> = inner.book.held(now).collect();
        inner.logged = false;
        let Some(longest) = held.iter().map(|lease| lease.ttl).max() else { return Vec::new() };
        inner.kept.longest = inner.kept.longest.max(longest);
        let drops = held.iter().map(|lease| LockDeed::Drop(self.namespace.clone(), lease.key));
        let mut deeds: Vec<LockDeed> = drops.collect();
        deeds.push(LockDeed::Fence(self.namespace.clone(), inner.kept));
        deeds
    }

    /// Grants nothing any more. What the next start has to know, with at most so many leases.
    fn shut(&self, now: Time, most: usize) -> (LockDeed, Vec<LockDeed>) {
        let mut inner = self.inner.lock();
        inner.shut = true;
        let mut held: Vec<KeptLease> = inner.book.held(now).take(most.saturating_add(1)).collect();
        let mut left = inner.unsettled(now);
        if held.len() > most {
            held.clear();
            left = left.max(inner.book.left(now));
        }
        let ceiling = inner.book.fence();
        let kept = KeptFence { ceiling, left: Some(left), ..inner.kept };
        let keep = |lease| LockDeed::Keep(self.namespace.clone(), Box::new(lease));
        (LockDeed::Fence(self.namespace.clone(), kept), held.into_iter().map(keep).collect())
    }
}

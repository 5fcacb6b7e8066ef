//! Shutdown, and restoring locks at the next start.
//!
//! A clean shutdown writes every active lease with its remaining time, so that the next start
//! restores them and grants at once. After a crash, a namespace grants nothing while leases that
//! were only in memory may still be valid. No lease may be restored after its end.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use catraca_core::digest::Secret;
use catraca_core::lock::Durability;
use catraca_core::lock::persistence::{LockWrite, PersistedFence, PersistedLease};
use catraca_core::time::{Span, Time};

use super::namespace::{NamespaceLocks, NamespaceState};
use super::persistence::Journal;
use super::{Locks, RestoredLock};
use crate::clock::Clock;

/// The most leases that a shutdown writes, which bounds its duration. A namespace with more
/// remaining leases waits at the next start instead.
pub(super) const LEASES_WRITTEN_AT_STOP: usize = 100_000;

impl Locks {
    /// Locks with a journal, restored from persisted state. A namespace whose leases may have been
    /// lost grants nothing until the longest of them would have expired.
    pub fn open(
        clock: Arc<dyn Clock>,
        secret: &Secret,
        (journal, durability): (Arc<dyn Journal>, Durability),
        stored: impl IntoIterator<Item = RestoredLock>,
    ) -> Self {
        let mut locks = Self::new(clock, secret);
        locks.journal = Some(journal);
        let now = locks.clock.now();
        for item in stored {
            match item {
                RestoredLock::Fence(namespace, fence) => {
                    locks.find_or_create(&namespace).state.lock().restore_fence(fence, now);
                }
                RestoredLock::Lease(namespace, lease) => {
                    locks.find_or_create(&namespace).state.lock().restore_lease(*lease, now);
                }
                RestoredLock::Version(namespace, version) => {
                    locks.find_or_create(&namespace).state.lock().table.restore_version(*version);
                }
            }
        }
        if durability == Durability::Memory {
            let namespaces = locks.all_namespaces();
            let writes = namespaces.iter().flat_map(|ns| ns.drop_leases_on_disk(now)).collect();
            locks.write_nowait(writes);
        }
        locks
    }

    /// Stops granting, and writes the active leases and a mark of a clean shutdown to the journal.
    pub async fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        let now = self.clock.now();
        let mut most = LEASES_WRITTEN_AT_STOP;
        let mut writes = Vec::new();
        for ns in self.all_namespaces() {
            let (fence, leases) = ns.stop(now, most);
            most -= leases.len();
            writes.extend(leases);
            writes.push(fence);
        }
        if let (Some(journal), false) = (&self.journal, writes.is_empty()) {
            // If this fails, the next start waits as after a crash.
            let _ = journal.write(writes).await;
        }
    }

    /// How long some namespace still grants nothing because lost leases may still be valid.
    pub fn startup_wait(&self) -> Option<Span> {
        let now = self.clock.now();
        let namespaces = self.all_namespaces().into_iter();
        let waits = namespaces.map(|ns| ns.state.lock().closed_until.since(now));
        waits.max().filter(|wait| *wait > Span::ZERO)
    }
}

impl NamespaceState {
    /// Restores the fence of the previous process.
    fn restore_fence(&mut self, fence: PersistedFence, now: Time) {
        self.table.raise_fence(fence.ceiling);
        // `left` is only stored by a clean shutdown; without it, any lease may still be valid.
        self.closed_until = now.after(fence.left.unwrap_or(fence.longest));
        // The next stored fence has no remaining time, which marks a crash until a clean shutdown;
        // and it includes the present wait, so that a crash during it waits as long again.
        let longest = fence.longest.max(fence.left.unwrap_or_default());
        self.requested_fence = PersistedFence { longest, left: None, ..fence };
    }

    /// Restores a lease from disk; its end must be written too.
    fn restore_lease(&mut self, lease: PersistedLease, now: Time) {
        self.leases_on_disk = true;
        self.table.restore(lease, now);
    }

    /// How much longer the next start must grant nothing, apart from the leases in the table:
    /// leases of an earlier process may still be valid, or names may be in cooldown.
    fn remaining_wait(&self, now: Time) -> Span {
        let last_cooldown = self.cooldowns.last().map_or(Time::ZERO, |(until, _)| *until);
        self.closed_until.max(last_cooldown).since(now)
    }
}

impl NamespaceLocks {
    /// With durability `memory`, restored leases become like all others: in memory only, and waited
    /// for after a crash. If they stayed on disk, a crash could restore them after their end, when
    /// their names belong to other leases. The first grant and the first renewal wait for a write
    /// that comes after this one.
    fn drop_leases_on_disk(&self, now: Time) -> Vec<LockWrite> {
        let mut state = self.state.lock();
        let held: Vec<PersistedLease> = state.table.held_leases(now).collect();
        state.leases_on_disk = false;
        let Some(longest) = held.iter().map(|lease| lease.ttl).max() else { return Vec::new() };
        state.requested_fence.longest = state.requested_fence.longest.max(longest);
        let drops = held.iter().map(|lease| LockWrite::Drop(self.namespace.clone(), lease.key));
        let mut writes: Vec<LockWrite> = drops.collect();
        writes.push(LockWrite::Fence(self.namespace.clone(), state.requested_fence));
        writes
    }

    /// Stops granting. Returns the journal entries for the next start, with at most `most` leases.
    fn stop(&self, now: Time, most: usize) -> (LockWrite, Vec<LockWrite>) {
        let mut state = self.state.lock();
        state.stopped = true;
        // One more than allowed shows that there are too many.
        let mut held: Vec<PersistedLease> =
            state.table.held_leases(now).take(most.saturating_add(1)).collect();
        let mut left = state.remaining_wait(now);
        if held.len() > most {
            held.clear();
            left = left.max(state.table.longest_remaining(now));
        }
        let ceiling = state.table.fence();
        let fence = PersistedFence { ceiling, left: Some(left), ..state.requested_fence };
        let keep = |lease| LockWrite::Keep(self.namespace.clone(), Box::new(lease));
        (LockWrite::Fence(self.namespace.clone(), fence), held.into_iter().map(keep).collect())
    }
}

//! Shutdown, and restoring locks at the next start.
//!
//! A clean shutdown writes every active lease with its remaining time, so that the next start
//! restores them and grants at once. After a crash, a namespace grants nothing while leases that
//! were only in memory may still be valid. No lease may be restored after its end.

use std::sync::Arc;

use catraca_core::lock::Durability;
use catraca_core::lock::persistence::{LockWrite, PersistedFence, PersistedLease};
use catraca_core::time::{Span, Time};

use super::journal::Journal;
use super::namespace::{NamespaceLocks, NamespaceState};
use super::{MemoryLocks, RestoredLock};
use crate::clock::Clock;
use crate::locks::LockError;

/// The most leases that a shutdown writes, which bounds its duration. A namespace with more
/// remaining leases waits at the next start instead.
const LEASES_WRITTEN_AT_STOP: usize = 100_000;

impl MemoryLocks {
    /// Locks with a journal, restored from persisted state. A namespace whose leases may have been
    /// lost grants nothing until the longest of them would have expired.
    pub fn open(
        clock: Arc<dyn Clock>,
        journal: Arc<dyn Journal>,
        durability: Durability,
        stored: impl IntoIterator<Item = RestoredLock>,
    ) -> Self {
        let now = clock.now();
        let locks = Self::with_journal(clock, Some(journal));
        for item in stored {
            match item {
                RestoredLock::Fence(namespace, fence) => {
                    locks.namespace(&namespace).state.lock().restore_fence(fence, now);
                }
                RestoredLock::Lease(namespace, lease) => {
                    locks.namespace(&namespace).state.lock().restore_lease(*lease, now);
                }
                RestoredLock::Version(namespace, version) => {
                    locks.namespace(&namespace).state.lock().table.restore_version(*version);
                }
            }
        }
        if durability == Durability::Memory {
            for namespace in locks.all_namespaces() {
                namespace.drop_leases_on_disk(now);
            }
        }
        locks
    }

    /// Stops granting, and writes the active leases and a mark of a clean shutdown to the journal.
    pub(super) async fn stop(&self) -> Result<(), LockError> {
        let now = self.context.clock.now();
        let mut most = LEASES_WRITTEN_AT_STOP;
        let mut writes = Vec::new();
        for namespace in self.all_namespaces() {
            let leases_before = writes.len();
            let fence = namespace.stop(now, most, &mut writes);
            most -= writes.len() - leases_before;
            writes.push(fence);
        }
        if let (Some(journal), false) = (&self.context.journal, writes.is_empty()) {
            journal.write(writes).await.map_err(|error| LockError::write_failed(&error))?;
        }
        Ok(())
    }
}

impl NamespaceLocks {
    /// With durability `memory`, restored leases become like all others: in memory only, and waited
    /// for after a crash. If they stayed on disk, a crash could restore them after their end, when
    /// their names belong to other leases. The first grant and the first renewal wait for a write
    /// that comes after this one.
    fn drop_leases_on_disk(&self, now: Time) {
        let mut state = self.state.lock();
        let held: Vec<PersistedLease> = state.table.held_leases(now).collect();
        state.leases_on_disk = false;
        let Some(longest) = held.iter().map(|lease| lease.ttl).max() else { return };
        state.requested_fence.longest = state.requested_fence.longest.max(longest);
        let drops = held.iter().map(|lease| LockWrite::Drop(self.name.clone(), lease.key));
        let mut writes: Vec<LockWrite> = drops.collect();
        writes.push(LockWrite::Fence(self.name.clone(), state.requested_fence));
        self.submit_nowait(writes);
    }

    /// Stops granting. Adds at most `most` leases to `writes`, and returns the fence for the next
    /// start.
    fn stop(&self, now: Time, most: usize, writes: &mut Vec<LockWrite>) -> LockWrite {
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
        let keep = |lease| LockWrite::Keep(self.name.clone(), Box::new(lease));
        writes.extend(held.into_iter().map(keep));
        let ceiling = state.table.fence();
        let fence = PersistedFence { ceiling, left: Some(left), ..state.requested_fence };
        LockWrite::Fence(self.name.clone(), fence)
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
    /// leases of an earlier process may still be valid, or names may be in their cool-down.
    fn remaining_wait(&self, now: Time) -> Span {
        self.closed_until.max(self.cooled_down_at).since(now)
    }
}

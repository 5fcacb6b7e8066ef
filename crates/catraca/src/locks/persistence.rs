//! The journal of locks, and what must be on disk before a call is answered.
//!
//! The journal holds a ceiling of fences and the longest lease time, both ahead of the need, so
//! that few grants wait for the disk; with durability `fsync` every grant does. A grant is only
//! answered if the next start can honour it.

use std::pin::Pin;
use std::sync::atomic::Ordering;

use catraca_core::lock::Durability;
use catraca_core::lock::persistence::{LockWrite, PersistedFence};
use catraca_core::lock::reply::Lease;
use catraca_core::time::Span;

use super::Locks;
use super::lock_error::LockError;
use super::namespace::NamespaceLocks;

/// How far the stored ceiling is ahead of the granted fences. Fences follow the clock in
/// microseconds, so this is ten minutes.
const AHEAD: i64 = 600_000_000;

/// Resolves when the entries are on disk, or to the reason why they are not.
pub type JournalFuture = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

/// Storage for lock state that must survive the process; entries are applied in order.
///
/// The mutex of a namespace must not be held while a write is awaited.
pub trait Journal: Send + Sync {
    /// Writes all entries, or none.
    fn write(&self, writes: Vec<LockWrite>) -> JournalFuture;
}

/// Journal entries of a call, and whether the call waits for them.
#[derive(Default)]
pub(super) struct DurableWrite {
    pub writes: Vec<LockWrite>,
    pub wait: bool,
    fence: PersistedFence,
}

impl NamespaceLocks {
    /// The journal entries of a grant or a renewal.
    pub fn prepare_write(&self, lease: &Lease, ttl: Span, durability: Durability) -> DurableWrite {
        let mut state = self.state.lock();
        // The leases that it replaced are removed in the same write: a restart must not restore
        // both.
        let mut write =
            DurableWrite { writes: self.take_ended_writes(&mut state), ..DurableWrite::default() };
        let to_disk = durability == Durability::Fsync;
        // A lease on disk is restored after a crash, so no start has to wait for its end.
        let longest = if to_disk { Span::ZERO } else { ttl };
        let on_disk = state.confirmed_fence;
        let exceeds_disk = lease.fence > on_disk.ceiling || longest > on_disk.longest;
        // Raised early, so that a later grant does not have to wait for it.
        let runs_low = state.requested_fence.ceiling.saturating_sub(lease.fence) < AHEAD / 2;
        if exceeds_disk || runs_low {
            let requested = &mut state.requested_fence;
            requested.ceiling = requested.ceiling.max(lease.fence.saturating_add(AHEAD));
            requested.longest = requested.longest.max(longest);
            write.writes.push(LockWrite::Fence(self.namespace.clone(), state.requested_fence));
        }
        write.fence = state.requested_fence;
        write.wait = exceeds_disk || to_disk;
        if to_disk {
            state.leases_on_disk = true;
            let lease = state.table.to_persisted(lease.key).map(Box::new);
            write.writes.extend(lease.map(|lease| LockWrite::Keep(self.namespace.clone(), lease)));
        }
        write
    }

    /// The journal entries of a new grant. It waits when it raises a version: a lower one must be
    /// refused also after a crash.
    pub fn prepare_grant_write(&self, lease: &Lease, durability: Durability) -> DurableWrite {
        let mut write = self.prepare_write(lease, lease.ttl, durability);
        let raised = self.state.lock().table.raised_versions(lease);
        write.wait |= !raised.is_empty();
        let raised = raised.into_iter().map(Box::new);
        let raised = raised.map(|version| LockWrite::Version(self.namespace.clone(), version));
        write.writes.extend(raised);
        write
    }

    /// Notes that the fence is on disk.
    fn confirm_fence(&self, fence: PersistedFence) {
        let mut state = self.state.lock();
        state.confirmed_fence.ceiling = state.confirmed_fence.ceiling.max(fence.ceiling);
        state.confirmed_fence.longest = state.confirmed_fence.longest.max(fence.longest);
    }
}

impl Locks {
    /// Writes journal entries and waits for them if the call must.
    pub(super) async fn write(
        &self,
        ns: &NamespaceLocks,
        write: DurableWrite,
    ) -> Result<(), LockError> {
        let Some(journal) = self.journal.as_ref().filter(|_| !write.writes.is_empty()) else {
            return Ok(());
        };
        let written = journal.write(write.writes);
        if !write.wait {
            return Ok(());
        }
        written.await.map_err(|why| self.write_failed(why))?;
        ns.confirm_fence(write.fence);
        Ok(())
    }

    /// Counts a failed write and makes its error.
    pub(super) fn write_failed(&self, why: String) -> LockError {
        self.write_failures.fetch_add(1, Ordering::Relaxed);
        LockError::WriteFailed { why }
    }

    /// Writes journal entries without waiting for them.
    pub(super) fn write_nowait(&self, writes: Vec<LockWrite>) {
        if let Some(journal) = self.journal.as_ref().filter(|_| !writes.is_empty()) {
            drop(journal.write(writes));
        }
    }
}

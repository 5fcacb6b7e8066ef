//! The journal of locks, and what must be on disk before a call is answered.
//!
//! The journal holds a ceiling of fences and the longest lease time, both ahead of the need, so
//! that few grants wait for the disk; with durability `fsync` every grant does. A grant is only
//! answered if the next start can honour it.

use std::pin::Pin;

use catraca_core::lock::persistence::{LockWrite, PersistedFence};
use catraca_core::lock::reply::{AcquireReply, Lease, RenewReply};
use catraca_core::lock::requests::Acquire;
use catraca_core::lock::{Durability, LockOp, LockOutcome, VersionPolicy};
use catraca_core::time::Span;

use super::namespace::{NamespaceLocks, NamespaceState};
use crate::locks::lock_error::LockError;

/// How far the stored ceiling is ahead of the granted fences. Fences follow the clock in
/// microseconds, so this is ten minutes.
const AHEAD: i64 = 600_000_000;

/// Resolves when the entries are on disk, or to the reason why they are not.
pub type JournalFuture = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;

/// Storage for lock state that must survive the process; entries are applied in order.
pub trait Journal: Send + Sync {
    /// Writes all entries, or none. Their order is that of the calls, not of the futures: a write
    /// whose future is dropped is made all the same.
    fn write(&self, writes: Vec<LockWrite>) -> JournalFuture;
}

/// Journal entries of an operation, and whether the operation waits for them.
#[derive(Default)]
pub(super) struct DurableWrite {
    pub writes: Vec<LockWrite>,
    pub wait: bool,
    fence: PersistedFence,
}

/// Entries that the journal has, and that the operation waits for.
pub(super) struct PendingWrite {
    written: JournalFuture,
    fence: PersistedFence,
}

impl NamespaceLocks {
    /// Hands the changes of an operation to the journal, except those of a slot.
    pub fn write(
        &self,
        state: &mut NamespaceState,
        op: &LockOp,
        outcome: &LockOutcome,
    ) -> Option<PendingWrite> {
        let write = self.collect_writes(state, op, outcome);
        self.submit(write)
    }

    fn collect_writes(
        &self,
        state: &mut NamespaceState,
        op: &LockOp,
        outcome: &LockOutcome,
    ) -> DurableWrite {
        match (op, outcome) {
            (
                LockOp::Acquire { request, .. },
                LockOutcome::Acquired(AcquireReply::Granted(lease)),
            ) => self.acquire_writes(state, request, lease),
            (LockOp::Hold(request), LockOutcome::Acquired(AcquireReply::Granted(lease))) => {
                self.lease_writes(state, lease, lease.ttl, request.lease.durability)
            }
            (
                LockOp::Renew { ttl, durability, .. },
                LockOutcome::Renewed(RenewReply::Extended(lease)),
            ) => self.lease_writes(state, lease, *ttl, *durability),
            _ => {
                let mut write = self.ended_writes(state);
                // A cancellation waits only if its own slot was on disk.
                if let LockOp::Cancel(proof) = op {
                    let own = LockWrite::Drop(self.name.clone(), proof.key);
                    write.wait = write.writes.contains(&own);
                }
                write
            }
        }
    }

    /// The journal entries of a grant of names. It waits when it raises a version: a lower one must
    /// be refused also after a crash.
    fn acquire_writes(
        &self,
        state: &mut NamespaceState,
        request: &Acquire,
        lease: &Lease,
    ) -> DurableWrite {
        let mut write = self.lease_writes(state, lease, lease.ttl, request.lease.durability);
        if request.policy == VersionPolicy::Opaque {
            return write;
        }
        let raised = state.table.raised_versions(lease);
        write.wait |= !raised.is_empty();
        let raised = raised.into_iter().map(Box::new);
        let raised = raised.map(|version| LockWrite::Version(self.name.clone(), version));
        write.writes.extend(raised);
        write
    }

    /// The journal entries of a lease that was granted, extended or moved.
    pub fn lease_writes(
        &self,
        state: &mut NamespaceState,
        lease: &Lease,
        ttl: Span,
        durability: Durability,
    ) -> DurableWrite {
        // The leases that it replaced are removed in the same write: a restart must not restore
        // both.
        let mut write = self.ended_writes(state);
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
            write.writes.push(LockWrite::Fence(self.name.clone(), state.requested_fence));
        }
        write.fence = state.requested_fence;
        write.wait = exceeds_disk || to_disk;
        if to_disk {
            state.leases_on_disk = true;
            write.writes.extend(self.lease_entry(state, lease));
        }
        write
    }

    /// The journal entry of a live lease.
    pub fn lease_entry(&self, state: &NamespaceState, lease: &Lease) -> Option<LockWrite> {
        let persisted = state.table.to_persisted(lease.key)?;
        Some(LockWrite::Keep(self.name.clone(), Box::new(persisted)))
    }

    pub fn ended_writes(&self, state: &mut NamespaceState) -> DurableWrite {
        DurableWrite { writes: self.take_ended_writes(state), ..DurableWrite::default() }
    }

    /// The journal entries for leases that have ended.
    pub fn take_ended_writes(&self, state: &mut NamespaceState) -> Vec<LockWrite> {
        let leases_on_disk = state.leases_on_disk;
        let ended = state.table.take_ended().into_iter();
        let ended = ended.inspect(|end| self.context.held_times.observe(end.lasted));
        // Confirmed slots are always on disk, other leases only with durability `fsync`.
        let on_disk = ended.filter(|end| end.confirmed || leases_on_disk);
        on_disk.map(|end| LockWrite::Drop(self.name.clone(), end.key)).collect()
    }

    /// Hands entries to the journal. Called under the mutex, so that the journal has all changes in
    /// their order: the end of a lease comes before the next grant of its names.
    pub fn submit(&self, write: DurableWrite) -> Option<PendingWrite> {
        let journal = self.context.journal.as_ref().filter(|_| !write.writes.is_empty())?;
        let written = journal.write(write.writes);
        write.wait.then_some(PendingWrite { written, fence: write.fence })
    }

    /// Hands entries to the journal that no call waits for; under the mutex as well.
    pub fn submit_nowait(&self, writes: Vec<LockWrite>) {
        self.submit(DurableWrite { writes, ..DurableWrite::default() });
    }

    /// Waits until the entries are on disk. Called without the mutex.
    pub async fn wait_for(&self, pending: Option<PendingWrite>) -> Result<(), LockError> {
        let Some(pending) = pending else { return Ok(()) };
        pending.written.await.map_err(|why| LockError::WriteFailed { why })?;
        let mut state = self.state.lock();
        let confirmed = &mut state.confirmed_fence;
        confirmed.ceiling = confirmed.ceiling.max(pending.fence.ceiling);
        confirmed.longest = confirmed.longest.max(pending.fence.longest);
        Ok(())
    }
}

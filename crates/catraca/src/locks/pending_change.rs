//! Changes of slots that are being written, and their reversal if that fails.
//!
//! A write that failed or timed out may still succeed later, so a reversal in memory is also
//! written to the journal, after it. A change that another call has been answered with is not
//! reverted.

use catraca_core::lock::LeaseKey;
use catraca_core::lock::persistence::LockWrite;
use catraca_core::lock::reply::{Lease, LeaseState};
use catraca_core::lock::table::StoredLease;

use super::Locks;
use super::lock_error::LockError;
use super::namespace::{NamespaceLocks, NamespaceState};

/// The changes of one slot that are being written.
#[derive(Default)]
pub(super) struct PendingSlotChanges {
    count: usize,
    /// One of them is on disk.
    on_disk: bool,
    /// One of them was reverted.
    reverted: bool,
}

/// One change that is being written; counted until it is dropped.
pub(super) struct PendingSlotChange<'r> {
    ns: &'r NamespaceLocks,
    before: StoredLease,
    after: Lease,
}

impl<'r> PendingSlotChange<'r> {
    /// Registers the change of a slot from `before` to `after`.
    pub fn begin(
        ns: &'r NamespaceLocks,
        state: &mut NamespaceState,
        before: StoredLease,
        after: &Lease,
    ) -> Self {
        state.pending_changes.entry(after.key).or_default().count += 1;
        Self { ns, before, after: after.clone() }
    }
}

impl Drop for PendingSlotChange<'_> {
    fn drop(&mut self) {
        let mut state = self.ns.state.lock();
        let Some(pending) = state.pending_changes.get_mut(&self.after.key) else { return };
        pending.count -= 1;
        if pending.count == 0 {
            state.pending_changes.remove(&self.after.key);
        }
    }
}

impl Locks {
    /// Ends a change: marks it as on disk, or reverts it if writing failed.
    pub(super) fn finish_change(
        &self,
        change: &PendingSlotChange<'_>,
        written: Result<(), LockError>,
    ) -> Result<(), LockError> {
        let ns = change.ns;
        let key = change.after.key;
        let mut state = ns.state.lock();
        let pending = state.pending_changes.entry(key).or_default();
        match written {
            Ok(()) if pending.reverted => Err(self.write_failed(
                "a concurrent change of the slot failed, and both were reverted".to_owned(),
            )),
            Ok(()) => {
                pending.on_disk = true;
                Ok(())
            }
            Err(error) => {
                // Once a concurrent change is on disk, its caller relies on the present state.
                if !pending.on_disk && change.before.lease != change.after {
                    self.revert_change(ns, &mut state, change);
                }
                Err(error)
            }
        }
    }

    /// Reverts a change in memory and in the journal; under the mutex, so that later changes come
    /// later in the journal.
    fn revert_change(
        &self,
        ns: &NamespaceLocks,
        state: &mut NamespaceState,
        change: &PendingSlotChange<'_>,
    ) {
        if !state.table.restore_previous(&change.before, &change.after) {
            return;
        }
        state.pending_changes.entry(change.after.key).or_default().reverted = true;
        self.write_nowait(vec![ns.reversal_write(state, change.after.key)]);
        state.grant_freed_names(self.clock.now());
    }
}

impl NamespaceLocks {
    /// The journal entry for a lease whose change was reverted.
    fn reversal_write(&self, state: &NamespaceState, key: LeaseKey) -> LockWrite {
        let lease = state.table.to_persisted(key);
        match lease.filter(|lease| lease.state == LeaseState::Confirmed || state.leases_on_disk) {
            Some(lease) => LockWrite::Keep(self.namespace.clone(), Box::new(lease)),
            None => LockWrite::Drop(self.namespace.clone(), key),
        }
    }
}

//! Confirmations and moves of slots, and their reversal if they cannot be written.
//!
//! A write that failed or timed out may still succeed later, so a reversal in memory is also
//! written to the journal, after it. A change that another call has been answered with is not
//! reverted.

use catraca_core::lock::persistence::LockWrite;
use catraca_core::lock::reply::{ConfirmReply, Lease, LeaseState, MoveReply};
use catraca_core::lock::requests::Move;
use catraca_core::lock::table::StoredLease;
use catraca_core::lock::{Durability, LeaseKey, LockOp, LockOutcome, LockReply};
use catraca_core::time::{Span, Time};

use super::journal::{DurableWrite, PendingWrite};
use super::namespace::{NamespaceLocks, NamespaceState};
use crate::locks::lock_error::LockError;
use crate::store::When;

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
struct PendingSlotChange<'n> {
    namespace: &'n NamespaceLocks,
    before: StoredLease,
    after: Lease,
}

impl NamespaceLocks {
    /// Confirms or moves a slot. It is only answered as confirmed when it is on disk.
    pub async fn change_slot(&self, op: &LockOp, when: When) -> Result<LockReply, LockError> {
        let (reply, write, change) = self.change_in_memory(op, when)?;
        let written = self.wait_for(write).await;
        match change {
            Some(change) => change.finish(written)?,
            None => written?,
        }
        Ok(reply)
    }

    /// Changes a slot in memory, and hands the change to the journal.
    fn change_in_memory(&self, op: &LockOp, when: When) -> Result<SlotChangeStep<'_>, LockError> {
        let mut state = self.state.lock();
        let now = self.instant(when);
        state.check_running()?;
        let key = match op {
            LockOp::Relocate(Move { proof, .. }) | LockOp::Confirm { proof, .. } => proof.key,
            _ => return Err(LockError::unexpected_reply()),
        };
        let before = state.table.snapshot(key, now);
        let reply = match op {
            LockOp::Relocate(_) => state.relocate(op, before.as_ref(), now)?,
            _ => state.confirm(op, now)?,
        };
        let (write, change) = match (changed_slot(&reply.outcome), before) {
            (Some(after), Some(before)) => {
                let write = self.slot_writes(&mut state, op, after);
                (write, Some(PendingSlotChange::begin(self, &mut state, before, after)))
            }
            _ => (self.ended_writes(&mut state), None),
        };
        let write = self.submit(write);
        self.report_freed(&mut state);
        Ok((reply, write, change))
    }

    /// The journal entries of a slot that was confirmed or moved. A confirmed one is always
    /// written.
    fn slot_writes(&self, state: &mut NamespaceState, op: &LockOp, lease: &Lease) -> DurableWrite {
        if let (LockOp::Relocate(request), LeaseState::Held) = (op, lease.state) {
            return self.lease_writes(state, lease, lease.ttl, request.durability);
        }
        let mut write = self.lease_writes(state, lease, Span::ZERO, Durability::Memory);
        write.writes.extend(self.lease_entry(state, lease));
        write.wait = true;
        write
    }

    /// The journal entry for a lease whose change was reverted.
    fn reversal_write(&self, state: &NamespaceState, key: LeaseKey) -> LockWrite {
        let lease = state.table.to_persisted(key);
        match lease.filter(|lease| lease.state == LeaseState::Confirmed || state.leases_on_disk) {
            Some(lease) => LockWrite::Keep(self.name.clone(), Box::new(lease)),
            None => LockWrite::Drop(self.name.clone(), key),
        }
    }
}

/// The reply to a change, its journal entries, and the change if there was one.
type SlotChangeStep<'n> = (LockReply, Option<PendingWrite>, Option<PendingSlotChange<'n>>);

/// The slot as it is after a change; `None` if nothing changed.
fn changed_slot(outcome: &LockOutcome) -> Option<&Lease> {
    match outcome {
        LockOutcome::Confirmed(ConfirmReply::Done(lease))
        | LockOutcome::Moved(MoveReply::Done(lease)) => Some(lease),
        _ => None,
    }
}

impl NamespaceState {
    /// Confirms a slot. While leases of the previous process may still be valid, a slot whose hold
    /// has expired is not taken again.
    fn confirm(&mut self, op: &LockOp, now: Time) -> Result<LockReply, LockError> {
        let LockOp::Confirm { proof, again: true, grace } = op else {
            return Ok(self.table.apply(op, now));
        };
        let Err(starting) = self.check_open(now) else { return Ok(self.table.apply(op, now)) };
        let only_held = LockOp::Confirm { proof: proof.clone(), again: false, grace: *grace };
        let reply = self.table.apply(&only_held, now);
        let could_retake = ConfirmReply::Over { state: LeaseState::Expired, still_free: true };
        if reply.outcome == LockOutcome::Confirmed(could_retake) {
            return Err(starting);
        }
        Ok(reply)
    }

    /// Moves a slot. While leases of the previous process may still be valid, the move is reverted
    /// and refused.
    fn relocate(
        &mut self,
        op: &LockOp,
        before: Option<&StoredLease>,
        now: Time,
    ) -> Result<LockReply, LockError> {
        let reply = self.table.apply(op, now);
        if let (Some(after), Some(before), Err(starting)) =
            (changed_slot(&reply.outcome), before, self.check_open(now))
        {
            self.table.restore_previous(before, after);
            return Err(starting);
        }
        Ok(reply)
    }
}

impl<'n> PendingSlotChange<'n> {
    /// Registers the change of a slot from `before` to `after`.
    fn begin(
        namespace: &'n NamespaceLocks,
        state: &mut NamespaceState,
        before: StoredLease,
        after: &Lease,
    ) -> Self {
        state.pending_changes.entry(after.key).or_default().count += 1;
        Self { namespace, before, after: after.clone() }
    }

    /// Ends the change: marks it as on disk, or reverts it if writing failed.
    fn finish(&self, written: Result<(), LockError>) -> Result<(), LockError> {
        let mut state = self.namespace.state.lock();
        let pending = state.pending_changes.entry(self.after.key).or_default();
        match written {
            Ok(()) if pending.reverted => Err(LockError::WriteFailed {
                why: "a concurrent change of the slot failed, and both were reverted".to_owned(),
            }),
            Ok(()) => {
                pending.on_disk = true;
                Ok(())
            }
            Err(error) => {
                // Once a concurrent change is on disk, its caller relies on the present state.
                if !pending.on_disk && self.before.lease != self.after {
                    self.revert(&mut state);
                }
                Err(error)
            }
        }
    }

    /// Reverts the change in memory and in the journal; under the mutex, so that later changes come
    /// later in the journal.
    fn revert(&self, state: &mut NamespaceState) {
        if !state.table.restore_previous(&self.before, &self.after) {
            return;
        }
        state.pending_changes.entry(self.after.key).or_default().reverted = true;
        self.namespace.submit_nowait(vec![self.namespace.reversal_write(state, self.after.key)]);
        self.namespace.report_freed(state);
    }
}

impl Drop for PendingSlotChange<'_> {
    fn drop(&mut self) {
        let mut state = self.namespace.state.lock();
        let Some(pending) = state.pending_changes.get_mut(&self.after.key) else { return };
        pending.count -= 1;
        if pending.count == 0 {
            state.pending_changes.remove(&self.after.key);
        }
    }
}

//! Holds, confirms, cancels and moves time slots, and shows availability.
//!
//! A slot is only answered as confirmed when it is on disk.

use catraca_core::lock::persistence::LockWrite;
use catraca_core::lock::reply::{
    AcquireReply, Availability, ConfirmReply, Lease, LeaseState, MoveReply, ReleaseReply,
};
use catraca_core::lock::requests::{AvailabilityQuery, Hold, Move, Proof};
use catraca_core::lock::{Durability, LeaseKey};

use super::Locks;
use super::acquire::LockAttempt;
use super::lock_error::LockError;
use super::namespace::NamespaceLocks;
use super::pending_change::PendingSlotChange;

impl Locks {
    /// Holds a time range in all of some calendars, or none.
    pub async fn hold(
        &self,
        namespace: &str,
        request: &Hold,
        durability: Durability,
    ) -> Result<LockAttempt, LockError> {
        let ns = self.namespace(namespace)?;
        let acquired = {
            let mut state = ns.state.lock();
            state.check_open(self.clock.now())?;
            let acquired = state.table.hold(request, self.clock.now());
            if let AcquireReply::Conflict(_) = &acquired {
                state.table.count_conflict(request.tenant.as_deref(), &request.kind);
            }
            acquired
        };
        match &acquired {
            AcquireReply::Granted(lease) => {
                let write = ns.prepare_write(lease, lease.ttl, durability);
                if let Err(error) = self.write(&ns, write).await {
                    self.revert_grant(&ns, lease.key);
                    return Err(error);
                }
            }
            AcquireReply::Refused(refusal) => return Err(refusal.clone().into()),
            _ => {}
        }
        self.process_ends(&ns);
        Ok(LockAttempt { acquired, waiters: 0 })
    }

    /// Confirms a held slot; with `again`, also one that has expired and is still free. Returns
    /// whether it is on disk.
    pub async fn confirm(
        &self,
        namespace: &str,
        proof: &Proof,
        again: bool,
    ) -> Result<(ConfirmReply, bool), LockError> {
        let ns = self.namespace(namespace)?;
        let (confirmed, change) = {
            let now = self.clock.now();
            let mut state = ns.state.lock();
            let open = state.check_open(now);
            let before = state.table.snapshot(proof.key, now);
            let confirmed = state.table.confirm(proof, again && open.is_ok(), now);
            let could_retake = matches!(
                &confirmed,
                ConfirmReply::Over { state: LeaseState::Expired, still_free: true }
            );
            // Only the wait after a crash prevents it: return that error.
            if again && could_retake {
                open?;
            }
            let change = match (&confirmed, before) {
                (ConfirmReply::Done(lease), Some(before)) => {
                    Some(PendingSlotChange::begin(&ns, &mut state, before, lease))
                }
                _ => None,
            };
            (confirmed, change)
        };
        if let (ConfirmReply::Done(lease), Some(change)) = (&confirmed, change) {
            let written = self.persist_slot(&ns, lease).await;
            self.finish_change(&change, written)?;
        } else {
            self.process_ends(&ns);
            return Ok((confirmed, false));
        }
        self.process_ends(&ns);
        Ok((confirmed, self.journal.is_some()))
    }

    /// Cancels a slot, held or confirmed.
    pub async fn cancel(&self, namespace: &str, proof: &Proof) -> Result<ReleaseReply, LockError> {
        let ns = self.namespace(namespace)?;
        let (ended, writes) = {
            let mut state = ns.state.lock();
            let ended = state.table.cancel(proof, self.clock.now());
            (ended, ns.take_ended_writes(&mut state))
        };
        // The caller waits only if its own slot was on disk.
        let is_own =
            |write: &LockWrite| matches!(write, LockWrite::Drop(_, key) if *key == proof.key);
        if !writes.iter().any(is_own) {
            self.write_nowait(writes);
            return Ok(ended);
        }
        self.write_and_wait(writes).await?;
        Ok(ended)
    }

    /// Moves a slot to another time or other calendars; on a conflict it stays where it is.
    pub async fn relocate(
        &self,
        namespace: &str,
        request: &Move,
        durability: Durability,
    ) -> Result<MoveReply, LockError> {
        let ns = self.namespace(namespace)?;
        let (moved, change) = self.move_in_memory(&ns, request)?;
        if let (MoveReply::Done(lease), Some(change)) = (&moved, change) {
            let written = if lease.state == LeaseState::Confirmed {
                self.persist_slot(&ns, lease).await
            } else {
                let write = ns.prepare_write(lease, lease.ttl, durability);
                self.write(&ns, write).await
            };
            self.finish_change(&change, written)?;
        }
        self.process_ends(&ns);
        Ok(moved)
    }

    /// Moves a slot in memory. While leases of the previous process may still be valid, the move is
    /// reverted and refused.
    fn move_in_memory<'r>(
        &self,
        ns: &'r NamespaceLocks,
        request: &Move,
    ) -> Result<(MoveReply, Option<PendingSlotChange<'r>>), LockError> {
        let now = self.clock.now();
        let mut state = ns.state.lock();
        let before = state.table.snapshot(request.proof.key, now);
        let moved = state.table.relocate(request, now);
        let (MoveReply::Done(lease), Some(before)) = (&moved, before) else {
            return Ok((moved, None));
        };
        if let Err(starting) = state.check_open(now) {
            state.table.restore_previous(&before, lease);
            return Err(starting);
        }
        let change = PendingSlotChange::begin(ns, &mut state, before, lease);
        Ok((moved, Some(change)))
    }

    /// Busy and free times of calendars.
    pub fn look(
        &self,
        namespace: &str,
        request: &AvailabilityQuery,
    ) -> Result<Availability, LockError> {
        let ns = self.namespace(namespace)?;
        let availability = ns.state.lock().table.availability(request, self.clock.now());
        Ok(availability)
    }

    /// Writes a slot and its fence to the journal.
    async fn persist_slot(&self, ns: &NamespaceLocks, lease: &Lease) -> Result<(), LockError> {
        let mut write = ns.prepare_write(lease, catraca_core::time::Span::ZERO, Durability::Memory);
        write.writes.extend(Self::slot_write(ns, lease.key));
        write.wait = true;
        self.write(ns, write).await
    }

    fn slot_write(ns: &NamespaceLocks, key: LeaseKey) -> Option<LockWrite> {
        let lease = ns.state.lock().table.to_persisted(key)?;
        Some(LockWrite::Keep(ns.namespace.clone(), Box::new(lease)))
    }

    async fn write_and_wait(&self, writes: Vec<LockWrite>) -> Result<(), LockError> {
        match &self.journal {
            Some(journal) => journal.write(writes).await.map_err(|why| self.write_failed(why)),
            None => Ok(()),
        }
    }
}

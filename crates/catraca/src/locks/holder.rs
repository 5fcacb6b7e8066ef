//! Calls of holders, each one operation of the store, with the terms of the lease's kind.

use std::time::Duration;

use catraca_core::lock::reply::{
    Availability, ConfirmReply, Lease, MoveReply, ReleaseReply, RenewReply,
};
use catraca_core::lock::requests::{AvailabilityQuery, Move, Proof};
use catraca_core::lock::table::availability::BUSY_MAX;
use catraca_core::lock::{Durability, LockOp, LockOutcome, LockTerms};
use catraca_core::time::Span;

use super::lock_error::LockError;
use super::lock_request::whole_millis;
use super::{Locks, TimedReply};

/// The result of a confirmation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confirmation {
    /// Whether the slot is confirmed.
    pub reply: ConfirmReply,
    /// Whether the confirmation survives a crash.
    pub durable: bool,
}

impl Locks {
    /// Extends a lease by the requested TTL, or by the default of its kind.
    pub async fn renew(
        &self,
        namespace: &str,
        proof: &Proof,
        ttl: Option<Duration>,
        terms: &LockTerms,
    ) -> Result<TimedReply<RenewReply>, LockError> {
        // An unknown lease has no kind; the store then replies that it has no holder.
        let kind = self.kind_of(namespace, proof).await?.unwrap_or_default();
        let ttl = terms.ttl(&kind, ttl.map(whole_millis))?;
        let grace = terms.grace(&kind);
        let durability = terms.durability;
        let op = LockOp::Renew { proof: proof.clone(), ttl, durability, grace };
        let answer = self.ask(namespace, &op).await?;
        let LockOutcome::Renewed(reply) = answer.outcome else {
            return Err(LockError::unexpected_reply());
        };
        Ok(TimedReply { reply, now: answer.now })
    }

    /// Releases a lock.
    pub async fn release(&self, namespace: &str, proof: &Proof) -> Result<ReleaseReply, LockError> {
        self.end(namespace, LockOp::Release(proof.clone())).await
    }

    /// Cancels a slot, held or confirmed.
    pub async fn cancel(&self, namespace: &str, proof: &Proof) -> Result<ReleaseReply, LockError> {
        self.end(namespace, LockOp::Cancel(proof.clone())).await
    }

    async fn end(&self, namespace: &str, op: LockOp) -> Result<ReleaseReply, LockError> {
        let LockOutcome::Ended(reply) = self.ask(namespace, &op).await?.outcome else {
            return Err(LockError::unexpected_reply());
        };
        Ok(reply)
    }

    /// Confirms a held slot; with `reacquire`, also one whose hold has expired, if it is still
    /// free.
    pub async fn confirm(
        &self,
        namespace: &str,
        proof: &Proof,
        reacquire: bool,
        terms: &LockTerms,
    ) -> Result<Confirmation, LockError> {
        let grace = self.grace_of(namespace, proof, terms).await?;
        let op = LockOp::Confirm { proof: proof.clone(), again: reacquire, grace };
        let LockOutcome::Confirmed(reply) = self.ask(namespace, &op).await?.outcome else {
            return Err(LockError::unexpected_reply());
        };
        // Where a request may choose its durability, a confirmed slot is always on disk.
        let is_on_disk = self.durability.unwrap_or(Durability::Fsync) == Durability::Fsync;
        let durable = is_on_disk && matches!(reply, ConfirmReply::Done(_));
        Ok(Confirmation { reply, durable })
    }

    /// Moves a slot to another time or other calendars; on a conflict it stays where it is. The
    /// terms set the grace and the durability of the request.
    pub async fn relocate(
        &self,
        namespace: &str,
        request: Move,
        terms: &LockTerms,
    ) -> Result<TimedReply<MoveReply>, LockError> {
        let mut request = request.validate(terms.slot_max)?;
        request.grace = self.grace_of(namespace, &request.proof, terms).await?;
        request.durability = terms.durability;
        let answer = self.ask(namespace, &LockOp::Relocate(request)).await?;
        let LockOutcome::Moved(reply) = answer.outcome else {
            return Err(LockError::unexpected_reply());
        };
        Ok(TimedReply { reply, now: answer.now })
    }

    /// Busy and free times of a calendar.
    pub async fn look(
        &self,
        namespace: &str,
        request: &AvailabilityQuery,
    ) -> Result<Availability, LockError> {
        let mut busy = Vec::new();
        let mut part = request.clone();
        loop {
            let answer = self.ask(namespace, &LockOp::Availability(part.clone())).await?;
            let LockOutcome::Availability(seen) = answer.outcome else {
                return Err(LockError::unexpected_reply());
            };
            busy.extend(seen.busy);
            match seen.next {
                Some(next) if busy.len() < BUSY_MAX && next > part.from => part.from = next,
                next => return Ok(Availability::of(request, busy, next)),
            }
        }
    }

    /// The kind of the lease with this id, if this tenant may see it.
    async fn kind_of(&self, namespace: &str, proof: &Proof) -> Result<Option<Box<str>>, LockError> {
        Ok(self.lease_of(namespace, proof).await?.map(|lease| lease.kind))
    }

    /// The lease with this id, also one that has ended and is remembered.
    pub(super) async fn lease_of(
        &self,
        namespace: &str,
        proof: &Proof,
    ) -> Result<Option<Box<Lease>>, LockError> {
        let LockOutcome::Shown(lease) =
            self.ask(namespace, &LockOp::Show(proof.clone())).await?.outcome
        else {
            return Err(LockError::unexpected_reply());
        };
        Ok(lease)
    }

    /// How long grants of the lease's kind are refused after the store may have lost leases. Zero
    /// if the lease is unknown: then nothing is granted anyway.
    async fn grace_of(
        &self,
        namespace: &str,
        proof: &Proof,
        terms: &LockTerms,
    ) -> Result<Span, LockError> {
        let kind = self.kind_of(namespace, proof).await?;
        Ok(kind.map_or(Span::ZERO, |kind| terms.grace(&kind)))
    }
}

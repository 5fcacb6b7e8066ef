//! Calls of holders and operators, each one operation of the store; lists and clears are several
//! short ones, so that other callers get their turn in between.

use catraca_core::lock::reply::{
    Availability, ConfirmReply, Lease, MoveReply, ReleaseReply, RenewReply,
};
use catraca_core::lock::requests::{AvailabilityQuery, Move, Proof};
use catraca_core::lock::table::availability::BUSY_MAX;
use catraca_core::lock::{LockOp, LockOutcome, NameDigest};
use catraca_core::time::Span;

use super::{SWEEPS_MAX, SharedLocks, StoreTimed, unexpected_reply};
use crate::locks::admin::{
    CLEARED_AT_ONCE, COOL_DOWN_MAX, EXAMINED_MAX, LeaseFilter, LockPage, LockStats, PAGE_MAX,
};
use crate::locks::lock_error::LockError;

/// Leases per list operation.
const LISTED_AT_ONCE: usize = 200;

impl SharedLocks {
    /// Extends a lease.
    pub async fn renew(
        &self,
        namespace: &str,
        proof: &Proof,
        ttl: Span,
    ) -> Result<StoreTimed<RenewReply>, LockError> {
        let op = LockOp::Renew { proof: proof.clone(), ttl };
        let reply = self.ask(namespace, &op).await?;
        let LockOutcome::Renewed(renewed) = reply.outcome else { return Err(unexpected_reply()) };
        Ok((renewed, reply.now))
    }

    /// Releases a lease.
    pub async fn release(&self, namespace: &str, proof: &Proof) -> Result<ReleaseReply, LockError> {
        self.end(namespace, LockOp::Release(proof.clone())).await
    }

    /// Cancels a slot, held or confirmed.
    pub async fn cancel(&self, namespace: &str, proof: &Proof) -> Result<ReleaseReply, LockError> {
        self.end(namespace, LockOp::Cancel(proof.clone())).await
    }

    async fn end(&self, namespace: &str, op: LockOp) -> Result<ReleaseReply, LockError> {
        let LockOutcome::Ended(ended) = self.ask(namespace, &op).await?.outcome else {
            return Err(unexpected_reply());
        };
        Ok(ended)
    }

    /// Confirms a held slot; with `again`, also one that has expired and is still free, but not
    /// within `grace` after the store may have lost leases. Returns whether it survives a crash of
    /// the store.
    pub async fn confirm(
        &self,
        namespace: &str,
        proof: &Proof,
        (again, grace): (bool, Span),
    ) -> Result<StoreTimed<(ConfirmReply, bool)>, LockError> {
        let op = LockOp::Confirm { proof: proof.clone(), again, grace };
        let reply = self.ask(namespace, &op).await?;
        let LockOutcome::Confirmed(confirmed) = reply.outcome else {
            return Err(unexpected_reply());
        };
        let durable = matches!(confirmed, ConfirmReply::Done(_)) && self.store.is_durable();
        Ok(((confirmed, durable), reply.now))
    }

    /// Moves a slot to another time or other calendars; on a conflict it stays where it is.
    pub async fn relocate(
        &self,
        namespace: &str,
        request: &Move,
    ) -> Result<StoreTimed<MoveReply>, LockError> {
        let reply = self.ask(namespace, &LockOp::Relocate(request.clone())).await?;
        let LockOutcome::Moved(moved) = reply.outcome else { return Err(unexpected_reply()) };
        Ok((moved, reply.now))
    }

    /// Busy and free times of calendars.
    pub async fn look(
        &self,
        namespace: &str,
        request: &AvailabilityQuery,
    ) -> Result<StoreTimed<Availability>, LockError> {
        let mut busy = Vec::new();
        let mut part = request.clone();
        loop {
            let reply = self.ask(namespace, &LockOp::Availability(part.clone())).await?;
            let LockOutcome::Availability(seen) = reply.outcome else {
                return Err(unexpected_reply());
            };
            busy.extend(seen.busy);
            match seen.next {
                Some(next) if busy.len() < BUSY_MAX && next > part.from => part.from = next,
                next => return Ok((Availability::of(request, busy, next), reply.now)),
            }
        }
    }

    /// The kind of the lease with this id, if this tenant may see it.
    pub async fn kind_of(
        &self,
        namespace: &str,
        proof: &Proof,
    ) -> Result<Option<Box<str>>, LockError> {
        let reply = self.ask(namespace, &LockOp::Show(proof.clone())).await?;
        let LockOutcome::Shown(lease) = reply.outcome else { return Err(unexpected_reply()) };
        Ok(lease.map(|lease| lease.kind))
    }

    /// Active leases with a fence above `after`, oldest first.
    pub async fn list(
        &self,
        namespace: &str,
        filter: &LeaseFilter<'_>,
        (after, limit): (i64, usize),
    ) -> Result<LockPage, LockError> {
        let limit = limit.clamp(1, PAGE_MAX);
        let mut page = LockPage { leases: Vec::new(), next: Some(after) };
        let mut examined = 0;
        while let Some(after) = page.next.filter(|_| examined < EXAMINED_MAX) {
            let op = LockOp::List { after, most: LISTED_AT_ONCE };
            let LockOutcome::Listed { leases, next } = self.ask(namespace, &op).await?.outcome
            else {
                return Err(unexpected_reply());
            };
            examined += LISTED_AT_ONCE;
            page.next = next;
            for lease in leases.into_iter().filter(|lease| filter.matches(lease)) {
                page.leases.push(lease);
                if page.leases.len() == limit {
                    page.next = page.leases.last().map(|lease| lease.fence);
                    return Ok(page);
                }
            }
        }
        Ok(page)
    }

    /// Statistics of a namespace over all nodes; waiting callers only of this one.
    pub async fn stats(&self, namespace: &str) -> Result<LockStats, LockError> {
        self.stats_of(namespace, None).await
    }

    /// Statistics of one tenant, or of all.
    pub async fn stats_of(
        &self,
        namespace: &str,
        tenant: Option<&str>,
    ) -> Result<LockStats, LockError> {
        for _ in 0..SWEEPS_MAX {
            let swept = self.ask(namespace, &LockOp::Sweep).await?.outcome;
            if swept != (LockOutcome::Swept { more: true }) {
                break;
            }
        }
        let LockOutcome::Counters(rows) = self.ask(namespace, &LockOp::Counters).await?.outcome
        else {
            return Err(unexpected_reply());
        };
        let waiters = match tenant {
            Some(_) => self.queues.waiting_of(NameDigest::of_tenant(namespace, tenant)),
            None => self.queues.waiting(),
        };
        Ok(LockStats::of(rows, tenant, waiters))
    }

    /// Ends a lease by its fence. Its names stay taken for `cool_down`, so that the holder can
    /// notice.
    pub async fn force(
        &self,
        namespace: &str,
        fence: i64,
        tenant: Option<&str>,
        cool_down: Span,
    ) -> Result<Option<Lease>, LockError> {
        let tenant = tenant.map(Box::from);
        let cool_down = cool_down.min(COOL_DOWN_MAX);
        let op = LockOp::Force { fence, tenant, cool_down };
        let LockOutcome::Forced(lease) = self.ask(namespace, &op).await?.outcome else {
            return Err(unexpected_reply());
        };
        Ok(lease.map(|lease| *lease))
    }

    /// Ends all leases that a tenant holds now, except confirmed slots, and returns how many.
    /// Leases granted meanwhile stay.
    pub async fn clear(&self, namespace: &str, tenant: Option<&str>) -> Result<usize, LockError> {
        let mut count = 0;
        let mut next = Some(0);
        let mut last = None;
        while let Some(after) = next {
            let tenant = tenant.map(Box::from);
            let most = CLEARED_AT_ONCE;
            let op = LockOp::Clear { tenant, after, upto: last, most };
            let outcome = self.ask(namespace, &op).await?.outcome;
            // The first reply fixes the highest fence to clear.
            let LockOutcome::Cleared { ended, next: on, upto } = outcome else {
                return Err(unexpected_reply());
            };
            count += ended;
            next = on;
            last = Some(upto);
        }
        Ok(count)
    }
}

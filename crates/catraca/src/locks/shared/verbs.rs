//! What holders and operators do, each in one trip; lists and clears in several short ones.
//!
//! Must not keep the store busy for long: other callers get their turn between two trips.

use catraca_core::lock::book::look::BUSY_MAX;
use catraca_core::lock::op::{Look, Move, Proof};
use catraca_core::lock::reply::{Availability, Confirmed, Ended, Moved, Renewed, View};
use catraca_core::lock::{LockOp, LockTold, Mark};
use catraca_core::time::Span;

use super::{At, SWEEPS_MAX, SharedLocks, odd};
use crate::locks::error::LockError;
use crate::locks::operate::{
    CLEARED_AT_ONCE, COOL_DOWN_MAX, Filter, LOOKED_MAX, LockPage, LockStats, PAGE_MAX,
};

/// Leases of one trip.
const LISTED_AT_ONCE: usize = 200;

impl SharedLocks {
    /// Makes a lease last longer.
    pub async fn renew(
        &self,
        namespace: &str,
        proof: &Proof,
        ttl: Span,
    ) -> Result<At<Renewed>, LockError> {
        let op = LockOp::Renew { proof: proof.clone(), ttl };
        let reply = self.ask(namespace, &op).await?;
        let LockTold::Renewed(renewed) = reply.told else { return Err(odd()) };
        Ok((renewed, reply.now))
    }

    /// Gives names back.
    pub async fn release(&self, namespace: &str, proof: &Proof) -> Result<Ended, LockError> {
        self.end(namespace, LockOp::Release(proof.clone())).await
    }

    /// Gives a slot back, confirmed or not.
    pub async fn cancel(&self, namespace: &str, proof: &Proof) -> Result<Ended, LockError> {
        self.end(namespace, LockOp::Cancel(proof.clone())).await
    }

    async fn end(&self, namespace: &str, op: LockOp) -> Result<Ended, LockError> {
        let LockTold::Ended(ended) = self.ask(namespace, &op).await?.told else {
            return Err(odd());
        };
        Ok(ended)
    }

    /// Takes what is held for good; with `again`, also what was held and is still free. Says
    /// whether it survives the store's own crash. Nothing is taken anew for the grace after the
    /// store may have lost leases.
    pub async fn confirm(
        &self,
        namespace: &str,
        proof: &Proof,
        (again, grace): (bool, Span),
    ) -> Result<At<(Confirmed, bool)>, LockError> {
        let op = LockOp::Confirm { proof: proof.clone(), again, grace };
        let reply = self.ask(namespace, &op).await?;
        let LockTold::Confirmed(confirmed) = reply.told else { return Err(odd()) };
        let durable = matches!(confirmed, Confirmed::Done(_)) && self.store.is_durable();
        Ok(((confirmed, durable), reply.now))
    }

    /// Puts a slot somewhere else, or leaves it where it is.
    pub async fn relocate(&self, namespace: &str, asked: &Move) -> Result<At<Moved>, LockError> {
        let reply = self.ask(namespace, &LockOp::Relocate(asked.clone())).await?;
        let LockTold::Moved(moved) = reply.told else { return Err(odd()) };
        Ok((moved, reply.now))
    }

    /// What is taken and what is free.
    pub async fn look(&self, namespace: &str, asked: &Look) -> Result<At<Availability>, LockError> {
        let mut busy = Vec::new();
        let mut part = asked.clone();
        loop {
            let reply = self.ask(namespace, &LockOp::Look(part.clone())).await?;
            let LockTold::Seen(seen) = reply.told else { return Err(odd()) };
            busy.extend(seen.busy);
            match seen.next {
                Some(next) if busy.len() < BUSY_MAX && next > part.from => part.from = next,
                next => return Ok((Availability::of(asked, busy, next), reply.now)),
            }
        }
    }

    /// Of what kind the lease of a proof is, if its holder may see it.
    pub async fn kind_of(
        &self,
        namespace: &str,
        proof: &Proof,
    ) -> Result<Option<Box<str>>, LockError> {
        let reply = self.ask(namespace, &LockOp::Show(proof.clone())).await?;
        let LockTold::Shown(view) = reply.told else { return Err(odd()) };
        Ok(view.map(|view| view.kind))
    }

    /// Leases in force with numbers above one, oldest first.
    pub async fn list(
        &self,
        namespace: &str,
        filter: &Filter<'_>,
        (after, limit): (i64, usize),
    ) -> Result<LockPage, LockError> {
        let limit = limit.clamp(1, PAGE_MAX);
        let (mut page, mut looked) = (LockPage { leases: Vec::new(), next: Some(after) }, 0);
        while let Some(after) = page.next.filter(|_| looked < LOOKED_MAX) {
            let op = LockOp::List { after, most: LISTED_AT_ONCE };
            let LockTold::Listed { leases, next } = self.ask(namespace, &op).await?.told else {
                return Err(odd());
            };
            looked += LISTED_AT_ONCE;
            page.next = next;
            for view in leases.into_iter().filter(|view| filter.fits(view)) {
                page.leases.push(view);
                if page.leases.len() == limit {
                    page.next = page.leases.last().map(|view| view.fence);
                    return Ok(page);
                }
            }
        }
        Ok(page)
    }

    /// What became of all attempts, through every node; who waits only through this one.
    pub async fn stats(&self, namespace: &str) -> Result<LockStats, LockError> {
        self.stats_of(namespace, None).await
    }

    /// The same of one tenant, or of all.
    pub async fn stats_of(
        &self,
        namespace: &str,
        tenant: Option<&str>,
    ) -> Result<LockStats, LockError> {
        for _ in 0..SWEEPS_MAX {
            let swept = self.ask(namespace, &LockOp::Sweep).await?.told;
            if swept != (LockTold::Swept { more: true }) {
                break;
            }
        }
        let LockTold::Tallied(rows) = self.ask(namespace, &LockOp::Tally).await?.told else {
            return Err(odd());
        };
        let waiters = match tenant {
            Some(_) => self.queues.waiting_of(Mark::of_tenant(namespace, tenant)),
            None => self.queues.waiting(),
        };
        Ok(LockStats::of(rows, tenant, waiters))
    }

    /// Ends a lease by its number; its names stay taken for a moment, for its holder to notice.
    pub async fn force(
        &self,
        namespace: &str,
        fence: i64,
        tenant: Option<&str>,
        cool_down: Span,
    ) -> Result<Option<View>, LockError> {
        let (tenant, cool_down) = (tenant.map(Box::from), cool_down.min(COOL_DOWN_MAX));
        let op = LockOp::Force { fence, tenant, cool_down };
        let LockTold::Forced(view) = self.ask(namespace, &op).await?.told else {
            return Err(odd());
        };
        Ok(view.map(|view| *view))
    }

    /// Ends all that a tenant holds at this moment, but not what is confirmed; says how many. What
    /// is taken while it works stays.
    pub async fn clear(&self, namespace: &str, tenant: Option<&str>) -> Result<usize, LockError> {
        let (mut count, mut next, mut last) = (0, Some(0), None);
        while let Some(after) = next {
            let (tenant, most) = (tenant.map(Box::from), CLEARED_AT_ONCE);
            let op = LockOp::Clear { tenant, after, upto: last, most };
            let told = self.ask(namespace, &op).await?.told;
            let LockTold::Cleared { ended, next: on, upto } = told else { return Err(odd()) };
            count += ended;
            (next, last) = (on, Some(upto));
        }
        Ok(count)
    }
}

//! Acquires, renews and releases names.
//!
//! An attempt is counted when it has ended, so that one that waits is not counted twice.

use std::sync::atomic::Ordering;

use catraca_core::lock::persistence::LockWrite;
use catraca_core::lock::reply::{AcquireReply, ReleaseReply, RenewReply};
use catraca_core::lock::requests::{Acquire, Proof};
use catraca_core::lock::terms::WAIT_MAX;
use catraca_core::lock::{Durability, LeaseKey};
use catraca_core::planted_bugs::{Bug, is_planted};
use catraca_core::time::Span;

use super::Locks;
use super::lock_error::LockError;
use super::namespace::NamespaceLocks;
use super::wait::LockWait;

/// The result of an attempt to acquire names or hold a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockAttempt {
    /// Whether it was granted.
    pub acquired: AcquireReply,
    /// Callers that wait for the name in conflict.
    pub waiters: usize,
}

impl Locks {
    /// Acquires all of some names or none, waiting up to `wait` for them.
    pub async fn acquire(
        &self,
        namespace: &str,
        request: &Acquire,
        wait: Span,
        durability: Durability,
    ) -> Result<LockAttempt, LockError> {
        let ns = self.namespace(namespace)?;
        if is_planted(Bug::LockCheckThenTake) {
            return self.check_then_take(&ns, request).await;
        }
        let waiting = match self.first_attempt(&ns, request, wait)? {
            FirstAttempt::Ended(acquired) => {
                return self.finish_attempt(&ns, request, acquired, durability).await;
            }
            FirstAttempt::Waiting(waiting) => waiting,
        };
        let started = self.clock.now();
        let acquired = waiting.answer().await;
        self.times.waited.observe(self.clock.now().since(started));
        self.finish_attempt(&ns, request, acquired?, durability).await
    }

    fn first_attempt<'r>(
        &'r self,
        ns: &'r NamespaceLocks,
        request: &'r Acquire,
        wait: Span,
    ) -> Result<FirstAttempt<'r>, LockError> {
        let now = self.clock.now();
        let mut state = ns.state.lock();
        state.check_open(now)?;
        // Expired leases may not have been removed yet: their names go to earlier waiters first.
        state.expire_and_serve(request, now);
        match state.table.acquire(request, now) {
            AcquireReply::Conflict(_)
                if wait > Span::ZERO && self.refusing_waiters.load(Ordering::SeqCst) =>
            {
                Err(LockError::Stopping)
            }
            AcquireReply::Conflict(conflict) if wait > Span::ZERO => {
                let clock = &*self.clock;
                let deadline = now.after(wait.min(WAIT_MAX));
                LockWait::join(ns, &mut state, request, clock, deadline, conflict)
                    .map(FirstAttempt::Waiting)
            }
            acquired => Ok(FirstAttempt::Ended(acquired)),
        }
    }

    /// Ends an attempt: persists a grant if necessary, and counts a conflict.
    async fn finish_attempt(
        &self,
        ns: &NamespaceLocks,
        request: &Acquire,
        acquired: AcquireReply,
        durability: Durability,
    ) -> Result<LockAttempt, LockError> {
        let mut waiters = 0;
        match &acquired {
            AcquireReply::Granted(lease) => {
                let write = ns.prepare_grant_write(lease, durability);
                if let Err(error) = self.write(ns, write).await {
                    self.revert_grant(ns, lease.key);
                    return Err(error);
                }
            }
            AcquireReply::Conflict(conflict) => {
                let mut state = ns.state.lock();
                waiters = state.waiter_count(request, &conflict.taken);
                state.table.count_conflict(request.tenant.as_deref(), &request.kind);
            }
            AcquireReply::Stale { .. } => {
                ns.state.lock().table.count_conflict(request.tenant.as_deref(), &request.kind);
            }
            AcquireReply::Again(_) => {}
            AcquireReply::Refused(refusal) => return Err(refusal.clone().into()),
        }
        self.process_ends(ns);
        Ok(LockAttempt { acquired, waiters })
    }

    /// Extends a lease.
    pub async fn renew(
        &self,
        namespace: &str,
        proof: &Proof,
        ttl: Span,
        durability: Durability,
    ) -> Result<RenewReply, LockError> {
        let ns = self.namespace(namespace)?;
        let renewed = ns.state.lock().table.renew(proof, ttl, self.clock.now());
        if let RenewReply::Extended(lease) = &renewed {
            let write = ns.prepare_write(lease, ttl, durability);
            self.write(&ns, write).await?;
        }
        self.process_ends(&ns);
        Ok(renewed)
    }

    /// Releases a lease.
    pub fn release(&self, namespace: &str, proof: &Proof) -> Result<ReleaseReply, LockError> {
        let ns = self.namespace(namespace)?;
        let ended = ns.state.lock().table.release(proof, self.clock.now());
        self.process_ends(&ns);
        Ok(ended)
    }

    /// The kind of the lease with this id, if this tenant may see it.
    pub fn kind_of(&self, namespace: &str, proof: &Proof) -> Option<Box<str>> {
        let ns = self.namespace(namespace).ok()?;
        ns.state.lock().table.kind_of(proof)
    }

    /// Reverts a grant that could not be written. The journal gets the reversal too, because a
    /// failed write may still succeed later.
    pub(super) fn revert_grant(&self, ns: &NamespaceLocks, key: LeaseKey) {
        let mut state = ns.state.lock();
        let namespace = &ns.namespace;
        let lowered = state.table.lowered_versions(key).into_iter().map(Box::new);
        let lowered = lowered.map(|version| LockWrite::Version(namespace.clone(), version));
        let mut writes: Vec<LockWrite> = lowered.collect();
        if state.leases_on_disk {
            writes.push(LockWrite::Drop(namespace.clone(), key));
        }
        state.table.undo(key);
        // Under the mutex, so that later changes come later in the journal.
        self.write_nowait(writes);
        state.grant_freed_names(self.clock.now());
    }

    /// Grants freed names to waiting callers and writes ended leases to the journal.
    pub(super) fn process_ends(&self, ns: &NamespaceLocks) {
        let mut state = ns.state.lock();
        state.grant_freed_names(self.clock.now());
        let writes = ns.take_ended_writes(&mut state);
        // Before the mutex is released: the end of a lease comes before the next grant of its
        // names.
        self.write_nowait(writes);
    }

    /// Planted bug: checks and grants under separate locks.
    async fn check_then_take(
        &self,
        ns: &NamespaceLocks,
        request: &Acquire,
    ) -> Result<LockAttempt, LockError> {
        let conflict = ns.state.lock().table.conflict_of(request, self.clock.now());
        tokio::task::yield_now().await;
        let acquired = match conflict {
            Some(conflict) => AcquireReply::Conflict(conflict),
            None => ns.state.lock().table.grant_unchecked(request, self.clock.now()),
        };
        Ok(LockAttempt { acquired, waiters: 0 })
    }
}

/// The outcome of the attempt before any wait.
enum FirstAttempt<'r> {
    Ended(AcquireReply),
    Waiting(LockWait<'r>),
}

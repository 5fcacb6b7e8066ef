//! Acquires names and holds time slots; waits for names that are taken.
//!
//! Callers of this process are served in order of arrival. A caller that waits joins a queue, asks
//! the store when it is the first in it, and sleeps until a freed notice, the expiry of the
//! holder's lease, or its own deadline; so a lost notice delays it at most until the expiry. No
//! newcomer overtakes a queue, and nothing is granted after the deadline.

use std::time::Duration;

use catraca_core::lock::reply::{AcquireReply, Conflict};
use catraca_core::lock::requests::{Acquire, Hold, LeaseRequest, Proof};
use catraca_core::lock::terms::WAIT_MAX;
use catraca_core::lock::{Durability, LockName, LockOp, LockOutcome};
use catraca_core::time::{Span, Time};
use tokio::time::{Instant, timeout, timeout_at};

use super::lock_error::LockError;
use super::wait_queues::QueuePosition;
use super::{Locks, TimedReply};

/// How long a caller that does not wait leaves the turn to the queue of its name. The first caller
/// in the queue asks the store at once, so this is only reached if the store is slow.
const QUEUE_TURN_MAX: Duration = Duration::from_millis(100);

/// The result of an attempt to acquire names or hold a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockAttempt {
    /// Whether it was granted.
    pub acquired: AcquireReply,
    /// Callers of this process that wait for the name in conflict.
    pub waiters: usize,
    /// The durability of the grant.
    pub durability: Durability,
    /// When, by the clock that leases expire by.
    #[doc(hidden)]
    pub now: Time,
}

impl Locks {
    /// Acquires all of some names or none, waiting up to `wait` for them.
    pub async fn acquire(
        &self,
        namespace: &str,
        request: &Acquire,
        wait: impl Into<Duration>,
    ) -> Result<LockAttempt, LockError> {
        let timed = match Span::from(wait.into()) {
            Span::ZERO => self.acquire_at_once(namespace, request).await?,
            wait => self.acquire_in_turn(namespace, request, wait).await?,
        };
        let waiters = match &timed.reply {
            AcquireReply::Conflict(conflict) => {
                self.queues.len(lock_name(request, &conflict.taken).digest(namespace))
            }
            _ => 0,
        };
        Ok(self.finish_attempt(timed, waiters, &request.lease))
    }

    /// Holds a time range in all of some calendars, or none.
    pub async fn hold(&self, namespace: &str, request: &Hold) -> Result<LockAttempt, LockError> {
        let op = LockOp::Hold(request.clone());
        let timed = self.ask_for_lease(namespace, &op, &request.lease).await?;
        Ok(self.finish_attempt(timed, 0, &request.lease))
    }

    /// Makes one attempt. Callers that wait for one of the names already come first: a free name
    /// may be on its way from its holder to one of them.
    async fn acquire_at_once(
        &self,
        namespace: &str,
        request: &Acquire,
    ) -> Result<TimedReply<AcquireReply>, LockError> {
        let has_waiters = self.first_queue(namespace, request).is_some();
        if has_waiters && !self.is_repeated(namespace, request).await? {
            let conflict = self.conflict_of_waiters(namespace, request);
            // After the timeout the caller asks the store itself: a slow store must not delay it
            // further.
            if let Ok(Some(conflict)) = timeout(QUEUE_TURN_MAX, conflict).await {
                return self.refuse(namespace, request, conflict).await;
            }
        }
        self.attempt(namespace, request, true).await
    }

    /// Tries to acquire names in the order of arrival, until it succeeds or the deadline passes.
    async fn acquire_in_turn(
        &self,
        namespace: &str,
        request: &Acquire,
        wait: Span,
    ) -> Result<TimedReply<AcquireReply>, LockError> {
        let deadline = Instant::now() + duration(wait.min(WAIT_MAX));
        // Behind callers that wait for one of the names, else for the first name.
        let first = || lock_name(request, request.keys.first().map_or("", |key| key));
        let name = self.first_queue(namespace, request).unwrap_or_else(first);
        // Joined before the store is asked: a notice that comes in between wakes this caller.
        let mut position = self.queues.join(namespace, &name)?;
        // A repeated request must not wait behind callers that wait for its own lease.
        if !position.is_first() && self.is_repeated(namespace, request).await? {
            return self.attempt(namespace, request, true).await;
        }
        let mut wait_timer = None;
        loop {
            let mut wake_at = deadline;
            if position.is_first() && Instant::now() < deadline {
                let number = position.begin_attempt();
                let timed = self.attempt(namespace, request, false).await?;
                let AcquireReply::Conflict(conflict) = timed.reply else {
                    return self.count_if_stale(namespace, request, timed).await;
                };
                let taken = lock_name(request, &conflict.taken);
                // Of several names another one is taken now: wait in its queue.
                if taken.digest(namespace) != position.name() {
                    position = self.queues.join(namespace, &taken)?;
                    continue;
                }
                let free_in = conflict.free_at.since(timed.now).min(WAIT_MAX);
                wake_at = deadline.min(Instant::now() + duration(free_in));
                position.store_conflict(conflict, number);
            }
            wait_timer.get_or_insert_with(|| self.waited.start_timer());
            self.pause(&position, wake_at).await?;
            if Instant::now() >= deadline {
                return self.give_up(namespace, request, position).await;
            }
        }
    }

    /// Sleeps until a wake-up or `until`. Fails if waiting is no longer allowed.
    async fn pause(&self, position: &QueuePosition, until: Instant) -> Result<(), LockError> {
        self.queues.check_open()?;
        // Timeout or wake-up: both mean to check again.
        let _ = timeout_at(until, position.wake_up()).await;
        self.queues.check_open()
    }

    /// The deadline has passed: the reply is the conflict that the queue met last.
    async fn give_up(
        &self,
        namespace: &str,
        request: &Acquire,
        position: QueuePosition,
    ) -> Result<TimedReply<AcquireReply>, LockError> {
        let Some(conflict) = position.last_conflict() else {
            let why = "the store did not answer within the wait time".to_owned();
            return Err(LockError::StoreUnavailable { why });
        };
        // The next one in the queue does not wait for the count.
        drop(position);
        self.refuse(namespace, request, conflict).await
    }

    /// Replies with a conflict that other callers met, and counts it.
    async fn refuse(
        &self,
        namespace: &str,
        request: &Acquire,
        conflict: Box<Conflict>,
    ) -> Result<TimedReply<AcquireReply>, LockError> {
        let now = self.ask(namespace, &count_conflict(request)).await?.now;
        Ok(TimedReply { reply: AcquireReply::Conflict(conflict), now })
    }

    /// Counts a stale version as a conflict. The attempts of a caller that waits are not counted by
    /// the store, which would count a conflict for each of them.
    async fn count_if_stale(
        &self,
        namespace: &str,
        request: &Acquire,
        timed: TimedReply<AcquireReply>,
    ) -> Result<TimedReply<AcquireReply>, LockError> {
        if matches!(timed.reply, AcquireReply::Stale { .. }) {
            self.ask(namespace, &count_conflict(request)).await?;
        }
        Ok(timed)
    }

    /// Asks the store once for the names.
    async fn attempt(
        &self,
        namespace: &str,
        request: &Acquire,
        counts_conflict: bool,
    ) -> Result<TimedReply<AcquireReply>, LockError> {
        let op = LockOp::Acquire { request: request.clone(), counts_conflict };
        self.ask_for_lease(namespace, &op, &request.lease).await
    }

    /// Asks the store for a lease. If the outcome stays unknown, because the store does not answer
    /// or the caller has gone, a possible grant is reverted.
    async fn ask_for_lease(
        &self,
        namespace: &str,
        op: &LockOp,
        lease: &LeaseRequest,
    ) -> Result<TimedReply<AcquireReply>, LockError> {
        let undo_guard = self.undoer.guard(namespace, lease);
        let answer = self.ask(namespace, op).await;
        if !matches!(answer, Err(LockError::StoreUnavailable { .. })) {
            undo_guard.disarm();
        }
        let answer = answer?;
        match answer.outcome {
            LockOutcome::Acquired(AcquireReply::Refused(refusal)) => Err(refusal.into()),
            LockOutcome::Acquired(reply) => Ok(TimedReply { reply, now: answer.now }),
            _ => Err(LockError::unexpected_reply()),
        }
    }

    fn finish_attempt(
        &self,
        timed: TimedReply<AcquireReply>,
        waiters: usize,
        lease: &LeaseRequest,
    ) -> LockAttempt {
        let durability = self.durability.unwrap_or(lease.durability);
        LockAttempt { acquired: timed.reply, waiters, durability, now: timed.now }
    }

    /// Whether the store has a lease of this request: then the request is repeated, and an attempt
    /// takes nothing from callers that wait.
    async fn is_repeated(&self, namespace: &str, request: &Acquire) -> Result<bool, LockError> {
        if request.lease.request.is_none() {
            return Ok(false);
        }
        let proof = Proof { key: request.lease.key, tenant: None };
        Ok(self.lease_of(namespace, &proof).await?.is_some())
    }

    /// The conflict that callers meet now that wait for one of the requested names.
    async fn conflict_of_waiters(
        &self,
        namespace: &str,
        request: &Acquire,
    ) -> Option<Box<Conflict>> {
        for key in &request.keys {
            let name = lock_name(request, key).digest(namespace);
            if let Some(conflict) = self.queues.next_conflict(name).await {
                return Some(conflict);
            }
        }
        None
    }

    /// The first requested name that callers wait for.
    fn first_queue(&self, namespace: &str, request: &Acquire) -> Option<LockName> {
        // Names are only hashed if there are waiters at all.
        if self.queues.waiting() == 0 {
            return None;
        }
        let mut names = request.keys.iter().map(|key| lock_name(request, key));
        names.find(|name| self.queues.len(name.digest(namespace)) > 0)
    }
}

/// The name of one of the requested keys.
fn lock_name(request: &Acquire, key: &str) -> LockName {
    LockName { tenant: request.tenant.clone(), kind: request.kind.clone(), key: key.into() }
}

/// The operation that counts a conflict.
fn count_conflict(request: &Acquire) -> LockOp {
    LockOp::CountConflict { tenant: request.tenant.clone(), kind: request.kind.clone() }
}

fn duration(span: Span) -> Duration {
    Duration::from_micros(span.micros().max(0).unsigned_abs())
}

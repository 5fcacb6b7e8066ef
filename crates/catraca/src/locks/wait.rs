//! Waiting callers of one process: first come, first served, until a deadline.
//!
//! A waiter sleeps until it is granted the name, the present holder's lease expires, or its own
//! deadline. The timers alone would wake it, so a lost notification delays it at most until then.
//! Dropping a waiter removes it from its queue and releases a grant that it did not take.

use std::time::Duration;

use catraca_core::lock::reply::{AcquireReply, Conflict};
use catraca_core::lock::requests::{Acquire, Proof};
use catraca_core::time::Time;
use tokio::sync::oneshot::{self, error::TryRecvError};

use super::lock_error::LockError;
use super::namespace::{NamespaceLocks, NamespaceState};
use crate::clock::Clock;

/// The most callers that wait for one name.
pub const WAITERS_MAX: usize = 1_000;

/// The answer to a waiter.
type WaitResult = Result<AcquireReply, LockError>;

/// A queued caller.
pub(super) struct Waiter {
    pub id: u64,
    pub request: Acquire,
    pub deadline: Time,
    pub reply: oneshot::Sender<WaitResult>,
}

/// The waiting side of a [`Waiter`]; leaves the queue when it is dropped.
pub(super) struct LockWait<'r> {
    ns: &'r NamespaceLocks,
    request: &'r Acquire,
    clock: &'r dyn Clock,
    id: u64,
    deadline: Time,
    reply: oneshot::Receiver<WaitResult>,
    /// The latest conflict.
    conflict: Box<Conflict>,
    answered: bool,
}

impl<'r> LockWait<'r> {
    /// Joins the queue of the name in conflict.
    pub fn join(
        ns: &'r NamespaceLocks,
        state: &mut NamespaceState,
        request: &'r Acquire,
        clock: &'r dyn Clock,
        deadline: Time,
        conflict: Box<Conflict>,
    ) -> Result<Self, LockError> {
        if state.waiter_count(request, &conflict.taken) >= WAITERS_MAX {
            return Err(LockError::TooManyWaiters);
        }
        let (sender, reply) = oneshot::channel();
        let id = state.next_waiter;
        state.next_waiter += 1;
        let waiter = Waiter { id, request: request.clone(), deadline, reply: sender };
        state.queue_waiter(waiter, &conflict.taken, false);
        Ok(Self { ns, request, clock, id, deadline, reply, conflict, answered: false })
    }

    /// Waits for the answer: a grant, a conflict once the deadline has passed, or
    /// [`LockError::Stopping`].
    pub async fn answer(mut self) -> WaitResult {
        loop {
            let until = self.conflict.free_at.min(self.deadline);
            let pause = until.since(self.clock.now()).micros().max(0);
            let pause = tokio::time::sleep(Duration::from_micros(pause.unsigned_abs()));
            tokio::select! {
                // An answer wins over a timer that is due at the same time.
                biased;
                reply = &mut self.reply => {
                    self.answered = true;
                    return reply.unwrap_or_else(|_| Ok(self.conflict_reply()));
                }
                () = pause => {}
            }
            if let Some(answer) = self.check_again() {
                self.answered = true;
                return answer;
            }
        }
    }

    /// Checks again after a timer: the holder's lease has expired, or the deadline has passed.
    fn check_again(&mut self) -> Option<WaitResult> {
        let now = self.clock.now();
        let mut state = self.ns.state.lock();
        state.expire_and_serve(self.request, now);
        match self.reply.try_recv() {
            Ok(answer) => return Some(answer),
            Err(TryRecvError::Closed) => return Some(Ok(self.conflict_reply())),
            Err(TryRecvError::Empty) => {}
        }
        if let Some(conflict) = state.table.conflict_of(self.request, now) {
            self.conflict = conflict;
        }
        if now < self.deadline {
            return None;
        }
        state.remove_waiter(self.request, self.id);
        Some(Ok(self.conflict_reply()))
    }

    fn conflict_reply(&self) -> AcquireReply {
        AcquireReply::Conflict(self.conflict.clone())
    }
}

impl Drop for LockWait<'_> {
    fn drop(&mut self) {
        if self.answered {
            return;
        }
        let now = self.clock.now();
        let mut state = self.ns.state.lock();
        state.remove_waiter(self.request, self.id);
        // The caller has gone: a grant that it did not take is released.
        if let Ok(Ok(AcquireReply::Granted(lease))) = self.reply.try_recv() {
            let proof = Proof { key: lease.key, tenant: None };
            state.table.release(&proof, now);
            state.grant_freed_names(now);
        }
    }
}

//! Waiting for a name: in order of arrival, until a deadline, and only while somebody listens.
//!
//! A waiter sleeps until it is handed the name, the present holder's time is over, or its own is.
//! So no message can be lost: the instants alone would wake it. Must not leave anything behind when
//! it is dropped.

use std::time::Duration;

use catraca_core::lock::op::{Acquire, Proof};
use catraca_core::lock::reply::{Acquired, Conflict};
use catraca_core::time::Time;
use tokio::sync::oneshot::{self, error::TryRecvError};

use super::error::LockError;
use super::room::{Inner, Room};
use crate::clock::Clock;

/// The most who wait for one name.
pub const WAITERS_MAX: usize = 1_000;

/// What a waiter is told.
type Told = Result<Acquired, LockError>;

/// Somebody in a queue.
pub(super) struct Waiter {
    pub id: u64,
    pub asked: Acquire,
    pub deadline: Time,
    pub tell: oneshot::Sender<Told>,
}

/// The other end: leaves the queue when it is dropped.
pub(super) struct Waiting<'r> {
    room: &'r Room,
    asked: &'r Acquire,
    clock: &'r dyn Clock,
    id: u64,
    deadline: Time,
    told: oneshot::Receiver<Told>,
    /// Who was in the way when it was last looked.
    conflict: Box<Conflict>,
    done: bool,
}

impl<'r> Waiting<'r> {
    /// Joins the queue of whatever is in the way.
    pub fn join(
        room: &'r Room,
        inner: &mut Inner,
        asked: &'r Acquire,
        clock: &'r dyn Clock,
        deadline: Time,
        conflict: Box<Conflict>,
    ) -> Result<Self, LockError> {
        if inner.waiters(asked, &conflict.taken) >= WAITERS_MAX {
            return Err(LockError::TooManyWaiters);
        }
        let (tell, told) = oneshot::channel();
        let id = inner.next_waiter;
        inner.next_waiter += 1;
        let waiter = Waiter { id, asked: asked.clone(), deadline, tell };
        inner.push(waiter, &conflict.taken, false);
        Ok(Self { room, asked, clock, id, deadline, told, conflict, done: false })
    }

    /// Waits; the answer is a conflict once the deadline has passed, and that the process
    /// ends once it does.
    pub async fn answer(mut self) -> Told {
        loop {
            let until = self.conflict.free_at.min(self.deadline);
            let pause = until.since(self.clock.now()).micros().max(0);
            let pause = tokio::time::sleep(Duration::from_micros(pause.unsigned_abs()));
            tokio::select! {
                biased;
                told = &mut self.told => {
                    self.done = true;
                    return told.unwrap_or_else(|_| Ok(self.missed()));
                }
                () = pause => {}
            }
            if let Some(answer) = self.look() {
                self.done = true;
                return answer;
            }
        }
    }

    /// Somebody's time is over: the holder's, or ours.
    fn look(&mut self) -> Option<Told> {
        let now = self.clock.now();
        let mut inner = self.room.inner.lock();
        inner.poke(self.asked, now);
        match self.told.try_recv() {
            Ok(answer) => return Some(answer),
            Err(TryRecvError::Closed) => return Some(Ok(self.missed())),
            Err(TryRecvError::Empty) => {}
        }
        if let Some(conflict) = inner.book.met(self.asked, now) {
            self.conflict = conflict;
        }
        if now < self.deadline {
            return None;
        }
        inner.leave(self.asked, self.id);
        Some(Ok(self.missed()))
    }

    fn missed(&self) -> Acquired {
        Acquired::Conflict(self.conflict.clone())
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        let now = self.clock.now();
        let mut inner = self.room.inner.lock();
        inner.leave(self.asked, self.id);
        // Whoever asked is gone, so what was handed over in this very moment is given back.
        if let Ok(Ok(Acquired::Granted(view))) = self.told.try_recv() {
            let proof = Proof { key: view.key, tenant: None };
            inner.book.release(&proof, now);
            inner.hand_off(now);
        }
    }
}

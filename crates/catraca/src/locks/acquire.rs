//! Taking names, renewing them and giving them back.
//!
//! Must not count an attempt before it is over.

use std::sync::atomic::Ordering;

use catraca_core::lock::kept::LockDeed;
use catraca_core::lock::op::{Acquire, Proof};
use catraca_core::lock::reply::{Acquired, Ended, Renewed};
use catraca_core::lock::terms::WAIT_MAX;
use catraca_core::lock::{Durability, LeaseKey};
use catraca_core::museum::{Bug, planted};
use catraca_core::time::Span;

use super::Locks;
use super::error::LockError;
use super::room::Room;
use super::wait::Waiting;

/// What became of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Granted, or not.
    pub acquired: Acquired,
    /// How many wait for what is in the way.
    pub waiters: usize,
}

impl Locks {
    /// Takes some names, all or none, and waits for them as long as is asked.
    pub async fn acquire(
        &self,
        namespace: &str,
        asked: &Acquire,
        wait: Span,
        durability: Durability,
    ) -> Result<Answer, LockError> {
        let room = self.room(namespace)?;
        if planted(Bug::LockCheckThenTake) {
            return self.check_then_take(&room, asked).await;
        }
        let waiting = match self.first(&room, asked, wait)? {
            First::Over(acquired) => return self.over(&room, asked, acquired, durability).await,
            First::Waits(waiting) => waiting,
        };
        let asked_at = self.clock.now();
        let acquired = waiting.answer().await;
        self.times.waited.note(self.clock.now().since(asked_at));
        self.over(&room, asked, acquired?, durability).await
    }

    fn first<'r>(
        &'r self,
        room: &'r Room,
        asked: &'r Acquire,
        wait: Span,
    ) -> Result<First<'r>, LockError> {
        let now = self.clock.now();
        let mut inner = room.inner.lock();
        inner.open(now)?;
        // Whoever waited before comes first, also when nobody has noticed yet that it is free.
        inner.poke(asked, now);
        match inner.book.acquire(asked, now) {
            Acquired::Conflict(_) if wait > Span::ZERO && self.leaving.load(Ordering::SeqCst) => {
                Err(LockError::Stopping)
            }
            Acquired::Conflict(conflict) if wait > Span::ZERO => {
                let (clock, deadline) = (&*self.clock, now.after(wait.min(WAIT_MAX)));
                Waiting::join(room, &mut inner, asked, clock, deadline, conflict).map(First::Waits)
            }
            acquired => Ok(First::Over(acquired)),
        }
    }

    /// An attempt is over: it is counted, and kept if it has to be.
    async fn over(
        &self,
        room: &Room,
        asked: &Acquire,
        acquired: Acquired,
        durability: Durability,
    ) -> Result<Answer, LockError> {
        let mut waiters = 0;
        match &acquired {
            Acquired::Granted(view) => {
                let due = room.due_first(view, durability);
                if let Err(error) = self.write(room, due).await {
                    self.undo(room, view.key);
                    return Err(error);
                }
            }
            Acquired::Conflict(conflict) => {
                let mut inner = room.inner.lock();
                waiters = inner.waiters(asked, &conflict.taken);
                inner.book.missed(asked.tenant.as_deref(), &asked.kind);
            }
            Acquired::Stale { .. } => {
                room.inner.lock().book.missed(asked.tenant.as_deref(), &asked.kind);
            }
            Acquired::Again(_) => {}
            Acquired::Refused(refusal) => return Err(refusal.clone().into()),
        }
        self.tidy(room);
        Ok(Answer { acquired, waiters })
    }

    /// Makes a lease last longer.
    pub async fn renew(
        &self,
        namespace: &str,
        proof: &Proof,
        ttl: Span,
        durability: Durability,
    ) -> Result<Renewed, LockError> {
        let room = self.room(namespace)?;
        let renewed = room.inner.lock().book.renew(proof, ttl, self.clock.now());
        if let Renewed::Extended(view) = &renewed {
            let due = room.due(view, ttl, durability);
            self.write(&room, due).await?;
        }
        self.tidy(&room);
        Ok(renewed)
    }

    /// Gives names back.
    pub fn release(&self, namespace: &str, proof: &Proof) -> Result<Ended, LockError> {
        let room = self.room(namespace)?;
        let ended = room.inner.lock().book.release(proof, self.clock.now());
        self.tidy(&room);
        Ok(ended)
    }

    /// The lease of a proof, if its holder may see it.
    pub fn kind_of(&self, namespace: &str, proof: &Proof) -> Option<Box<str>> {
        let room = self.room(namespace).ok()?;
        room.inner.lock().book.kind_of(proof)
    }

    /// Takes a grant back that could not be kept; a disk that takes it later takes this too.
    pub(super) fn undo(&self, room: &Room, key: LeaseKey) {
        let mut inner = room.inner.lock();
        let namespace = &room.namespace;
        let lowered = inner.book.lowered(key).into_iter().map(Box::new);
        let lowered = lowered.map(|kept| LockDeed::Version(namespace.clone(), kept));
        let mut deeds: Vec<LockDeed> = lowered.collect();
        if inner.logged {
            deeds.push(LockDeed::Drop(namespace.clone(), key));
        }
        inner.book.undo(key);
        // While the room is locked: what comes later is written later.
        self.note(deeds);
        inner.hand_off(self.clock.now());
    }

    /// Serves whoever waits for what became free, and tells the disk what is gone.
    pub(super) fn tidy(&self, room: &Room) {
        let mut inner = room.inner.lock();
        inner.hand_off(self.clock.now());
        let deeds = room.gone(&mut inner);
        // Before anybody who was served can write: an end comes before what follows it.
        self.note(deeds);
    }

    /// The mistake of asking first and taking later.
    async fn check_then_take(&self, room: &Room, asked: &Acquire) -> Result<Answer, LockError> {
        let met = room.inner.lock().book.met(asked, self.clock.now());
        tokio::task::yield_now().await;
        let acquired = match met {
            Some(conflict) => Acquired::Conflict(conflict),
            None => room.inner.lock().book.seize(asked, self.clock.now()),
        };
        Ok(Answer { acquired, waiters: 0 })
    }
}

enum First<'r> {
    Over(Acquired),
    Waits(Waiting<'r>),
}

//! Taking ranges of time: hold, confirm, cancel, move, and a look at a calendar.
//!
//! Must not answer that a slot is confirmed before it is on disk.

use catraca_core::lock::kept::LockDeed;
use catraca_core::lock::op::{Hold, Look, Move, Proof};
use catraca_core::lock::reply::{Acquired, Availability, Confirmed, Ended, Moved, State, View};
use catraca_core::lock::{Durability, LeaseKey};

use super::Locks;
use super::acquire::Answer;
use super::error::LockError;
use super::room::Room;

impl Locks {
    /// Takes a range of time in some calendars, all or none.
    pub async fn hold(
        &self,
        namespace: &str,
        asked: &Hold,
        durability: Durability,
    ) -> Result<Answer, LockError> {
        let room = self.room(namespace)?;
        let acquired = {
            let mut inner = room.inner.lock();
            inner.open(self.clock.now())?;
            let acquired = inner.book.hold(asked, self.clock.now());
            if let Acquired::Conflict(_) = &acquired {
                inner.book.missed(asked.tenant.as_deref(), &asked.kind);
            }
            acquired
        };
        match &acquired {
            Acquired::Granted(view) => {
                let due = room.due(view, view.ttl, durability);
                if let Err(error) = self.write(&room, due).await {
                    self.undo(&room, view.key);
                    return Err(error);
                }
            }
            Acquired::Refused(refusal) => return Err(refusal.clone().into()),
            _ => {}
        }
        self.tidy(&room);
        Ok(Answer { acquired, waiters: 0 })
    }

    /// Takes what is held for good; with `again`, also what was held and is still free. Says
    /// whether it is on disk.
    pub async fn confirm(
        &self,
        namespace: &str,
        proof: &Proof,
        again: bool,
    ) -> Result<(Confirmed, bool), LockError> {
        let room = self.room(namespace)?;
        let (confirmed, before) = {
            let mut inner = room.inner.lock();
            let now = self.clock.now();
            if again {
                inner.open(now)?;
            }
            let before = inner.book.keep(proof.key);
            (inner.book.confirm(proof, again, now), before)
        };
        let Confirmed::Done(view) = &confirmed else {
            self.tidy(&room);
            return Ok((confirmed, false));
        };
        if let Err(error) = self.keep(&room, view).await {
            // As it was: held for the rest of its time, or not at all.
            if let Some(before) = before.filter(|before| before.state == State::Held) {
                room.inner.lock().book.unconfirm(view.key, before.expires_at);
            }
            return Err(error);
        }
        self.tidy(&room);
        Ok((confirmed, self.journal.is_some()))
    }

    /// Gives a slot back, confirmed or not.
    pub async fn cancel(&self, namespace: &str, proof: &Proof) -> Result<Ended, LockError> {
        let room = self.room(namespace)?;
        let (ended, mut deeds) = {
            let mut inner = room.inner.lock();
            let ended = inner.book.cancel(proof, self.clock.now());
            (ended, room.gone(&mut inner))
        };
        let own = |deed: &LockDeed| matches!(deed, LockDeed::Drop(_, key) if *key == proof.key);
        let waits = deeds.iter().any(own);
        if !waits {
            self.note(std::mem::take(&mut deeds));
            return Ok(ended);
        }
        self.written(deeds).await?;
        Ok(ended)
    }

    /// Puts a slot somewhere else, or leaves it where it is.
    pub async fn relocate(
        &self,
        namespace: &str,
        asked: &Move,
        durability: Durability,
    ) -> Result<Moved, LockError> {
        let room = self.room(namespace)?;
        let moved = room.inner.lock().book.relocate(asked, self.clock.now());
        if let Moved::Done(view) = &moved {
            if view.state == State::Confirmed {
                self.keep(&room, view).await?;
            } else {
                let due = room.due(view, view.ttl, durability);
                self.write(&room, due).await?;
            }
        }
        self.tidy(&room);
        Ok(moved)
    }

    /// What is taken and what is free.
    pub fn look(&self, namespace: &str, asked: &Look) -> Result<Availability, LockError> {
        let room = self.room(namespace)?;
        let seen = room.inner.lock().book.look(asked, self.clock.now());
        Ok(seen)
    }

    /// Puts a slot on disk, with the number that it was given.
    async fn keep(&self, room: &Room, view: &View) -> Result<(), LockError> {
        let mut due = room.due(view, catraca_core::time::Span::ZERO, Durability::Memory);
        let kept = self.kept(room, view.key);
        due.deeds.extend(kept);
        due.wait = true;
        self.write(room, due).await
    }

    fn kept(&self, room: &Room, key: LeaseKey) -> Option<LockDeed> {
        let lease = room.inner.lock().book.keep(key)?;
        Some(LockDeed::Keep(room.namespace.clone(), Box::new(lease)))
    }

    async fn written(&self, deeds: Vec<LockDeed>) -> Result<(), LockError> {
        match &self.journal {
            Some(journal) => journal.write(deeds).await.map_err(|why| self.unkept(why)),
            None => Ok(()),
        }
    }
}

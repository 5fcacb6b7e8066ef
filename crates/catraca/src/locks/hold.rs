//! Taking ranges of time: hold, confirm, cancel, move, and a look at a calendar.
//!
//! Must not answer that a slot is confirmed before it is on disk.

use catraca_core::lock::kept::LockDeed;
use catraca_core::lock::op::{Hold, Look, Move, Proof};
use catraca_core::lock::reply::{Acquired, Availability, Confirmed, Ended, Moved, State, View};
use catraca_core::lock::{Durability, LeaseKey};

use super::Locks;
use super::acquire::Answer;
use super::change::Change;
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
        let (confirmed, change) = {
            let (now, mut inner) = (self.clock.now(), room.inner.lock());
            let (open, before) = (inner.open(now), inner.book.snapshot(proof.key, now));
            let confirmed = inner.book.confirm(proof, again && open.is_ok(), now);
            let over =
                matches!(&confirmed, Confirmed::Over { state: State::Expired, still_free: true });
            if again && over {
                open?;
            }
            let change = match (&confirmed, before) {
                (Confirmed::Done(view), Some(before)) => {
                    Some(Change::begin(&room, &mut inner, before, view))
                }
                _ => None,
            };
            (confirmed, change)
        };
        if let (Confirmed::Done(view), Some(change)) = (&confirmed, change) {
            let written = self.keep(&room, view).await;
            self.settled(&change, written)?;
        } else {
            self.tidy(&room);
            return Ok((confirmed, false));
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
        let (moved, change) = self.moved(&room, asked)?;
        if let (Moved::Done(view), Some(change)) = (&moved, change) {
            let written = if view.state == State::Confirmed {
                self.keep(&room, view).await
            } else {
                let due = room.due(view, view.ttl, durability);
                self.write(&room, due).await
            };
            self.settled(&change, written)?;
        }
        self.tidy(&room);
        Ok(moved)
    }

    /// Moves a slot, unless lost leases may be in force: then it is where it was.
    fn moved<'r>(
        &self,
        room: &'r Room,
        asked: &Move,
    ) -> Result<(Moved, Option<Change<'r>>), LockError> {
        let (now, mut inner) = (self.clock.now(), room.inner.lock());
        let before = inner.book.snapshot(asked.proof.key, now);
        let moved = inner.book.relocate(asked, now);
        let (Moved::Done(view), Some(before)) = (&moved, before) else {
            return Ok((moved, None));
        };
        if let Err(starting) = inner.open(now) {
            inner.book.put_back(&before, view);
            return Err(starting);
        }
        let change = Change::begin(room, &mut inner, before, view);
        Ok((moved, Some(change)))
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

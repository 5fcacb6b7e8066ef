//! One namespace: its book, its queues, and what the disk knows of its numbers.
//!
//! Must not be locked while anything is awaited.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use catraca_core::lock::kept::{KeptFence, LockDeed};
use catraca_core::lock::op::Acquire;
use catraca_core::lock::reply::{Acquired, View, What};
use catraca_core::lock::{Book, LeaseKey, LockName};
use catraca_core::museum::{Bug, planted};
use catraca_core::time::{Span, Time};
use parking_lot::Mutex;

use super::change::Changing;
use super::error::LockError;
use super::times::LockTimes;
use super::wait::Waiter;

pub(super) struct Room {
    pub namespace: Box<str>,
    pub times: Arc<LockTimes>,
    pub inner: Mutex<Inner>,
}

pub(super) struct Inner {
    pub book: Book,
    pub queues: BTreeMap<Arc<LockName>, VecDeque<Waiter>>,
    pub waiting: usize,
    pub next_waiter: u64,
    /// What the disk was asked to keep, which covers what is given out.
    pub kept: KeptFence,
    /// What it is known to have kept.
    pub sure: KeptFence,
    /// Names that an operator freed, and when others may have them.
    pub cooling: BTreeSet<(Time, Arc<LockName>)>,
    /// Nothing is granted before this.
    pub closed_until: Time,
    /// Whether leases were put on disk one by one.
    pub logged: bool,
    /// The process ends, and the disk was told what is in force.
    pub shut: bool,
    /// Changes of slots that are being written.
    pub changing: BTreeMap<LeaseKey, Changing>,
}

impl Inner {
    /// Without a disk, everything is as sure as it will ever be.
    pub fn new(has_disk: bool) -> Self {
        let endless = KeptFence { ceiling: i64::MAX, longest: Span::FOREVER, left: None };
        let sure = if has_disk { KeptFence::default() } else { endless };
        Self {
            book: Book::default(),
            queues: BTreeMap::new(),
            waiting: 0,
            next_waiter: 0,
            kept: sure,
            sure,
            cooling: BTreeSet::new(),
            closed_until: Time::ZERO,
            logged: false,
            shut: false,
            changing: BTreeMap::new(),
        }
    }

    pub fn open(&self, now: Time) -> Result<(), LockError> {
        if self.shut {
            return Err(LockError::Stopping);
        }
        match self.closed_until.since(now) {
            Span::ZERO => Ok(()),
            wait => Err(LockError::Starting { wait }),
        }
    }

    /// Gives names that are free to whoever waited longest for them.
    pub fn hand_off(&mut self, now: Time) {
        loop {
            let freed = self.book.take_freed();
            if freed.is_empty() || self.shut {
                return;
            }
            for name in freed {
                self.serve(&name, now);
            }
        }
    }

    /// Remembers when others may have the names of a lease that an operator ended.
    pub fn cool(&mut self, view: &View, until: Time) {
        if let What::Names(names) = &view.what {
            let until = until.min(view.expires_at);
            self.cooling.extend(names.iter().map(|name| (until, Arc::clone(name))));
        }
    }

    /// Serves whoever waits for names that others may have by now.
    pub fn warm(&mut self, now: Time) {
        while self.cooling.first().is_some_and(|(until, _)| *until <= now) {
            if let Some((_, name)) = self.cooling.pop_first() {
                self.book.settle(&name, now);
            }
        }
        self.hand_off(now);
    }

    /// Puts away leases of some names that are over, and serves whoever waited for them.
    pub fn poke(&mut self, asked: &Acquire, now: Time) {
        for key in &asked.keys {
            let (tenant, kind) = (asked.tenant.clone(), asked.kind.clone());
            self.book.settle(&LockName { tenant, kind, key: key.clone() }, now);
        }
        self.hand_off(now);
    }

    fn serve(&mut self, name: &Arc<LockName>, now: Time) {
        while let Some(waiter) = self.pop(name) {
            let late = now >= waiter.deadline && !planted(Bug::LockExpiredWaiter);
            if late || waiter.tell.is_closed() {
                continue;
            }
            match self.book.acquire(&waiter.asked, now) {
                Acquired::Conflict(conflict) => {
                    let same = *conflict.taken == *name.key;
                    self.push(waiter, &conflict.taken, same);
                    if same {
                        return;
                    }
                }
                answer => {
                    let key = waiter.asked.lease.key;
                    if waiter.tell.send(Ok(answer)).is_err() {
                        // Gone in this very moment: nobody was told, so it never was.
                        self.book.undo(key);
                    }
                }
            }
        }
    }

    /// Tells everybody who waits that it is in vain.
    pub fn dismiss(&mut self) {
        self.waiting = 0;
        for waiter in std::mem::take(&mut self.queues).into_values().flatten() {
            // Whoever is gone need not be told.
            let _ = waiter.tell.send(Err(LockError::Stopping));
        }
    }

    fn pop(&mut self, name: &Arc<LockName>) -> Option<Waiter> {
        let queue = self.queues.get_mut(name)?;
        let waiter = queue.pop_front();
        if queue.is_empty() {
            self.queues.remove(name);
        }
        self.waiting -= usize::from(waiter.is_some());
        waiter
    }

    /// Puts a waiter into the queue of the key that keeps it: in front if it was there already.
    pub fn push(&mut self, waiter: Waiter, key: &str, front: bool) {
        let (tenant, kind) = (waiter.asked.tenant.clone(), waiter.asked.kind.clone());
        let name = Arc::new(LockName { tenant, kind, key: key.into() });
        let queue = self.queues.entry(name).or_default();
        if front {
            queue.push_front(waiter)
        } else {
            queue.push_back(waiter)
        }
        self.waiting += 1;
    }

    /// How many wait for names of one tenant, or at all.
    pub fn waiting_of(&self, tenant: Option<&str>) -> usize {
        if tenant.is_none() {
            return self.waiting;
        }
        let theirs = self.queues.iter().filter(|(name, _)| name.tenant.as_deref() == tenant);
        theirs.map(|(_, queue)| queue.len()).sum()
    }

    /// How many wait for a key of a request.
    pub fn waiters(&self, asked: &Acquire, key: &str) -> usize {
        let (tenant, kind) = (asked.tenant.clone(), asked.kind.clone());
        let name = LockName { tenant, kind, key: key.into() };
        self.queues.get(&name).map_or(0, VecDeque::len)
    }

    /// Takes a waiter out of whichever queue it is in.
    pub fn leave(&mut self, asked: &Acquire, id: u64) {
        for key in &asked.keys {
            let (tenant, kind) = (asked.tenant.clone(), asked.kind.clone());
            let name = LockName { tenant, kind, key: key.clone() };
            let Some(queue) = self.queues.get_mut(&name) else { continue };
            let before = queue.len();
            queue.retain(|waiter| waiter.id != id);
            self.waiting -= before - queue.len();
            if queue.is_empty() {
                self.queues.remove(&name);
            }
        }
    }
}

impl Room {
    /// What the disk has to be told of leases that ended by themselves.
    pub fn gone(&self, inner: &mut Inner) -> Vec<LockDeed> {
        let logged = inner.logged;
        let gone = inner.book.take_gone().into_iter();
        let gone = gone.inspect(|gone| self.times.held.note(gone.lasted));
        let gone = gone.filter(|gone| gone.confirmed || logged);
        gone.map(|gone| LockDeed::Drop(self.namespace.clone(), gone.key)).collect()
    }
}

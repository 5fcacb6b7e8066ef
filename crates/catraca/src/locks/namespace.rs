//! The locks of one namespace: lock table, wait queues, and which fences are on disk.
//!
//! The mutex must not be held across an await.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use catraca_core::lock::persistence::{LockWrite, PersistedFence};
use catraca_core::lock::reply::{AcquireReply, Lease, LeaseTarget};
use catraca_core::lock::requests::Acquire;
use catraca_core::lock::{LeaseKey, LockName, LockTable};
use catraca_core::planted_bugs::{Bug, is_planted};
use catraca_core::time::{Span, Time};
use parking_lot::Mutex;

use super::lock_error::LockError;
use super::metrics::LockTimes;
use super::pending_change::PendingSlotChanges;
use super::wait::Waiter;

/// One namespace behind one mutex.
pub(super) struct NamespaceLocks {
    pub namespace: Box<str>,
    pub times: Arc<LockTimes>,
    pub state: Mutex<NamespaceState>,
}

pub(super) struct NamespaceState {
    pub table: LockTable,
    /// Waiting callers by the name that they are in conflict with.
    pub queues: BTreeMap<Arc<LockName>, VecDeque<Waiter>>,
    /// The number of callers in all queues.
    pub waiting: usize,
    pub next_waiter: u64,
    /// The fence that the journal was asked to store; it covers all granted fences.
    pub requested_fence: PersistedFence,
    /// The fence that is known to be on disk.
    pub confirmed_fence: PersistedFence,
    /// Names in cooldown after an operator ended their lease, and when it ends.
    pub cooldowns: BTreeSet<(Time, Arc<LockName>)>,
    /// Nothing is granted before this time.
    pub closed_until: Time,
    /// Whether single leases are on disk, so that their ends must be written too.
    pub leases_on_disk: bool,
    /// Set by shutdown, after the active leases were collected for the journal.
    pub stopped: bool,
    /// Changes of slots that are being written, by lease.
    pub pending_changes: BTreeMap<LeaseKey, PendingSlotChanges>,
}

impl NamespaceState {
    /// Without a journal no call ever waits for a write.
    pub fn new(has_journal: bool) -> Self {
        let unlimited = PersistedFence { ceiling: i64::MAX, longest: Span::FOREVER, left: None };
        let fence = if has_journal { PersistedFence::default() } else { unlimited };
        Self {
            table: LockTable::default(),
            queues: BTreeMap::new(),
            waiting: 0,
            next_waiter: 0,
            requested_fence: fence,
            confirmed_fence: fence,
            cooldowns: BTreeSet::new(),
            closed_until: Time::ZERO,
            leases_on_disk: false,
            stopped: false,
            pending_changes: BTreeMap::new(),
        }
    }

    /// Fails while nothing may be granted.
    pub fn check_open(&self, now: Time) -> Result<(), LockError> {
        if self.stopped {
            return Err(LockError::Stopping);
        }
        match self.closed_until.since(now) {
            Span::ZERO => Ok(()),
            wait => Err(LockError::Starting { wait }),
        }
    }

    /// Grants free names to the callers that waited longest for them.
    pub fn grant_freed_names(&mut self, now: Time) {
        loop {
            let freed = self.table.take_freed();
            if freed.is_empty() || self.stopped {
                return;
            }
            for name in freed {
                self.grant_to_waiters(&name, now);
            }
        }
    }

    /// Starts the cooldown of the names of a lease that an operator ended.
    pub fn start_cooldown(&mut self, lease: &Lease, until: Time) {
        if let LeaseTarget::Names(names) = &lease.target {
            let until = until.min(lease.expires_at);
            self.cooldowns.extend(names.iter().map(|name| (until, Arc::clone(name))));
        }
    }

    /// Grants names whose cooldown has ended to waiting callers.
    pub fn end_cooldowns(&mut self, now: Time) {
        while self.cooldowns.first().is_some_and(|(until, _)| *until <= now) {
            if let Some((_, name)) = self.cooldowns.pop_first() {
                self.table.expire(&name, now);
            }
        }
        self.grant_freed_names(now);
    }

    /// Removes expired leases of the requested names and grants the names to waiting callers.
    pub fn expire_and_serve(&mut self, request: &Acquire, now: Time) {
        for key in &request.keys {
            let tenant = request.tenant.clone();
            let kind = request.kind.clone();
            self.table.expire(&LockName { tenant, kind, key: key.clone() }, now);
        }
        self.grant_freed_names(now);
    }

    /// Offers a free name to its waiters in order, until one of them takes it.
    fn grant_to_waiters(&mut self, name: &Arc<LockName>, now: Time) {
        while let Some(waiter) = self.pop_waiter(name) {
            let late = now >= waiter.deadline && !is_planted(Bug::LockExpiredWaiter);
            if late || waiter.reply.is_closed() {
                continue;
            }
            match self.table.acquire(&waiter.request, now) {
                AcquireReply::Conflict(conflict) => {
                    // Of several names, another one may be taken: then the waiter joins the queue
                    // of that one, and the next waiter of this name gets its turn.
                    let same_name = *conflict.taken == *name.key;
                    self.queue_waiter(waiter, &conflict.taken, same_name);
                    if same_name {
                        return;
                    }
                }
                answer => {
                    let key = waiter.request.lease.key;
                    if waiter.reply.send(Ok(answer)).is_err() {
                        // The caller left at this moment and got no answer, so the grant is
                        // reverted.
                        self.table.undo(key);
                    }
                }
            }
        }
    }

    /// Answers all waiting callers that the process is stopping.
    pub fn refuse_waiters(&mut self) {
        self.waiting = 0;
        for waiter in std::mem::take(&mut self.queues).into_values().flatten() {
            // The caller may have left.
            let _ = waiter.reply.send(Err(LockError::Stopping));
        }
    }

    fn pop_waiter(&mut self, name: &Arc<LockName>) -> Option<Waiter> {
        let queue = self.queues.get_mut(name)?;
        let waiter = queue.pop_front();
        if queue.is_empty() {
            self.queues.remove(name);
        }
        self.waiting -= usize::from(waiter.is_some());
        waiter
    }

    /// Queues a waiter for the key in conflict; at the front if it was first in that queue before.
    pub fn queue_waiter(&mut self, waiter: Waiter, key: &str, front: bool) {
        let tenant = waiter.request.tenant.clone();
        let kind = waiter.request.kind.clone();
        let name = Arc::new(LockName { tenant, kind, key: key.into() });
        let queue = self.queues.entry(name).or_default();
        if front {
            queue.push_front(waiter)
        } else {
            queue.push_back(waiter)
        }
        self.waiting += 1;
    }

    /// Callers that wait for names of one tenant, or all.
    pub fn waiting_of(&self, tenant: Option<&str>) -> usize {
        if tenant.is_none() {
            return self.waiting;
        }
        let theirs = self.queues.iter().filter(|(name, _)| name.tenant.as_deref() == tenant);
        theirs.map(|(_, queue)| queue.len()).sum()
    }

    /// Callers that wait for one key of a request.
    pub fn waiter_count(&self, request: &Acquire, key: &str) -> usize {
        let tenant = request.tenant.clone();
        let kind = request.kind.clone();
        let name = LockName { tenant, kind, key: key.into() };
        self.queues.get(&name).map_or(0, VecDeque::len)
    }

    /// Removes a waiter from the queue it is in.
    pub fn remove_waiter(&mut self, request: &Acquire, id: u64) {
        for key in &request.keys {
            let tenant = request.tenant.clone();
            let kind = request.kind.clone();
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

impl NamespaceLocks {
    /// The journal entries for leases that have ended.
    pub fn take_ended_writes(&self, state: &mut NamespaceState) -> Vec<LockWrite> {
        let leases_on_disk = state.leases_on_disk;
        let ended = state.table.take_ended().into_iter();
        let ended = ended.inspect(|end| self.times.held.observe(end.lasted));
        // Confirmed slots are always on disk, other leases only with durability `fsync`.
        let on_disk = ended.filter(|end| end.confirmed || leases_on_disk);
        on_disk.map(|end| LockWrite::Drop(self.namespace.clone(), end.key)).collect()
    }
}

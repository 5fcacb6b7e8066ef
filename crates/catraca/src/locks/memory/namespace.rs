//! The locks of one namespace: the lock table behind one mutex, and which fences are on disk.
//!
//! The mutex must not be held across an await.

use std::collections::BTreeMap;
use std::sync::Arc;

use catraca_core::lock::persistence::{LockWrite, PersistedFence};
use catraca_core::lock::reply::AcquireReply;
use catraca_core::lock::{LeaseKey, LockOp, LockOutcome, LockReply, LockTable};
use catraca_core::time::{Span, Time};
use parking_lot::Mutex;

use super::MemoryContext;
use super::slot_change::PendingSlotChanges;
use crate::locks::admin::LockTotals;
use crate::locks::lock_error::LockError;
use crate::locks::port::FreedNotice;
use crate::store::When;

/// One namespace behind one mutex.
pub(super) struct NamespaceLocks {
    pub name: Box<str>,
    pub context: Arc<MemoryContext>,
    pub state: Mutex<NamespaceState>,
}

pub(super) struct NamespaceState {
    pub table: LockTable,
    /// The fence that the journal was asked to store; it covers all granted fences.
    pub requested_fence: PersistedFence,
    /// The fence that is known to be on disk.
    pub confirmed_fence: PersistedFence,
    /// When the last cool-down ends of names whose lease an operator ended.
    pub cooled_down_at: Time,
    /// Nothing is granted before this time.
    pub closed_until: Time,
    /// Whether single leases are on disk, so that their ends must be written too.
    pub leases_on_disk: bool,
    /// Set by shutdown, after the active leases were collected for the journal.
    pub stopped: bool,
    /// Changes of slots that are being written, by lease.
    pub pending_changes: BTreeMap<LeaseKey, PendingSlotChanges>,
}

impl NamespaceLocks {
    pub fn new(name: &str, context: Arc<MemoryContext>) -> Self {
        let state = Mutex::new(NamespaceState::new(context.journal.is_some()));
        Self { name: name.into(), context, state }
    }

    /// Applies an operation, and waits for the journal where the reply promises durability.
    pub async fn ask(&self, op: &LockOp, when: When) -> Result<LockReply, LockError> {
        match op {
            LockOp::Confirm { .. } | LockOp::Relocate(_) => self.change_slot(op, when).await,
            LockOp::Undo(key) => Ok(self.revert_grant(*key, when)),
            LockOp::Sweep => self.sweep(when),
            _ => self.apply(op, when).await,
        }
    }

    /// Applies an operation. If a grant cannot be written as promised, it is reverted.
    async fn apply(&self, op: &LockOp, when: When) -> Result<LockReply, LockError> {
        let (reply, write) = {
            let mut state = self.state.lock();
            let now = self.instant(when);
            state.check_running()?;
            if op.may_take() {
                state.check_open(now)?;
            }
            let reply = state.table.apply(op, now);
            state.on_forced(op, &reply);
            let write = self.write(&mut state, op, &reply.outcome);
            self.report_freed(&mut state);
            (reply, write)
        };
        let written = self.wait_for(write).await;
        if let (Err(_), LockOutcome::Acquired(AcquireReply::Granted(lease))) =
            (&written, &reply.outcome)
        {
            self.revert_grant(lease.key, when);
        }
        written.map(|()| reply)
    }

    /// Removes all expired leases, and releases the mutex now and then.
    fn sweep(&self, when: When) -> Result<LockReply, LockError> {
        loop {
            let mut state = self.state.lock();
            state.check_running()?;
            let reply = state.table.apply(&LockOp::Sweep, self.instant(when));
            let mut writes = self.take_ended_writes(&mut state);
            if state.table.take_versions_expired() {
                writes.push(LockWrite::Forget(self.name.clone(), reply.now));
            }
            self.submit_nowait(writes);
            self.report_freed(&mut state);
            if reply.outcome != (LockOutcome::Swept { more: true }) {
                return Ok(reply);
            }
        }
    }

    /// Reverts a grant that could not be written, or that no caller was answered with. The journal
    /// gets the reversal too, because a failed write may still succeed later.
    fn revert_grant(&self, key: LeaseKey, when: When) -> LockReply {
        let mut state = self.state.lock();
        let lowered = state.table.lowered_versions(key).into_iter().map(Box::new);
        let lowered = lowered.map(|version| LockWrite::Version(self.name.clone(), version));
        let mut writes: Vec<LockWrite> = lowered.collect();
        if state.leases_on_disk {
            writes.push(LockWrite::Drop(self.name.clone(), key));
        }
        let reply = state.table.apply(&LockOp::Undo(key), self.instant(when));
        self.submit_nowait(writes);
        self.report_freed(&mut state);
        reply
    }

    /// Reports names that became free to the queues of waiting callers.
    pub fn report_freed(&self, state: &mut NamespaceState) {
        let freed = state.table.take_freed();
        if freed.is_empty() {
            return;
        }
        let listeners = self.context.listeners.read();
        for name in freed {
            let notice = FreedNotice::Name(name.digest(&self.name));
            listeners.iter().for_each(|listener| listener(notice));
        }
    }

    /// The instant of an operation. Read under the mutex, so that it is never before that of an
    /// earlier operation.
    pub fn instant(&self, when: When) -> Time {
        match when {
            When::Store => self.context.clock.now(),
            When::At(time) => time,
        }
    }

    /// How much longer nothing is granted after a start.
    pub fn closed_for(&self, now: Time) -> Span {
        self.state.lock().closed_until.since(now)
    }

    /// Adds the counts of this namespace.
    pub fn add_to(&self, totals: &mut LockTotals<'_>) {
        let state = self.state.lock();
        totals.lease_entries += state.table.len();
        for ((_, kind), counts) in state.table.counters().rows() {
            let row = totals.kinds.entry(kind.clone()).or_default();
            *row = row.plus(counts);
        }
    }
}

impl NamespaceState {
    /// Without a journal no call ever waits for a write.
    fn new(has_journal: bool) -> Self {
        let unlimited = PersistedFence { ceiling: i64::MAX, longest: Span::FOREVER, left: None };
        let fence = if has_journal { PersistedFence::default() } else { unlimited };
        Self {
            table: LockTable::default(),
            requested_fence: fence,
            confirmed_fence: fence,
            cooled_down_at: Time::ZERO,
            closed_until: Time::ZERO,
            leases_on_disk: false,
            stopped: false,
            pending_changes: BTreeMap::new(),
        }
    }

    /// Fails after a shutdown: its journal entries must stay the last ones.
    pub fn check_running(&self) -> Result<(), LockError> {
        if self.stopped { Err(LockError::Stopping) } else { Ok(()) }
    }

    /// Fails while nothing may be granted, because leases of the previous process may still be
    /// valid.
    pub fn check_open(&self, now: Time) -> Result<(), LockError> {
        match self.closed_until.since(now) {
            Span::ZERO => Ok(()),
            wait => Err(LockError::Starting { wait }),
        }
    }

    /// Notes the end of a cool-down, which a shutdown must not shorten.
    fn on_forced(&mut self, op: &LockOp, reply: &LockReply) {
        if let (LockOp::Force { cool_down, .. }, LockOutcome::Forced(Some(lease))) =
            (op, &reply.outcome)
        {
            let until = reply.now.after(*cool_down).min(lease.expires_at);
            self.cooled_down_at = self.cooled_down_at.max(until);
        }
    }
}

//! Follows shared records: the changes of other nodes, and the keys of primaries that have lost
//! data.
//!
//! Records are read in the background, one read at a time, and a heartbeat waits for one only for a
//! moment: a database that hangs must not delay notices, nor keep a primary out of use.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use catraca_core::time::{Span, Time};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::SharedDriver;
use super::resume::RestoreGoal;
use crate::engine::LocalChanges;
use crate::records::{Receipt, Records, RecordsError};
use crate::store::{PrimaryId, StoreStatus};
use crate::supervise::catch_panic;

/// How old a release may be that a store has lost, for example by a failover.
const LOST_MAX: Span = Span::from_secs(3_600);
/// The pause between reads of the records while the store is unavailable, while another node seems
/// to be cut off from it, and after one that failed.
const READ_PAUSE: Span = Span::from_millis(400);
const READ_PAUSE_IN_USE: Span = Span::from_secs(1);
const READ_PAUSE_FAILED: Span = Span::from_secs(5);
/// How long a heartbeat waits for a read that it has started.
const READ_WAIT: Duration = Duration::from_secs(1);
/// A read without a row for this long hangs: no primary waits for it any longer.
const HANGS_AFTER: Duration = Duration::from_secs(2);
/// How long a read may take that a heartbeat needs at once.
const AGREEMENT_READ_TIME: Duration = Duration::from_secs(5);

/// The records, and the instant from which changes must be read.
pub(super) struct RecordsFollower {
    records: Arc<Records>,
    since: Mutex<Time>,
    /// The number of a change that was answered as not on disk, and the receipt that it is now.
    late_change: Mutex<Option<(u64, Receipt)>>,
}

/// What must be read from the records, and the read that runs.
pub(super) struct RecordsReads {
    state: Mutex<ReadsState>,
    /// One read of [`SharedDriver::read_for_agreement`] at a time.
    agreement: Arc<Semaphore>,
}

#[derive(Default)]
struct ReadsState {
    running: Option<ReadGoal>,
    /// When the running read began or got its last rows.
    last_progress: Option<Instant>,
    /// Whether changes of other nodes must be read.
    changes_due: bool,
    /// Whether the latest changes and blocks must be read, and not before which instant again.
    recent_due: bool,
    next_recent: Time,
    /// The primaries that have lost data and must get what the records have.
    restores: BTreeMap<PrimaryId, RestoreRequest>,
    restore_count: u64,
    /// Why the last read failed, if so.
    error: Option<String>,
}

/// A primary has lost data.
#[derive(Clone, Copy, Debug)]
struct RestoreRequest {
    /// A later loss has a higher number.
    number: u64,
    at: Time,
    requested: Instant,
    /// Whether the primary stays out of use until the read has ended or hangs.
    holds: bool,
}

/// What a read is for.
#[derive(Clone, Copy, Debug)]
enum ReadGoal {
    Changes,
    Recent,
    Primary(PrimaryId, RestoreRequest),
}

impl SharedDriver {
    /// Reads the changes of other nodes if the change counter differs from the last one; returns
    /// whether it does, or did and was not read. `lost_data` says that a primary may have lost data
    /// since the last read.
    pub(super) async fn read_changes(
        self: &Arc<Self>,
        status: StoreStatus,
        lost_data: bool,
    ) -> Result<bool, String> {
        let before = *self.changes_read.lock();
        let changed = self.note_changes(status.changes);
        if let Some(scope) = self.node_scope.get() {
            let read = self.catch_up_rules(scope, &status, lost_data, changed).await;
            if read.is_err() {
                // The next heartbeat tries again.
                *self.changes_read.lock() = before;
            }
            self.run_due_reads().await;
            return read.map(|()| changed);
        }
        if self.records.get().is_none() {
            return Ok(changed);
        }
        let is_due = {
            let mut state = self.reads.state.lock();
            state.changes_due |= changed;
            state.changes_due
        };
        self.run_due_reads().await;
        Ok(is_due)
    }

    /// Applies all records of a primary's keys to it, after it has lost data.
    pub(super) async fn restore_primary(self: &Arc<Self>, id: PrimaryId) {
        if self.records.get().is_some() || self.node_scope.get().is_some() {
            self.reads.request_restore(id, self.engine.now());
            self.run_due_reads().await;
        }
    }

    /// While the store is unavailable here, or another node seems to be cut off from it, the
    /// records are the way on which blocks, lists, facts and modes of other nodes arrive.
    pub(super) async fn follow_recent_records(self: &Arc<Self>) {
        if self.records.get().is_none() {
            return;
        }
        self.reads.state.lock().recent_due = true;
        self.run_due_reads().await;
    }

    /// Publishes changes that are written although their operators got the answer that they are
    /// not: until then, other nodes could not read them.
    pub(super) async fn publish_late_changes(&self) {
        let Some(follower) = self.records.get() else { return };
        if let Some(number) = follower.written_late_change(self.engine.local_changes()) {
            self.engine.local_changes().on_written(number);
            self.publish_change().await;
        }
    }

    /// Starts what must be read, unless a read runs, and waits a moment for it. After an error, the
    /// next heartbeat goes on.
    async fn run_due_reads(self: &Arc<Self>) {
        let until = Instant::now() + READ_WAIT;
        while let Some(goal) = self.reads.begin(self.engine.now()) {
            let driver = Arc::clone(self);
            let read = tokio::spawn(async move {
                let read = catch_panic(driver.read(goal)).await;
                let read = read.unwrap_or_else(Err);
                let pause = if driver.is_up() { READ_PAUSE_IN_USE } else { READ_PAUSE };
                driver.reads.end(goal, read, driver.engine.now(), pause)
            });
            // Dropping the handle does not stop the read.
            let ended = tokio::time::timeout_at(until.into(), read).await;
            if !matches!(ended, Ok(Ok(true))) {
                return;
            }
        }
    }

    async fn read(&self, goal: ReadGoal) -> Result<(), String> {
        let here = self.engine.now();
        let lost_since = |request: RestoreRequest| request.at.before(LOST_MAX);
        if let (Some(scope), ReadGoal::Primary(id, request)) = (self.node_scope.get(), goal) {
            return self.release_again(scope, id, lost_since(request)).await;
        }
        let Some(follower) = self.records.get() else { return Ok(()) };
        let (target, since) = match goal {
            ReadGoal::Changes => (RestoreGoal::Changes, *follower.since.lock()),
            ReadGoal::Recent => (RestoreGoal::Recent, *follower.since.lock()),
            ReadGoal::Primary(id, request) => (RestoreGoal::Primary(id), lost_since(request)),
        };
        let read = self.apply_records(&follower.records, target, self.store_now(), since).await;
        read.map_err(|error| error.to_string())?;
        follower.on_read(here);
        Ok(())
    }

    /// Reads the records of this node for a comparison with the store, for a bounded time.
    pub(super) async fn read_for_agreement<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> Result<T, RecordsError> + Send + 'static,
    ) -> Result<T, String> {
        let Some(permit) = self.reads.try_agreement() else {
            return Err("an earlier read of the records has not ended".to_owned());
        };
        let read = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            read()
        });
        match tokio::time::timeout(AGREEMENT_READ_TIME, read).await {
            Ok(Ok(read)) => read.map_err(|error| error.to_string()),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("no answer within {} s", AGREEMENT_READ_TIME.as_secs())),
        }
    }
}

impl RecordsReads {
    /// The running read got rows.
    pub(super) fn on_progress(&self) {
        self.state.lock().last_progress = Some(Instant::now());
    }

    /// Whether a primary must stay out of use, because a read is about to give it its blocks.
    pub(super) fn holds(&self, id: PrimaryId) -> bool {
        let state = self.state.lock();
        let Some(request) = state.restores.get(&id).filter(|request| request.holds) else {
            return false;
        };
        let is_running =
            matches!(state.running, Some(ReadGoal::Primary(running, _)) if running == id);
        let progress = state.last_progress.filter(|_| is_running);
        let since = progress.map_or(request.requested, |at| at.max(request.requested));
        since.elapsed() < HANGS_AFTER
    }

    /// Why this node lacks what the records have, and the consequence.
    pub(super) fn problem(&self) -> Option<String> {
        let state = self.state.lock();
        let hangs = state.running.is_some()
            && state.last_progress.is_some_and(|at| at.elapsed() >= HANGS_AFTER);
        let why = if hangs { "they do not answer" } else { state.error.as_deref()? };
        let consequence = match state.restores.is_empty() {
            true => "changes of lists, facts and modes on other nodes are not known here",
            false => "blocks that only the records have are missing in the store",
        };
        Some(format!("the records cannot be read: {why}; {consequence}; it is tried again"))
    }

    /// Forgets the primaries that have left the store.
    pub(super) fn retain(&self, present: &BTreeSet<PrimaryId>) {
        self.state.lock().restores.retain(|id, _| present.contains(id));
    }

    fn request_restore(&self, id: PrimaryId, at: Time) {
        let mut state = self.state.lock();
        state.restore_count += 1;
        let number = state.restore_count;
        // What was lost at an earlier loss must be restored, too.
        let at = state.restores.get(&id).map_or(at, |earlier| earlier.at.min(at));
        let request = RestoreRequest { number, at, requested: Instant::now(), holds: true };
        state.restores.insert(id, request);
    }

    /// The next thing to read, unless a read runs. What arrives while it runs is read after it.
    fn begin(&self, now: Time) -> Option<ReadGoal> {
        let mut state = self.state.lock();
        if state.running.is_some() {
            return None;
        }
        let goal = state.next(now)?;
        match goal {
            ReadGoal::Changes => state.changes_due = false,
            ReadGoal::Recent => state.recent_due = false,
            ReadGoal::Primary(..) => {}
        }
        state.running = Some(goal);
        state.last_progress = Some(Instant::now());
        Some(goal)
    }

    /// A read has ended, and the latest changes are not read again before a pause; returns whether
    /// it succeeded.
    fn end(&self, goal: ReadGoal, read: Result<(), String>, now: Time, pause: Span) -> bool {
        let mut state = self.state.lock();
        state.running = None;
        let is_read = read.is_ok();
        state.error = read.err();
        match goal {
            ReadGoal::Changes => state.changes_due |= !is_read,
            ReadGoal::Recent => {
                let pause = if is_read { pause } else { READ_PAUSE_FAILED };
                state.next_recent = now.after(pause);
            }
            ReadGoal::Primary(id, request) => {
                let is_last = |last: &RestoreRequest| last.number == request.number;
                if is_read && state.restores.get(&id).is_some_and(is_last) {
                    state.restores.remove(&id);
                }
            }
        }
        if !is_read {
            // They have the blocks of this node, and are in use until the records can be read.
            state.restores.values_mut().for_each(|request| request.holds = false);
        }
        is_read
    }

    fn try_agreement(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.agreement).try_acquire_owned().ok()
    }
}

impl ReadsState {
    fn next(&self, now: Time) -> Option<ReadGoal> {
        if self.recent_due && now >= self.next_recent {
            return Some(ReadGoal::Recent);
        }
        if self.changes_due {
            return Some(ReadGoal::Changes);
        }
        let (id, request) = self.restores.first_key_value()?;
        Some(ReadGoal::Primary(*id, *request))
    }
}

impl Default for RecordsReads {
    fn default() -> Self {
        Self { state: Mutex::default(), agreement: Arc::new(Semaphore::new(1)) }
    }
}

impl RecordsFollower {
    pub(super) fn new(records: Arc<Records>, since: Time) -> Self {
        Self { records, since: Mutex::new(since), late_change: Mutex::default() }
    }

    /// Notes that the records were read at an instant, with an overlap of a minute: a write that
    /// was not committed yet is read twice rather than never.
    fn on_read(&self, at: Time) {
        *self.since.lock() = at.before(Span::from_secs(60));
    }

    /// The number of a late change that is known to be written since the last call. Never waits.
    fn written_late_change(&self, changes: &LocalChanges) -> Option<u64> {
        let late = changes.late_change()?;
        let mut pending = self.late_change.lock();
        // Records are written in the order in which they were queued.
        let (number, receipt) = pending.get_or_insert_with(|| (late, self.records.barrier()));
        let number = *number;
        let ack = receipt.try_ack()?;
        *pending = None;
        ack.is_durable().then_some(number)
    }
}

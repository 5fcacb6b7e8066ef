//! Shared records: applies all of them at start, and the changes of other nodes afterwards.
//!
//! The records are read on a blocking thread and applied batch by batch. A block is released on the
//! store only if the store may have lost data: otherwise its own state is newer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use catraca_core::batch::Batch;
use catraca_core::time::{Span, Time};
use parking_lot::Mutex;
use tokio::sync::mpsc::{self, Receiver};
use tokio::task::JoinHandle;

use super::SharedDriver;
use crate::engine::{LocalChanges, ResumeBatches, ResumeError, ResumeSummary};
use crate::error::Error;
use crate::records::{Receipt, Records, RecordsError, RestoreScope, RestoredItem};
use crate::store::{PrimaryId, StoreError, StoreStatus, When, first_key};

/// How old a release may be that a store has lost, for example by a failover.
const LOST_MAX: Span = Span::from_secs(3_600);
/// The pause between reads of the records while the store is unavailable, and after one that
/// failed.
const READ_PAUSE: Span = Span::from_millis(400);
const READ_PAUSE_FAILED: Span = Span::from_secs(5);
const READ_TIMEOUT: Duration = Duration::from_secs(1);
/// Items per message from the reading thread.
const ITEMS_PER_MESSAGE: usize = 1_024;

/// The records, and the instant from which changes must be read.
pub(super) struct RecordsFollower {
    records: Arc<Records>,
    since: Mutex<Time>,
    /// The number of a change that was answered as not on disk, and the receipt that it is now.
    late_change: Mutex<Option<(u64, Receipt)>>,
    /// When the records are read next while the store is unavailable.
    next_read: Mutex<Time>,
}

/// What the records that are read are for.
#[derive(Clone, Copy)]
enum RestoreGoal {
    /// The start of a node: everything, for all primaries.
    WholeStore,
    /// A primary that has lost data: everything, and its keys for it.
    Primary(PrimaryId),
    /// The changes of other nodes, for this node alone.
    Changes,
    /// The latest changes and blocks of other nodes, for this node alone.
    Recent,
}

/// A message from the reading thread.
type ItemsMessage = Result<Vec<RestoredItem>, RecordsError>;

impl SharedDriver {
    /// Applies the records to the store and to this node, and follows their changes from then on;
    /// call it before the first check.
    pub async fn resume(&self, records: Arc<Records>) -> Result<ResumeSummary, ResumeError> {
        let here = self.engine.now();
        let now = self.note_first_statuses(here).await?;
        // The records are bound last: a start that the store refuses must leave no mark in them.
        records.check_secret(&self.engine.keys_id())?;
        self.bind_records(self.records_identity(&records)?).await?;
        records.bind_secret(&self.engine.keys_id())?;
        if self.is_node_scope() {
            return self.resume_node_scope(records, here, now).await;
        }
        self.engine.local_changes().follow();
        let follower = RecordsFollower {
            records: Arc::clone(&records),
            since: Mutex::new(here),
            late_change: Mutex::default(),
            next_read: Mutex::default(),
        };
        // Since forever: no release and no debt is applied, because the store's own state is newer.
        let resumed =
            self.apply_records(&records, RestoreGoal::WholeStore, now, Time::FOREVER).await?;
        // The catalog may have been changed while no process ran.
        drop(records.hide_values(here, &self.engine.catalog(), self.engine.digester()));
        // On a second call the first records stay.
        let _ = self.records.set(follower);
        Ok(resumed)
    }

    /// Binds the store to the records: nodes that share counters must share blocks and lists.
    async fn bind_records(&self, ours: String) -> Result<(), ResumeError> {
        let theirs = self.store.bind_records(&ours).await.map_err(Error::from)?;
        if theirs == ours {
            return Ok(());
        }
        Err(ResumeError::OtherRecords { ours, theirs })
    }

    /// Notes the status of every primary at the start; returns the store's clock. Fails if a
    /// primary is unavailable: it must get its blocks before the first check.
    pub(super) async fn note_first_statuses(&self, here: Time) -> Result<Time, ResumeError> {
        let mut now = None;
        for report in self.store.primary_statuses().await {
            let status = report.status.map_err(Error::from)?;
            let clock_offset = status.now.micros() - here.micros();
            *self.primaries.get(report.primary).last_status.lock() = Some((status, clock_offset));
            self.note_changes(status.changes);
            now.get_or_insert(status.now);
        }
        let none = || Error::from(StoreError::unavailable("it has no primary"));
        Ok(now.ok_or_else(none)?)
    }

    /// Reads the changes of other nodes if the change counter differs from the last one; returns
    /// whether it does. `lost_data` says that a primary may have lost data since the last read.
    pub(super) async fn read_changes(
        &self,
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
            return read.map(|()| changed);
        }
        let Some(follower) = self.records.get().filter(|_| changed) else {
            return Ok(changed);
        };
        let last_read = *follower.since.lock();
        let here = self.engine.now();
        let target = RestoreGoal::Changes;
        let read = self.apply_records(&follower.records, target, status.now, last_read).await;
        if let Err(error) = read {
            // The next heartbeat tries again.
            *self.changes_read.lock() = before;
            return Err(error.to_string());
        }
        follower.on_read(here);
        Ok(true)
    }

    /// Applies all records of a primary's keys to it, after it has lost data.
    pub(super) async fn restore_primary(&self, id: PrimaryId, now: Time) -> Result<(), String> {
        let here = self.engine.now();
        let since = here.before(LOST_MAX);
        if let Some(scope) = self.node_scope.get() {
            return self.release_again(scope, id, since).await;
        }
        let Some(follower) = self.records.get() else { return Ok(()) };
        let target = RestoreGoal::Primary(id);
        let read = self.apply_records(&follower.records, target, now, since).await;
        read.map_err(|error| error.to_string())?;
        follower.on_read(here);
        Ok(())
    }

    /// While the store is unavailable, the records are the way on which blocks, lists, facts and
    /// modes of other nodes arrive.
    pub(super) async fn follow_records_without_store(&self) {
        let Some(follower) = self.records.get() else { return };
        let here = self.engine.now();
        if here < *follower.next_read.lock() {
            return;
        }
        let since = *follower.since.lock();
        let target = RestoreGoal::Recent;
        let read = self.apply_records(&follower.records, target, self.store_now(), since);
        // A database that hangs must not keep the heartbeat from finding the store.
        let read = tokio::time::timeout(READ_TIMEOUT, read).await;
        let is_read = matches!(read, Ok(Ok(_)));
        if is_read {
            follower.on_read(here);
        }
        let pause = if is_read { READ_PAUSE } else { READ_PAUSE_FAILED };
        *follower.next_read.lock() = here.after(pause);
    }

    async fn apply_records(
        &self,
        records: &Arc<Records>,
        target: RestoreGoal,
        now: Time,
        since: Time,
    ) -> Result<ResumeSummary, ResumeError> {
        let read = self.engine.local_changes().begin_read();
        let catalog = Arc::clone(&self.engine.rules().catalog);
        let mut batches = ResumeBatches::new(now, since, &catalog);
        let records = Arc::clone(records);
        let restored = target.scope();
        let (reader, mut messages) = spawn_reader(move |visit| match restored {
            RestoreScope::Everything => records.restore(now, since, visit),
            RestoreScope::Changes => records.restore_changes(now, since, visit),
            RestoreScope::Recent => records.restore_recent(now, since, visit),
        });
        let mut modes = BTreeMap::new();
        while let Some(items) = messages.recv().await {
            for item in items? {
                if let RestoredItem::Mode(policy, mode, at) = &item {
                    modes.insert(policy.clone(), (*at, *mode));
                }
                for batch in batches.add(item) {
                    self.apply_batch(&mut batches, target, batch).await?;
                }
            }
        }
        read_to_end(reader).await?;
        for batch in batches.finish() {
            self.apply_batch(&mut batches, target, batch).await?;
        }
        let summary = self.engine.conclude_read(batches, &read);
        self.on_modes_read(modes);
        Ok(summary)
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

    /// Applies a batch to this node, and to the store unless the store has it already.
    async fn apply_batch(
        &self,
        batches: &mut ResumeBatches,
        target: RestoreGoal,
        batch: Batch,
    ) -> Result<(), Error> {
        self.mirror(&batch);
        if matches!(batch, Batch::Unblock(_) | Batch::Reset(_)) {
            batch.each_key(|key| {
                self.block_cache.forget(key);
            });
        }
        let batch = batches.limit_releases(batch);
        for part in self.parts_for(target, batch) {
            let reply = self.store.apply(&part, When::Store).await?;
            batches.count_left_out(&part, &reply);
        }
        Ok(())
    }

    /// The parts of a batch that the store must get.
    fn parts_for(&self, target: RestoreGoal, batch: Batch) -> Vec<Batch> {
        let id = match target {
            RestoreGoal::Changes | RestoreGoal::Recent => return Vec::new(),
            RestoreGoal::WholeStore => return vec![batch],
            RestoreGoal::Primary(id) => id,
        };
        let is_own = |part: &Batch| first_key(part).is_some_and(|key| self.is_on(id, key));
        let parts = match self.split_by_primary(&batch) {
            Some(parts) => parts.into_iter().map(|(_, part)| part).collect(),
            None => vec![batch],
        };
        parts.into_iter().filter(is_own).collect()
    }
}

impl RestoreGoal {
    fn scope(self) -> RestoreScope {
        match self {
            Self::WholeStore | Self::Primary(_) => RestoreScope::Everything,
            Self::Changes => RestoreScope::Changes,
            Self::Recent => RestoreScope::Recent,
        }
    }
}

impl RecordsFollower {
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

/// Reads the records on a blocking thread. The messages also end if the reader panics: see
/// [`read_to_end`].
fn spawn_reader(
    read: impl FnOnce(&mut dyn FnMut(RestoredItem)) -> Result<(), RecordsError> + Send + 'static,
) -> (JoinHandle<()>, Receiver<ItemsMessage>) {
    let (send, messages) = mpsc::channel(4);
    let reader = tokio::task::spawn_blocking(move || {
        let mut items = Vec::with_capacity(ITEMS_PER_MESSAGE);
        let mut visit = |item| {
            items.push(item);
            if items.len() == ITEMS_PER_MESSAGE {
                // If the receiver is gone, the rest is read for nothing, which is harmless.
                let _ = send.blocking_send(Ok(std::mem::take(&mut items)));
            }
        };
        let read = read(&mut visit);
        let _ = send.blocking_send(read.map(|()| items));
    });
    (reader, messages)
}

/// An error if the reader ended before it had read everything: what it did not read would be taken
/// for absent, and blocks would be missing.
async fn read_to_end(reader: JoinHandle<()>) -> Result<(), StoreError> {
    reader.await.map_err(|error| {
        StoreError::unavailable(format!("the records were not read to their end: {error}"))
    })
}

impl From<StoreError> for ResumeError {
    fn from(error: StoreError) -> Self {
        Self::Store(error.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: a reader that panicked looked like one that had reached the end, and the node
    /// started without the blocks that were not read.
    #[tokio::test]
    async fn a_reader_that_panics_is_an_error() {
        let (reader, mut messages) = spawn_reader(|_| panic!("a row with an impossible value"));
        assert!(messages.recv().await.is_none());
        let error = read_to_end(reader).await.unwrap_err().to_string();
        assert!(error.contains("not read to their end"), "{error}");
        let (reader, mut messages) = spawn_reader(|_| Ok(()));
        assert!(messages.recv().await.unwrap().unwrap().is_empty());
        assert!(messages.recv().await.is_none());
        read_to_end(reader).await.unwrap();
    }
}

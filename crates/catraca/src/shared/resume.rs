//! Shared records: applies all of them at start, and the changes of other nodes afterwards.
//!
//! The records are read on a blocking thread and applied batch by batch. A block is released on the
//! store only if the store may have lost data: otherwise its own state is newer.

use std::sync::Arc;

use catraca_core::batch::{Batch, UnblockRow};
use catraca_core::time::{Span, Time};
use parking_lot::Mutex;
use tokio::sync::mpsc::{self, Receiver};

use super::SharedDriver;
use crate::engine::{LocalChanges, ResumeBatches, ResumeError, ResumeSummary};
use crate::error::Error;
use crate::records::{Receipt, Records, RecordsError, RestoreScope, RestoredItem};
use crate::store::{StoreError, StoreStatus, When};

/// How old a release may be that a store has lost, for example by a failover.
const LOST_MAX: Span = Span::from_secs(3_600);
/// Items per message from the reading thread.
const ITEMS_PER_MESSAGE: usize = 1_024;

/// The records, and the instant from which changes must be read.
pub(super) struct RecordsFollower {
    records: Arc<Records>,
    since: Mutex<Time>,
    /// The number of a change that was answered as not on disk, and the receipt that it is now.
    late_change: Mutex<Option<(u64, Receipt)>>,
}

/// A message from the reading thread.
type ItemsMessage = Result<Vec<RestoredItem>, RecordsError>;

impl SharedDriver {
    /// Applies the records to the store and to this node, and follows their changes from then on;
    /// call it before the first check.
    pub async fn resume(&self, records: Arc<Records>) -> Result<ResumeSummary, ResumeError> {
        records.bind_secret(&self.engine.keys_id())?;
        self.bind_records(records.identity()?).await?;
        let status = self.store.status().await.map_err(Error::from)?;
        let here = self.engine.now();
        self.engine.local_changes().follow();
        let follower = RecordsFollower {
            records: Arc::clone(&records),
            since: Mutex::new(here),
            late_change: Mutex::default(),
        };
        // Since forever: no release and no debt is applied, because the store's own state is newer.
        let resumed = self
            .apply_records(&records, RestoreScope::Everything, status.now, Time::FOREVER)
            .await?;
        // The catalog may have been changed while no process ran.
        drop(records.hide_values(here, &self.engine.catalog(), self.engine.digester()));
        *self.last_status.lock() = Some((status, status.now.micros() - here.micros()));
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

    /// Reads all records after the store has lost data, and only the changes after a change.
    pub(super) async fn catch_up(
        &self,
        status: &StoreStatus,
        restarted: bool,
        changed: bool,
    ) -> Result<(), String> {
        let Some(follower) = self.records.get().filter(|_| restarted || changed) else {
            return Ok(());
        };
        let here = self.engine.now();
        let last_read = *follower.since.lock();
        let (scope, since) = match restarted {
            true => (RestoreScope::Everything, here.before(LOST_MAX)),
            false => (RestoreScope::Changes, last_read),
        };
        let read = self.apply_records(&follower.records, scope, status.now, since).await;
        read.map_err(|error| error.to_string())?;
        // An overlap of a minute: a write that was not committed yet is read twice rather than
        // never.
        *follower.since.lock() = here.before(Span::from_secs(60));
        Ok(())
    }

    async fn apply_records(
        &self,
        records: &Arc<Records>,
        scope: RestoreScope,
        now: Time,
        since: Time,
    ) -> Result<ResumeSummary, ResumeError> {
        let read = self.engine.local_changes().begin_read();
        let catalog = Arc::clone(&self.engine.rules().catalog);
        let mut batches = ResumeBatches::new(now, since, &catalog);
        let mut messages = spawn_reader(Arc::clone(records), scope, now, since);
        while let Some(items) = messages.recv().await {
            for item in items? {
                for batch in batches.add(item) {
                    self.apply_batch(&mut batches, scope, batch).await?;
                }
            }
        }
        for batch in batches.finish() {
            self.apply_batch(&mut batches, scope, batch).await?;
        }
        Ok(self.engine.conclude_read(batches, &read))
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
        scope: RestoreScope,
        batch: Batch,
    ) -> Result<(), Error> {
        self.mirror(&batch);
        if matches!(batch, Batch::Unblock(_) | Batch::Reset(_)) {
            batch.each_key(|key| {
                self.block_cache.forget(key);
            });
        }
        // Since the reset the store has counted again; a second reset would clear that.
        let batch = match batch {
            Batch::Reset(keys) => Batch::Unblock(keys.into_iter().map(UnblockRow::from).collect()),
            other => other,
        };
        if scope == RestoreScope::Everything {
            let reply = self.store.apply(&batch, When::Store).await?;
            batches.count_left_out(&batch, &reply);
        }
        Ok(())
    }
}

impl RecordsFollower {
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

/// Reads the records on a blocking thread.
fn spawn_reader(
    records: Arc<Records>,
    scope: RestoreScope,
    now: Time,
    since: Time,
) -> Receiver<ItemsMessage> {
    let (send, messages) = mpsc::channel(4);
    tokio::task::spawn_blocking(move || {
        let mut items = Vec::with_capacity(ITEMS_PER_MESSAGE);
        let mut visit = |item| {
            items.push(item);
            if items.len() == ITEMS_PER_MESSAGE {
                // If the receiver is gone, the rest is read for nothing, which is harmless.
                let _ = send.blocking_send(Ok(std::mem::take(&mut items)));
            }
        };
        let read = match scope {
            RestoreScope::Everything => records.restore(now, since, &mut visit),
            RestoreScope::Changes => records.restore_changes(now, since, &mut visit),
        };
        let _ = send.blocking_send(read.map(|()| items));
    });
    messages
}

impl From<StoreError> for ResumeError {
    fn from(error: StoreError) -> Self {
        Self::Store(error.into())
    }
}

//! Shared records: applies all of them at start, and those that a read in the background needs
//! afterwards (`follow_records`).
//!
//! The records are read on a blocking thread and applied batch by batch. A block is released on the
//! store only if the store may have lost data: otherwise its own state is newer.

use std::collections::BTreeMap;
use std::sync::Arc;

use catraca_core::batch::Batch;
use catraca_core::time::Time;
use tokio::sync::mpsc::{self, Receiver};
use tokio::task::JoinHandle;

use super::SharedDriver;
use super::follow_records::RecordsFollower;
use super::stale_blocks::CLOCK_ERROR;
use crate::engine::{ResumeBatches, ResumeError, ResumeSummary};
use crate::error::Error;
use crate::records::{Records, RecordsError, RestoreScope, RestoredItem};
use crate::store::{PrimaryId, StoreError, When, first_key};

/// Items per message from the reading thread.
const ITEMS_PER_MESSAGE: usize = 1_024;

/// What the records that are read are for.
#[derive(Clone, Copy)]
pub(super) enum RestoreGoal {
    /// The start of a node: everything, for all primaries.
    WholeStore,
    /// A primary that has lost data: everything, and its keys for it.
    Primary(PrimaryId),
    /// The changes of other nodes, for this node alone.
    Changes,
    /// The latest changes and blocks of other nodes, for this node, and the blocks for the
    /// primaries that are in use.
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
        let follower = RecordsFollower::new(Arc::clone(&records), here);
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

    pub(super) async fn apply_records(
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
        // A release that was applied before that, and recorded after it, counts too.
        let read_at = now.before(CLOCK_ERROR);
        while let Some(items) = messages.recv().await {
            self.reads.on_progress();
            for item in items? {
                if let RestoredItem::Mode(policy, mode, at) = &item {
                    modes.insert(policy.clone(), (*at, *mode));
                }
                for batch in batches.add(item) {
                    self.apply_batch(&mut batches, target, batch, read_at).await?;
                }
            }
        }
        read_to_end(reader).await?;
        for batch in batches.finish() {
            self.apply_batch(&mut batches, target, batch, read_at).await?;
        }
        let summary = self.engine.conclude_read(batches, &read);
        self.on_modes_read(modes);
        Ok(summary)
    }

    /// Applies a batch to this node, and to the store unless the store has it already.
    async fn apply_batch(
        &self,
        batches: &mut ResumeBatches,
        target: RestoreGoal,
        batch: Batch,
        read_at: Time,
    ) -> Result<(), Error> {
        let batch = self.without_released(batch, read_at);
        self.mirror(&batch);
        if matches!(batch, Batch::Unblock(_) | Batch::Reset(_)) {
            batch.each_key(|key| {
                self.block_cache.forget(key);
            });
        }
        let batch = batches.limit_releases(batch);
        for part in self.parts_for(target, batch) {
            let reply = self.store.apply(&part, When::Store).await;
            self.note_restored(&part, read_at);
            let reply = reply?;
            batches.count_left_out(&part, &reply);
        }
        Ok(())
    }

    /// The parts of a batch that the store must get.
    fn parts_for(&self, target: RestoreGoal, batch: Batch) -> Vec<Batch> {
        let id = match target {
            RestoreGoal::Changes => return Vec::new(),
            RestoreGoal::WholeStore => return vec![batch],
            RestoreGoal::Recent => None,
            RestoreGoal::Primary(id) => Some(id),
        };
        // A node that is cut off from the store starts blocks, and releases none.
        let is_recent = |part: &Batch| matches!(part, Batch::Block(_)) && self.permit(part).is_ok();
        let is_own = |part: &Batch| match id {
            Some(id) => first_key(part).is_some_and(|key| self.is_on(id, key)),
            None => is_recent(part),
        };
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

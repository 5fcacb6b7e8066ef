//! Blocks that this node wrote to the store again, after a loss of data or an outage, although
//! another node had released them: they are ended when the notice of the release arrives, and
//! nothing else is.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use catraca_core::batch::{Batch, UnblockRow};
use catraca_core::digest::Key;
use catraca_core::time::{Span, Time};

use super::SharedDriver;
use super::exchange_notices::{NOTICES_MAX, shift};
use super::notice::{Notice, NoticeContent};
use super::unsynced_blocks::BATCH;
use crate::store::When;

/// The most blocks that must still be ended in the store: as many as there are notices.
const STALE_MAX: usize = NOTICES_MAX as usize;
/// How far the estimates of the store's clock by two nodes may differ: a release that was made up
/// to this time after a block was written again ends it, too.
pub(super) const CLOCK_ERROR: Span = Span::from_secs(2);
/// The most blocks that were written to the store and are remembered.
const WRITTEN_MAX: usize = 1_000_000;

/// The blocks that this node wrote to the store again, after a loss of data or an outage.
#[derive(Debug, Default)]
pub(super) struct WrittenBlocks {
    /// The last time, by the store's clock.
    at: Time,
    /// The end of each, by the clock of this node.
    ends: HashMap<Key, Time>,
}

impl SharedDriver {
    /// Remembers blocks that were written to the store, or may have been.
    pub(super) fn note_written(&self, blocks: impl IntoIterator<Item = (Key, Time)>) {
        let now = self.engine.now();
        let mut written = self.written_blocks.lock();
        written.at = self.store_now();
        for (key, until) in blocks {
            if written.ends.len() >= WRITTEN_MAX {
                written.ends.retain(|_, until| *until > now);
            }
            if written.ends.len() < WRITTEN_MAX {
                written.ends.insert(key, until);
            }
        }
    }

    /// Notes the blocks of the records that were written to the store, or may have been. Of keys
    /// that were released since the records were read, they are ended.
    #[cfg(feature = "records")]
    pub(super) fn note_restored(&self, batch: &Batch, read_at: Time) {
        let Batch::Block(rows) = batch else { return };
        let now = self.engine.now();
        let ends = rows.iter().map(|(key, proposal)| (*key, now.after(proposal.penalty.length(0))));
        let (released, others): (Vec<_>, Vec<_>) =
            ends.partition(|(key, _)| self.notices.is_released_since(*key, read_at));
        self.note_written(others);
        released.into_iter().for_each(|(key, until)| self.add_stale(key, until));
    }

    /// Without the blocks of keys that were released since the records were read.
    #[cfg(feature = "records")]
    pub(super) fn without_released(&self, batch: Batch, read_at: Time) -> Batch {
        let Batch::Block(mut rows) = batch else { return batch };
        rows.retain(|(key, _)| !self.notices.is_released_since(*key, read_at));
        Batch::Block(rows)
    }

    /// `until` is by the clock of this node.
    fn add_stale(&self, key: Key, until: Time) {
        let clock_offset = self.primaries.clock_offset().unwrap_or(0);
        let mut stale = self.stale_blocks.lock();
        if stale.len() < STALE_MAX {
            stale.push(UnblockRow { key, only_until: Some(shift(until, clock_offset)) });
        } else {
            self.dropped_stale.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Notes the blocks that this node wrote to the store after another node had released them. A
    /// block that was started since has another end than the one that was written.
    pub(super) fn note_stale(&self, news: &[Notice]) {
        let written = &mut *self.written_blocks.lock();
        if written.ends.is_empty() {
            return;
        }
        let latest = written.at.after(CLOCK_ERROR);
        for notice in news.iter().filter(|notice| notice.at <= latest) {
            let NoticeContent::Freed(key) = notice.content else { continue };
            if let Some(until) = written.ends.remove(&key) {
                self.add_stale(key, until);
            }
        }
    }

    /// Ends these blocks in the store. What fails waits for the next heartbeat.
    pub(super) async fn unblock_stale(&self) {
        let mut rows = std::mem::take(&mut *self.stale_blocks.lock());
        while !rows.is_empty() {
            let chunk = rows.split_off(rows.len().saturating_sub(BATCH));
            let batch = Batch::Unblock(chunk.clone());
            if self.store.apply(&batch, When::Store).await.is_err() {
                rows.extend(chunk);
                self.stale_blocks.lock().append(&mut rows);
            }
        }
    }
}

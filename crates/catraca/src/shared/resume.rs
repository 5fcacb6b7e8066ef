//! Records that nodes share: everything in force at a start, and what others changed since.
//!
//! The records are read on a thread of their own and the store is told batch by batch. Must not
//! lift a block on a store that has not lost anything: there the store knows better.

use std::sync::Arc;

use catraca_core::batch::Batch;
use catraca_core::time::{Span, Time};
use parking_lot::Mutex;
use tokio::sync::mpsc::{self, Receiver};

use super::SharedEngine;
use crate::engine::{ResumeError, Resumed, Resuming};
use crate::error::Error;
use crate::records::{Extent, Records, RecordsError, Standing};
use crate::store::{Pulse, SharedStore, StoreError, When};

/// How far back a store that lost something may have lost a release.
const LOST_MAX: Span = Span::from_secs(3_600);
/// Rows that travel together from the records.
const ROWS: usize = 1_024;

/// The records, and since when changes are to be read.
pub(super) struct Kept {
    records: Arc<Records>,
    since: Mutex<Time>,
}

/// What comes from the records.
type Rows = Result<Vec<Standing>, RecordsError>;

impl<S: SharedStore> SharedEngine<S> {
    /// Puts in force what the records say, on the store and here, and keeps up with them; call it
    /// before the first check.
    pub async fn resume(&self, records: Arc<Records>) -> Result<Resumed, ResumeError> {
        records.tie(&self.engine.keys_id())?;
        self.claim(records.identity()?).await?;
        let pulse = self.store.pulse().await.map_err(Error::from)?;
        let here = self.engine.now();
        let kept = Kept { records: Arc::clone(&records), since: Mutex::new(here) };
        let resumed = self.read(&records, Extent::Everything, (pulse.now, Time::FOREVER)).await?;
        *self.heard.lock() = Some((pulse, pulse.now.micros() - here.micros()));
        // A second call would be a second start: the first records stay.
        let _ = self.records.set(kept);
        Ok(resumed)
    }

    /// Nodes that share counters must share blocks and lists.
    async fn claim(&self, ours: String) -> Result<(), ResumeError> {
        let theirs = self.store.claim(&ours).await.map_err(Error::from)?;
        if theirs == ours {
            return Ok(());
        }
        Err(ResumeError::OtherRecords { ours, theirs })
    }

    /// After a store has lost something, everything; after a change, the changes.
    pub(super) async fn catch_up(
        &self,
        pulse: &Pulse,
        reborn: bool,
        changed: bool,
    ) -> Result<(), String> {
        let Some(kept) = self.records.get().filter(|_| reborn || changed) else { return Ok(()) };
        let (here, since) = (self.engine.now(), *kept.since.lock());
        let (extent, since) = match reborn {
            true => (Extent::Everything, here.before(LOST_MAX)),
            false => (Extent::Changes, since),
        };
        let read = self.read(&kept.records, extent, (pulse.now, since)).await;
        read.map_err(|error| error.to_string())?;
        // A write that was under way is read twice rather than never.
        *kept.since.lock() = here.before(Span::from_secs(60));
        Ok(())
    }

    async fn read(
        &self,
        records: &Arc<Records>,
        extent: Extent,
        (now, since): (Time, Time),
    ) -> Result<Resumed, ResumeError> {
        let mut resuming = Resuming::new(now, since);
        let mut rows = reading(Arc::clone(records), extent, (now, since));
        while let Some(some) = rows.recv().await {
            for standing in some? {
                for batch in resuming.take(standing) {
                    self.put(&mut resuming, extent, batch).await?;
                }
            }
        }
        for batch in resuming.rest() {
            self.put(&mut resuming, extent, batch).await?;
        }
        Ok(self.engine.resumed(resuming))
    }

    /// Puts a batch in force here, and on the store unless it is what the store has told already.
    async fn put(
        &self,
        resuming: &mut Resuming,
        extent: Extent,
        batch: Batch,
    ) -> Result<(), Error> {
        self.mirror(&batch);
        let freed = match &batch {
            Batch::Unblock(keys) | Batch::Reset(keys) => &keys[..],
            _ => &[],
        };
        for key in freed {
            self.known.forget(*key);
        }
        // The store has counted since the reset, and knows better than to forget that.
        let batch = if let Batch::Reset(keys) = batch { Batch::Unblock(keys) } else { batch };
        if extent == Extent::Everything {
            let reply = self.store.apply(&batch, When::Store).await?;
            resuming.took(&batch, &reply);
        }
        Ok(())
    }
}

/// Reads the records on a thread that may wait for them.
fn reading(records: Arc<Records>, extent: Extent, (now, since): (Time, Time)) -> Receiver<Rows> {
    let (send, rows) = mpsc::channel(4);
    tokio::task::spawn_blocking(move || {
        let mut some = Vec::with_capacity(ROWS);
        let mut visit = |standing| {
            some.push(standing);
            if some.len() == ROWS {
                // Nobody listens any more: the rest is read in vain, and harms nobody.
                let _ = send.blocking_send(Ok(std::mem::take(&mut some)));
            }
        };
        let read = match extent {
            Extent::Everything => records.standing(now, since, &mut visit),
            Extent::Changes => records.changes(now, since, &mut visit),
        };
        let _ = send.blocking_send(read.map(|()| some));
    });
    rows
}

impl From<StoreError> for ResumeError {
    fn from(error: StoreError) -> Self {
        Self::Store(error.into())
    }
}

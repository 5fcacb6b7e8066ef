//! Heartbeats: four times a second a node asks for the store's status, and brings the store and
//! itself up to date.
//!
//! A store that was unavailable or lost data first gets every block; only then are checks sent to
//! it again. A loss between two heartbeats is noticed by the next one.

use std::sync::Arc;
use std::time::Duration;

use catraca_core::batch::{Batch, UnblockRow};
use catraca_core::time::Span;

use super::SharedDriver;
use super::unsynced_blocks::{BATCH, blocks_to_batch};
#[cfg(not(feature = "records"))]
use crate::store::StoreStatus;
use crate::store::{StoreError, When};

/// The interval between heartbeats.
const INTERVAL: Duration = Duration::from_millis(250);
/// A clock offset that is worth an alarm.
const SKEW_MAX: Span = Span::from_secs(2);

/// What a heartbeat found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeartbeatReport {
    /// Whether the store replied and is in use.
    pub up: bool,
    /// Whether it was not in use before this heartbeat.
    pub recovered: bool,
    /// Whether it may have lost data and got all blocks again.
    pub restarted: bool,
    /// Whether another node has changed lists, facts or modes.
    pub changed: bool,
    /// Whether its clock and this node's differ by two seconds or more.
    pub clock_skewed: bool,
    /// A setting of the store that may lose blocks, and how to fix it.
    pub config_warning: Option<String>,
    /// The error of the store or of the records.
    pub error: Option<String>,
}

/// Runs heartbeats on the current tokio runtime until the driver is dropped; calls `on_report` with
/// each report.
pub(crate) fn run_heartbeat(
    driver: &Arc<SharedDriver>,
    on_report: impl Fn(&HeartbeatReport) + Send + 'static,
) -> tokio::task::JoinHandle<()> {
    let driver = Arc::downgrade(driver);
    tokio::spawn(async move {
        loop {
            let Some(reconnected) = driver.upgrade().map(|driver| driver.store.wait_reconnected())
            else {
                return;
            };
            // An unavailable store is tried as soon as it reports that it is reachable again.
            let _ = tokio::time::timeout(INTERVAL, reconnected).await;
            let Some(driver) = driver.upgrade() else { return };
            let report = driver.heartbeat().await;
            on_report(&report);
        }
    })
}

impl SharedDriver {
    /// One heartbeat. [`run_heartbeat`] calls it; tests may call it themselves.
    pub async fn heartbeat(&self) -> HeartbeatReport {
        let was_down = !self.breaker.state().0;
        match self.synchronize().await {
            Ok(report) => {
                // If new blocks or uncertain acts came up meanwhile, the breaker stays open until
                // the next heartbeat has dealt with them.
                if self.unsynced.len() == 0 && self.uncertain_keys.lock().is_empty() {
                    self.breaker.close();
                }
                let (up, _, why) = self.breaker.state();
                HeartbeatReport {
                    up,
                    recovered: was_down && up,
                    error: report.error.or(why),
                    ..report
                }
            }
            Err(error) => {
                self.breaker.on_failure(&reason(&error));
                HeartbeatReport {
                    up: self.breaker.state().0,
                    error: Some(error.to_string()),
                    ..HeartbeatReport::default()
                }
            }
        }
    }

    async fn synchronize(&self) -> Result<HeartbeatReport, StoreError> {
        let here = self.engine.now();
        #[cfg(feature = "records")]
        self.publish_late_changes().await;
        let status = self.store.status().await?;
        let before = self.last_status.lock().map_or(status, |(before, _)| before);
        let restarted = before.incarnation != status.incarnation;
        let changed = before.changes != status.changes;
        let uncertain = self.undo_uncertain_acts().await?;
        if restarted || uncertain {
            self.breaker
                .open_for_sync("the store may have lost data; all blocks are written to it first");
            self.block_cache.clear();
            self.write_all_blocks().await?;
        }
        self.write_unsynced_blocks().await?;
        if self.publish_error.load().is_some() {
            self.publish_change().await;
        }
        let records_error = self.catch_up(&status, restarted || uncertain, changed).await.err();
        // If the records could not be read, the old status is kept, so that the next heartbeat
        // tries again.
        let confirmed = if records_error.is_none() { status } else { before };
        let clock_offset = status.now.micros() - here.micros();
        *self.last_status.lock() = Some((confirmed, clock_offset));
        Ok(HeartbeatReport {
            restarted,
            changed,
            clock_skewed: clock_offset.abs() >= SKEW_MAX.micros(),
            config_warning: self.store.config_warning(),
            error: records_error.or_else(|| self.background_error()),
            ..HeartbeatReport::default()
        })
    }

    /// Unblocks the keys of acts that timed out: they were refused, but the store may have applied
    /// them. Blocks that the records or this node have are written again after that. Returns
    /// whether there were any.
    async fn undo_uncertain_acts(&self) -> Result<bool, StoreError> {
        let uncertain = std::mem::take(&mut *self.uncertain_keys.lock());
        if uncertain.is_empty() {
            return Ok(false);
        }
        let rows = uncertain.iter().copied().map(UnblockRow::from);
        let done = self.store.apply(&Batch::Unblock(rows.collect()), When::Store).await;
        if done.is_err() {
            self.uncertain_keys.lock().extend(uncertain);
        }
        done.map(|_| true)
    }

    /// Writes every active block of this node to the store.
    async fn write_all_blocks(&self) -> Result<(), StoreError> {
        let mut blocks = Vec::new();
        let now = self.engine.now();
        self.engine.store().for_each_block(|key, block| {
            if block.until > now && !block.shadow {
                blocks.push((key, block.clone()));
            }
        });
        for chunk in blocks.chunks(BATCH) {
            self.store.apply(&blocks_to_batch(chunk, self.engine.now()), When::Store).await?;
        }
        Ok(())
    }

    /// Writes the blocks that were started without the store.
    async fn write_unsynced_blocks(&self) -> Result<(), StoreError> {
        let mut batches = self.unsynced.take(self.engine.now()).into_iter();
        while let Some(blocks) = batches.next() {
            let batch: Batch = blocks_to_batch(&blocks, self.engine.now());
            if let Err(error) = self.store.apply(&batch, When::Store).await {
                self.unsynced.give_back(blocks.into_iter().chain(batches.flatten()));
                return Err(error);
            }
        }
        Ok(())
    }

    /// Without records there are no changes to read.
    #[cfg(not(feature = "records"))]
    async fn catch_up(&self, _: &StoreStatus, _: bool, _: bool) -> Result<(), String> {
        Ok(())
    }
}

fn reason(error: &StoreError) -> String {
    match error {
        StoreError::Unavailable { reason } => reason.clone(),
        other => other.to_string(),
    }
}

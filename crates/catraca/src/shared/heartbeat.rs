//! Heartbeats: four times a second a node asks every primary of the store for its status, and
//! brings the primaries and itself up to date.
//!
//! A primary that was unavailable or lost data first gets the blocks of its keys; only then are
//! checks sent to it again. The other primaries are used in the meantime. A loss between two
//! heartbeats is noticed by the next one.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use catraca_core::batch::{Batch, UnblockRow};
use catraca_core::cell::Block;
use catraca_core::digest::Key;
use catraca_core::time::Span;
use parking_lot::Mutex;

use super::SharedDriver;
use super::exchange_notices::EXCHANGE_TIME;
use super::primaries::{CallTimes, PrimaryState, UnavailablePrimary};
use super::unsynced_blocks::{BATCH, blocks_to_batch, ends_of};
use crate::store::{PrimaryId, PrimaryReport, StoreError, StoreStatus, When};
use crate::supervise::supervise;

/// The interval between heartbeats.
const INTERVAL: Duration = Duration::from_millis(250);
/// No heartbeat takes longer, also while a store does not answer.
const LATE_AFTER: Duration = Duration::from_secs(15);
/// A clock offset that is worth an alarm.
const SKEW_MAX: Span = Span::from_secs(2);

/// What a heartbeat found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeartbeatReport {
    /// Whether all primaries of the store replied and are in use.
    pub up: bool,
    /// Whether a primary is in use that was not before this heartbeat.
    pub recovered: bool,
    /// Whether a primary may have lost data and got its blocks again.
    pub restarted: bool,
    /// Whether another node has changed lists, facts or modes.
    pub changed: bool,
    /// Whether its clock and this node's differ by two seconds or more.
    pub clock_skewed: bool,
    /// A setting of the store that may lose blocks, and how to fix it.
    pub config_warning: Option<String>,
    /// A setting of the store that should be changed, and how, although nothing is wrong now.
    pub config_notice: Option<String>,
    /// Why the server that this node uses may have been replaced, and the consequence.
    pub doubt: Option<String>,
    /// Live nodes with other revisions of the catalog, if that has lasted.
    pub revision_problem: Option<String>,
    /// The error of the store or of the records.
    pub error: Option<String>,
    /// The primaries that are not in use.
    pub unavailable: Vec<UnavailablePrimary>,
}

/// Runs heartbeats on the current tokio runtime until the driver is dropped; calls `on_report` with
/// each report.
pub(crate) fn run_heartbeat(
    driver: &Arc<SharedDriver>,
    on_report: impl Fn(&HeartbeatReport) + Send + 'static,
) -> tokio::task::JoinHandle<()> {
    driver.heartbeats.start();
    let driver = Arc::downgrade(driver);
    let on_report = Arc::new(Mutex::new(on_report));
    tokio::spawn(supervise("heartbeat", move || beat(Weak::clone(&driver), Arc::clone(&on_report))))
}

async fn beat(driver: Weak<SharedDriver>, on_report: Arc<Mutex<impl Fn(&HeartbeatReport)>>) {
    loop {
        let Some(reconnected) = driver.upgrade().map(|driver| driver.store.wait_reconnected())
        else {
            return;
        };
        // An unavailable store is tried as soon as it reports that it is reachable again.
        let _ = tokio::time::timeout(INTERVAL, reconnected).await;
        let Some(driver) = driver.upgrade() else { return };
        let report = driver.heartbeat().await;
        driver.heartbeats.note();
        on_report.lock()(&report);
    }
}

/// When the last heartbeat ended, from the start of the heartbeats on.
#[derive(Debug, Default)]
pub(super) struct LastHeartbeat(Mutex<Option<Instant>>);

impl LastHeartbeat {
    fn start(&self) {
        self.0.lock().get_or_insert_with(Instant::now);
    }

    fn note(&self) {
        *self.0.lock() = Some(Instant::now());
    }

    /// The time since then.
    pub fn age(&self) -> Option<Duration> {
        self.0.lock().map(|last| last.elapsed())
    }

    /// That there is none any more, and the consequence.
    pub fn problem(&self) -> Option<String> {
        self.age().filter(|age| *age >= LATE_AFTER).map(|_| {
            format!(
                "no heartbeat has ended for {} s: blocks, releases and changes of other nodes do \
                 not arrive here, and a store that is back is not used; restart this node if it \
                 lasts",
                LATE_AFTER.as_secs()
            )
        })
    }
}

impl SharedDriver {
    /// One heartbeat. [`run_heartbeat`] calls it; tests may call it themselves.
    pub async fn heartbeat(self: &Arc<Self>) -> HeartbeatReport {
        #[cfg(feature = "records")]
        self.publish_late_changes().await;
        let sent = self.engine.now();
        let mut reports = self.store.primary_statuses().await;
        let call = CallTimes { sent, received: self.engine.now() };
        let present: BTreeSet<PrimaryId> = reports.iter().map(|report| report.primary).collect();
        self.primaries.retain(&present);
        #[cfg(feature = "records")]
        self.reads.retain(&present);
        let status = reports.iter().find_map(|report| report.status.as_ref().ok().copied());
        let mut heartbeat = HeartbeatReport::default();
        let has_restarted = reports.iter().any(|report| self.has_restarted(report));
        if status.is_some() && (has_restarted || !self.unsynced.is_empty()) {
            self.learn_releases(has_restarted).await;
        }
        // Primaries that must get their blocks first come last, so that they delay no other.
        reports.sort_by_key(|report| self.has_restarted(report));
        let mut lost_data = false;
        for report in reports {
            lost_data |= self.visit_primary(report, call, &mut heartbeat).await;
        }
        if status.is_some() && self.publish_error.load().is_some() {
            self.publish_change().await;
        }
        if heartbeat.restarted {
            self.begin_agreement();
        }
        if status.is_some() {
            self.exchange_notices(EXCHANGE_TIME).await;
        }
        self.notices.forget_old(self.store_now());
        #[cfg(feature = "records")]
        if status.is_none() || self.notice_error.load().is_some() || self.peers.any_silent() {
            self.follow_recent_records().await;
        }
        let read = match status {
            Some(status) => self.read_changes(status, lost_data).await,
            None => Ok(false),
        };
        heartbeat.changed = !matches!(read, Ok(false));
        heartbeat.error = read.err().or(heartbeat.error.take()).or_else(|| self.background_error());
        heartbeat.unavailable = self.unavailable_primaries();
        heartbeat.up = heartbeat.unavailable.is_empty();
        if heartbeat.error.is_none() {
            heartbeat.error = heartbeat.unavailable.first().map(ToString::to_string);
        }
        heartbeat.config_warning = self.store.config_warning();
        heartbeat.config_notice = self.store.config_notice();
        heartbeat.doubt = self.store.doubt();
        heartbeat.revision_problem = self.peers.revision_problem();
        heartbeat
    }

    /// Whether a primary may have lost data since its last status.
    fn has_restarted(&self, report: &PrimaryReport) -> bool {
        let Ok(status) = &report.status else { return false };
        let before = *self.primaries.get(report.primary).last_status.lock();
        before.is_some_and(|(before, _)| before.incarnation != status.incarnation)
    }

    /// Brings one primary up to date, and puts it in use or out of use. Returns whether it may have
    /// lost data.
    async fn visit_primary(
        self: &Arc<Self>,
        report: PrimaryReport,
        call: CallTimes,
        heartbeat: &mut HeartbeatReport,
    ) -> bool {
        let id = report.primary;
        let primary = self.primaries.get(id);
        let was_down = !primary.breaker.is_closed();
        let synchronized = match report.status {
            Ok(status) => self.synchronize(id, &primary, status, call, heartbeat).await,
            Err(error) => Err(error),
        };
        let lost_data = matches!(synchronized, Ok(true));
        match synchronized {
            // If new blocks or uncertain acts came up meanwhile, the breaker stays open until the
            // next heartbeat has dealt with them.
            Ok(_) if !self.has_pending(id) => primary.breaker.close(),
            Ok(_) => {}
            // It replied: keys on the move say nothing about the others.
            Err(StoreError::Moving { .. }) => {}
            Err(error) => {
                self.count_opening(primary.breaker.on_failure(&reason(&error)));
                heartbeat.error = Some(self.describe(id, &error));
            }
        }
        heartbeat.recovered |= was_down && primary.breaker.is_closed();
        lost_data
    }

    /// An error with the name of its primary, if there are several.
    fn describe(&self, id: PrimaryId, error: &StoreError) -> String {
        let name = self.store.primary_name(id);
        name.map_or_else(|| error.to_string(), |name| format!("{name}: {error}"))
    }

    /// Returns whether the primary may have lost data.
    async fn synchronize(
        self: &Arc<Self>,
        id: PrimaryId,
        primary: &PrimaryState,
        status: StoreStatus,
        call: CallTimes,
        heartbeat: &mut HeartbeatReport,
    ) -> Result<bool, StoreError> {
        let before = *primary.last_status.lock();
        let restarted = before.is_some_and(|(last, _)| last.incarnation != status.incarnation);
        // Before anything is written: what is written again is compared with releases by its time.
        let clock_offset = call.clock_offset(status.now, before.map(|(_, offset)| offset));
        primary.last_status.lock().iter_mut().for_each(|(_, offset)| *offset = clock_offset);
        let uncertain = self.undo_uncertain_acts(id).await?;
        if restarted || uncertain {
            let why = "the store may have lost data; all blocks are written to it first";
            self.count_opening(primary.breaker.open_for_sync(why));
            self.block_cache.forget_all(|key| self.is_on(id, key));
        }
        // Blocks that are dropped from now on are not among those that are written here.
        let needs_all = primary.needs_all_blocks.swap(false, Ordering::Relaxed);
        if restarted || uncertain || needs_all {
            let written = self.write_all_blocks(id).await;
            if needs_all && written.is_err() {
                primary.needs_all_blocks.store(true, Ordering::Relaxed);
            }
            written?;
        }
        self.write_unsynced_blocks(id).await?;
        *primary.last_status.lock() = Some((status, clock_offset));
        heartbeat.restarted |= restarted;
        heartbeat.clock_skewed |= clock_offset.abs() >= SKEW_MAX.micros();
        #[cfg(feature = "records")]
        if restarted || uncertain {
            self.restore_primary(id).await;
        }
        Ok(restarted || uncertain)
    }

    /// Whether a primary must still get something before it is used.
    fn has_pending(&self, id: PrimaryId) -> bool {
        let is_pending = |key: Key| self.is_on(id, key);
        #[cfg(feature = "records")]
        if self.reads.holds(id) {
            return true;
        }
        self.primaries.get(id).needs_all_blocks.load(Ordering::Relaxed)
            || self.unsynced.has(is_pending)
            || self.uncertain_keys.lock().iter().any(|key| is_pending(*key))
    }

    /// Unblocks the keys of acts that timed out: they were refused, but the primary may have
    /// applied them. Blocks that the records or this node have are written again after that.
    /// Returns whether there were any.
    async fn undo_uncertain_acts(&self, id: PrimaryId) -> Result<bool, StoreError> {
        let all = std::mem::take(&mut *self.uncertain_keys.lock());
        let (own, others): (Vec<Key>, Vec<Key>) =
            all.into_iter().partition(|key| self.is_on(id, *key));
        self.uncertain_keys.lock().extend(others);
        if own.is_empty() {
            return Ok(false);
        }
        let rows = own.iter().copied().map(UnblockRow::from);
        let done = self.store.apply(&Batch::Unblock(rows.collect()), When::Store).await;
        if done.is_err() {
            self.uncertain_keys.lock().extend(own);
        }
        done.map(|_| true)
    }

    /// Writes every active block of this node to its primary.
    async fn write_all_blocks(&self, id: PrimaryId) -> Result<(), StoreError> {
        let mut blocks = Vec::new();
        let now = self.engine.now();
        self.engine.store().for_each_block(|key, block| {
            if block.until > now && !block.shadow && self.is_on(id, key) {
                blocks.push((key, block.clone()));
            }
        });
        for chunk in blocks.chunks(BATCH) {
            let batch = blocks_to_batch(chunk, self.engine.now());
            let written = self.store.apply(&batch, When::Store).await;
            // Also after an error: the store may have applied it.
            self.note_written(ends_of(chunk));
            written?;
        }
        Ok(())
    }

    /// Writes the blocks that were started without the store.
    async fn write_unsynced_blocks(&self, id: PrimaryId) -> Result<(), StoreError> {
        let taken = self.unsynced.take(self.engine.now(), |key| self.is_on(id, key));
        let mut batches = taken.into_iter();
        while let Some(blocks) = batches.next() {
            let batch: Batch = blocks_to_batch(&blocks, self.engine.now());
            let written = self.store.apply(&batch, When::Store).await;
            self.note_written(ends_of(&blocks));
            let error = match written {
                Ok(_) => continue,
                // A key that is being moved must not hold up the others.
                Err(StoreError::Moving { .. }) => self.write_one_by_one(blocks).await.err(),
                Err(error) => {
                    self.unsynced.give_back(blocks);
                    Some(error)
                }
            };
            if let Some(error) = error {
                self.unsynced.give_back(batches.flatten());
                return Err(error);
            }
        }
        Ok(())
    }

    /// Writes blocks, each in a call of its own. Those of keys that are being moved wait for the
    /// next heartbeat.
    async fn write_one_by_one(&self, blocks: Vec<(Key, Block)>) -> Result<(), StoreError> {
        let mut blocks = blocks.into_iter();
        while let Some((key, block)) = blocks.next() {
            let batch = blocks_to_batch(&[(key, block.clone())], self.engine.now());
            let written = self.store.apply(&batch, When::Store).await;
            self.note_written([(key, block.until)]);
            match written {
                Ok(_) => {}
                Err(StoreError::Moving { .. }) => self.add_unsynced(key, block, true),
                Err(error) => {
                    self.unsynced.give_back([(key, block)].into_iter().chain(blocks));
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// Without records there are no changes to read.
    #[cfg(not(feature = "records"))]
    async fn read_changes(&self, status: StoreStatus, _: bool) -> Result<bool, String> {
        Ok(self.note_changes(status.changes))
    }

    /// Notes the change counter; returns whether it differs from the last one.
    pub(super) fn note_changes(&self, changes: u64) -> bool {
        let mut last = self.changes_read.lock();
        let changed = last.is_some_and(|last| last != changes);
        *last = Some(changes);
        changed
    }
}

fn reason(error: &StoreError) -> String {
    match error {
        StoreError::Unavailable { reason } => reason.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heartbeats_that_have_stopped_are_a_problem() {
        let last = LastHeartbeat::default();
        assert_eq!((last.age(), last.problem()), (None, None), "none were started");
        last.start();
        assert!(last.age().is_some() && last.problem().is_none());
        *last.0.lock() = Instant::now().checked_sub(LATE_AFTER);
        let problem = last.problem().unwrap();
        assert!(problem.contains("no heartbeat has ended for 15 s"), "{problem}");
        last.note();
        assert_eq!(last.problem(), None);
    }
}

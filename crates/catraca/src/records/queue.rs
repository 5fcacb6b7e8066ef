//! The bounded queue between decisions and the writer thread. Submitting never waits.
//!
//! When the queue is full, only the newest record of each key is set aside and written later: the
//! final state in the database is right, but the history lacks steps. The number of such keys is
//! bounded too; records beyond it are dropped and counted.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use catraca_core::digest::Key;
use parking_lot::{Condvar, Mutex};

use super::ack::{Ack, AckSender};
use super::database::Database;
use super::health::{Health, RecordsCounters};
use super::record::Record;

/// Queued records that no caller waits for.
pub(super) const QUEUE_MAX: usize = 65_536;
/// Extra room for records with a receipt, so that operators can act when automatic records fill the
/// queue.
const OPERATOR_EXTRA: usize = QUEUE_MAX / 10;
/// Keys whose newest record is set aside when the queue is full.
pub(super) const POSTPONED_MAX: usize = 262_144;
/// Records in one transaction: they are written well within 20 ms.
pub(super) const BATCH_MAX: usize = 256;

/// Work for the writer thread.
#[derive(Default)]
pub(super) struct RecordQueue {
    state: Mutex<RecordQueueState>,
    wake: Condvar,
    pub(super) counters: RecordsCounters,
}

#[derive(Default)]
struct RecordQueueState {
    jobs: VecDeque<WriteJob>,
    /// Records in all jobs.
    records: usize,
    /// The newest record of each key that found the queue full.
    postponed: HashMap<Key, Record>,
    /// Why the database is unavailable, if it is.
    down: Option<Arc<str>>,
    /// Why what is written would not be found at the next start, if so.
    file_fault: Option<Arc<str>>,
    /// Why the last maintenance failed, if it did.
    maintenance_fault: Option<Arc<str>>,
    /// Why the last rejected record was rejected.
    rejection: Option<Arc<str>>,
    closing: bool,
    /// Whether the writer has ended: it takes no further work.
    ended: bool,
}

/// Records of one transaction, or a task.
pub(super) struct WriteJob {
    pub(super) records: Vec<Record>,
    pub(super) ack_sender: Option<AckSender>,
    /// A task to run on the writer thread; then there are no records.
    pub(super) task: Option<WriterTask>,
}

pub(super) type WriterTask = Box<dyn FnOnce(&mut dyn Database) + Send>;

/// What the writer thread does next.
pub(super) enum WriterWork {
    Write(Vec<WriteJob>),
    Run(WriterTask),
    /// The wait timed out.
    Idle,
    /// The queue is closed and empty.
    Closed,
}

impl RecordQueue {
    /// Queues records. Those with an ack sender come from operators and may use the queue's extra
    /// tenth.
    pub(super) fn submit(&self, records: Vec<Record>, ack_sender: Option<AckSender>) {
        let mut state = self.state.lock();
        if state.ended {
            drop(state);
            self.counters.lost.add(records.len() as u64);
            self.refuse(ack_sender, &"the records are closed".into());
            return;
        }
        let bound = if ack_sender.is_some() { QUEUE_MAX + OPERATOR_EXTRA } else { QUEUE_MAX };
        if state.records + records.len() > bound || state.has_postponed(&records) {
            state.postpone(records, &self.counters);
            drop(state);
            self.refuse(ack_sender, &"the queue of records is full".into());
            return;
        }
        // Answers at once while the database is known to be unavailable; the records are queued
        // anyway.
        let ack_sender = match state.down.clone() {
            Some(why) => {
                self.refuse(ack_sender, &why);
                None
            }
            None => ack_sender,
        };
        state.records += records.len();
        state.jobs.push_back(WriteJob { records, ack_sender, task: None });
        drop(state);
        self.wake.notify_one();
    }

    /// Queues a task for the writer thread.
    pub(super) fn send(&self, task: WriterTask) {
        let job = WriteJob { records: Vec::new(), ack_sender: None, task: Some(task) };
        let mut state = self.state.lock();
        if state.closing {
            // The writer may have ended. Dropping the task closes its channel, which the caller
            // sees.
            return;
        }
        state.jobs.push_back(job);
        drop(state);
        self.wake.notify_one();
    }

    /// Returns the next work, waiting up to `timeout` for it.
    pub(super) fn next(&self, timeout: Duration) -> WriterWork {
        let mut state = self.state.lock();
        if state.is_idle() {
            self.wake.wait_for(&mut state, timeout);
        }
        state.next()
    }

    /// Pauses between two attempts. Returns false when the queue is closing: then no further
    /// attempt is made.
    pub(super) fn pause(&self, duration: Duration) -> bool {
        let mut state = self.state.lock();
        let end = std::time::Instant::now() + duration;
        while !state.closing && !self.wake.wait_until(&mut state, end).timed_out() {}
        !state.closing
    }

    /// Marks the database as unavailable: answers all waiting receipts, and later ones at once.
    pub(super) fn mark_unavailable(&self, why: &Arc<str>) {
        let mut state = self.state.lock();
        state.down = Some(Arc::clone(why));
        for job in &mut state.jobs {
            self.refuse(job.ack_sender.take(), why);
        }
    }

    /// Marks the database as available.
    pub(super) fn mark_available(&self) {
        self.state.lock().down = None;
    }

    /// Counts a new fault as a failure.
    pub(super) fn set_file_fault(&self, fault: Option<Arc<str>>) {
        let mut state = self.state.lock();
        if fault.is_some() && state.file_fault.is_none() {
            self.counters.failures.add(1);
        }
        state.file_fault = fault;
    }

    /// Counts a failed maintenance, and keeps its reason until one succeeds.
    pub(super) fn set_maintenance_fault(&self, fault: Option<Arc<str>>) {
        self.counters.maintenance_failures.add(u64::from(fault.is_some()));
        self.state.lock().maintenance_fault = fault;
    }

    /// Counts records that can never be written, and keeps the reason.
    pub(super) fn note_rejection(&self, count: u64, why: &Arc<str>) {
        self.counters.rejected.add(count);
        self.state.lock().rejection = Some(Arc::clone(why));
    }

    pub(super) fn close(&self) {
        self.state.lock().closing = true;
        self.wake.notify_all();
    }

    pub(super) fn refuse(&self, ack_sender: Option<AckSender>, why: &Arc<str>) {
        if let Some(ack_sender) = ack_sender {
            // A caller that has dropped its receipt has its answer.
            self.counters.refused.add(u64::from(!ack_sender.is_closed()));
            let _ = ack_sender.send(Ack::NotYet(Arc::clone(why)));
        }
    }

    /// Counters and present state.
    pub(super) fn health(&self) -> Health {
        let (waiting, down) = self.status();
        let state = self.state.lock();
        Health {
            waiting,
            down,
            file_fault: state.file_fault.clone(),
            maintenance_fault: state.maintenance_fault.clone(),
            rejection: state.rejection.clone(),
            ..self.counters.health()
        }
    }

    /// The number of queued records, and why the database is unavailable, if it is.
    pub(super) fn status(&self) -> (u64, Option<Arc<str>>) {
        let state = self.state.lock();
        ((state.records + state.postponed.len()) as u64, state.down.clone())
    }
}

impl RecordQueueState {
    fn is_idle(&self) -> bool {
        self.jobs.is_empty() && self.postponed.is_empty() && !self.closing
    }

    /// Whether an older record of one of the keys is postponed; a newer one must not be written
    /// before it.
    fn has_postponed(&self, records: &[Record]) -> bool {
        !self.postponed.is_empty()
            && records.iter().filter_map(Record::key).any(|key| self.postponed.contains_key(&key))
    }

    fn postpone(&mut self, records: Vec<Record>, counters: &RecordsCounters) {
        for record in records {
            match record.key() {
                Some(key)
                    if self.postponed.len() < POSTPONED_MAX
                        || self.postponed.contains_key(&key) =>
                {
                    counters.postponed.add(1);
                    self.postponed.insert(key, record);
                }
                _ => counters.lost.add(1),
            }
        }
    }

    fn next(&mut self) -> WriterWork {
        if let Some(task) = self.jobs.front_mut().and_then(|job| job.task.take()) {
            self.jobs.pop_front();
            return WriterWork::Run(task);
        }
        let mut batch = Vec::new();
        let mut size = 0;
        while let Some(job) = self.jobs.front() {
            // A job larger than a batch is written alone.
            let fits = batch.is_empty() || size + job.records.len() <= BATCH_MAX;
            if job.task.is_some() || !fits {
                break;
            }
            size += job.records.len();
            batch.extend(self.jobs.pop_front());
        }
        self.records -= size;
        if batch.is_empty() {
            batch = self.take_postponed();
        }
        match batch.is_empty() {
            false => WriterWork::Write(batch),
            true if self.closing => {
                self.ended = true;
                WriterWork::Closed
            }
            true => WriterWork::Idle,
        }
    }

    fn take_postponed(&mut self) -> Vec<WriteJob> {
        let keys: Vec<Key> = self.postponed.keys().take(BATCH_MAX).copied().collect();
        let records = keys.iter().filter_map(|key| self.postponed.remove(key)).collect::<Vec<_>>();
        let job = WriteJob { records, ack_sender: None, task: None };
        if job.records.is_empty() { Vec::new() } else { vec![job] }
    }
}

#[cfg(test)]
mod tests;

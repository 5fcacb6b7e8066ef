//! The queue between decisions and the writer: bounded, and never waited for.
//!
//! When it is full, the newest step of each key is kept apart and written later, so that the
//! records end with the truth although they miss steps of the way; that, too, is bounded, and
//! what does not even fit there is counted. Must not make a submitter wait.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use catraca_core::digest::Key;
use parking_lot::{Condvar, Mutex};

use super::health::Counters;
use super::port::Writes;
use super::receipt::{Ack, Acker};
use super::record::Record;

/// Records that wait, of the engine's own.
pub(super) const QUEUE_MAX: usize = 65_536;
/// Operators may still be heard when the engine's own fill the queue.
const OPERATORS_SHARE: usize = QUEUE_MAX / 10;
/// Keys whose newest step is kept when the queue is full.
pub(super) const LATE_MAX: usize = 262_144;
/// Records in one transaction: what is written well within 20 ms.
pub(super) const BATCH_MAX: usize = 256;

/// Work that waits for the writer.
#[derive(Default)]
pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    wake: Condvar,
    pub(super) counters: Counters,
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Job>,
    records: usize,
    late: HashMap<Key, Record>,
    down: Option<Arc<str>>,
    closing: bool,
}

/// Records that are written together or not at all.
pub(super) struct Job {
    pub(super) records: Vec<Record>,
    pub(super) acker: Option<Acker>,
    /// Something else to do on the writer's thread; then there are no records.
    pub(super) errand: Option<Errand>,
}

pub(super) type Errand = Box<dyn FnOnce(&mut dyn Writes) + Send>;

/// What the writer does next.
pub(super) enum Next {
    Write(Vec<Job>),
    Run(Errand),
    /// Nothing came.
    Idle,
    /// Nothing will come.
    Closed,
}

impl Queue {
    /// Takes records. Those with an acker are an operator's, and may use the last tenth.
    pub(super) fn submit(&self, records: Vec<Record>, acker: Option<Acker>) {
        let mut waiting = self.waiting.lock();
        let bound = if acker.is_some() { QUEUE_MAX + OPERATORS_SHARE } else { QUEUE_MAX };
        if waiting.records + records.len() > bound || waiting.is_late(&records) {
            waiting.postpone(records, &self.counters);
            drop(waiting);
            self.refuse(acker, &"the queue of the records is full".into());
            return;
        }
        // Nobody is kept waiting for a disk that is known to be down.
        let acker = match waiting.down.clone() {
            Some(why) => {
                self.refuse(acker, &why);
                None
            }
            None => acker,
        };
        waiting.records += records.len();
        waiting.jobs.push_back(Job { records, acker, errand: None });
        drop(waiting);
        self.wake.notify_one();
    }

    /// Takes something else to do on the writer's thread.
    pub(super) fn send(&self, errand: Errand) {
        let job = Job { records: Vec::new(), acker: None, errand: Some(errand) };
        let mut waiting = self.waiting.lock();
        if waiting.closing {
            // Dropped, which tells whoever waits for it: nobody may be there to run it.
            return;
        }
        waiting.jobs.push_back(job);
        drop(waiting);
        self.wake.notify_one();
    }

    /// What to do next, waiting for it at most so long.
    pub(super) fn next(&self, patience: Duration) -> Next {
        let mut waiting = self.waiting.lock();
        if waiting.is_idle() {
            self.wake.wait_for(&mut waiting, patience);
        }
        waiting.next()
    }

    /// Waits before another attempt; says whether one is worth it, which it is not when closing.
    pub(super) fn rest(&self, pause: Duration) -> bool {
        let mut waiting = self.waiting.lock();
        let end = std::time::Instant::now() + pause;
        while !waiting.closing && !self.wake.wait_until(&mut waiting, end).timed_out() {}
        !waiting.closing
    }

    /// Says that nothing can be written, to everybody who waits and to all who come.
    pub(super) fn down(&self, why: &Arc<str>) {
        let mut waiting = self.waiting.lock();
        waiting.down = Some(Arc::clone(why));
        for job in &mut waiting.jobs {
            self.refuse(job.acker.take(), why);
        }
    }

    /// Says that writing works.
    pub(super) fn up(&self) {
        self.waiting.lock().down = None;
    }

    pub(super) fn close(&self) {
        self.waiting.lock().closing = true;
        self.wake.notify_all();
    }

    pub(super) fn refuse(&self, acker: Option<Acker>, why: &Arc<str>) {
        if let Some(acker) = acker {
            self.counters.refused.add(1);
            // Whoever asked may have stopped listening.
            let _ = acker.send(Ack::NotYet(Arc::clone(why)));
        }
    }

    /// How many records wait, and why nothing is written, if so.
    pub(super) fn state(&self) -> (u64, Option<Arc<str>>) {
        let waiting = self.waiting.lock();
        ((waiting.records + waiting.late.len()) as u64, waiting.down.clone())
    }
}

impl Waiting {
    fn is_idle(&self) -> bool {
        self.jobs.is_empty() && self.late.is_empty() && !self.closing
    }

    /// A later step must not overtake an earlier one of the same key.
    fn is_late(&self, records: &[Record]) -> bool {
        !self.late.is_empty()
            && records.iter().filter_map(Record::key).any(|key| self.late.contains_key(&key))
    }

    fn postpone(&mut self, records: Vec<Record>, counters: &Counters) {
        for record in records {
            match record.key() {
                Some(key) if self.late.len() < LATE_MAX || self.late.contains_key(&key) => {
                    counters.postponed.add(1);
                    self.late.insert(key, record);
                }
                _ => counters.lost.add(1),
            }
        }
    }

    fn next(&mut self) -> Next {
        if let Some(errand) = self.jobs.front_mut().and_then(|job| job.errand.take()) {
            self.jobs.pop_front();
            return Next::Run(errand);
        }
        let mut batch = Vec::new();
        let mut size = 0;
        while let Some(job) = self.jobs.front() {
            let fits = batch.is_empty() || size + job.records.len() <= BATCH_MAX;
            if job.errand.is_some() || !fits {
                break;
            }
            size += job.records.len();
            batch.extend(self.jobs.pop_front());
        }
        self.records -= size;
        if batch.is_empty() {
            batch = self.take_late();
        }
        match batch.is_empty() {
            false => Next::Write(batch),
            true if self.closing => Next::Closed,
            true => Next::Idle,
        }
    }

    fn take_late(&mut self) -> Vec<Job> {
        let keys: Vec<Key> = self.late.keys().take(BATCH_MAX).copied().collect();
        let records = keys.iter().filter_map(|key| self.late.remove(key)).collect::<Vec<_>>();
        let job = Job { records, acker: None, errand: None };
        if job.records.is_empty() { Vec::new() } else { vec![job] }
    }
}

#[cfg(test)]
mod tests;

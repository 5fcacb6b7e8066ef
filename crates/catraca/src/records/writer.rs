//! The writer thread: commits queued records in transactions and acknowledges them.
//!
//! Records that arrive during one transaction form the next one, so that many actions share one
//! sync of the disk and a single action waits for no timer. A failed batch is written again as a
//! whole, through the same handle: after a failed sync the operating system may have marked the
//! pages clean, and a second sync could succeed without writing anything (see ADR 0009). Nothing is
//! acknowledged before its commit has returned.

use std::sync::Arc;
use std::time::{Duration, Instant};

use catraca_core::time::Time;

use super::ack::Ack;
use super::database::Database;
use super::error::DatabaseError;
use super::key_counts::KeyCounts;
use super::minute_counts::MinuteCounts;
use super::queue::{RecordQueue, WriteJob, WriterWork};
use super::record::{Record, RecordKind};

/// How often the minute counts are written.
const COUNTS_EVERY: Duration = Duration::from_secs(1);
/// The pause between attempts while the database is unavailable; it doubles up to the last.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LAST_PAUSE: Duration = Duration::from_secs(1);

pub(super) struct WriterThread {
    pub(super) database: Box<dyn Database>,
    pub(super) queue: Arc<RecordQueue>,
    pub(super) minute_counts: Arc<MinuteCounts>,
    pub(super) key_counts: Arc<KeyCounts>,
}

impl WriterThread {
    /// Runs until the queue is closed. If the thread panics, callers that wait are answered.
    pub(super) fn start(self) -> u64 {
        let _panic_guard = PanicGuard(Arc::clone(&self.queue));
        self.run()
    }

    /// Runs until the queue is closed and empty. Returns how many records could not be written.
    fn run(mut self) -> u64 {
        let mut counts_written = Instant::now();
        let mut unwritten = 0;
        loop {
            match self.queue.next(COUNTS_EVERY) {
                WriterWork::Write(jobs) => unwritten += self.write(jobs),
                WriterWork::Run(task) => task(&mut *self.database),
                WriterWork::Idle => self.maintain(),
                WriterWork::Closed => break,
            }
            if counts_written.elapsed() >= COUNTS_EVERY {
                counts_written = Instant::now();
                unwritten += self.write_counts();
            }
        }
        unwritten += self.write_counts();
        self.maintain();
        unwritten
    }

    fn write(&mut self, mut jobs: Vec<WriteJob>) -> u64 {
        let mut pause = FIRST_PAUSE;
        loop {
            match self.attempt(&jobs) {
                Ok(()) => {
                    self.acknowledge(jobs);
                    return 0;
                }
                // One of the jobs is invalid: write each alone, to find and reject only that one.
                Err(DatabaseError::Bad(_)) if jobs.len() > 1 => {
                    return jobs.into_iter().map(|job| self.write(vec![job])).sum();
                }
                Err(DatabaseError::Bad(why)) => return self.reject(jobs, why.into()),
                Err(DatabaseError::Down(why)) => self.refuse_waiting(&mut jobs, why.into()),
            }
            if !self.queue.pause(pause) {
                return self.last_attempt(&jobs);
            }
            pause = (pause * 2).min(LAST_PAUSE);
        }
    }

    fn attempt(&mut self, jobs: &[WriteJob]) -> Result<(), DatabaseError> {
        let records: Vec<&Record> = jobs.iter().flat_map(|job| &job.records).collect();
        self.database.write(&records)?;
        self.queue.counters.commits.add(1);
        self.queue.counters.written.add(records.len() as u64);
        Ok(())
    }

    fn acknowledge(&mut self, jobs: Vec<WriteJob>) {
        self.queue.mark_available();
        // After the commit: a file that was deleted before it is noticed.
        let fault = self.check_file();
        for ack_sender in jobs.into_iter().filter_map(|job| job.ack_sender) {
            match &fault {
                Some(why) => self.queue.refuse(Some(ack_sender), why),
                // The caller may have dropped its receipt.
                None => drop(ack_sender.send(Ack::Durable)),
            }
        }
    }

    /// Notices that the file was deleted, moved or replaced, and that the same file is back. Writes
    /// go on in the file that is open: a moved file then has all of them.
    fn check_file(&mut self) -> Option<Arc<str>> {
        let fault = self.database.file_fault().map(Arc::from);
        self.queue.set_file_fault(fault.clone());
        fault
    }

    fn reject(&self, jobs: Vec<WriteJob>, why: Arc<str>) -> u64 {
        let count = jobs.iter().map(|job| job.records.len() as u64).sum();
        self.queue.note_rejection(count, &why);
        jobs.into_iter().for_each(|job| self.queue.refuse(job.ack_sender, &why));
        count
    }

    /// Answers the waiting callers; their records stay in `jobs` and are tried again.
    fn refuse_waiting(&self, jobs: &mut [WriteJob], why: Arc<str>) {
        self.queue.counters.failures.add(1);
        self.queue.mark_unavailable(&why);
        jobs.iter_mut().for_each(|job| self.queue.refuse(job.ack_sender.take(), &why));
    }

    /// The queue is closing: records that fail now are lost.
    fn last_attempt(&mut self, jobs: &[WriteJob]) -> u64 {
        match self.attempt(jobs) {
            Ok(()) => 0,
            Err(_) => jobs.iter().map(|job| job.records.len() as u64).sum(),
        }
    }

    fn write_counts(&mut self) -> u64 {
        let records = count_records(&self.minute_counts, &self.key_counts);
        match records.is_empty() {
            true => 0,
            false => self.write(vec![WriteJob { records, ack_sender: None, task: None }]),
        }
    }

    fn maintain(&mut self) {
        self.check_file();
        let fault = self.database.maintain().err();
        self.queue.set_maintenance_fault(fault.map(|error| error.to_string().into()));
    }
}

/// Takes the counts that are not written yet, as records; none if there are no counts.
pub(super) fn count_records(minutes: &MinuteCounts, keys: &KeyCounts) -> Vec<Record> {
    let minutes = Some(minutes.take()).filter(|counts| !counts.is_empty());
    let keys = Some(keys.take()).filter(|counts| !counts.is_empty());
    let kinds = minutes.map(RecordKind::Count).into_iter().chain(keys.map(RecordKind::CountKeys));
    // The time of the record is unused: each count has its own minute.
    kinds.map(|kind| Record::automatic(Time::ZERO, kind)).collect()
}

/// Marks the database as unavailable if the writer thread panics.
struct PanicGuard(Arc<RecordQueue>);

impl Drop for PanicGuard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let why = "the writer thread of the records panicked: restart the process";
            self.0.mark_unavailable(&why.into());
        }
    }
}

#[cfg(test)]
mod tests;

//! The writer: one thread that turns what waits into transactions, and says what is on disk.
//!
//! Whatever came while one transaction was on its way is the next one, so that many acts share one
//! wait for the disk and a lone act waits for nobody. A batch that failed is written whole again,
//! through the same handle: asking the disk a second time about the first write could be answered
//! with a yes that means nothing. Must not acknowledge before the commit has returned.

use std::sync::Arc;
use std::time::{Duration, Instant};

use catraca_core::time::Time;

use super::error::WriteError;
use super::port::Writes;
use super::queue::{Job, Next, Queue};
use super::receipt::Ack;
use super::record::{Deed, Record};
use super::tally::Tally;

/// How often the tally is written.
const TALLY_EVERY: Duration = Duration::from_secs(1);
/// Pauses between attempts while nothing can be written.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LAST_PAUSE: Duration = Duration::from_secs(1);

pub(super) struct Writer {
    pub(super) database: Box<dyn Writes>,
    pub(super) queue: Arc<Queue>,
    pub(super) tally: Arc<Tally>,
}

impl Writer {
    /// Works until the queue is closed; a writer that falls must not leave people waiting.
    pub(super) fn start(self) -> u64 {
        let _fallen = Fallen(Arc::clone(&self.queue));
        self.run()
    }

    /// Works until the queue is closed and empty; says how many records could not be written.
    fn run(mut self) -> u64 {
        let mut counted = Instant::now();
        let mut unwritten = 0;
        loop {
            match self.queue.next(TALLY_EVERY) {
                Next::Write(jobs) => unwritten += self.write(jobs),
                Next::Run(errand) => errand(&mut *self.database),
                Next::Idle => self.tend(),
                Next::Closed => break,
            }
            if counted.elapsed() >= TALLY_EVERY {
                counted = Instant::now();
                unwritten += self.write_tally();
            }
        }
        unwritten += self.write_tally();
        self.tend();
        unwritten
    }

    fn write(&mut self, mut jobs: Vec<Job>) -> u64 {
        let mut pause = FIRST_PAUSE;
        loop {
            match self.attempt(&jobs) {
                Ok(()) => {
                    self.acknowledge(jobs);
                    return 0;
                }
                Err(WriteError::Bad(_)) if jobs.len() > 1 => {
                    return jobs.into_iter().map(|job| self.write(vec![job])).sum();
                }
                Err(WriteError::Bad(why)) => return self.reject(jobs, why.into()),
                Err(WriteError::Down(why)) => self.put_off(&mut jobs, why.into()),
            }
            if !self.queue.rest(pause) {
                return self.last_attempt(&jobs);
            }
            pause = (pause * 2).min(LAST_PAUSE);
        }
    }

    fn attempt(&mut self, jobs: &[Job]) -> Result<(), WriteError> {
        let records: Vec<&Record> = jobs.iter().flat_map(|job| &job.records).collect();
        self.database.write(&records)?;
        self.queue.counters.commits.add(1);
        self.queue.counters.written.add(records.len() as u64);
        Ok(())
    }

    fn acknowledge(&self, jobs: Vec<Job>) {
        self.queue.up();
        for acker in jobs.into_iter().filter_map(|job| job.acker) {
            // Whoever asked may have stopped listening.
            let _ = acker.send(Ack::Durable);
        }
    }

    fn reject(&self, jobs: Vec<Job>, why: Arc<str>) -> u64 {
        let count = jobs.iter().map(|job| job.records.len() as u64).sum();
        self.queue.counters.rejected.add(count);
        jobs.into_iter().for_each(|job| self.queue.refuse(job.acker, &why));
        count
    }

    fn put_off(&self, jobs: &mut [Job], why: Arc<str>) {
        self.queue.counters.failures.add(1);
        self.queue.down(&why);
        jobs.iter_mut().for_each(|job| self.queue.refuse(job.acker.take(), &why));
    }

    /// The process ends: what cannot be written now will not be.
    fn last_attempt(&mut self, jobs: &[Job]) -> u64 {
        match self.attempt(jobs) {
            Ok(()) => 0,
            Err(_) => jobs.iter().map(|job| job.records.len() as u64).sum(),
        }
    }

    fn write_tally(&mut self) -> u64 {
        let counts = self.tally.take();
        if counts.is_empty() {
            return 0;
        }
        // Each count carries its own minute.
        let records = vec![Record::automatic(Time::ZERO, Deed::Count(counts))];
        self.write(vec![Job { records, acker: None, errand: None }])
    }

    fn tend(&mut self) {
        if self.database.tend().is_err() {
            self.queue.counters.untended.add(1);
        }
    }
}

/// Tells everybody, should the thread ever panic.
struct Fallen(Arc<Queue>);

impl Drop for Fallen {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.down(&"the thread that writes has failed: start again".into());
        }
    }
}

#[cfg(test)]
mod tests;

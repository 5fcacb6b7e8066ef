//! Calls that wait for a connection. Whatever came while all of them were busy goes together.
//!
//! Must not grow beyond its bound, nor hand out a call that nobody waits for any more.

use std::collections::VecDeque;

use catraca_core::batch::{Batch, Reply};
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;
use tokio_postgres::Row;

use super::locks::LockAsk;
use crate::store::{StoreError, When};

/// Batches of one transaction.
const ASKS_MAX: usize = 64;
/// Keys after which a transaction takes no further batch.
const KEYS_MAX: usize = 512;

/// Where the answer goes.
pub(super) type Reached<T> = oneshot::Sender<Result<T, StoreError>>;

/// A batch to apply.
#[derive(Debug)]
pub(super) struct Ask {
    pub batch: Batch,
    pub when: When,
    pub until: Instant,
    pub reply: Reached<Reply>,
    /// Whether a connection was lost before anything was written.
    pub again: bool,
}

/// A question of one statement, with one text or none.
#[derive(Debug)]
pub(super) struct Errand {
    pub sql: &'static str,
    pub text: Option<String>,
    pub until: Instant,
    pub reply: Reached<Row>,
}

/// What waits.
#[derive(Debug)]
pub(super) enum Job {
    Ask(Ask),
    Errand(Errand),
    Lock(Box<LockAsk>),
}

/// What one transaction does.
#[derive(Debug)]
pub(super) enum Work {
    Group(Vec<Ask>),
    Errand(Errand),
    Lock(Box<LockAsk>),
}

/// Calls in the order of their arrival.
#[derive(Debug)]
pub(super) struct Queue {
    jobs: Mutex<VecDeque<Job>>,
    bell: Notify,
    most: usize,
}

impl Queue {
    pub(super) fn new(most: usize) -> Self {
        Self { jobs: Mutex::default(), bell: Notify::new(), most }
    }

    /// Adds a call; `false` if too many wait.
    pub(super) fn push(&self, job: Job) -> bool {
        let mut jobs = self.jobs.lock();
        if jobs.len() >= self.most {
            return false;
        }
        jobs.push_back(job);
        drop(jobs);
        self.bell.notify_one();
        true
    }

    /// Puts calls of which nothing was done back to the front.
    pub(super) fn put_back(&self, asks: Vec<Ask>) {
        let mut jobs = self.jobs.lock();
        asks.into_iter().rev().for_each(|ask| jobs.push_front(Job::Ask(ask)));
        drop(jobs);
        self.bell.notify_one();
    }

    /// Waits for the next work. Nothing is lost if it is not waited for to the end.
    pub(super) async fn next(&self) -> Work {
        loop {
            if let Some(work) = self.take() {
                return work;
            }
            self.bell.notified().await;
        }
    }

    /// Everything that waits.
    pub(super) fn drain(&self) -> Vec<Job> {
        self.jobs.lock().drain(..).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.jobs.lock().len()
    }

    fn take(&self) -> Option<Work> {
        let mut jobs = self.jobs.lock();
        let now = Instant::now();
        while jobs.front().is_some_and(|job| !job.is_awaited(now)) {
            jobs.pop_front();
        }
        let work = match jobs.pop_front()? {
            Job::Errand(errand) => Work::Errand(errand),
            Job::Lock(ask) => Work::Lock(ask),
            Job::Ask(ask) => Work::Group(group(ask, &mut jobs, now)),
        };
        if !jobs.is_empty() {
            self.bell.notify_one();
        }
        Some(work)
    }
}

/// The first batch, and those behind it as far as there is room.
fn group(first: Ask, jobs: &mut VecDeque<Job>, now: Instant) -> Vec<Ask> {
    let mut keys = first.keys();
    let mut asks = vec![first];
    while asks.len() < ASKS_MAX && keys < KEYS_MAX {
        match jobs.pop_front() {
            Some(Job::Ask(ask)) if ask.is_awaited(now) => {
                keys += ask.keys();
                asks.push(ask);
            }
            Some(Job::Ask(_)) => {}
            Some(errand) => {
                jobs.push_front(errand);
                break;
            }
            None => break,
        }
    }
    asks
}

impl Job {
    fn is_awaited(&self, now: Instant) -> bool {
        match self {
            Self::Ask(ask) => ask.is_awaited(now),
            Self::Errand(errand) => now < errand.until && !errand.reply.is_closed(),
            Self::Lock(ask) => now < ask.until && !ask.reply.is_closed(),
        }
    }

    /// Answers that nothing was done.
    pub(super) fn refuse(self, why: &str) {
        let error = StoreError::unavailable(why);
        match self {
            Self::Ask(ask) => drop(ask.reply.send(Err(error))),
            Self::Errand(errand) => drop(errand.reply.send(Err(error))),
            Self::Lock(ask) => drop(ask.reply.send(Err(error))),
        }
    }
}

impl Ask {
    fn is_awaited(&self, now: Instant) -> bool {
        now < self.until && !self.reply.is_closed()
    }

    fn keys(&self) -> usize {
        let mut keys = 0;
        self.batch.each_key(|_| keys += 1);
        keys
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn ask(until: Instant) -> (Job, oneshot::Receiver<Result<Reply, StoreError>>) {
        let (reply, answer) = oneshot::channel();
        let batch = Batch::Unblock(vec![catraca_core::digest::Key::from_bytes([1; 16])]);
        (Job::Ask(Ask { batch, when: When::Store, until, reply, again: false }), answer)
    }

    fn errand(until: Instant) -> (Job, oneshot::Receiver<Result<Row, StoreError>>) {
        let (reply, answer) = oneshot::channel();
        (Job::Errand(Errand { sql: "SELECT 1", text: None, until, reply }), answer)
    }

    fn size(work: Option<Work>) -> usize {
        match work {
            Some(Work::Group(asks)) => asks.len(),
            Some(Work::Errand(_) | Work::Lock(_)) => 1_000,
            None => 0,
        }
    }

    #[test]
    fn what_waits_goes_together_in_order_and_up_to_a_bound() {
        let (queue, later) = (Queue::new(1_000), Instant::now() + Duration::from_secs(60));
        let answers: Vec<_> = (0..ASKS_MAX + 6)
            .map(|_| {
                let (job, answer) = ask(later);
                assert!(queue.push(job));
                answer
            })
            .collect();
        let (job, errand) = errand(later);
        assert!(queue.push(job));
        assert_eq!([(); 4].map(|()| size(queue.take())), [ASKS_MAX, 6, 1_000, 0]);
        drop((answers, errand));
    }

    #[test]
    fn who_is_gone_or_late_is_passed_over_and_a_full_queue_refuses() {
        let now = Instant::now();
        let queue = Queue::new(3);
        let (late, waits) = ask(now);
        let (gone, _) = ask(now + Duration::from_secs(60));
        let (good, answer) = ask(now + Duration::from_secs(60));
        assert!(queue.push(late) && queue.push(gone) && queue.push(good));
        assert!(!queue.push(ask(now).0));
        assert_eq!(size(queue.take()), 1);
        assert_eq!(size(queue.take()), 0);
        drop((waits, answer));
    }
}

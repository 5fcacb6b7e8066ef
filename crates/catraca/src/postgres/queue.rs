//! The queue of calls that wait for a connection. Batches that have queued up share a transaction.
//!
//! The queue is bounded, and calls whose caller has gone or whose deadline has passed are dropped.

use std::collections::VecDeque;

use catraca_core::batch::{Batch, Reply};
use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};
use tokio::time::Instant;
use tokio_postgres::Row;

use super::lock_store::QueuedLockOp;
use crate::store::{StoreError, When};

/// The most batches of one transaction.
const BATCHES_MAX: usize = 64;
/// A transaction with this many keys takes no further batch.
const KEYS_MAX: usize = 512;

/// Sends the reply to the caller that waits for it.
pub(super) type CallReplySender<T> = oneshot::Sender<Result<T, StoreError>>;

/// A batch to apply.
#[derive(Debug)]
pub(super) struct QueuedBatch {
    pub batch: Batch,
    pub when: When,
    pub until: Instant,
    pub reply: CallReplySender<Reply>,
    /// Whether it was queued again because a connection was lost before anything was written.
    pub is_retry: bool,
}

/// A single statement, with one text as parameter or none.
#[derive(Debug)]
pub(super) struct QueuedQuery {
    pub sql: &'static str,
    pub text: Option<String>,
    pub until: Instant,
    pub reply: CallReplySender<Row>,
}

/// A call in the queue.
#[derive(Debug)]
pub(super) enum QueuedCall {
    Batch(QueuedBatch),
    Query(QueuedQuery),
    Lock(Box<QueuedLockOp>),
}

/// The content of one transaction.
#[derive(Debug)]
pub(super) enum TransactionWork {
    Batches(Vec<QueuedBatch>),
    Query(QueuedQuery),
    Lock(Box<QueuedLockOp>),
}

/// Calls in the order of their arrival, at most `max`.
#[derive(Debug)]
pub(super) struct CallQueue {
    waiting: Mutex<VecDeque<QueuedCall>>,
    /// Wakes a worker; every worker that leaves calls behind wakes the next one.
    added: Notify,
    max: usize,
}

impl CallQueue {
    pub(super) fn new(max: usize) -> Self {
        Self { waiting: Mutex::default(), added: Notify::new(), max }
    }

    /// Adds a call; `false` if the queue is full.
    pub(super) fn push(&self, call: QueuedCall) -> bool {
        let mut waiting = self.waiting.lock();
        if waiting.len() >= self.max {
            return false;
        }
        waiting.push_back(call);
        drop(waiting);
        self.added.notify_one();
        true
    }

    /// Puts batches of which nothing was applied back to the front.
    pub(super) fn put_back(&self, calls: Vec<QueuedBatch>) {
        let mut waiting = self.waiting.lock();
        calls.into_iter().rev().for_each(|call| waiting.push_front(QueuedCall::Batch(call)));
        drop(waiting);
        self.added.notify_one();
    }

    /// Waits for the next work. Cancel-safe: nothing is taken unless it is returned.
    pub(super) async fn next(&self) -> TransactionWork {
        loop {
            if let Some(work) = self.take() {
                return work;
            }
            self.added.notified().await;
        }
    }

    /// Takes all calls out of the queue.
    pub(super) fn drain(&self) -> Vec<QueuedCall> {
        self.waiting.lock().drain(..).collect()
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.lock().len()
    }

    fn take(&self) -> Option<TransactionWork> {
        let mut waiting = self.waiting.lock();
        let now = Instant::now();
        while waiting.front().is_some_and(|call| !call.is_awaited(now)) {
            waiting.pop_front();
        }
        let work = match waiting.pop_front()? {
            QueuedCall::Query(query) => TransactionWork::Query(query),
            QueuedCall::Lock(call) => TransactionWork::Lock(call),
            QueuedCall::Batch(call) => {
                TransactionWork::Batches(take_batches(call, &mut waiting, now))
            }
        };
        if !waiting.is_empty() {
            self.added.notify_one();
        }
        Some(work)
    }
}

/// The first batch and the batches behind it, up to the limits or to a call of another kind.
fn take_batches(
    first: QueuedBatch,
    waiting: &mut VecDeque<QueuedCall>,
    now: Instant,
) -> Vec<QueuedBatch> {
    let mut keys = first.key_count();
    let mut calls = vec![first];
    while calls.len() < BATCHES_MAX && keys < KEYS_MAX {
        match waiting.pop_front() {
            Some(QueuedCall::Batch(call)) if call.is_awaited(now) => {
                keys += call.key_count();
                calls.push(call);
            }
            Some(QueuedCall::Batch(_)) => {}
            Some(other) => {
                waiting.push_front(other);
                break;
            }
            None => break,
        }
    }
    calls
}

impl QueuedCall {
    fn is_awaited(&self, now: Instant) -> bool {
        match self {
            Self::Batch(call) => call.is_awaited(now),
            Self::Query(query) => now < query.until && !query.reply.is_closed(),
            Self::Lock(call) => now < call.until && !call.reply.is_closed(),
        }
    }

    /// Replies that the store is unavailable; nothing was applied.
    pub(super) fn refuse(self, why: &str) {
        let error = StoreError::unavailable(why);
        match self {
            Self::Batch(call) => drop(call.reply.send(Err(error))),
            Self::Query(query) => drop(query.reply.send(Err(error))),
            Self::Lock(call) => drop(call.reply.send(Err(error))),
        }
    }
}

impl QueuedBatch {
    fn is_awaited(&self, now: Instant) -> bool {
        now < self.until && !self.reply.is_closed()
    }

    fn key_count(&self) -> usize {
        let mut count = 0;
        self.batch.each_key(|_| count += 1);
        count
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn queued_batch(until: Instant) -> (QueuedCall, oneshot::Receiver<Result<Reply, StoreError>>) {
        let (reply, answer) = oneshot::channel();
        let batch = Batch::Unblock(vec![catraca_core::digest::Key::from_bytes([1; 16]).into()]);
        (
            QueuedCall::Batch(QueuedBatch {
                batch,
                when: When::Store,
                until,
                reply,
                is_retry: false,
            }),
            answer,
        )
    }

    fn queued_query(until: Instant) -> (QueuedCall, oneshot::Receiver<Result<Row, StoreError>>) {
        let (reply, answer) = oneshot::channel();
        (QueuedCall::Query(QueuedQuery { sql: "SELECT 1", text: None, until, reply }), answer)
    }

    fn size(work: Option<TransactionWork>) -> usize {
        match work {
            Some(TransactionWork::Batches(calls)) => calls.len(),
            Some(TransactionWork::Query(_) | TransactionWork::Lock(_)) => 1_000,
            None => 0,
        }
    }

    #[test]
    fn queued_batches_are_taken_together_in_order_and_up_to_a_limit() {
        let queue = CallQueue::new(1_000);
        let later = Instant::now() + Duration::from_secs(60);
        let answers: Vec<_> = (0..BATCHES_MAX + 6)
            .map(|_| {
                let (call, answer) = queued_batch(later);
                assert!(queue.push(call));
                answer
            })
            .collect();
        let (call, query_answer) = queued_query(later);
        assert!(queue.push(call));
        assert_eq!([(); 4].map(|()| size(queue.take())), [BATCHES_MAX, 6, 1_000, 0]);
        drop((answers, query_answer));
    }

    #[test]
    fn abandoned_and_late_calls_are_dropped_and_a_full_queue_refuses() {
        let now = Instant::now();
        let queue = CallQueue::new(3);
        let (late, waits) = queued_batch(now);
        let (gone, _) = queued_batch(now + Duration::from_secs(60));
        let (good, answer) = queued_batch(now + Duration::from_secs(60));
        assert!(queue.push(late) && queue.push(gone) && queue.push(good));
        assert!(!queue.push(queued_batch(now).0));
        assert_eq!(size(queue.take()), 1);
        assert_eq!(size(queue.take()), 0);
        drop((waits, answer));
    }
}

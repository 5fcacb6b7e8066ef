//! The wait queues of this node, one per name, in order of arrival.
//!
//! Only the first of a queue asks the store. It is woken when the name may be free, and the next
//! one when it leaves. The mutex must not be held across an await.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use catraca_core::lock::NameDigest;
use catraca_core::lock::reply::Conflict;
use catraca_core::time::Time;
use parking_lot::Mutex;
use tokio::sync::{Notify, broadcast};

use crate::locks::lock_error::LockError;
use crate::locks::store::FreedNotice;
use crate::locks::wait::WAITERS_MAX;

/// A conflict reported by the store, and its time by the store's clock.
pub(super) type SeenConflict = (Box<Conflict>, Time);

#[derive(Default)]
pub(super) struct WaitQueues {
    by_name: Mutex<BTreeMap<NameDigest, NameQueue>>,
    waiting: AtomicUsize,
    refusing: AtomicBool,
}

struct NameQueue {
    /// The tenant of the name.
    tenant: NameDigest,
    waiters: VecDeque<Arc<Notify>>,
    /// The latest conflict that the store reported.
    conflict: Option<SeenConflict>,
}

/// A position in a queue; dropping it leaves the queue.
pub(super) struct QueuePosition {
    queues: Arc<WaitQueues>,
    name: NameDigest,
    wake: Arc<Notify>,
}

impl WaitQueues {
    /// Joins the end of the queue of a name.
    pub fn join(
        self: &Arc<Self>,
        name: NameDigest,
        tenant: NameDigest,
    ) -> Result<QueuePosition, LockError> {
        let wake = Arc::new(Notify::new());
        let mut queues = self.by_name.lock();
        let empty = || NameQueue { tenant, waiters: VecDeque::new(), conflict: None };
        let queue = queues.entry(name).or_insert_with(empty);
        if queue.waiters.len() >= WAITERS_MAX {
            return Err(LockError::TooManyWaiters);
        }
        queue.waiters.push_back(Arc::clone(&wake));
        self.waiting.fetch_add(1, Ordering::Relaxed);
        Ok(QueuePosition { queues: Arc::clone(self), name, wake })
    }

    /// Closes the queues and wakes all waiters, which then fail.
    pub fn refuse_waiters(&self) {
        self.refusing.store(true, Ordering::SeqCst);
        let queues = self.by_name.lock();
        queues.values().flat_map(|queue| &queue.waiters).for_each(|waiter| waiter.notify_one());
    }

    /// Fails if waiting is no longer allowed.
    pub fn check_open(&self) -> Result<(), LockError> {
        match self.refusing.load(Ordering::SeqCst) {
            true => Err(LockError::Stopping),
            false => Ok(()),
        }
    }

    /// Waiters for one name.
    pub fn len(&self, name: NameDigest) -> usize {
        self.by_name.lock().get(&name).map_or(0, |queue| queue.waiters.len())
    }

    /// Waiters for all names.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// Waiters for the names of one tenant.
    pub fn waiting_of(&self, tenant: NameDigest) -> usize {
        let queues = self.by_name.lock();
        let theirs = queues.values().filter(|queue| queue.tenant == tenant);
        theirs.map(|queue| queue.waiters.len()).sum()
    }

    /// Wakes the first waiter of each name that becomes free, until the store's channel closes.
    pub async fn forward_freed(self: Arc<Self>, mut freed: broadcast::Receiver<FreedNotice>) {
        loop {
            match freed.recv().await {
                Ok(FreedNotice::Name(name)) => {
                    if let Some(queue) = self.by_name.lock().get(&name) {
                        queue.wake();
                    }
                }
                Ok(FreedNotice::Any) | Err(broadcast::error::RecvError::Lagged(_)) => {
                    self.by_name.lock().values().for_each(NameQueue::wake);
                }
                Err(broadcast::error::RecvError::Closed) => return,
            }
        }
    }
}

impl NameQueue {
    fn wake(&self) {
        if let Some(first) = self.waiters.front() {
            first.notify_one();
        }
    }
}

impl QueuePosition {
    /// The digest of the name.
    pub fn name(&self) -> NameDigest {
        self.name
    }

    pub fn is_first(&self) -> bool {
        let queues = self.queues.by_name.lock();
        let first = queues.get(&self.name).and_then(|queue| queue.waiters.front());
        first.is_some_and(|first| Arc::ptr_eq(first, &self.wake))
    }

    /// Waits for a wake-up; an earlier one is not lost.
    pub async fn wake_up(&self) {
        self.wake.notified().await;
    }

    /// Stores the conflict for all waiters of the queue.
    pub fn store_conflict(&self, conflict: &SeenConflict) {
        if let Some(queue) = self.queues.by_name.lock().get_mut(&self.name) {
            queue.conflict = Some(conflict.clone());
        }
    }

    /// The conflict that the first waiter of the queue met last.
    pub fn last_conflict(&self) -> Option<SeenConflict> {
        self.queues.by_name.lock().get(&self.name).and_then(|queue| queue.conflict.clone())
    }
}

impl Drop for QueuePosition {
    fn drop(&mut self) {
        let mut queues = self.queues.by_name.lock();
        let Some(queue) = queues.get_mut(&self.name) else { return };
        let was_first = queue.waiters.front().is_some_and(|wake| Arc::ptr_eq(wake, &self.wake));
        queue.waiters.retain(|wake| !Arc::ptr_eq(wake, &self.wake));
        self.queues.waiting.fetch_sub(1, Ordering::Relaxed);
        if queue.waiters.is_empty() {
            queues.remove(&self.name);
        } else if was_first {
            queue.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TENANT: NameDigest = NameDigest([7; 16]);

    /// covers: B-65
    #[tokio::test]
    async fn waiters_keep_their_order_and_no_wake_up_is_lost() {
        let queues = Arc::new(WaitQueues::default());
        let name = NameDigest([1; 16]);
        let one = queues.join(name, TENANT).unwrap();
        let two = queues.join(name, TENANT).unwrap();
        let three = queues.join(name, TENANT).unwrap();
        assert!(one.is_first() && !two.is_first() && !three.is_first());
        assert_eq!((queues.len(name), queues.waiting()), (3, 3));
        drop(two);
        drop(one);
        assert!(three.is_first());
        // Woken before it waited: the wake-up is stored.
        three.wake_up().await;
        let (sender, freed) = broadcast::channel(4);
        let forwarding = tokio::spawn(Arc::clone(&queues).forward_freed(freed));
        sender.send(FreedNotice::Name(name)).unwrap();
        three.wake_up().await;
        sender.send(FreedNotice::Any).unwrap();
        three.wake_up().await;
        drop(sender);
        forwarding.await.unwrap();
        drop(three);
        assert_eq!((queues.len(name), queues.waiting()), (0, 0));
    }

    #[test]
    fn a_queue_is_bounded() {
        let queues = Arc::new(WaitQueues::default());
        let name = NameDigest([1; 16]);
        let all: Vec<QueuePosition> =
            (0..WAITERS_MAX).map(|_| queues.join(name, TENANT).unwrap()).collect();
        assert!(matches!(queues.join(name, TENANT), Err(LockError::TooManyWaiters)));
        assert!(queues.join(NameDigest([2; 16]), TENANT).is_ok());
        drop(all);
        assert_eq!(queues.waiting(), 0);
    }

    #[test]
    fn waiters_are_counted_by_tenant() {
        let queues = Arc::new(WaitQueues::default());
        let other = NameDigest([8; 16]);
        let names = [(1, TENANT), (1, TENANT), (2, TENANT), (3, other)];
        let waiters =
            names.map(|(name, tenant)| queues.join(NameDigest([name; 16]), tenant).unwrap());
        assert_eq!([TENANT, other].map(|tenant| queues.waiting_of(tenant)), [3, 1]);
        drop(waiters);
        assert_eq!(queues.waiting_of(TENANT), 0);
    }
}

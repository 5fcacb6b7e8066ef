//! The queues of callers that wait for a name in this process, one per name, in order of arrival.
//!
//! Only the first of a queue asks the store. It is woken when the name may be free, and the next
//! one when it leaves. A caller that does not wait lets the first ask for it (`next_conflict`). The
//! mutex must not be held across an await.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use catraca_core::lock::reply::Conflict;
use catraca_core::lock::{LockName, NameDigest};
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::lock_error::LockError;
use super::port::FreedNotice;

/// The most callers that wait for one name.
pub const WAITERS_MAX: usize = 1_000;

#[derive(Default)]
pub(super) struct WaitQueues {
    by_name: Mutex<BTreeMap<NameDigest, NameQueue>>,
    /// The number of callers in all queues, to skip the mutex while there are none.
    waiting: AtomicUsize,
    /// The number of attempts that waiters have begun, of all queues.
    attempts: AtomicU64,
    refusing: AtomicBool,
}

struct NameQueue {
    namespace: Box<str>,
    tenant: Option<Box<str>>,
    waiters: VecDeque<Arc<Notify>>,
    /// The conflict that a waiter met last.
    conflict: Option<SeenConflict>,
    /// Notified when `conflict` has changed, and when the queue is empty.
    changed: Arc<Notify>,
}

struct SeenConflict {
    conflict: Box<Conflict>,
    /// The number of the attempt that met it.
    attempt: u64,
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
        namespace: &str,
        name: &LockName,
    ) -> Result<QueuePosition, LockError> {
        let digest = name.digest(namespace);
        let wake = Arc::new(Notify::new());
        let mut queues = self.by_name.lock();
        let queue = queues.entry(digest).or_insert_with(|| NameQueue {
            namespace: namespace.into(),
            tenant: name.tenant.clone(),
            waiters: VecDeque::new(),
            conflict: None,
            changed: Arc::default(),
        });
        if queue.waiters.len() >= WAITERS_MAX {
            return Err(LockError::TooManyWaiters);
        }
        queue.waiters.push_back(Arc::clone(&wake));
        self.waiting.fetch_add(1, Ordering::SeqCst);
        Ok(QueuePosition { queues: Arc::clone(self), name: digest, wake })
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

    /// Waiters for all names.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::SeqCst)
    }

    /// Waiters for one name.
    pub fn len(&self, name: NameDigest) -> usize {
        self.by_name.lock().get(&name).map_or(0, |queue| queue.waiters.len())
    }

    /// Waiters for the names of a namespace, or of one tenant in it.
    pub fn waiting_in(&self, namespace: &str, tenant: Option<&str>) -> usize {
        let is_counted = |queue: &&NameQueue| {
            &*queue.namespace == namespace
                && (tenant.is_none() || queue.tenant.as_deref() == tenant)
        };
        let queues = self.by_name.lock();
        queues.values().filter(is_counted).map(|queue| queue.waiters.len()).sum()
    }

    /// Lets the first waiter for a name ask the store again, and returns the conflict that it
    /// meets; `None` if no caller waits for the name, or none waits any more.
    ///
    /// An earlier conflict would not do: its holder may have left since.
    pub async fn next_conflict(&self, name: NameDigest) -> Option<Box<Conflict>> {
        let attempts_before = self.attempts.load(Ordering::SeqCst);
        loop {
            let changed = {
                let queues = self.by_name.lock();
                let queue = queues.get(&name)?;
                // Without a conflict, no caller has had to wait yet: none is overtaken.
                let seen = queue.conflict.as_ref()?;
                if seen.attempt > attempts_before {
                    return Some(seen.conflict.clone());
                }
                queue.wake();
                // Created under the mutex, so that no change is missed.
                Arc::clone(&queue.changed).notified_owned()
            };
            changed.await;
        }
    }

    /// Wakes the first waiter for each name that may be free.
    pub fn on_freed(&self, notice: FreedNotice) {
        if self.waiting() == 0 {
            return;
        }
        let queues = self.by_name.lock();
        match notice {
            FreedNotice::Name(name) => queues.get(&name).into_iter().for_each(NameQueue::wake),
            FreedNotice::Any => queues.values().for_each(NameQueue::wake),
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

    /// Numbers an attempt, before the store is asked.
    pub fn begin_attempt(&self) -> u64 {
        self.queues.attempts.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Stores the conflict that an attempt met, for all callers that need it.
    pub fn store_conflict(&self, conflict: Box<Conflict>, attempt: u64) {
        if let Some(queue) = self.queues.by_name.lock().get_mut(&self.name) {
            queue.conflict = Some(SeenConflict { conflict, attempt });
            queue.changed.notify_waiters();
        }
    }

    /// The conflict that the first waiter of the queue met last.
    pub fn last_conflict(&self) -> Option<Box<Conflict>> {
        let queues = self.queues.by_name.lock();
        let seen = queues.get(&self.name)?.conflict.as_ref()?;
        Some(seen.conflict.clone())
    }
}

impl Drop for QueuePosition {
    fn drop(&mut self) {
        let mut queues = self.queues.by_name.lock();
        let Some(queue) = queues.get_mut(&self.name) else { return };
        let was_first = queue.waiters.front().is_some_and(|wake| Arc::ptr_eq(wake, &self.wake));
        queue.waiters.retain(|wake| !Arc::ptr_eq(wake, &self.wake));
        self.queues.waiting.fetch_sub(1, Ordering::SeqCst);
        if queue.waiters.is_empty() {
            queue.changed.notify_waiters();
            queues.remove(&self.name);
        } else if was_first {
            // A wake-up that this waiter did not use, because its caller has gone, is passed on.
            queue.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NS: &str = "n";

    fn name(tenant: Option<&str>, key: &str) -> LockName {
        LockName { tenant: tenant.map(Box::from), kind: "k".into(), key: key.into() }
    }

    /// covers: B-65
    #[tokio::test]
    async fn waiters_keep_their_order_and_no_wake_up_is_lost() {
        let queues = Arc::new(WaitQueues::default());
        let name = name(None, "p");
        let digest = name.digest(NS);
        let one = queues.join(NS, &name).unwrap();
        let two = queues.join(NS, &name).unwrap();
        let three = queues.join(NS, &name).unwrap();
        assert!(one.is_first() && !two.is_first() && !three.is_first());
        assert_eq!((queues.len(digest), queues.waiting()), (3, 3));
        drop(two);
        drop(one);
        assert!(three.is_first());
        // Woken before it waited: the wake-up is stored.
        three.wake_up().await;
        queues.on_freed(FreedNotice::Name(digest));
        three.wake_up().await;
        queues.on_freed(FreedNotice::Any);
        three.wake_up().await;
        drop(three);
        assert_eq!((queues.len(digest), queues.waiting()), (0, 0));
    }

    #[test]
    fn a_queue_is_bounded() {
        let queues = Arc::new(WaitQueues::default());
        let join = |key| queues.join(NS, &name(None, key));
        let all: Vec<QueuePosition> = (0..WAITERS_MAX).map(|_| join("p").unwrap()).collect();
        assert!(matches!(join("p"), Err(LockError::TooManyWaiters)));
        assert!(join("q").is_ok());
        drop(all);
        assert_eq!(queues.waiting(), 0);
    }

    #[test]
    fn waiters_are_counted_by_namespace_and_tenant() {
        let queues = Arc::new(WaitQueues::default());
        let names =
            [(NS, "a", "p"), (NS, "a", "p"), (NS, "a", "q"), (NS, "b", "p"), ("m", "a", "p")];
        let waiters = names.map(|(namespace, tenant, key)| {
            queues.join(namespace, &name(Some(tenant), key)).unwrap()
        });
        let counts = [Some("a"), Some("b"), None].map(|tenant| queues.waiting_in(NS, tenant));
        assert_eq!(counts, [3, 1, 4]);
        drop(waiters);
        assert_eq!(queues.waiting_in(NS, None), 0);
    }
}

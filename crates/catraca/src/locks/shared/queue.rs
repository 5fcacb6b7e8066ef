//! This node's queues: whoever waits for a name, in order of arrival.
//!
//! Only the first of a queue asks the store; it is woken when the name may be free, and the next
//! when it leaves. Must not be locked while anything is awaited.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use catraca_core::lock::Mark;
use catraca_core::lock::reply::Conflict;
use catraca_core::time::Time;
use parking_lot::Mutex;
use tokio::sync::{Notify, broadcast};

use crate::locks::error::LockError;
use crate::locks::store::Freed;
use crate::locks::wait::WAITERS_MAX;

/// Whom the store found in the way, and when.
pub(super) type Met = (Box<Conflict>, Time);

#[derive(Default)]
pub(super) struct Queues {
    all: Mutex<BTreeMap<Mark, Queue>>,
    waiting: AtomicUsize,
    dismissed: AtomicBool,
}

struct Queue {
    /// Whose name it is.
    tenant: Mark,
    places: VecDeque<Arc<Notify>>,
    /// Who was in the way when it was last asked.
    met: Option<Met>,
}

/// A place in a queue, until it is dropped.
pub(super) struct Place {
    queues: Arc<Queues>,
    mark: Mark,
    wake: Arc<Notify>,
}

impl Queues {
    /// Joins the end of the queue of a tenant's name.
    pub fn join(self: &Arc<Self>, mark: Mark, tenant: Mark) -> Result<Place, LockError> {
        let wake = Arc::new(Notify::new());
        let mut all = self.all.lock();
        let empty = || Queue { tenant, places: VecDeque::new(), met: None };
        let queue = all.entry(mark).or_insert_with(empty);
        if queue.places.len() >= WAITERS_MAX {
            return Err(LockError::TooManyWaiters);
        }
        queue.places.push_back(Arc::clone(&wake));
        self.waiting.fetch_add(1, Ordering::Relaxed);
        Ok(Place { queues: Arc::clone(self), mark, wake })
    }

    /// Nobody may wait any more; everybody who does is woken.
    pub fn dismiss(&self) {
        self.dismissed.store(true, Ordering::SeqCst);
        let all = self.all.lock();
        all.values().flat_map(|queue| &queue.places).for_each(|place| place.notify_one());
    }

    /// Whether anybody may wait.
    pub fn open(&self) -> Result<(), LockError> {
        match self.dismissed.load(Ordering::SeqCst) {
            true => Err(LockError::Stopping),
            false => Ok(()),
        }
    }

    /// How many wait for a name.
    pub fn len(&self, mark: Mark) -> usize {
        self.all.lock().get(&mark).map_or(0, |queue| queue.places.len())
    }

    /// How many wait at all.
    pub fn waiting(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// How many wait for names of one tenant.
    pub fn waiting_of(&self, tenant: Mark) -> usize {
        let all = self.all.lock();
        let theirs = all.values().filter(|queue| queue.tenant == tenant);
        theirs.map(|queue| queue.places.len()).sum()
    }

    /// Wakes whoever is first for what became free, for as long as the store tells.
    pub async fn hear(self: Arc<Self>, mut freed: broadcast::Receiver<Freed>) {
        loop {
            match freed.recv().await {
                Ok(Freed::Name(mark)) => {
                    if let Some(queue) = self.all.lock().get(&mark) {
                        queue.wake();
                    }
                }
                Ok(Freed::Any) | Err(broadcast::error::RecvError::Lagged(_)) => {
                    self.all.lock().values().for_each(Queue::wake);
                }
                Err(broadcast::error::RecvError::Closed) => return,
            }
        }
    }
}

impl Queue {
    fn wake(&self) {
        if let Some(first) = self.places.front() {
            first.notify_one();
        }
    }
}

impl Place {
    /// Which name it waits for.
    pub fn mark(&self) -> Mark {
        self.mark
    }

    pub fn is_first(&self) -> bool {
        let all = self.queues.all.lock();
        let first = all.get(&self.mark).and_then(|queue| queue.places.front());
        first.is_some_and(|first| Arc::ptr_eq(first, &self.wake))
    }

    /// Comes when there may be something to do; what came before is not lost.
    pub async fn woken(&self) {
        self.wake.notified().await;
    }

    /// Tells those behind who is in the way.
    pub fn met(&self, met: &Met) {
        if let Some(queue) = self.queues.all.lock().get_mut(&self.mark) {
            queue.met = Some(met.clone());
        }
    }

    /// Who was in the way when the first in the queue last asked.
    pub fn last_met(&self) -> Option<Met> {
        self.queues.all.lock().get(&self.mark).and_then(|queue| queue.met.clone())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut all = self.queues.all.lock();
        let Some(queue) = all.get_mut(&self.mark) else { return };
        let was_first = queue.places.front().is_some_and(|one| Arc::ptr_eq(one, &self.wake));
        queue.places.retain(|one| !Arc::ptr_eq(one, &self.wake));
        self.queues.waiting.fetch_sub(1, Ordering::Relaxed);
        if queue.places.is_empty() {
            all.remove(&self.mark);
        } else if was_first {
            queue.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TENANT: Mark = Mark([7; 16]);

    /// covers: B-65
    #[tokio::test]
    async fn places_keep_their_order_and_nobody_sleeps_through_their_turn() {
        let (queues, mark) = (Arc::new(Queues::default()), Mark([1; 16]));
        let one = queues.join(mark, TENANT).unwrap();
        let two = queues.join(mark, TENANT).unwrap();
        let three = queues.join(mark, TENANT).unwrap();
        assert!(one.is_first() && !two.is_first() && !three.is_first());
        assert_eq!((queues.len(mark), queues.waiting()), (3, 3));
        drop(two);
        drop(one);
        assert!(three.is_first());
        // Woken before it listened, and it hears of it all the same.
        three.woken().await;
        let (tell, told) = broadcast::channel(4);
        let hearing = tokio::spawn(Arc::clone(&queues).hear(told));
        tell.send(Freed::Name(mark)).unwrap();
        three.woken().await;
        tell.send(Freed::Any).unwrap();
        three.woken().await;
        drop(tell);
        hearing.await.unwrap();
        drop(three);
        assert_eq!((queues.len(mark), queues.waiting()), (0, 0));
    }

    #[test]
    fn a_queue_is_bounded() {
        let (queues, mark) = (Arc::new(Queues::default()), Mark([1; 16]));
        let all: Vec<Place> =
            (0..WAITERS_MAX).map(|_| queues.join(mark, TENANT).unwrap()).collect();
        assert!(matches!(queues.join(mark, TENANT), Err(LockError::TooManyWaiters)));
        assert!(queues.join(Mark([2; 16]), TENANT).is_ok());
        drop(all);
        assert_eq!(queues.waiting(), 0);
    }

    #[test]
    fn waiters_are_counted_by_tenant() {
        let queues = Arc::new(Queues::default());
        let other = Mark([8; 16]);
        let names = [(1, TENANT), (1, TENANT), (2, TENANT), (3, other)];
        let places = names.map(|(name, tenant)| queues.join(Mark([name; 16]), tenant).unwrap());
        assert_eq!([TENANT, other].map(|tenant| queues.waiting_of(tenant)), [3, 1]);
        drop(places);
        assert_eq!(queues.waiting_of(TENANT), 0);
    }
}

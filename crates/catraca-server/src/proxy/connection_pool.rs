//! The connections to one upstream: at most so many, those that wait for the next request, and the
//! requests that wait for one of them.
//!
//! A request waits only while every connection that is allowed is in use, so an idle connection and
//! a waiting request never exist together. What becomes free goes to the request that has waited
//! longest.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// A pool of connections, each of which holds a permit of the pool.
pub struct ConnectionPool<C> {
    shared: Arc<SharedPool<C>>,
    idle_max: usize,
}

struct SharedPool<C> {
    connections_max: usize,
    state: Mutex<PoolState<C>>,
}

struct PoolState<C> {
    /// The number of permits in use, those of idle connections included.
    open: usize,
    /// The one that was used last is at the end, so that those of a peak become old.
    idle: Vec<IdleConnection<C>>,
    waiting: VecDeque<oneshot::Sender<PoolLease<C>>>,
}

struct IdleConnection<C> {
    connection: C,
    since: Instant,
}

/// What a request gets from the pool.
pub enum PoolLease<C> {
    /// A connection that has served another request. It may have been closed since.
    Idle(C),
    /// The permission to make a connection.
    New(PoolPermit<C>),
}

/// Counts a connection until it is dropped. Then a waiting request may make one.
pub struct PoolPermit<C> {
    /// Absent when it has been handed over.
    shared: Option<Arc<SharedPool<C>>>,
}

/// What a request has to do for a connection.
enum PoolTurn<C> {
    Lease(PoolLease<C>),
    Wait(oneshot::Receiver<PoolLease<C>>),
}

impl<C> ConnectionPool<C> {
    /// A pool without connections.
    pub fn new(connections_max: usize, idle_max: usize) -> Self {
        let state = PoolState { open: 0, idle: Vec::new(), waiting: VecDeque::new() };
        let shared = Arc::new(SharedPool { connections_max, state: Mutex::new(state) });
        Self { shared, idle_max }
    }

    /// An idle connection, or the permission to make one; waits while all are in use.
    pub async fn acquire(&self, keep_alive: Duration) -> Option<PoolLease<C>> {
        let turn = self.take_turn(keep_alive);
        match turn {
            PoolTurn::Lease(lease) => Some(lease),
            // The sender is never dropped without a lease while the pool exists.
            PoolTurn::Wait(waiting) => waiting.await.ok(),
        }
    }

    fn take_turn(&self, keep_alive: Duration) -> PoolTurn<C> {
        self.close_old(keep_alive);
        let mut state = self.shared.state.lock();
        if let Some(idle) = state.idle.pop() {
            return PoolTurn::Lease(PoolLease::Idle(idle.connection));
        }
        if state.open < self.shared.connections_max {
            state.open += 1;
            drop(state);
            let shared = Some(Arc::clone(&self.shared));
            return PoolTurn::Lease(PoolLease::New(PoolPermit { shared }));
        }
        // Those that waited longest are the first to stop waiting.
        while state.waiting.front().is_some_and(oneshot::Sender::is_closed) {
            state.waiting.pop_front();
        }
        let (sender, receiver) = oneshot::channel();
        state.waiting.push_back(sender);
        PoolTurn::Wait(receiver)
    }

    /// Keeps a connection for the next request, which may be waiting for it.
    pub fn give_back(&self, connection: C) {
        let mut lease = PoolLease::Idle(connection);
        loop {
            let mut state = self.shared.state.lock();
            let Some(waiting) = state.waiting.pop_front() else {
                let PoolLease::Idle(connection) = lease else { return };
                if state.idle.len() < self.idle_max {
                    let since = Instant::now();
                    state.idle.push(IdleConnection { connection, since });
                } else {
                    // Its permit needs the lock.
                    drop(state);
                    drop(connection);
                }
                return;
            };
            drop(state);
            match waiting.send(lease) {
                Ok(()) => return,
                // This request has stopped waiting.
                Err(unsent) => lease = unsent,
            }
        }
    }

    /// Closes connections that were not used for some time.
    pub fn close_old(&self, keep_alive: Duration) {
        let mut state = self.shared.state.lock();
        let first_young = state.idle.iter().position(|one| one.since.elapsed() < keep_alive);
        let count = first_young.unwrap_or(state.idle.len());
        let old: Vec<_> = state.idle.drain(..count).collect();
        drop(state);
        // Closed here, without the lock.
        drop(old);
    }
}

impl<C> Drop for PoolPermit<C> {
    fn drop(&mut self) {
        let Some(shared) = self.shared.take() else { return };
        loop {
            let mut state = shared.state.lock();
            let Some(waiting) = state.waiting.pop_front() else {
                state.open -= 1;
                return;
            };
            drop(state);
            let permit = Self { shared: Some(Arc::clone(&shared)) };
            match waiting.send(PoolLease::New(permit)) {
                Ok(()) => return,
                Err(PoolLease::New(mut unsent)) => unsent.shared = None,
                Err(PoolLease::Idle(_)) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::task::Poll;

    use super::*;

    const LONG: Duration = Duration::from_secs(3_600);

    /// A connection with the number of its making.
    struct Numbered(u32, #[expect(dead_code)] PoolPermit<Numbered>);

    fn made(lease: Option<PoolLease<Numbered>>, number: u32) -> Numbered {
        match lease {
            Some(PoolLease::New(permit)) => Numbered(number, permit),
            _ => panic!("an idle connection"),
        }
    }

    fn number(lease: Option<PoolLease<Numbered>>) -> Option<u32> {
        match lease {
            Some(PoolLease::Idle(Numbered(number, _))) => Some(number),
            _ => None,
        }
    }

    #[tokio::test]
    async fn requests_that_wait_get_what_becomes_free_in_their_order() {
        let pool = ConnectionPool::new(1, 1);
        let only = made(pool.acquire(LONG).await, 1);
        let mut first = pin!(pool.acquire(LONG));
        let mut gone = Box::pin(pool.acquire(LONG));
        let mut last = pin!(pool.acquire(LONG));
        poll_fn(|cx| {
            assert!(first.as_mut().poll(cx).is_pending());
            assert!(gone.as_mut().poll(cx).is_pending());
            assert!(last.as_mut().poll(cx).is_pending());
            Poll::Ready(())
        })
        .await;
        drop(gone);
        pool.give_back(only);
        let Some(PoolLease::Idle(only)) = first.await else { panic!("no connection") };
        assert_eq!(only.0, 1);
        // It breaks: the next one makes another connection.
        drop(only);
        let second = made(last.await, 2);
        pool.give_back(second);
        assert_eq!(number(pool.acquire(LONG).await), Some(2));
        made(pool.acquire(LONG).await, 3);
    }

    #[tokio::test]
    async fn old_connections_and_those_above_the_limit_are_closed() {
        let pool = ConnectionPool::new(3, 2);
        let mut all = Vec::new();
        for number in 1..=3 {
            all.push(made(pool.acquire(LONG).await, number));
        }
        all.into_iter().for_each(|connection| pool.give_back(connection));
        assert_eq!(number(pool.acquire(LONG).await), Some(2));
        assert_eq!(number(pool.acquire(LONG).await), Some(1));
        let connection = made(pool.acquire(LONG).await, 4);
        pool.give_back(connection);
        assert_eq!(number(pool.acquire(Duration::ZERO).await), None);
        assert_eq!(pool.shared.state.lock().open, 0);
    }
}

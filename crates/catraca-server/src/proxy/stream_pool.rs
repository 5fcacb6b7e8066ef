//! The connections of HTTP/2 to one upstream, and the requests that wait for a stream of them.
//!
//! A connection carries as many requests at once as its upstream allows. One connection is made at
//! a time, when those that exist are full, and the requests that come meanwhile wait for it. What
//! becomes free goes to the request that has waited longest.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// A connection that carries several requests at once.
pub trait StreamConnection {
    /// Whether it takes another request.
    fn is_open(&self) -> bool;
    /// The most requests at once.
    fn streams_max(&self) -> usize;
}

/// The connections to one upstream.
pub struct StreamPool<C: StreamConnection>(Arc<SharedStreams<C>>);

struct SharedStreams<C: StreamConnection> {
    connections_max: usize,
    idle_max: usize,
    state: Mutex<StreamPoolState<C>>,
}

struct StreamPoolState<C: StreamConnection> {
    connections: Vec<PooledConnection<C>>,
    /// Whether a request makes a connection.
    is_connecting: bool,
    waiting: VecDeque<oneshot::Sender<StreamTurn<C>>>,
}

struct PooledConnection<C> {
    connection: Arc<C>,
    /// The number of its requests.
    streams: usize,
    idle_since: Instant,
}

/// What a request gets from the pool.
pub enum StreamTurn<C: StreamConnection> {
    /// A stream of a connection.
    Stream(StreamLease<C>),
    /// The permission to make a connection.
    Connect(ConnectTurn<C>),
    /// The connection that it waited for could not be made.
    Failed,
    /// The upstream does not speak HTTP/2.
    NotHttp2,
}

/// One request of a connection, counted until it is dropped.
pub struct StreamLease<C: StreamConnection> {
    /// The connection.
    pub connection: Arc<C>,
    /// Absent when it no longer counts.
    shared: Option<Arc<SharedStreams<C>>>,
}

/// The permission to make a connection. If it is dropped, another request may make one.
pub struct ConnectTurn<C: StreamConnection> {
    /// Absent after its end.
    shared: Option<Arc<SharedStreams<C>>>,
}

impl<C: StreamConnection> StreamPool<C> {
    /// A pool without connections.
    pub fn new(connections_max: usize, idle_max: usize) -> Self {
        let state = StreamPoolState {
            connections: Vec::new(),
            is_connecting: false,
            waiting: VecDeque::new(),
        };
        Self(Arc::new(SharedStreams { connections_max, idle_max, state: Mutex::new(state) }))
    }

    /// A stream, or the permission to make a connection; waits while all streams are in use.
    pub async fn acquire(&self) -> Option<StreamTurn<C>> {
        let receiver = {
            let mut state = self.0.state.lock();
            state.forget_closed();
            // Those that wait come first.
            let turn = match state.has_waiting() {
                true => None,
                false => self.0.next_turn(&mut state),
            };
            if let Some(turn) = turn {
                return Some(turn);
            }
            let (sender, receiver) = oneshot::channel();
            state.waiting.push_back(sender);
            receiver
        };
        // A connection may have been closed without a request that noticed it.
        self.0.serve_waiting();
        receiver.await.ok()
    }

    /// Closes connections without requests that were not used for some time.
    pub fn close_old(&self, keep_alive: Duration) {
        let mut state = self.0.state.lock();
        let is_old = |own: &mut PooledConnection<C>| {
            own.streams == 0
                && (own.idle_since.elapsed() >= keep_alive || !own.connection.is_open())
        };
        let old: Vec<_> = state.connections.extract_if(.., is_old).collect();
        drop(state);
        // Closed here, without the lock.
        drop(old);
    }
}

impl<C: StreamConnection> SharedStreams<C> {
    /// What a request gets now; none if it has to wait.
    fn next_turn(self: &Arc<Self>, state: &mut StreamPoolState<C>) -> Option<StreamTurn<C>> {
        // The first one that has a free stream, so that those of a peak become idle.
        let mut open = state.connections.iter_mut().filter(|own| own.connection.is_open());
        if let Some(own) = open.find(|own| own.streams < own.connection.streams_max()) {
            own.streams += 1;
            let connection = Arc::clone(&own.connection);
            let shared = Some(Arc::clone(self));
            return Some(StreamTurn::Stream(StreamLease { connection, shared }));
        }
        // A connection that takes no more requests exists until its last one ends.
        let exists = |own: &&PooledConnection<C>| own.streams > 0 || own.connection.is_open();
        let existing = state.connections.iter().filter(exists).count();
        if state.is_connecting || existing >= self.connections_max {
            return None;
        }
        state.is_connecting = true;
        Some(StreamTurn::Connect(ConnectTurn { shared: Some(Arc::clone(self)) }))
    }

    /// Gives what is free to the requests that wait.
    fn serve_waiting(self: &Arc<Self>) {
        loop {
            let mut state = self.state.lock();
            if !state.has_waiting() {
                return;
            }
            let Some(turn) = self.next_turn(&mut state) else { return };
            let Some(waiting) = state.waiting.pop_front() else { return };
            drop(state);
            // A request that has stopped waiting gives its turn back. The loop hands it on.
            match waiting.send(turn) {
                Ok(()) | Err(StreamTurn::Failed | StreamTurn::NotHttp2) => {}
                Err(StreamTurn::Stream(mut lease)) => lease.give_back(),
                Err(StreamTurn::Connect(mut turn)) => turn.give_back(),
            }
        }
    }

    /// Ends the waiting of all requests.
    fn dismiss_waiting(&self, answer: fn() -> StreamTurn<C>) {
        let waiting = std::mem::take(&mut self.state.lock().waiting);
        for request in waiting {
            // An error is a request that has stopped waiting.
            let _ = request.send(answer());
        }
    }
}

impl<C: StreamConnection> StreamPoolState<C> {
    /// Whether a request waits. Those that waited longest are the first to stop waiting.
    fn has_waiting(&mut self) -> bool {
        while self.waiting.front().is_some_and(oneshot::Sender::is_closed) {
            self.waiting.pop_front();
        }
        !self.waiting.is_empty()
    }

    fn forget_closed(&mut self) {
        self.connections.retain(|own| own.streams > 0 || own.connection.is_open());
    }
}

impl<C: StreamConnection> StreamLease<C> {
    /// Ends the request without a look at those that wait.
    fn give_back(&mut self) {
        let Some(shared) = self.shared.take() else { return };
        let mut state = shared.state.lock();
        let mut all = state.connections.iter_mut();
        if let Some(own) = all.find(|own| Arc::ptr_eq(&own.connection, &self.connection)) {
            own.streams -= 1;
            own.idle_since = Instant::now();
        }
        state.forget_closed();
        let idle = state.connections.iter().filter(|own| own.streams == 0).count();
        if idle > shared.idle_max {
            // The lease holds the connection, so that it is not closed under the lock.
            let is_own = |own: &PooledConnection<C>| Arc::ptr_eq(&own.connection, &self.connection);
            state.connections.retain(|own| own.streams > 0 || !is_own(own));
        }
    }
}

impl<C: StreamConnection> Drop for StreamLease<C> {
    fn drop(&mut self) {
        let Some(shared) = self.shared.clone() else { return };
        self.give_back();
        shared.serve_waiting();
    }
}

impl<C: StreamConnection> ConnectTurn<C> {
    /// The connection is made: the first of its streams is the caller's.
    pub fn finish(mut self, connection: C) -> StreamLease<C> {
        let connection = Arc::new(connection);
        let shared = self.shared.take();
        if let Some(shared) = &shared {
            let mut state = shared.state.lock();
            state.is_connecting = false;
            let connection = Arc::clone(&connection);
            let idle_since = Instant::now();
            state.connections.push(PooledConnection { connection, streams: 1, idle_since });
            drop(state);
            shared.serve_waiting();
        }
        StreamLease { connection, shared }
    }

    /// The connection could not be made. Requests that only waited for it fail with it.
    pub fn fail(mut self) {
        self.end(|| StreamTurn::Failed);
    }

    /// The upstream does not speak HTTP/2.
    pub fn on_other_protocol(mut self) {
        self.end(|| StreamTurn::NotHttp2);
    }

    fn end(&mut self, answer: fn() -> StreamTurn<C>) {
        let Some(shared) = self.shared.take() else { return };
        let mut state = shared.state.lock();
        state.is_connecting = false;
        state.forget_closed();
        let is_alone = !state.connections.iter().any(|own| own.connection.is_open());
        drop(state);
        // With other connections, a request that waits may still get a stream of them.
        if is_alone {
            shared.dismiss_waiting(answer);
        }
    }

    fn give_back(&mut self) {
        if let Some(shared) = self.shared.take() {
            shared.state.lock().is_connecting = false;
        }
    }
}

impl<C: StreamConnection> Drop for ConnectTurn<C> {
    fn drop(&mut self) {
        let Some(shared) = self.shared.clone() else { return };
        self.give_back();
        shared.serve_waiting();
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::{Pin, pin};
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::Poll;

    use super::*;

    struct TestConnection {
        streams_max: usize,
        is_open: AtomicBool,
    }

    impl StreamConnection for TestConnection {
        fn is_open(&self) -> bool {
            self.is_open.load(Ordering::Relaxed)
        }

        fn streams_max(&self) -> usize {
            self.streams_max
        }
    }

    type Turn = Option<StreamTurn<TestConnection>>;

    fn connection(streams_max: usize) -> TestConnection {
        TestConnection { streams_max, is_open: AtomicBool::new(true) }
    }

    fn connect(turn: Turn) -> ConnectTurn<TestConnection> {
        match turn {
            Some(StreamTurn::Connect(turn)) => turn,
            _ => panic!("no permission to connect"),
        }
    }

    fn stream(turn: Turn) -> StreamLease<TestConnection> {
        match turn {
            Some(StreamTurn::Stream(lease)) => lease,
            _ => panic!("no stream"),
        }
    }

    async fn is_waiting(mut waiting: Pin<&mut impl Future>) -> bool {
        poll_fn(|cx| Poll::Ready(waiting.as_mut().poll(cx).is_pending())).await
    }

    #[tokio::test]
    async fn requests_wait_for_the_one_connection_that_is_made_and_share_it() {
        let pool = StreamPool::new(1, 1);
        let turn = connect(pool.acquire().await);
        let mut second = pin!(pool.acquire());
        let mut gone = Box::pin(pool.acquire());
        let mut third = pin!(pool.acquire());
        assert!(is_waiting(second.as_mut()).await);
        assert!(is_waiting(gone.as_mut()).await);
        assert!(is_waiting(third.as_mut()).await);
        drop(gone);
        let first = turn.finish(connection(2));
        let second = stream(second.await);
        assert!(Arc::ptr_eq(&first.connection, &second.connection));
        assert!(is_waiting(third.as_mut()).await);
        drop(first);
        let third = stream(third.await);
        // The connection takes no more: when its last request ends, the next one makes another.
        third.connection.is_open.store(false, Ordering::Relaxed);
        let mut fourth = pin!(pool.acquire());
        assert!(is_waiting(fourth.as_mut()).await);
        drop((second, third));
        connect(fourth.await);
        assert!(pool.0.state.lock().connections.is_empty());
    }

    #[tokio::test]
    async fn a_failure_to_connect_ends_those_that_wait_for_it() {
        let pool = StreamPool::<TestConnection>::new(2, 1);
        let turn = connect(pool.acquire().await);
        let mut waiting = pin!(pool.acquire());
        assert!(is_waiting(waiting.as_mut()).await);
        turn.fail();
        assert!(matches!(waiting.await, Some(StreamTurn::Failed)));
        // A request that hangs up while it connects leaves the task to the next one.
        let turn = connect(pool.acquire().await);
        let mut waiting = pin!(pool.acquire());
        assert!(is_waiting(waiting.as_mut()).await);
        drop(turn);
        connect(waiting.await).on_other_protocol();
        assert!(!pool.0.state.lock().is_connecting);
    }

    #[tokio::test]
    async fn connections_without_requests_are_closed() {
        let pool = StreamPool::new(3, 1);
        let first = connect(pool.acquire().await).finish(connection(1));
        let second = connect(pool.acquire().await).finish(connection(1));
        let weak = [&first, &second].map(|lease| Arc::downgrade(&lease.connection));
        pool.close_old(Duration::ZERO);
        drop(first);
        // More than `idle_max`.
        drop(second);
        assert_eq!(weak.each_ref().map(|one| one.strong_count()), [1, 0]);
        pool.close_old(Duration::from_secs(3_600));
        assert_eq!(weak[0].strong_count(), 1);
        pool.close_old(Duration::ZERO);
        assert_eq!(weak[0].strong_count(), 0);
    }
}

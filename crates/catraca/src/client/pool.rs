//! Connections to the server that are kept open between calls.
//!
//! A call has a permit while it uses a connection, so their number is bounded: a new one is made
//! only when none is idle. The connection that was used last is used next, so that those of a peak
//! become idle and are closed.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::SendRequest;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// The most calls that wait on the server at once.
const WAITS_MAX: usize = 256;

/// The sender of an HTTP/1.1 connection.
pub(super) type HttpSender = SendRequest<Full<Bytes>>;

/// The right to use one connection.
pub(super) struct ConnectionPermit(
    #[expect(dead_code, reason = "its drop returns the permit")] Option<OwnedSemaphorePermit>,
);

/// Idle connections, and how many may exist.
pub(super) struct ConnectionPool {
    permits: Arc<Semaphore>,
    /// Permits of calls that wait on the server. They have their own, because such a call may take
    /// half a minute.
    wait_permits: Arc<Semaphore>,
    connections_max: usize,
    /// The one that was used last is at the end.
    idle: Mutex<VecDeque<IdleConnection>>,
    idle_max: Duration,
}

struct IdleConnection {
    sender: HttpSender,
    since: Instant,
}

impl ConnectionPool {
    pub fn new(connections_max: usize, idle_max: Duration) -> Self {
        let connections_max = connections_max.max(1);
        let permits = Arc::new(Semaphore::new(connections_max));
        let wait_permits = Arc::new(Semaphore::new(WAITS_MAX));
        Self { permits, wait_permits, connections_max, idle: Mutex::default(), idle_max }
    }

    /// The most connections of calls that do not wait on the server.
    pub fn connections_max(&self) -> usize {
        self.connections_max
    }

    /// A permit, if a connection may be used now.
    pub fn try_permit(&self) -> Option<ConnectionPermit> {
        let permit = Arc::clone(&self.permits).try_acquire_owned().ok()?;
        Some(ConnectionPermit(Some(permit)))
    }

    /// Waits for a permit, in the order of arrival.
    pub async fn permit(&self) -> ConnectionPermit {
        // The semaphore is never closed.
        ConnectionPermit(Arc::clone(&self.permits).acquire_owned().await.ok())
    }

    /// Waits for a permit of a call that waits on the server.
    pub async fn wait_permit(&self) -> ConnectionPermit {
        // The semaphore is never closed.
        ConnectionPermit(Arc::clone(&self.wait_permits).acquire_owned().await.ok())
    }

    /// An idle connection that can take a request.
    pub fn take(&self, now: Instant) -> Option<HttpSender> {
        let mut idle = self.idle.lock();
        while let Some(connection) = idle.pop_back() {
            if now.duration_since(connection.since) >= self.idle_max {
                // All others have been idle for longer.
                idle.clear();
                return None;
            }
            if !connection.sender.is_closed() {
                return Some(connection.sender);
            }
        }
        None
    }

    /// Keeps a connection for the next call, and closes those that were idle too long.
    pub fn give_back(&self, sender: HttpSender) {
        if sender.is_closed() {
            return;
        }
        let now = Instant::now();
        let mut idle = self.idle.lock();
        let is_old = |old: &IdleConnection| now.duration_since(old.since) >= self.idle_max;
        while idle.front().is_some_and(is_old) {
            idle.pop_front();
        }
        if idle.len() == self.connections_max {
            return;
        }
        idle.push_back(IdleConnection { sender, since: now });
    }
}

#[cfg(test)]
mod tests {
    use hyper::client::conn::http1::handshake;
    use hyper_util::rt::TokioIo;
    use tokio::io::DuplexStream;
    use tokio::time::advance;

    use super::*;

    /// An open connection, and its other end.
    async fn connection() -> (HttpSender, DuplexStream) {
        let (ours, theirs) = tokio::io::duplex(64);
        let (sender, connection) = handshake(TokioIo::new(ours)).await.unwrap();
        tokio::spawn(connection);
        (sender, theirs)
    }

    #[tokio::test(start_paused = true)]
    async fn idle_connections_are_bounded_and_end_with_their_limit() {
        let pool = ConnectionPool::new(2, Duration::from_secs(30));
        let mut ends = Vec::new();
        for _ in 0..3 {
            let (sender, end) = connection().await;
            pool.give_back(sender);
            ends.push(end);
        }
        advance(Duration::from_secs(29)).await;
        let used = pool.take(Instant::now()).unwrap();
        pool.give_back(used);
        advance(Duration::from_secs(1)).await;
        let used = pool.take(Instant::now()).unwrap();
        assert!(pool.take(Instant::now()).is_none(), "the other one was idle for 30 s");
        pool.give_back(used);
        advance(Duration::from_secs(30)).await;
        assert!(pool.take(Instant::now()).is_none());
    }

    #[tokio::test]
    async fn a_connection_that_the_server_closed_is_not_used() {
        let pool = ConnectionPool::new(2, Duration::from_secs(30));
        let (mut sender, end) = connection().await;
        drop(end);
        while sender.ready().await.is_ok() {
            tokio::task::yield_now().await;
        }
        pool.give_back(sender);
        assert!(pool.take(Instant::now()).is_none());
    }

    #[tokio::test]
    async fn calls_that_wait_on_the_server_take_no_connection_of_others() {
        let pool = ConnectionPool::new(1, Duration::from_secs(30));
        let _waiting = pool.wait_permit().await;
        let permit = pool.try_permit().unwrap();
        assert!(pool.try_permit().is_none());
        drop(permit);
        assert!(pool.try_permit().is_some());
    }
}

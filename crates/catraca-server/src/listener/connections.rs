//! All connections of a server, over all of its listeners: their limits, their timeouts, and
//! graceful shutdown.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::clock::TickClock;
use super::connection::{Connection, Phase};
use super::connection_metrics::ConnectionMetrics;
use super::table::{ConnectionLimit, ConnectionTable, Evictable, Peer};
use crate::config::ConnectionTimeouts;

/// All connections of the server.
pub struct Connections {
    table: Mutex<ConnectionTable<Connection>>,
    /// The number of connections, so that a scrape needs no lock.
    count: AtomicUsize,
    max: usize,
    clock: Arc<TickClock>,
    /// Refused and closed connections.
    pub metrics: ConnectionMetrics,
    /// Whether a stop was requested.
    draining: AtomicBool,
    /// Notified when a connection ends.
    ended: Notify,
    /// Whether every connection got the signal to close at once.
    is_closed: AtomicBool,
    closed: Notify,
}

/// Registration of a connection; dropping it removes the connection from the table.
pub struct ConnectionGuard {
    connections: Arc<Connections>,
    connection: Arc<Connection>,
    id: u64,
}

impl Connections {
    /// An empty table for `max` connections.
    pub fn new(max: usize, timeouts: ConnectionTimeouts) -> Self {
        Self {
            table: Mutex::default(),
            count: AtomicUsize::new(0),
            max,
            clock: Arc::new(TickClock::new(timeouts)),
            metrics: ConnectionMetrics::default(),
            draining: AtomicBool::new(false),
            ended: Notify::new(),
            is_closed: AtomicBool::new(false),
            closed: Notify::new(),
        }
    }

    /// The number of connections.
    pub fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// The most connections at once.
    pub fn max(&self) -> usize {
        self.max
    }

    /// Whether a stop was requested.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Notes that a stop was requested.
    pub fn begin_drain(&self) {
        self.draining.store(true, Ordering::Relaxed);
    }

    /// Makes room for another connection. If a limit is reached, an idle connection is closed and
    /// the limit is returned; if none is idle, the limit is the error.
    pub fn make_room(
        &self,
        peer: Peer,
        per_address: Option<usize>,
    ) -> Result<Option<ConnectionLimit>, ConnectionLimit> {
        let found = self.table.lock().make_room(peer, self.max, per_address)?;
        Ok(found.map(|(limit, connection)| {
            // A request that has already arrived is answered before the connection closes.
            connection.stop();
            limit
        }))
    }

    /// Registers a new connection.
    pub fn register(self: &Arc<Self>, peer: IpAddr, counted_as: Peer) -> ConnectionGuard {
        let connection = Arc::new(Connection::new(Arc::clone(&self.clock), peer, counted_as));
        let id = self.table.lock().insert(counted_as, Arc::clone(&connection));
        self.count.fetch_add(1, Ordering::Relaxed);
        ConnectionGuard { connections: Arc::clone(self), connection, id }
    }

    /// Counts ticks and enforces the timeouts; never returns.
    pub async fn run_timeouts(&self) {
        let mut clock = tokio::time::interval(self.clock.length());
        clock.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        loop {
            clock.tick().await;
            let now = self.clock.advance();
            self.table.lock().all().for_each(|connection| self.enforce_timeout(connection, now));
        }
    }

    /// Signals every connection to close after the response in progress.
    pub fn stop_all(&self) {
        self.table.lock().all().for_each(|connection| connection.stop());
    }

    /// Signals every connection to close at once.
    pub fn close_all(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.closed.notify_waiters();
        self.table.lock().all().for_each(|connection| connection.close());
    }

    /// Waits until every connection is closed at once, for work that outlives its connection.
    pub async fn wait_until_closed(&self) {
        let mut closed = std::pin::pin!(self.closed.notified());
        // Before the flag is read, so that a signal in between is noticed.
        closed.as_mut().enable();
        if !self.is_closed.load(Ordering::Acquire) {
            closed.await;
        }
    }

    /// Waits until no connection is left.
    pub async fn wait_until_empty(&self) {
        loop {
            // Created before the count is read, so that a connection that ends in between is
            // noticed.
            let ended = self.ended.notified();
            if self.count.load(Ordering::Acquire) == 0 {
                return;
            }
            ended.await;
        }
    }

    /// Closes a connection whose phase has lasted too long; one that waits for a body or a handler
    /// first gets the same time again, to send a response that says so.
    fn enforce_timeout(&self, connection: &Connection, now: u64) {
        let (phase, since) = connection.phase();
        let Some(timeout) = timeout(self.clock.timeouts(), phase) else { return };
        let limit = self.clock.ticks_in(timeout);
        if now.saturating_sub(since) <= limit {
            return;
        }
        // One that is closing was counted when it got the signal.
        if !connection.is_closing() {
            self.metrics.note_timeout(phase);
        }
        match phase {
            Phase::Body | Phase::Handler => {
                connection.expire();
                // Starts the phase again, for the time to write the response.
                connection.enter(phase);
            }
            _ => connection.close(),
        }
    }
}

/// How long a phase may take; none if its front end decides.
fn timeout(timeouts: &ConnectionTimeouts, phase: Phase) -> Option<Duration> {
    match phase {
        Phase::First | Phase::Head => Some(timeouts.head),
        Phase::Body => Some(timeouts.body),
        Phase::Handler | Phase::Answer | Phase::Stream => Some(timeouts.answer),
        Phase::Idle => Some(timeouts.idle),
        Phase::Upstream => None,
    }
}

impl Evictable for Connection {
    fn idle_since(&self) -> Option<u64> {
        // The inherent method of the same name.
        Connection::idle_since(self)
    }
}

impl ConnectionGuard {
    /// The registered connection.
    pub fn connection(&self) -> &Arc<Connection> {
        &self.connection
    }

    /// The counts of the server's connections.
    pub fn metrics(&self) -> &ConnectionMetrics {
        &self.connections.metrics
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        let connections = &self.connections;
        connections.table.lock().remove(self.connection.counted_as, self.id);
        connections.count.fetch_sub(1, Ordering::Release);
        // `notify_one` stores a permit, so a wakeup is not lost when `wait_until_empty` starts to
        // wait only now.
        connections.ended.notify_one();
    }
}

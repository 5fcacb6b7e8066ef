//! All connections: their limit, their timeouts, and graceful shutdown.
//!
//! Time is counted in ticks by one task, so that a request costs neither a timer nor a clock
//! reading (ADR 0010).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::connection::{Connection, Phase};
use super::table::{ConnectionLimit, ConnectionTable, Evictable, Peer};
use crate::config::ConnectionTimeouts;

/// Ticks in the shortest timeout. A wait may last one tick longer than configured, a quarter of it.
const TICKS: u32 = 4;
/// Bounds of a tick: a shorter one would cost processor time, a longer one precision.
const TICK_MIN: Duration = Duration::from_millis(10);
const TICK_MAX: Duration = Duration::from_secs(1);

/// All connections of the server.
pub struct Connections {
    table: Mutex<ConnectionTable<Connection>>,
    /// The number of connections, so that a scrape needs no lock.
    count: AtomicUsize,
    max: usize,
    /// Ticks since the start.
    ticks: AtomicU64,
    /// The length of a tick.
    tick: Duration,
    timeouts: ConnectionTimeouts,
    /// Notified when a connection ends.
    ended: Notify,
}

/// Registration of a connection; dropping it removes the connection from the table.
pub struct ConnectionGuard {
    connection: Arc<Connection>,
    id: u64,
}

impl Connections {
    /// An empty table for `max` connections.
    pub fn new(max: usize, timeouts: ConnectionTimeouts) -> Self {
        let shortest = timeouts.shortest() / TICKS;
        Self {
            table: Mutex::default(),
            count: AtomicUsize::new(0),
            max,
            ticks: AtomicU64::new(0),
            tick: shortest.clamp(TICK_MIN, TICK_MAX),
            timeouts,
            ended: Notify::new(),
        }
    }

    /// The current tick.
    pub fn tick(&self) -> u64 {
        self.ticks.load(Ordering::Relaxed)
    }

    /// How long each phase of a connection may take.
    pub fn timeouts(&self) -> ConnectionTimeouts {
        self.timeouts
    }

    /// The number of connections, and their maximum.
    pub fn count_and_max(&self) -> (usize, usize) {
        (self.count.load(Ordering::Relaxed), self.max)
    }

    /// Makes room for another connection. If a limit is reached, an idle connection is closed and
    /// the limit is returned; if none is idle, the limit is the error.
    pub fn make_room(
        &self,
        peer: Peer,
        per_address: Option<usize>,
    ) -> Result<Option<ConnectionLimit>, ConnectionLimit> {
        // By default one address may take half of all connections, so that it cannot shut out all
        // others.
        let per_address = per_address.unwrap_or_else(|| self.max.div_ceil(2));
        let found = self.table.lock().make_room(peer, self.max, per_address)?;
        Ok(found.map(|(limit, connection)| {
            // A request that has already arrived is answered before the connection closes.
            connection.stop();
            limit
        }))
    }

    /// Registers a connection.
    pub fn admit(connection: Arc<Connection>) -> ConnectionGuard {
        let connections = &connection.server.connections;
        let id = connections.table.lock().insert(connection.counted_as, Arc::clone(&connection));
        connections.count.fetch_add(1, Ordering::Relaxed);
        ConnectionGuard { connection, id }
    }

    /// Counts ticks and enforces the timeouts; never returns.
    pub async fn run_timeouts(&self) {
        let mut clock = tokio::time::interval(self.tick);
        clock.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Skip);
        loop {
            clock.tick().await;
            let now = self.ticks.fetch_add(1, Ordering::Relaxed) + 1;
            self.table.lock().all().for_each(|connection| self.enforce_timeout(connection, now));
        }
    }

    /// Signals every connection to close after the response in progress.
    pub fn stop_all(&self) {
        self.table.lock().all().for_each(|connection| connection.stop());
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

    /// Closes a connection whose phase has lasted too long; one that waits for a body first gets
    /// another `body_timeout` to send the 408.
    fn enforce_timeout(&self, connection: &Connection, now: u64) {
        let (phase, since) = connection.phase();
        let limit = self.timeouts.of(phase).as_millis().div_ceil(self.tick.as_millis().max(1));
        if u128::from(now.saturating_sub(since)) <= limit {
            return;
        }
        match phase {
            Phase::Body => {
                connection.expire_body();
                // Starts the phase again, for the time to write the response.
                connection.enter(Phase::Body);
            }
            _ => connection.close(),
        }
    }
}

impl Evictable for Connection {
    fn idle_since(&self) -> Option<u64> {
        // The inherent method of the same name.
        Connection::idle_since(self)
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        let connections = &self.connection.server.connections;
        connections.table.lock().remove(self.connection.counted_as, self.id);
        connections.count.fetch_sub(1, Ordering::Release);
        // `notify_one` stores a permit, so a wakeup is not lost when `wait_until_empty` starts to
        // wait only now.
        connections.ended.notify_one();
    }
}

//! Counts of connections that were refused, closed to make room or after a timeout, failed their
//! TLS handshake, or could not be accepted.

use std::sync::atomic::{AtomicU64, Ordering};

use super::connection::{PHASE_COUNT, Phase};
use super::table::{CONNECTION_LIMITS, ConnectionLimit};

/// A count for each limit.
type LimitCounts = [AtomicU64; CONNECTION_LIMITS.len()];

/// Counts of connections, over all listeners.
#[derive(Debug, Default)]
pub struct ConnectionMetrics {
    /// Connections refused, by the limit that was reached.
    refused: LimitCounts,
    /// Idle connections closed to make room for new ones, by the limit that was reached.
    idle_closed: LimitCounts,
    /// Connections whose timeout passed, by their phase.
    timed_out: [AtomicU64; PHASE_COUNT],
    /// TLS handshakes that failed.
    tls_failures: AtomicU64,
    /// Connections that the system could not accept.
    accept_failures: AtomicU64,
}

impl ConnectionMetrics {
    /// Counts a refused connection.
    pub fn note_refused(&self, limit: ConnectionLimit) {
        self.refused[limit as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an idle connection that was closed to make room.
    pub fn note_idle_closed(&self, limit: ConnectionLimit) {
        self.idle_closed[limit as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a timeout of a connection in this phase.
    pub fn note_timeout(&self, phase: Phase) {
        self.timed_out[phase as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Timeouts of connections in this phase.
    pub fn timeouts(&self, phase: Phase) -> u64 {
        self.timed_out[phase as usize].load(Ordering::Relaxed)
    }

    /// Counts a failed TLS handshake.
    pub fn note_tls_failure(&self) {
        self.tls_failures.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a connection that the system could not accept.
    pub fn note_accept_failure(&self) {
        self.accept_failures.fetch_add(1, Ordering::Relaxed);
    }

    /// Connections refused, by the limit that was reached.
    pub fn refusals(&self) -> [u64; CONNECTION_LIMITS.len()] {
        self.refused.each_ref().map(|count| count.load(Ordering::Relaxed))
    }

    /// Idle connections closed to make room, by the limit that was reached.
    pub fn idle_closed(&self) -> [u64; CONNECTION_LIMITS.len()] {
        self.idle_closed.each_ref().map(|count| count.load(Ordering::Relaxed))
    }

    /// Failed TLS handshakes.
    pub fn tls_failures(&self) -> u64 {
        self.tls_failures.load(Ordering::Relaxed)
    }

    /// Attempts to accept a connection that failed.
    pub fn accept_failures(&self) -> u64 {
        self.accept_failures.load(Ordering::Relaxed)
    }
}

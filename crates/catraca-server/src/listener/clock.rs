//! The clock of the timeouts: ticks that one task counts, so that a request costs neither a timer
//! nor a reading of the system's clock (ADR 0010).

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::config::ConnectionTimeouts;

/// Ticks in the shortest timeout. A wait may last one tick longer than configured, a quarter of it.
const TICKS: u32 = 4;
/// Bounds of a tick: a shorter one would cost processor time, a longer one precision.
const TICK_MIN: Duration = Duration::from_millis(10);
const TICK_MAX: Duration = Duration::from_secs(1);

/// Counts ticks.
pub struct TickClock {
    /// Ticks since the start.
    ticks: AtomicU64,
    /// The length of a tick.
    length: Duration,
    timeouts: ConnectionTimeouts,
}

impl TickClock {
    /// A clock at tick zero, precise enough for these timeouts.
    pub fn new(timeouts: ConnectionTimeouts) -> Self {
        let length = (timeouts.shortest() / TICKS).clamp(TICK_MIN, TICK_MAX);
        Self { ticks: AtomicU64::new(0), length, timeouts }
    }

    /// The current tick.
    pub fn tick(&self) -> u64 {
        self.ticks.load(Ordering::Relaxed)
    }

    /// Advances by one; returns the current tick.
    pub fn advance(&self) -> u64 {
        self.ticks.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The length of a tick.
    pub fn length(&self) -> Duration {
        self.length
    }

    /// How long each phase of a connection may take.
    pub fn timeouts(&self) -> &ConnectionTimeouts {
        &self.timeouts
    }

    /// The ticks that last as long as this timeout.
    pub fn ticks_in(&self, timeout: Duration) -> u64 {
        let ticks = timeout.as_millis().div_ceil(self.length.as_millis().max(1));
        u64::try_from(ticks).unwrap_or(u64::MAX)
    }
}

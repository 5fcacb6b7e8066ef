//! Clocks: where `now` comes from when the store lives in this process.
//!
//! Must not run backwards by itself: a corrected wall clock neither frees the blocked nor holds
//! anybody longer.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use catraca_core::time::{Span, Time};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// A source of instants.
pub trait Clock: Send + Sync {
    /// The present instant.
    fn now(&self) -> Time;
}

/// The system's clock: the wall clock as it was at the start, plus the time that has passed since,
/// sleep included.
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    /// What turns time since boot into time since the epoch, in microseconds.
    offset: i64,
}

impl SystemClock {
    /// A clock that takes the wall clock's word once, now.
    pub fn new() -> Self {
        Self { offset: wall() - passed() }
    }

    /// How far the wall clock has been moved since the start, in microseconds: what an operator
    /// should hear of, and what no decision depends on.
    pub fn wall_step(&self) -> i64 {
        wall() - passed() - self.offset
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    #[inline]
    fn now(&self) -> Time {
        Time::from_micros(passed() + self.offset)
    }
}

/// A clock that only moves when it is told to. Clones show the same time.
#[derive(Clone, Debug, Default)]
pub struct ManualClock {
    micros: Arc<AtomicI64>,
}

impl ManualClock {
    /// A clock that stands at an instant.
    pub fn at(time: Time) -> Self {
        Self { micros: Arc::new(AtomicI64::new(time.micros())) }
    }

    /// Moves to an instant, be it earlier.
    pub fn set(&self, time: Time) {
        self.micros.store(time.micros(), Ordering::SeqCst);
    }

    /// Moves forward.
    pub fn advance(&self, span: Span) {
        let later = |micros| Some(Time::from_micros(micros).after(span).micros());
        // The closure never refuses, so there is nothing to handle.
        let _ = self.micros.fetch_update(Ordering::SeqCst, Ordering::SeqCst, later);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Time {
        Time::from_micros(self.micros.load(Ordering::SeqCst))
    }
}

/// Microseconds since the epoch, as the wall clock has it.
fn wall() -> i64 {
    micros(clock_gettime(ClockId::Realtime))
}

/// Microseconds since boot, sleep included.
#[inline]
fn passed() -> i64 {
    micros(clock_gettime(SINCE_BOOT))
}

#[inline]
fn micros(read: Timespec) -> i64 {
    read.tv_sec * 1_000_000 + read.tv_nsec / 1_000
}

/// Only Linux tells the two apart; elsewhere the monotonic clock is the nearest there is.
#[cfg(any(target_os = "linux", target_os = "android"))]
const SINCE_BOOT: ClockId = ClockId::Boottime;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
const SINCE_BOOT: ClockId = ClockId::Monotonic;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_system_clock_shows_the_present_and_never_goes_back() {
        let clock = SystemClock::new();
        let first = clock.now();
        let second = clock.now();
        assert!(first <= second);
        assert!(first >= Time::parse_rfc3339("2024-01-01T00:00:00Z").unwrap());
        assert!(!second.is_forever());
    }

    ///
    #[test]
    fn a_step_of_the_wall_clock_is_seen_and_does_not_count() {
        let honest = SystemClock::new();
        assert!(honest.wall_step().abs() < 1_000_000);
        // As if the wall clock had been an hour ahead at the start and was put right since.
        let stepped = SystemClock { offset: honest.offset + 3_600_000_000 };
        let before = stepped.now();
        assert!((stepped.wall_step() + 3_600_000_000).abs() < 1_000_000);
        assert!(stepped.now() >= before);
    }

    #[test]
    fn a_manual_clock_is_shared_and_stops_at_forever() {
        let clock = ManualClock::at(Time::from_micros(5));
        let other = clock.clone();
        clock.advance(Span::from_micros(7));
        assert_eq!(other.now(), Time::from_micros(12));
        other.set(Time::from_micros(3));
        assert_eq!(clock.now(), Time::from_micros(3));
        clock.advance(Span::FOREVER);
        clock.advance(Span::from_secs(1));
        assert_eq!(clock.now(), Time::FOREVER);
    }
}

//! Clocks of a store in this process: the system clock, and a manual one for tests.
//!
//! The system clock reads the wall clock once, at start, and then counts the time since boot. When
//! the wall clock is corrected later, no block ends early and none is extended (ADR 0002).

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

use catraca_core::time::{Span, Time};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// A source of instants. A program whose tests have a virtual clock of their own implements it;
/// others use [`ManualClock`].
///
/// ```
/// use std::time::{Duration, SystemTime};
///
/// use catraca::{Catalog, Check, Clock, Engine};
///
/// struct FixedClock(SystemTime);
///
/// impl Clock for FixedClock {
///     fn system_time(&self) -> SystemTime {
///         self.0
///     }
/// }
///
/// let noon = SystemTime::UNIX_EPOCH + Duration::from_secs(12 * 3_600);
/// let catalog = Catalog::parse("[policy.api]\n by = ['ip']\n window = '9 per 1m'")?;
/// let engine = Engine::builder(catalog).clock(FixedClock(noon)).build();
/// let decision = engine.check(&Check::new("api", [("ip", "198.51.100.7")]))?;
/// assert_eq!(decision.decided_at(), noon);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Clock: Send + Sync {
    /// The current instant.
    fn system_time(&self) -> SystemTime;

    /// The current instant in whole microseconds. The clocks of this crate read it without a
    /// conversion, because every decision does.
    #[doc(hidden)]
    fn now(&self) -> Time {
        self.system_time().into()
    }
}

/// The wall clock at start plus the time that has passed since, suspend included.
///
/// ```
/// use catraca::{Clock, SystemClock};
///
/// let clock = SystemClock::new();
/// let begun_at = clock.system_time();
/// assert!(clock.system_time() >= begun_at, "also if the wall clock is set back");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    /// Microseconds to add to the time since boot to get the time since the Unix epoch.
    offset: i64,
}

impl SystemClock {
    /// Reads the wall clock once; later steps of it have no effect.
    pub fn new() -> Self {
        Self { offset: wall_micros() - boot_micros() }
    }

    /// How far the wall clock was moved since the start, in microseconds. For operators: no
    /// decision depends on it.
    pub fn wall_step(&self) -> i64 {
        wall_micros() - boot_micros() - self.offset
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn system_time(&self) -> SystemTime {
        self.now().into()
    }

    #[inline]
    fn now(&self) -> Time {
        Time::from_micros(boot_micros() + self.offset)
    }
}

/// A clock that moves only when it is set. Clones show the same time.
///
/// ```
/// use std::time::{Duration, SystemTime};
///
/// use catraca::{Catalog, Engine, ManualClock};
///
/// let catalog = Catalog::parse("[policy.login]\n by = ['ip']\n window = '1 per 15m'")?;
/// let clock = ManualClock::at(SystemTime::UNIX_EPOCH);
/// let engine = Engine::builder(catalog).clock(clock.clone()).build();
/// let login = engine.gate("login")?;
///
/// assert!(login.check(["198.51.100.7"])?.allowed);
/// clock.advance(Duration::from_secs(15 * 60 - 1));
/// assert!(!login.check(["198.51.100.7"])?.allowed);
/// clock.advance(Duration::from_secs(1));
/// assert!(login.check(["198.51.100.7"])?.allowed);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct ManualClock {
    micros: Arc<AtomicI64>,
}

impl ManualClock {
    /// A clock that shows `time`, in whole microseconds.
    pub fn at(time: impl Into<SystemTime>) -> Self {
        Self { micros: Arc::new(AtomicI64::new(Time::from(time.into()).micros())) }
    }

    /// Moves to `time`, which may be earlier.
    pub fn set(&self, time: impl Into<SystemTime>) {
        self.micros.store(Time::from(time.into()).micros(), Ordering::SeqCst);
    }

    /// Moves forward by `duration`, at most to the last instant that a store can count, in the year
    /// 2255.
    pub fn advance(&self, duration: impl Into<Duration>) {
        let span = Span::from(duration.into());
        let advanced = |micros| Some(Time::from_micros(micros).after(span).micros());
        // The closure always returns `Some`, so the update cannot fail.
        let _ = self.micros.fetch_update(Ordering::SeqCst, Ordering::SeqCst, advanced);
    }
}

impl Clock for ManualClock {
    fn system_time(&self) -> SystemTime {
        self.now().into()
    }

    fn now(&self) -> Time {
        Time::from_micros(self.micros.load(Ordering::SeqCst))
    }
}

/// Microseconds since the Unix epoch, by the wall clock.
fn wall_micros() -> i64 {
    let micros = |span: Duration| i64::try_from(span.as_micros()).unwrap_or(i64::MAX);
    match SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) {
        Ok(since) => micros(since),
        Err(before) => -micros(before.duration()),
    }
}

/// Microseconds since boot, suspend included.
#[inline]
fn boot_micros() -> i64 {
    to_micros(clock_gettime(SINCE_BOOT))
}

#[inline]
fn to_micros(read: Timespec) -> i64 {
    read.tv_sec * 1_000_000 + read.tv_nsec / 1_000
}

/// The clock that also runs during suspend. On Linux that is not the monotonic clock; other systems
/// have no separate one.
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

    /// covers: X-34
    #[test]
    fn a_step_of_the_wall_clock_is_seen_and_does_not_count() {
        let honest = SystemClock::new();
        assert!(honest.wall_step().abs() < 1_000_000);
        // The wall clock was an hour ahead at the start and has been corrected since.
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

//! Waits for a condition of servers, such as the end of an election.

use std::thread;
use std::time::{Duration, Instant};

/// Longer than any election takes in a test.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Waits until a condition holds; returns how long that took.
///
/// # Panics
///
/// If it does not hold within a minute.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) -> Duration {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < TIMEOUT, "timed out waiting until {what}");
        thread::sleep(Duration::from_millis(5));
    }
    start.elapsed()
}

//! Waiting for servers to agree. Must not pass in silence: what does not come about is a panic.

use std::thread;
use std::time::{Duration, Instant};

/// Longer than any election takes here.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until something holds; returns how long that took.
///
/// # Panics
///
/// When it does not come about.
pub fn until(what: &str, mut holds: impl FnMut() -> bool) -> Duration {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "waited in vain: {what}");
        thread::sleep(Duration::from_millis(5));
    }
    begun.elapsed()
}

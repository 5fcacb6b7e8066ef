//! Waits until something holds on servers, within a documented bound of time.

use std::time::{Duration, Instant};

/// The documented delay after which a change at one node applies at every other node.
pub const AGREED: Duration = Duration::from_secs(1);
/// The documented delay after which a node uses a store that has recovered.
pub const RECOVERED: Duration = Duration::from_secs(2);
/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(20);
/// How many threads one after the other a change waits for: the heartbeat of one node, the store,
/// the heartbeat and the writer of the other node.
const STEPS: u32 = 4;

/// Waits until something holds. On a machine that is too busy, each step of the change is late by
/// what the pauses of this thread are late in the meantime; the bound is extended by that much.
pub fn wait_within(bound: Duration, what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    let mut lateness = Duration::ZERO;
    while !holds() {
        let bound = bound + STEPS * lateness;
        assert!(begun.elapsed() < bound, "{what}: not within {bound:?}");
        let paused = Instant::now();
        std::thread::sleep(PAUSE);
        lateness += paused.elapsed().saturating_sub(PAUSE);
    }
    println!("{what}: {:?}, {lateness:?} late", begun.elapsed());
}

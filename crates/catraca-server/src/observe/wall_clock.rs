//! Watches the wall clock: a step since the start is an alarm for operators.
//!
//! Decisions use the time since boot, so a step ends no block and extends none. But times in
//! answers and records then differ from the wall clock until the next start.

use std::sync::atomic::{AtomicBool, Ordering};

use catraca::SystemClock;
use tracing::{info, warn};

/// A smaller difference is not reported.
const STEP_MICROS_MIN: i64 = 2_000_000;

/// Compares the wall clock with the clock of decisions.
#[derive(Debug, Default)]
pub struct WallClock {
    clock: SystemClock,
    /// Whether the last check found a step, to log its beginning and its end only.
    stepped: AtomicBool,
}

impl WallClock {
    /// How far the wall clock was moved since the start, in microseconds. Logs a step once.
    pub fn check(&self) -> i64 {
        let step = self.clock.wall_step();
        if self.note(step) {
            let seconds = step / 1_000_000;
            match is_step(step) {
                true => warn!(
                    seconds,
                    "the wall clock was moved since the start; decisions are not affected, and \
                     times in answers and records follow it after a restart"
                ),
                false => info!("the wall clock agrees with the clock of decisions again"),
            }
        }
        step
    }

    /// The problem to report, if the wall clock was moved.
    pub fn problem(&self) -> Option<String> {
        let step = self.check();
        is_step(step).then(|| {
            format!(
                "the wall clock was moved by {} s since the start; decisions are not affected, \
                 but times in answers and records differ from it; check the clock and restart",
                step / 1_000_000
            )
        })
    }

    /// Whether a step has begun or ended since the last check.
    fn note(&self, step: i64) -> bool {
        let stepped = is_step(step);
        self.stepped.swap(stepped, Ordering::Relaxed) != stepped
    }
}

fn is_step(micros: i64) -> bool {
    micros.abs() >= STEP_MICROS_MIN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_reported_when_it_begins_and_when_it_ends() {
        let wall = WallClock::default();
        assert_eq!(wall.problem(), None);
        let steps = [0, 1_999_999, -2_000_000, 3_600_000_000, 1_000, 0];
        let reported: Vec<bool> = steps.into_iter().map(|step| wall.note(step)).collect();
        assert_eq!(reported, [false, false, true, false, true, false]);
    }
}

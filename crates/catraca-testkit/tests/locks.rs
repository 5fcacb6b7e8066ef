//! Core's lock rules against the lock model: random operations must get equal answers.

use catraca_testkit::generate::Rng;
use catraca_testkit::locks::trace::run_trace;

/// The default seed; `CATRACA_SEED` overrides it.
const SEED: u64 = 2_024;
const TRACES: u64 = 400;
const LENGTH: usize = 400;

/// covers: 004-21, 004-28, 004-29, 004-31, 004-64, 004-84, B-62, B-63, B-64, B-66
#[test]
fn the_rules_of_locks_and_the_model_always_agree() {
    let seed = std::env::var("CATRACA_SEED").ok().and_then(|seed| seed.parse().ok());
    let mut rng = Rng::new(seed.unwrap_or(SEED));
    for _ in 0..TRACES {
        if let Err(difference) = run_trace(rng.next_u64(), LENGTH) {
            panic!("{difference}");
        }
    }
    println!("{} operations, 0 differences", TRACES as usize * LENGTH);
}

#[cfg(feature = "planted-bugs")]
#[test]
fn every_planted_bug_in_the_rules_of_locks_is_caught() {
    use catraca_core::planted_bugs::{Bug, plant};
    for bug in Bug::LOCKS {
        plant(Some(bug));
        let mut rng = Rng::new(SEED);
        let caught = (1..=2_000).find(|_| run_trace(rng.next_u64(), LENGTH).is_err());
        plant(None);
        println!("{bug:?}: caught in trace {caught:?}");
        assert!(caught.is_some(), "{bug:?} was not caught");
    }
}

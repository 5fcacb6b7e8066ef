//! Planted bugs: each known bug is enabled alone in core's rules, and the comparison with the
//! oracle must detect it.
//!
//! A bug that is not detected means that the tests have become weaker. Runs with the feature
//! `planted-bugs`.
#![cfg(feature = "planted-bugs")]

use catraca_core::planted_bugs::{Bug, plant};
use catraca_testkit::compare;
use catraca_testkit::generate::Rng;

/// The seed of the traces; a bug must be detected soon with any seed.
const SEED: u64 = 1_886;
/// Traces to run before a bug counts as missed.
const TRACES: u64 = 4_000;
/// Operations in a trace.
const LENGTH: usize = 300;

/// The trace that detected a bug.
struct Detection {
    seed: u64,
    traces: u64,
    operations: usize,
}

/// Runs traces until one shows the bug.
fn detect(bug: Option<Bug>) -> Option<Detection> {
    plant(bug);
    let mut rng = Rng::new(SEED);
    let detection = (1..=TRACES).find_map(|traces| {
        let seed = rng.next_u64();
        let divergence = compare::compare_trace(seed, LENGTH).err()?;
        Some(Detection { seed, traces, operations: divergence.ops.len() })
    });
    plant(None);
    detection
}

#[test]
fn every_planted_bug_is_caught() {
    println!("| bug | detected in trace | operations needed | seed |");
    println!("|---|---|---|---|");
    let mut missed = Vec::new();
    for bug in Bug::ALL {
        match detect(Some(bug)) {
            Some(Detection { seed, traces, operations }) => {
                println!("| {bug:?} | {traces} | {operations} | {seed} |");
            }
            None => missed.push(bug),
        }
    }
    assert!(missed.is_empty(), "not detected in {TRACES} traces each: {missed:?}");
}

#[test]
fn nothing_is_caught_when_nothing_is_planted() {
    let mut rng = Rng::new(SEED);
    plant(None);
    for _ in 0..200 {
        let seed = rng.next_u64();
        assert!(compare::compare_trace(seed, LENGTH).is_ok(), "seed {seed}");
    }
}

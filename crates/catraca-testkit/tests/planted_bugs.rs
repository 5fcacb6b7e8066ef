//! The bug museum: each known bug is planted alone in our own rules, and the harness must notice
//! it.
//!
//! A harness that stops noticing one has lost a tooth, and this test fails. Runs with the feature
//! `planted-bugs`.
#![cfg(feature = "planted-bugs")]

use catraca_core::planted_bugs::{Bug, plant};
use catraca_testkit::compare;
use catraca_testkit::generate::Rng;

/// Where the stories begin; a planted bug must show soon, whatever the seed.
const SEED: u64 = 1_886;
/// Stories told before a bug counts as missed.
const STORIES: u64 = 4_000;
/// Operations in a story.
const LENGTH: usize = 300;

/// How a bug was caught.
struct Catch {
    seed: u64,
    stories: u64,
    operations: usize,
}

/// Tells stories until one shows the bug.
fn catch(bug: Option<Bug>) -> Option<Catch> {
    plant(bug);
    let mut rng = Rng::new(SEED);
    let caught = (1..=STORIES).find_map(|stories| {
        let seed = rng.next_u64();
        let mismatch = compare::compare_trace(seed, LENGTH).err()?;
        Some(Catch { seed, stories, operations: mismatch.ops.len() })
    });
    plant(None);
    caught
}

#[test]
fn every_planted_bug_is_caught() {
    println!("| bug | caught in story | operations needed | seed |");
    println!("|---|---|---|---|");
    let mut missed = Vec::new();
    for bug in Bug::ALL {
        match catch(Some(bug)) {
            Some(Catch { seed, stories, operations }) => {
                println!("| {bug:?} | {stories} | {operations} | {seed} |");
            }
            None => missed.push(bug),
        }
    }
    assert!(missed.is_empty(), "not caught in {STORIES} stories each: {missed:?}");
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

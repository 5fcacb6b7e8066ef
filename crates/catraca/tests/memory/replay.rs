//! The store answers as plain maps do, to every batch, however its keys are spread over shards.

use catraca::memory::{Memory, MemoryOptions};
use catraca::store::{Store, When};
use catraca_core::run::run;

use crate::helpers::store;
use crate::plain::Plain;
use crate::story::Story;

fn compare(memory: &Memory, seed: u64, batches: usize) {
    let mut plain = Plain::default();
    let mut story = Story::new(seed);
    for step in 0..batches {
        let batch = story.next_batch();
        let expected = run(&batch, &mut plain, story.now);
        let reply = memory.apply(&batch, When::At(story.now)).expect("memory never fails");
        assert_eq!(reply, expected, "seed {seed}, step {step}: {batch:?}");
    }
}

#[test]
fn random_batches_are_answered_as_plain_maps_answer_them() {
    for seed in 0..60 {
        let shards = [1, 2, 16, 512][seed as usize % 4];
        let (memory, _) = store(MemoryOptions { shards, ..MemoryOptions::default() });
        compare(&memory, seed, 2_000);
    }
}

/// Tending in between drops only what nobody can notice.
#[test]
fn tending_is_never_noticed() {
    let (memory, clock) = store(MemoryOptions { shards: 2, ..MemoryOptions::default() });
    let mut plain = Plain::default();
    let mut story = Story::new(99);
    for step in 0..5_000 {
        let batch = story.next_batch();
        clock.set(story.now);
        memory.reclaim();
        let expected = run(&batch, &mut plain, story.now);
        assert_eq!(memory.apply(&batch, When::Store).ok(), Some(expected), "step {step}");
    }
}

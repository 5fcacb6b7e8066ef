//! The memory store gives the replies of the reference store to random batches, for any number of
//! shards.

use catraca::memory::{Memory, MemoryOptions};
use catraca::store::{Store, When};
use catraca_core::run::run;

use super::helpers::store;
use super::random_batches::BatchGenerator;
use super::reference_store::ReferenceStore;

fn compare(memory: &Memory, seed: u64, batches: usize) {
    let mut plain = ReferenceStore::default();
    let mut story = BatchGenerator::new(seed);
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

/// Maintenance between batches removes only cells that no reply depends on.
#[test]
fn tending_is_never_noticed() {
    let (memory, clock) = store(MemoryOptions { shards: 2, ..MemoryOptions::default() });
    let mut plain = ReferenceStore::default();
    let mut story = BatchGenerator::new(99);
    for step in 0..5_000 {
        let batch = story.next_batch();
        clock.set(story.now);
        memory.reclaim();
        let expected = run(&batch, &mut plain, story.now);
        assert_eq!(memory.apply(&batch, When::Store).ok(), Some(expected), "step {step}");
    }
}

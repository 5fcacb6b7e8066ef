//! Snapshots: the state is restored completely, and a damaged file is refused.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use catraca::clock::ManualClock;
use catraca::memory::{Memory, MemoryOptions, RestoreOutcome, SnapshotError};
use catraca::store::{Store, When};
use catraca::{Catalog, Check, Engine, Secret};
use catraca_core::batch::CheckRow;
use catraca_core::cell::CellKind;
use catraca_core::cell::block::Origin;
use catraca_core::limit::Limit;
use catraca_core::time::Span;
use proptest::prelude::*;

use super::helpers::{
    START, answer, apply, block, bucket, count_blocked, key, passes, row, store, window,
};
use super::random_batches::BatchGenerator;

const HOUR: Span = Span::from_secs(3_600);

/// A folder of one test, removed when it ends.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::SeqCst);
        let name = format!("catraca-snapshot-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).expect("a folder for the test");
        Self(path)
    }

    fn file(&self) -> PathBuf {
        self.0.join("state.snapshot")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn few_shards(shards: usize) -> MemoryOptions {
    MemoryOptions { shards, ..MemoryOptions::default() }
}

fn restore(path: &Path, options: MemoryOptions) -> Result<(Memory, RestoreOutcome), SnapshotError> {
    Memory::restore(path, options, Arc::new(ManualClock::at(START)))
}

/// A store after random batches, and the generator of the next ones.
fn after_random_batches(seed: u64, batches: usize) -> (Memory, ManualClock, BatchGenerator) {
    let (memory, clock) = store(few_shards(4));
    let mut story = BatchGenerator::new(seed);
    for _ in 0..batches {
        let batch = story.next_batch();
        memory.apply(&batch, When::At(story.now)).expect("memory never fails");
    }
    clock.set(story.now);
    (memory, clock, story)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// covers: 004-91, 002-48
    #[test]
    fn a_restored_store_goes_on_as_if_nothing_had_happened(
        seed in 0_u64..1 << 20,
        shards in prop_oneof![Just(1_usize), Just(4), Just(64)],
    ) {
        let folder = Folder::new();
        let (memory, clock, mut story) = after_random_batches(seed, 400);
        let written = memory.snapshot(&folder.file()).expect("written");
        let (again, found) =
            Memory::restore(&folder.file(), few_shards(shards), Arc::new(clock)).expect("read");
        let created_at = written.created_at;
        let kept = written.cells;
        let expected = RestoreOutcome::Read {
            created_at,
            sequence: 0,
            kept,
            forgotten: 0,
            left_out: 0,
        };
        prop_assert_eq!(found, expected);
        prop_assert_eq!(fs::metadata(folder.file()).expect("there").len(), written.bytes);
        for _ in 0..400 {
            let batch = story.next_batch();
            let when = When::At(story.now);
            prop_assert_eq!(again.apply(&batch, when).ok(), memory.apply(&batch, when).ok());
        }
    }
}

/// The bytes of a small snapshot with every kind of cell.
fn small_snapshot() -> Vec<u8> {
    let folder = Folder::new();
    let (memory, _, _) = after_random_batches(3, 60);
    let stats = memory.stats();
    assert!(CellKind::ALL.iter().all(|kind| stats[*kind].cells > 0), "{stats:?}");
    memory.snapshot(&folder.file()).expect("written");
    fs::read(folder.file()).expect("there")
}

/// Restoring these bytes fails, and the error names the file.
fn restore_error(bytes: &[u8]) -> SnapshotError {
    let folder = Folder::new();
    fs::write(folder.file(), bytes).expect("written");
    let error = restore(&folder.file(), few_shards(1)).expect_err("a damaged file must be refused");
    let text = error.to_string();
    assert!(text.contains(&folder.file().display().to_string()), "{text}");
    error
}

#[test]
fn a_flipped_bit_is_found_wherever_it_is() {
    let whole = small_snapshot();
    for offset in 0..whole.len() {
        let mut damaged = whole.clone();
        damaged[offset] ^= 1 << (offset % 8);
        let error = restore_error(&damaged);
        let newer = matches!(error, SnapshotError::Newer { .. });
        let corrupt = matches!(error, SnapshotError::Corrupt { .. });
        assert!(corrupt || (newer && (8..12).contains(&offset)), "byte {offset}: {error}");
    }
}

#[test]
fn a_cut_file_is_found_at_every_length() {
    let whole = small_snapshot();
    for length in 0..whole.len() {
        let error = restore_error(&whole[..length]);
        assert!(matches!(error, SnapshotError::Corrupt { .. }), "{length} bytes: {error}");
    }
    let longer = [whole.as_slice(), &[0]].concat();
    assert!(restore_error(&longer).to_string().contains("unexpected bytes after the end"));
}

#[test]
fn a_newer_format_is_refused_by_name() {
    let mut newer = small_snapshot();
    newer[8..12].copy_from_slice(&7_u32.to_le_bytes());
    let error = restore_error(&newer);
    assert!(matches!(error, SnapshotError::Newer { found: 7, known: 2, .. }), "{error}");
    assert!(error.to_string().contains("format 7"), "{error}");
}

#[test]
fn another_file_is_not_taken_for_a_snapshot() {
    let error = restore_error(b"SQLite format 3\0 and so on, for a while");
    assert!(error.to_string().contains("not a snapshot"), "{error}");
    // A folder at this path is an error too, and not an empty start.
    let folder = Folder::new();
    assert!(matches!(restore(&folder.0, few_shards(1)), Err(SnapshotError::Read { .. })));
}

#[test]
fn a_missing_file_is_an_empty_start_and_says_so() {
    let folder = Folder::new();
    let (memory, found) = restore(&folder.file(), few_shards(1)).expect("a first start");
    assert_eq!(found, RestoreOutcome::Missing);
    assert_eq!(memory.stats(), store(few_shards(1)).0.stats());
}

/// covers: 002-48
#[test]
fn a_restart_in_the_middle_of_a_block_still_denies_and_forgets_what_ended() {
    let folder = Folder::new();
    let (memory, clock) = store(few_shards(4));
    apply(&memory, &block((0..100).map(key), Origin::Ban, HOUR));
    apply(&memory, &block((100..150).map(key), Origin::Operator, Span::from_secs(60)));
    memory.snapshot(&folder.file()).expect("written");
    clock.advance(Span::from_secs(60));
    let clock = Arc::new(clock);
    let (again, found) =
        Memory::restore(&folder.file(), few_shards(4), clock).expect("a whole file");
    let expected = RestoreOutcome::Read {
        created_at: START,
        sequence: 0,
        kept: 100,
        forgotten: 50,
        left_out: 0,
    };
    assert_eq!(found, expected);
    assert_eq!(count_blocked(&again, (0..150).map(key)), 100);
}

#[test]
fn a_smaller_store_says_what_it_left_out_and_keeps_every_block_it_can() {
    let folder = Folder::new();
    let (memory, _) = store(few_shards(4));
    (0..20_000).for_each(|number| {
        answer(&memory, row(key(number), bucket(5, HOUR)));
    });
    apply(&memory, &block((0..300).map(key), Origin::Ban, HOUR));
    memory.snapshot(&folder.file()).expect("written");
    let small = MemoryOptions { shards: 1, budget_bytes: 128 << 10, ..MemoryOptions::default() };
    let (again, found) = restore(&folder.file(), small).expect("a whole file");
    let RestoreOutcome::Read { kept, left_out, .. } = found else { panic!("{found:?}") };
    assert_eq!(kept + left_out, 20_300);
    assert!(left_out > 10_000, "{found:?}");
    assert_eq!(count_blocked(&again, (0..300).map(key)), 300);
    assert!(again.stats().counter_bytes() <= 128 << 10);
}

/// The overflow cells of a full store are restored as overflow cells.
#[test]
fn shared_cells_survive_as_such() {
    let folder = Folder::new();
    let options = MemoryOptions { budget_bytes: 64 << 10, ..few_shards(1) };
    let (memory, _) = store(options);
    let newcomer = |number| CheckRow { family: 5, ..row(key(number), bucket(3, HOUR)) };
    (0..5_000).for_each(|number| {
        answer(&memory, newcomer(number));
    });
    assert!(!passes(&memory, newcomer(9_000)));
    memory.snapshot(&folder.file()).expect("written");
    let (again, _) = restore(&folder.file(), options).expect("a whole file");
    assert_eq!(again.stats().overflow.cells, 1);
    assert!(!passes(&again, newcomer(9_001)), "the shared quota is still used up");
}

#[test]
fn an_older_snapshot_stays_when_a_new_one_cannot_be_written() {
    let folder = Folder::new();
    let (memory, _) = store(few_shards(1));
    apply(&memory, &block([key(1)], Origin::Operator, HOUR));
    memory.snapshot(&folder.file()).expect("written");
    // A folder at the path of the temporary file makes the write fail.
    let draft = folder.0.join("state.snapshot.tmp");
    fs::create_dir(&draft).expect("made");
    let error = memory.snapshot(&folder.file()).expect_err("no draft, no snapshot");
    assert!(matches!(error, SnapshotError::Write { .. }), "{error}");
    let (again, _) = restore(&folder.file(), few_shards(1)).expect("the older one");
    assert_eq!(count_blocked(&again, [key(1)]), 1);
}

#[cfg(unix)]
#[test]
fn a_snapshot_is_for_its_owner_alone_and_leaves_no_draft() {
    use std::os::unix::fs::PermissionsExt;
    let folder = Folder::new();
    let (memory, _) = store(few_shards(1));
    memory.snapshot(&folder.file()).expect("written");
    let mode = fs::metadata(folder.file()).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(fs::read_dir(&folder.0).expect("there").count(), 1);
}

/// Callers continue while a snapshot is written, and each key is stored consistently.
#[test]
fn traffic_goes_on_while_a_snapshot_is_written() {
    let folder = Folder::new();
    let (memory, _) = store(MemoryOptions::default());
    (0..50_000).for_each(|number| {
        answer(&memory, row(key(number), window(9, HOUR)));
    });
    let done = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            (0..5).for_each(|_| {
                memory.snapshot(&folder.file()).expect("written");
            });
            done.store(1, Ordering::SeqCst);
        });
        let mut number = 0;
        while done.load(Ordering::SeqCst) == 0 {
            number += 1;
            assert!(passes(&memory, row(key(1_000_000 + number), Limit::Unlimited)));
        }
    });
    let (again, found) = restore(&folder.file(), MemoryOptions::default()).expect("a whole file");
    assert!(matches!(found, RestoreOutcome::Read { kept: 50_000, left_out: 0, .. }), "{found:?}");
    assert_eq!(again.stats()[CellKind::SlidingWindow].cells, 50_000);
}

const LOGIN: &str = "[policy.login]\nby = [\"ip\"]\nwindow = \"1 per 1h\"\nblock = \"2h\"\n";

/// Regression: a snapshot could be restored into a store, but no engine could be built over it.
#[test]
fn an_engine_goes_on_from_a_snapshot() {
    let folder = Folder::new();
    let clock = ManualClock::at(START);
    let secret = Secret::from_bytes([7; 32]);
    let builder =
        || Engine::builder(Catalog::parse(LOGIN).expect("a catalog")).clock(clock.clone());
    let check = Check::new("login", [("ip", "198.51.100.7")]);
    let first = builder().secret(secret.clone()).build();
    assert!(first.check(&check).expect("a decision").allowed);
    assert!(!first.check(&check).expect("a decision").allowed);
    first.store().snapshot(&folder.file()).expect("a snapshot");

    let (second, found) =
        builder().secret(secret.clone()).restore(&folder.file()).expect("a start");
    assert!(matches!(found, RestoreOutcome::Read { kept: 2, left_out: 0, .. }), "{found:?}");
    let denied = second.check(&check).expect("a decision");
    assert_eq!((denied.allowed, denied.reason.as_str()), (false, "blocked"));
    clock.advance(Span::from_secs(2 * 3_600));
    assert!(second.check(&check).expect("a decision").allowed, "the clock is the builder's");

    let missing = builder().secret(secret).restore(&folder.0.join("none")).expect("a first start");
    assert_eq!(missing.1, RestoreOutcome::Missing);
    let refused = builder().restore(&folder.file()).expect_err("no secret");
    assert!(matches!(refused, SnapshotError::NoSecret { .. }), "{refused}");
}

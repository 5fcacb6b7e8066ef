//! The program is killed: the next one has the state of the last snapshot, which is one second old,
//! and the categories, which the records have. Debts and bans are forgotten here as well, although
//! a server has them in its records, so the test is stricter than `kill -9`.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process;
use std::time::{Duration, Instant};

use catraca::engine::Builder;
use catraca::memory::{MemoryOptions, RestoreOutcome};
use catraca::{Catalog, Engine, ManualClock, Secret};

use super::{Day, DayStep, SECOND_US, preset};

/// `[store] snapshot_interval` of the preset.
const SNAPSHOT_US: i64 = SECOND_US;
const QUARTER_US: i64 = 900 * SECOND_US;
/// In the middle of the largest rush, of 62,000 payers.
const RUSH_US: i64 = (10 * 3_600 + 30) * SECOND_US;

/// What happens to the program.
#[derive(Clone, Copy)]
pub enum KillStep {
    /// The last snapshot before a kill.
    Snapshot,
    Kill,
}

/// Kills of the program so far.
pub struct Kills {
    catalog: Catalog,
    /// The category that was last stated of each participant.
    categories: BTreeMap<&'static str, String>,
    file: PathBuf,
    pub count: u64,
    /// Settles since the last snapshot, and all that kills have forgotten.
    since_snapshot: u64,
    forgotten: u64,
    /// The largest snapshot: cells, bytes, and the time to write it.
    largest: (u64, u64, Duration),
}

impl Kills {
    pub fn new(catalog: &Catalog) -> Self {
        let name = format!("catraca-dict-{}.snapshot", process::id());
        Self {
            catalog: catalog.clone(),
            categories: BTreeMap::new(),
            file: PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name),
            count: 0,
            since_snapshot: 0,
            forgotten: 0,
            largest: (0, 0, Duration::ZERO),
        }
    }

    /// A settle that a kill would forget.
    pub fn note_charge(&mut self) {
        self.since_snapshot += 1;
    }
}

/// An engine that survives as a snapshot and a secret.
pub fn builder(catalog: Catalog, clock: &ManualClock) -> Builder {
    // Room for the references of every payer of a rush.
    let memory = MemoryOptions {
        reference_bytes: 512 << 20,
        mark_bytes: 512 << 20,
        ..MemoryOptions::default()
    };
    let secret = Secret::from_bytes([7; 32]);
    Engine::builder(catalog).clock(clock.clone()).memory(memory).secret(secret)
}

impl Day {
    /// Assigns a category as an operator does, or the worker.
    pub fn state_category(&mut self, participant: &'static str, category: String) {
        let facts = [("category", category.as_str())];
        self.engine.state_facts(None, "participant", participant, &facts).unwrap();
        self.kills.categories.insert(participant, category);
    }

    pub fn kill_step(&mut self, step: KillStep) {
        match step {
            KillStep::Snapshot => {
                let begun = Instant::now();
                let written = self.engine.store().snapshot(&self.kills.file).unwrap();
                let largest = (written.cells, written.bytes, begun.elapsed());
                self.kills.largest = self.kills.largest.max(largest);
                self.kills.since_snapshot = 0;
                self.at(SNAPSHOT_US, DayStep::Kill(KillStep::Kill));
            }
            KillStep::Kill => {
                let next = builder(self.kills.catalog.clone(), &self.clock);
                let (engine, found) = next.restore(&self.kills.file).unwrap();
                assert!(matches!(found, RestoreOutcome::Read { left_out: 0, .. }), "{found:?}");
                self.engine = engine;
                for (participant, category) in self.kills.categories.clone() {
                    self.state_category(participant, category);
                }
                self.kills.count += 1;
                self.kills.forgotten += self.kills.since_snapshot;
            }
        }
    }
}

/// Every quarter of an hour a second of charges is forgotten. A payer who was charged in it may
/// look up more than the bank allows, and then the bank's 429 empties our bucket as well.
///
///
#[test]
fn a_kill_forgets_a_second_and_costs_a_payer_one_429_at_most() {
    let mut day = Day::new(preset(None), true);
    let quarters = (1..96).map(|number| number * QUARTER_US);
    for at in quarters.chain([RUSH_US]) {
        day.at(at, DayStep::Kill(KillStep::Snapshot));
    }
    day.run();
    let (requests, refusals) = (day.bank.requests(), day.bank.refusals());
    let Kills { count, forgotten, largest: (cells, bytes, took), .. } = day.kills;
    println!("{count} kills forgot {forgotten} settles: {refusals} of {requests} got a 429");
    println!("the largest snapshot: {cells} cells, {bytes} bytes, written in {took:?}");
    let _ = fs::remove_file(&day.kills.file);
    assert_eq!(count, 96);
    assert!(requests > 100_000 && forgotten > 500, "{requests} {forgotten}");
    assert!(refusals <= count, "{refusals}");
}

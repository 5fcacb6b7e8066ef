//! Processes killed at random: acknowledged acts are stored; others are stored whole or not at all.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::engine;
use crate::helpers::{ChildProcess, Folder, active_marks, open, role, subject};

/// Rounds on one file, so that most starts find the files of a killed process.
const ROUNDS_PER_FILE: u64 = 10;

/// covers: 004-92
pub fn what_was_acknowledged_survives() {
    let kills = env_number("CATRACA_KILLS", 200);
    let mut random = env_number("CATRACA_SEED", 20_261_116);
    println!("{kills} kills; repeat with CATRACA_SEED={random}");
    let begun = Instant::now();
    let mut acts = 0;
    for first in (0..kills).step_by(ROUNDS_PER_FILE as usize) {
        let folder = Folder::new(&format!("kill{first}"));
        for round in first..kills.min(first + ROUNDS_PER_FILE) {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            acts += run_and_kill(&folder, round, Duration::from_micros((random >> 33) % 100_000));
        }
    }
    println!("{kills} kills, {acts} acknowledged acts, none lost, in {:?}", begun.elapsed());
    assert!(acts > kills, "only {acts} acts were acknowledged: the kills come too early");
}

fn env_number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// Runs one process and kills it; returns the number of acknowledged acts.
fn run_and_kill(folder: &Folder, round: u64, after: Duration) -> u64 {
    let mut command = role("act", &folder.0);
    let mut running = ChildProcess::start(command.env("CATRACA_ROUND", round.to_string()));
    assert_eq!(running.lines.recv().unwrap(), "ready");
    // The time of the kill is the random input of the test, so a real wait is needed.
    std::thread::sleep(after);
    running.child.kill().unwrap();
    let (lines, _) = running.finish();
    let records = Arc::new(open(&folder.0));
    let found = active_marks(&records);
    let node = engine::start(&folder.0, &records);
    let mut acknowledged = 0;
    let mut offended = BTreeMap::new();
    for line in &lines {
        // The last line may be incomplete, so it is ignored.
        let Some((word, mark)) = line.split_once(' ') else { continue };
        let whole = Some(line) != lines.last();
        match word {
            _ if !whole => {}
            "did" => {
                acknowledged += 1;
                assert!(found.blocks.contains(mark), "block {mark} was lost");
                assert!(found.lists.contains(mark), "entry {mark} was lost");
                assert!(found.facts.contains(mark), "fact {mark} was lost");
                assert!(found.debts.contains(&subject(mark).key), "debt {mark} was lost");
            }
            "freed" => {
                acknowledged += 1;
                assert!(!found.blocks.contains(mark), "{mark} is blocked again");
            }
            "reset" => {
                acknowledged += 1;
                node.assert_reset(mark);
            }
            "offended" => {
                let (name, offences) = mark.split_once(' ').unwrap();
                offended.insert(name, offences.parse().unwrap());
            }
            _ => {}
        }
    }
    for (name, offences) in offended {
        acknowledged += 1;
        node.assert_offended(name, offences);
    }
    let whole: std::collections::BTreeSet<String> =
        found.blocks.iter().filter(|mark| !mark.ends_with(".freed")).cloned().collect();
    assert_eq!(whole, found.lists, "an act of round {round} was written in part");
    assert_eq!(found.lists, found.facts, "an act of round {round} was written in part");
    assert_eq!(found.lists.len(), found.debts.len(), "an act of round {round} was written in part");
    assert!(records.verify().unwrap().is_empty());
    acknowledged
}

//! Killed at any moment: what was acknowledged is there, what was not is there or absent, whole.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::engine;
use crate::helpers::{Folder, Running, found, open, role, who};

/// Rounds on one file, so that most starts find what an earlier process left.
const ROUNDS_PER_FILE: u64 = 10;

/// covers: 004-92
pub fn what_was_acknowledged_survives() {
    let kills = number("CATRACA_KILLS", 200);
    let mut dice = number("CATRACA_SEED", 20_261_116);
    println!("{kills} kills; repeat with CATRACA_SEED={dice}");
    let begun = Instant::now();
    let mut acts = 0;
    for first in (0..kills).step_by(ROUNDS_PER_FILE as usize) {
        let folder = Folder::new(&format!("kill{first}"));
        for round in first..kills.min(first + ROUNDS_PER_FILE) {
            dice = dice
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            acts += killed(&folder, round, Duration::from_micros((dice >> 33) % 100_000));
        }
    }
    println!("{kills} kills, {acts} acknowledged acts, none lost, in {:?}", begun.elapsed());
    assert!(acts > kills, "only {acts} acts were acknowledged: the kills come too early");
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// One process, killed; says how many of its acts were acknowledged.
fn killed(folder: &Folder, round: u64, after: Duration) -> u64 {
    let mut command = role("act", &folder.0);
    let mut running = Running::start(command.env("CATRACA_ROUND", round.to_string()));
    assert_eq!(running.lines.recv().unwrap(), "ready");
    // The moment of the kill is what is tested, so it has to be waited for.
    std::thread::sleep(after);
    running.child.kill().unwrap();
    let (lines, _) = running.finish();
    let records = Arc::new(open(&folder.0));
    let found = found(&records);
    let engine = engine::start(&folder.0, &records);
    let mut acknowledged = 0;
    let mut offended = BTreeMap::new();
    for line in &lines {
        // The last line may be cut off in the middle of its mark.
        let Some((word, mark)) = line.split_once(' ') else { continue };
        let whole = Some(line) != lines.last();
        match word {
            _ if !whole => {}
            "did" => {
                acknowledged += 1;
                assert!(found.blocks.contains(mark), "block {mark} was lost");
                assert!(found.lists.contains(mark), "entry {mark} was lost");
                assert!(found.facts.contains(mark), "fact {mark} was lost");
                assert!(found.debts.contains(&who(mark).key), "debt {mark} was lost");
            }
            "freed" => {
                acknowledged += 1;
                assert!(!found.blocks.contains(mark), "{mark} is blocked again");
            }
            "reset" => {
                acknowledged += 1;
                engine::assert_reset(&engine, mark);
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
        engine::assert_offended(&engine, name, offences);
    }
    let whole: std::collections::BTreeSet<String> =
        found.blocks.iter().filter(|mark| !mark.ends_with(".freed")).cloned().collect();
    assert_eq!(whole, found.lists, "half an act of round {round}");
    assert_eq!(found.lists, found.facts, "half an act of round {round}");
    assert_eq!(found.lists.len(), found.debts.len(), "half an act of round {round}");
    assert!(records.verify().unwrap().is_empty());
    acknowledged
}

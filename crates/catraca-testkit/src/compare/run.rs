//! Tells one story to both sides, and shortens it when they disagree.
//!
//! It must compare after every operation and stop at the first difference: what follows one means
//! nothing.

use std::fmt;

use super::answer::Answer;
use super::model::Model;
use super::real::Real;
use crate::generate::op::Op;
use crate::generate::{Story, text};
use crate::oracle::catalog::Catalog;

/// What was compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Checks and peeks.
    pub decisions: u64,
    /// Operations of any kind.
    pub operations: u64,
}

/// The shortest story found on which the two sides disagree.
#[derive(Clone, Debug)]
pub struct Mismatch {
    /// Seed of the story.
    pub seed: u64,
    /// Versions of its catalog.
    pub versions: Vec<Catalog>,
    /// Operations up to and with the one they disagree on.
    pub ops: Vec<Op>,
    /// What the oracle answered.
    pub oracle: Option<Answer>,
    /// What the engine answered.
    pub engine: Option<Answer>,
}

/// Tells the story of a seed, `length` operations long.
pub fn story(seed: u64, length: usize) -> Result<Tally, Box<Mismatch>> {
    let mut story = Story::new(seed);
    let mut model = Model::new(&story.versions);
    let mut real = Real::new(&story.versions);
    let (mut ops, mut tally) = (Vec::new(), Tally::default());
    for _ in 0..length {
        let op = story.next_op();
        let (oracle, engine) = (model.play(&op), real.play(&op));
        ops.push(op);
        if oracle != engine {
            return Err(Box::new(shorten(seed, &story.versions, ops)));
        }
        let op = &ops[ops.len() - 1];
        if let Some(Answer::Decided(decision)) = &oracle {
            story.heard(op, decision);
        }
        tally.operations += 1;
        tally.decisions += u64::from(op.verb.decides());
    }
    Ok(tally)
}

/// Drops operations, many at a time and then fewer, as long as the two sides still disagree.
fn shorten(seed: u64, versions: &[Catalog], ops: Vec<Op>) -> Mismatch {
    let mut shortest = replay(seed, versions, &ops).expect("a story repeats itself");
    let mut size = shortest.ops.len().next_power_of_two();
    while size > 0 {
        let before = shortest.ops.len();
        let mut place = 0;
        while place < shortest.ops.len() {
            let mut fewer = shortest.ops.clone();
            fewer.drain(place..(place + size).min(fewer.len()));
            match replay(seed, versions, &fewer) {
                Some(shorter) => shortest = shorter,
                None => place += size,
            }
        }
        // The last pass is repeated until nothing more can go.
        let again = size == 1 && shortest.ops.len() < before;
        size = if again { 1 } else { size / 2 };
    }
    shortest
}

/// Plays operations to two fresh sides; what they disagree on first.
fn replay(seed: u64, versions: &[Catalog], ops: &[Op]) -> Option<Mismatch> {
    let (mut model, mut real) = (Model::new(versions), Real::new(versions));
    for (place, op) in ops.iter().enumerate() {
        let (oracle, engine) = (model.play(op), real.play(op));
        if oracle != engine {
            let (versions, ops) = (versions.to_vec(), ops[..=place].to_vec());
            return Some(Mismatch { seed, versions, ops, oracle, engine });
        }
    }
    None
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "oracle and engine disagree; seed {}", self.seed)?;
        for (number, version) in self.versions.iter().enumerate() {
            writeln!(f, "--- catalog, version {number}\n{}", text::toml(version))?;
        }
        writeln!(f, "--- operations")?;
        for op in &self.ops {
            writeln!(f, "{:>4} at {} {:?}", op.number, op.at, op.verb)?;
        }
        writeln!(f, "--- oracle\n{:#?}\n--- engine\n{:#?}", self.oracle, self.engine)
    }
}

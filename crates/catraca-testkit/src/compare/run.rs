//! Applies one trace to both sides, and shortens it when they disagree.
//!
//! The run stops at the first difference, because the states of the sides differ from then on.

use std::fmt;

use catraca::store::Store;

use super::answer::ComparedAnswer;
use super::engine_side::EngineSide;
use super::oracle_side::OracleSide;
use crate::generate::op::Op;
use crate::generate::{Trace, catalog_toml};
use crate::oracle::catalog::Catalog;

/// How many answers were compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnswerCounts {
    /// Checks and peeks.
    pub decisions: u64,
    /// Operations of any kind.
    pub operations: u64,
}

/// The shortest trace found on which the two sides disagree.
#[derive(Clone, Debug)]
pub struct Divergence {
    /// The seed of the trace.
    pub seed: u64,
    /// The versions of its catalog.
    pub versions: Vec<Catalog>,
    /// The operations, up to and including the one with the difference.
    pub ops: Vec<Op>,
    /// The oracle's answer.
    pub oracle: Option<ComparedAnswer>,
    /// The engine's answer.
    pub engine: Option<ComparedAnswer>,
}

/// Generates the trace of a seed with `length` operations, and compares every answer.
pub fn compare_trace(seed: u64, length: usize) -> Result<AnswerCounts, Box<Divergence>> {
    compare_trace_on(EngineSide::new, seed, length)
}

/// The same on engines that `start` makes, each for the versions of a catalog and without state.
pub fn compare_trace_on<S: Store>(
    start: impl Fn(&[Catalog]) -> EngineSide<S>,
    seed: u64,
    length: usize,
) -> Result<AnswerCounts, Box<Divergence>> {
    let mut trace = Trace::new(seed);
    let mut oracle_side = OracleSide::new(&trace.versions);
    let mut engine_side = start(&trace.versions);
    let mut ops = Vec::new();
    let mut counts = AnswerCounts::default();
    for _ in 0..length {
        let op = trace.next_op();
        let oracle = oracle_side.apply(&op);
        let engine = engine_side.apply(&op);
        ops.push(op);
        if oracle != engine {
            return Err(Box::new(shorten(&start, seed, &trace.versions, ops)));
        }
        let op = &ops[ops.len() - 1];
        if let Some(ComparedAnswer::Decided(decision)) = &oracle {
            trace.learn(op, decision);
        }
        counts.operations += 1;
        counts.decisions += u64::from(op.kind.decides());
    }
    Ok(counts)
}

/// Drops operations, first many at a time and then fewer, while the two sides still disagree.
fn shorten<S: Store>(
    start: &impl Fn(&[Catalog]) -> EngineSide<S>,
    seed: u64,
    versions: &[Catalog],
    ops: Vec<Op>,
) -> Divergence {
    let mut shortest = replay(start, seed, versions, &ops).expect("a trace is reproducible");
    let mut size = shortest.ops.len().next_power_of_two();
    while size > 0 {
        let before = shortest.ops.len();
        let mut index = 0;
        while index < shortest.ops.len() {
            let mut fewer = shortest.ops.clone();
            fewer.drain(index..(index + size).min(fewer.len()));
            match replay(start, seed, versions, &fewer) {
                Some(shorter) => shortest = shorter,
                // Without these operations the sides agree, so they are needed.
                None => index += size,
            }
        }
        // Passes that drop single operations repeat until one drops none.
        let repeat = size == 1 && shortest.ops.len() < before;
        size = if repeat { 1 } else { size / 2 };
    }
    shortest
}

/// Applies operations to two new sides; returns their first difference.
fn replay<S: Store>(
    start: &impl Fn(&[Catalog]) -> EngineSide<S>,
    seed: u64,
    versions: &[Catalog],
    ops: &[Op],
) -> Option<Divergence> {
    let mut oracle_side = OracleSide::new(versions);
    let mut engine_side = start(versions);
    for (index, op) in ops.iter().enumerate() {
        let oracle = oracle_side.apply(op);
        let engine = engine_side.apply(op);
        if oracle != engine {
            let versions = versions.to_vec();
            let ops = ops[..=index].to_vec();
            return Some(Divergence { seed, versions, ops, oracle, engine });
        }
    }
    None
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "oracle and engine disagree; seed {}", self.seed)?;
        for (number, version) in self.versions.iter().enumerate() {
            writeln!(f, "--- catalog, version {number}\n{}", catalog_toml::toml(version))?;
        }
        writeln!(f, "--- operations")?;
        for op in &self.ops {
            writeln!(f, "{:>4} at {} {:?}", op.number, op.at, op.kind)?;
        }
        writeln!(f, "--- oracle\n{:#?}\n--- engine\n{:#?}", self.oracle, self.engine)
    }
}

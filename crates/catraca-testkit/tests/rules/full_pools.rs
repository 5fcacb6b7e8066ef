//! The oracle comparison with full memory pools: counters, blocks, references and settled markers.
//!
//! Half of each trace runs before the pools are full. Afterwards a row with a counter is still
//! exact. A row without room follows `on_failure`, its decision is degraded and starts no block; a
//! settle without room for its marker is refused and changes nothing; a block without room does not
//! start, and the row denies without it. The oracle does not see what found no room.

use std::collections::{BTreeMap, BTreeSet};

use catraca::memory::{Memory, MemoryOptions, MemoryStats};
use catraca::store::{Store, When};
use catraca::{Catalog, Time};
use catraca_core::batch::{Batch, CheckBatch, CheckRow, NewReference, SettleBatch};
use catraca_core::cell::CellKind;
use catraca_core::cell::block::{BlockNote, BlockProposal, Origin};
use catraca_core::limit::{Limit, Penalty};
use catraca_testkit::compare::answer::{ComparedAnswer, ComparedRefusal};
use catraca_testkit::compare::engine_side::EngineSide;
use catraca_testkit::compare::oracle_side::OracleSide;
use catraca_testkit::generate::op::{Op, OpKind};
use catraca_testkit::generate::{Rng, Trace, catalog_toml};
use catraca_testkit::oracle::catalog::Catalog as Plain;
use catraca_testkit::oracle::select::Subject;

use super::full_memory::{YEAR, fill, key, with_failure_modes};

const SEED: u64 = 8_128;
const TRACES: u64 = 120;
/// Raises the number of traces.
const TRACES_VARIABLE: &str = "CATRACA_FULL_POOL_TRACES";
const STEPS: usize = 400;
const POOL: usize = 64 << 10;
/// Numbers of keys that fill the pools, apart from those of `full_memory`.
const FILLERS: u64 = 1 << 32;

/// What was seen after the pools were full.
#[derive(Debug, Default)]
struct Seen {
    exact: u64,
    degraded: BTreeMap<String, u64>,
    refused_settles: u64,
    refused_blocks: u64,
}

#[test]
fn rows_with_room_agree_with_the_oracle_when_all_pools_are_full() {
    let mut seen = Seen::default();
    let traces = std::env::var(TRACES_VARIABLE).map_or(TRACES, |text| text.parse().unwrap());
    for seed in SEED..SEED + traces {
        FullPools::new(seed).run(&mut seen);
    }
    let degraded: u64 = seen.degraded.values().sum();
    println!("{} decisions in {traces} traces: {seen:?}", seen.exact + degraded);
    assert!(seen.exact > 4_000 && seen.refused_settles > 200, "{seen:?}");
    assert!(seen.refused_blocks > 40, "{seen:?}");
    for reason in ["ok", "over_limit", "unavailable"] {
        assert!(seen.degraded.get(reason).is_some_and(|count| *count > 100), "{seen:?}");
    }
}

/// One trace on both sides.
struct FullPools {
    seed: u64,
    trace: Trace,
    engine: EngineSide,
    oracle: OracleSide,
    /// The policy and the subject of each check that both sides made.
    checks: BTreeMap<usize, (String, Subject)>,
    /// Checks whose settles are left out: those that only the engine made, since it had no counter
    /// for them, and those whose settle found no room for its block. The oracle repeats the answer
    /// of a settle, with the block.
    degraded: BTreeSet<usize>,
}

impl FullPools {
    fn new(seed: u64) -> Self {
        let mut trace = Trace::new(seed);
        trace.versions.iter_mut().for_each(simplify);
        let mode = |version: &Plain| {
            let text = with_failure_modes(&catalog_toml::toml(version), &mut Rng::new(seed));
            Catalog::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
        };
        let versions = trace.versions.iter().map(mode).collect();
        let options = MemoryOptions {
            budget_bytes: POOL,
            block_bytes: POOL,
            reference_bytes: POOL,
            mark_bytes: POOL,
            shards: 1,
        };
        Self {
            seed,
            engine: EngineSide::with_memory(versions, options),
            oracle: OracleSide::new(&trace.versions),
            trace,
            checks: BTreeMap::new(),
            degraded: BTreeSet::new(),
        }
    }

    fn run(mut self, seen: &mut Seen) {
        for step in 0..STEPS {
            let op = self.trace.next_op();
            if step == STEPS / 2 {
                fill_all(self.engine.memory(), Time::from_micros(op.at));
            }
            if matches!(op.kind, OpKind::Credit { .. }) || self.settles_degraded(&op) {
                continue;
            }
            let before = self.engine.memory().stats();
            let answer = self.engine.apply(&op);
            let after = self.engine.memory().stats();
            // A settle or an upstream's view whose own counter found no room: the sides differ from
            // here on.
            let lost = after.refused_counters > before.refused_counters
                || (after.overflowed > before.overflowed && !op.kind.decides());
            if lost {
                return;
            }
            let mut unseen = Seen::default();
            let seen = if step < STEPS / 2 { &mut unseen } else { &mut *seen };
            self.compare(&op, answer, &before, &after, seen);
        }
    }

    fn settles_degraded(&self, op: &Op) -> bool {
        matches!(&op.kind, OpKind::Settle { check, .. } if self.degraded.contains(check))
    }

    fn compare(
        &mut self,
        op: &Op,
        answer: Option<ComparedAnswer>,
        before: &MemoryStats,
        after: &MemoryStats,
        seen: &mut Seen,
    ) {
        let seed = self.seed;
        if let Some(ComparedAnswer::Degraded(reason)) = answer {
            self.degraded.insert(op.number);
            let started = after.refused_blocks > before.refused_blocks
                || after[CellKind::Block].cells > before[CellKind::Block].cells;
            assert!(!started, "seed {seed}: {op:?}");
            *seen.degraded.entry(reason).or_default() += 1;
            return;
        }
        if after.refused_marks > before.refused_marks {
            let refused = matches!(
                &answer,
                Some(ComparedAnswer::Refused(ComparedRefusal::Other(why))) if why.contains("full")
            );
            assert!(refused, "seed {seed}: {op:?} gave {answer:?}");
            seen.refused_settles += 1;
            return;
        }
        let oracle = self.oracle.apply(op);
        if let (OpKind::Check(request), Some(ComparedAnswer::Decided(decision))) =
            (&op.kind, &oracle)
        {
            self.trace.learn(op, decision);
            let policy = decision.rows.first().map(|row| row.policy.clone());
            let check = policy.map(|policy| (policy, request.subject.clone()));
            self.checks.extend(check.map(|check| (op.number, check)));
        }
        if after.refused_blocks > before.refused_blocks {
            seen.refused_blocks += 1;
            assert_eq!(verdict(&oracle), verdict(&answer), "seed {seed}: {op:?}");
            self.forget_block(op);
        } else {
            seen.exact += u64::from(op.kind.decides());
            assert_eq!(oracle, answer, "seed {seed}: {op:?}");
        }
    }

    fn forget_block(&mut self, op: &Op) {
        let check = match &op.kind {
            OpKind::Settle { check, .. } => self.checks.get(check),
            OpKind::Block { policy, subject, .. } => Some(&(policy.clone(), subject.clone())),
            _ => self.checks.get(&op.number),
        };
        let Some((policy, subject)) = check.cloned() else { return };
        if let OpKind::Settle { check, .. } = &op.kind {
            self.degraded.insert(*check);
        }
        self.oracle.forget_block(&policy, &subject);
    }
}

/// One policy per gate, one key per policy, and nothing that counts besides the limit: so a
/// decision that found no room changed nothing that the oracle knows.
fn simplify(catalog: &mut Plain) {
    for policy in &mut catalog.policies {
        if !policy.each.is_empty() {
            policy.each.clear();
            policy.by = vec![vec!["ip".to_owned()]];
        }
        policy.otherwise = None;
        policy.watch = None;
        policy.bans.iter_mut().for_each(|ban| ban.after = None);
    }
    catalog.gates.iter_mut().for_each(|gate| gate.policies.truncate(1));
    catalog.default = None;
}

/// Whether a decision allows, and why; nothing for other answers.
fn verdict(answer: &Option<ComparedAnswer>) -> Option<(bool, String)> {
    let Some(ComparedAnswer::Decided(decision)) = answer else { return None };
    Some((decision.allowed, format!("{:?}", decision.reason)))
}

/// Fills all four pools with cells that outlive the trace.
fn fill_all(memory: &Memory, now: Time) {
    fill(memory, now);
    let apply = |batch| {
        memory.apply(&batch, When::At(now)).expect("memory never fails");
    };
    let mut numbers = FILLERS..;
    let mut next = || key(numbers.next().expect("endless"));
    let before = memory.stats();
    while memory.stats().refused_marks == before.refused_marks {
        let (marker, expires) = (next(), now.after(YEAR));
        apply(Batch::Settle(SettleBatch { marker, expires, rows: Vec::new(), reference: None }));
    }
    while memory.stats().refused_blocks == before.refused_blocks {
        let penalty = Penalty::without_escalation(YEAR);
        let note = BlockNote::default();
        let act = BlockProposal::new(penalty, Origin::Excess, false, note);
        apply(Batch::Block(vec![(next(), act)]));
    }
    while memory.stats().dropped_references == before.dropped_references {
        let ticket = vec![0; 100].into_boxed_slice();
        let reference = NewReference { key: next(), owner: next(), ticket, span: YEAR };
        let row = CheckRow { family: 1, held: 0, ..CheckRow::new(next(), Limit::Unlimited) };
        let new_reference = Some(Box::new(reference));
        let rows = [row].into_iter().collect();
        apply(Batch::Check(CheckBatch { rows, new_reference, ..CheckBatch::default() }));
    }
    assert_eq!(memory.full_pools().len(), 4, "{:?}", memory.full_pools());
}

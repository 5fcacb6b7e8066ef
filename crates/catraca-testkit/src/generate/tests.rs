//! Tests of the generator: it is reproducible, and its traces reach every kind of answer.

use std::collections::BTreeSet;

use super::{Op, Trace, catalog_toml};
use crate::compare::answer::ComparedAnswer;
use crate::compare::oracle_side::OracleSide;
use crate::oracle::answer::{CreditAnswer, SettleAnswer};

/// The operations of a seed's trace, with the oracle's answers.
fn run(seed: u64, length: usize) -> Vec<(Op, Option<ComparedAnswer>)> {
    let mut trace = Trace::new(seed);
    let mut oracle = OracleSide::new(&trace.versions);
    let mut answers = Vec::new();
    for _ in 0..length {
        let op = trace.next_op();
        let answer = oracle.apply(&op);
        if let Some(ComparedAnswer::Decided(decision)) = &answer {
            trace.learn(&op, decision);
        }
        answers.push((op, answer));
    }
    answers
}

fn kind(answer: &ComparedAnswer) -> String {
    match answer {
        ComparedAnswer::Decided(decision) => format!("decided {:?}", decision.reason),
        ComparedAnswer::Settled(SettleAnswer::Applied(_)) => "settled".to_owned(),
        ComparedAnswer::Credited(CreditAnswer::Applied(_)) => "credited".to_owned(),
        ComparedAnswer::Blocked(_) => "blocked".to_owned(),
        ComparedAnswer::Reconciled(_) => "reconciled".to_owned(),
        other => format!("{other:?}"),
    }
}

#[test]
fn a_seed_always_tells_the_same_story() {
    assert_eq!(run(11, 200), run(11, 200));
    assert_ne!(run(11, 200), run(12, 200));
    assert_eq!(
        catalog_toml::toml(&Trace::new(11).versions[0]),
        catalog_toml::toml(&Trace::new(11).versions[0])
    );
}

#[test]
fn catalogs_have_tiers_of_every_form() {
    let traces: Vec<Trace> = (0..100).map(Trace::new).collect();
    let policies = || traces.iter().flat_map(|trace| &trace.versions[0].policies);
    let tiers = || policies().flat_map(|policy| &policy.tiers);
    assert!(policies().any(|policy| policy.limits_only_tiers()), "without a limit of the policy");
    assert!(tiers().any(|tier| tier.when.len() == 2), "two names");
    assert!(tiers().any(|tier| tier.when[0].1.len() == 2), "a list of values");
}

#[test]
fn time_never_goes_back() {
    for seed in 0..20 {
        let answers = run(seed, 200);
        assert!(answers.windows(2).all(|pair| pair[0].0.at <= pair[1].0.at));
    }
}

#[test]
fn stories_meet_every_kind_of_answer() {
    let answers = (0..200).flat_map(|seed| run(seed, 200));
    let kinds: BTreeSet<String> =
        answers.filter_map(|(_, answer)| answer.as_ref().map(kind)).collect();
    for expected in [
        "decided Ok",
        "decided OverLimit",
        "decided Blocked",
        "decided TooCostly",
        "decided Missing",
        "settled",
        "blocked",
        "reconciled",
        "Settled(Expired)",
        "credited",
        "Credited(Unknown)",
        "Credited(OtherSubject)",
        "Credited(Duplicate)",
        "Credited(NotSettled)",
        "Credited(NotCreditable)",
        "Released(true)",
        "Released(false)",
        "Refused(MissingAttribute)",
        "Refused(UnknownGate)",
    ] {
        assert!(kinds.contains(expected), "no trace reached {expected}; reached {kinds:?}");
    }
}

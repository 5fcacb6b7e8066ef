//! The generator itself: that it repeats, and that it gets everywhere.

use std::collections::BTreeSet;

use super::{Op, Story, text};
use crate::compare::answer::Answer;
use crate::compare::model::Model;
use crate::oracle::answer::{Credited, Settled};

/// Tells the story of a seed, in `length` operations.
fn tell(seed: u64, length: usize) -> Vec<(Op, Option<Answer>)> {
    let mut story = Story::new(seed);
    let mut model = Model::new(&story.versions);
    let mut told = Vec::new();
    for _ in 0..length {
        let op = story.next_op();
        let answer = model.play(&op);
        if let Some(Answer::Decided(decision)) = &answer {
            story.heard(&op, decision);
        }
        told.push((op, answer));
    }
    told
}

fn kind(answer: &Answer) -> String {
    match answer {
        Answer::Decided(decision) => format!("decided {:?}", decision.reason),
        Answer::Settled(Settled::Applied(_)) => "settled".to_owned(),
        Answer::Credited(Credited::Applied(_)) => "credited".to_owned(),
        Answer::Blocked(_) => "blocked".to_owned(),
        Answer::Reconciled(_) => "reconciled".to_owned(),
        other => format!("{other:?}"),
    }
}

#[test]
fn a_seed_always_tells_the_same_story() {
    assert_eq!(tell(11, 200), tell(11, 200));
    assert_ne!(tell(11, 200), tell(12, 200));
    assert_eq!(text::toml(&Story::new(11).versions[0]), text::toml(&Story::new(11).versions[0]));
}

#[test]
fn time_never_goes_back() {
    for seed in 0..20 {
        let told = tell(seed, 200);
        assert!(told.windows(2).all(|pair| pair[0].0.at <= pair[1].0.at));
    }
}

#[test]
fn stories_meet_every_kind_of_answer() {
    let answers = (0..200).flat_map(|seed| tell(seed, 200));
    let met: BTreeSet<String> =
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
        assert!(met.contains(expected), "no story met {expected}; met {met:?}");
    }
}

//! Runs a scenario: its steps in order, up to the first answer that differs from its expectation.

use std::collections::BTreeSet;

use catraca_core::time::Span;
use serde_json::{Value, json};

use super::Scenario;
use super::compare_json::differences;
use super::engine_calls::{ScenarioEngine, StepRefusal};
use super::report::{Difference, ScenarioResult, StepMismatch};
use super::step::{Expectation, Step};
use super::verb::StepVerb;

impl Scenario {
    /// Runs the steps on a new engine.
    pub fn run(&self) -> ScenarioResult {
        let mut runner = Runner::new(ScenarioEngine::new((*self.catalog).clone(), self.start));
        let mismatch = self
            .steps
            .iter()
            .enumerate()
            .find_map(|(index, step)| runner.step(step).map(|found| found.at_step(index + 1)));
        let passed = mismatch.is_none();
        ScenarioResult { name: self.name.clone(), passed, steps: runner.calls, mismatch }
    }
}

struct Runner {
    engine: ScenarioEngine,
    calls: usize,
    /// Undeclared gates that a step expects to be `unlisted`, as described by the engine.
    undeclared_gates: BTreeSet<String>,
}

/// A mismatch whose step number is still 0: only [`Scenario::run`] knows it.
struct FirstMismatch(StepMismatch);

impl Runner {
    fn new(engine: ScenarioEngine) -> Self {
        Self { engine, calls: 0, undeclared_gates: BTreeSet::new() }
    }

    fn step(&mut self, step: &Step) -> Option<FirstMismatch> {
        (1..=step.times).find_map(|n| {
            let elapsed = step.every.times(n as i64 - 1);
            self.engine.clock.set(step.at.after(if n > 1 { elapsed } else { Span::ZERO }));
            self.once(step, n, step.times)
        })
    }

    /// Executes one repetition; the steps of a cycle share its number and instant.
    fn once(&mut self, step: &Step, n: usize, times: usize) -> Option<FirstMismatch> {
        if let StepVerb::Cycle(steps) = &step.verb {
            return steps.iter().find_map(|step| self.once(step, n, times));
        }
        self.calls += 1;
        let answer = self.engine.act(&step.verb, step.keep.as_deref(), n);
        let last = n == times;
        let (expected, mut diff) = compare(&step.want, last, &answer);
        // Without this, a misspelt gate would silently test the default policy.
        let is_unexpected = match &answer {
            Ok(got) => got["unlisted"] == true,
            Err(_) => !diff.is_empty(),
        };
        let gate = self.engine.undeclared_gate(&step.verb);
        // A scenario says once per gate that it means an undeclared one.
        if step.want.names("unlisted") {
            self.undeclared_gates.extend(gate.clone());
        }
        let gate = gate.filter(|gate| is_unexpected && !self.undeclared_gates.contains(gate));
        diff.extend(gate.map(|got| Difference {
            path: "gate".to_owned(),
            expected: "a declared gate, or `unlisted = true` in `expect`".to_owned(),
            got,
        }));
        if diff.is_empty() {
            return None;
        }
        let got = answer.unwrap_or_else(|refusal| refusal_json(&refusal));
        let at = catraca::Clock::now(&self.engine.clock);
        let line = step.line;
        let repetition = (n, times);
        Some(FirstMismatch(StepMismatch { step: 0, repetition, at, line, expected, got, diff }))
    }
}

impl FirstMismatch {
    fn at_step(self, step: usize) -> StepMismatch {
        StepMismatch { step, ..self.0 }
    }
}

/// The expectation that applies to this answer, and the fields that differ from it.
fn compare(
    want: &Expectation,
    last: bool,
    answer: &Result<Value, StepRefusal>,
) -> (Value, Vec<Difference>) {
    let last = want.last.as_ref().filter(|_| last);
    let expected = last.or(want.each.as_ref()).cloned().unwrap_or_else(|| json!({}));
    match (&want.error, answer) {
        (None, Ok(got)) => {
            let diff = differences(&expected, got);
            (expected, diff)
        }
        (None, Err(refusal)) => {
            let got = format!("{}: {}", refusal.code, refusal.message);
            (expected, vec![error("no refusal", &got)])
        }
        (Some(code), Err(refusal)) if refusal.code == *code => (json!({ "error": code }), vec![]),
        (Some(code), Err(refusal)) => {
            let got = format!("{}: {}", refusal.code, refusal.message);
            (json!({ "error": code }), vec![error(code, &got)])
        }
        (Some(code), Ok(_)) => (json!({ "error": code }), vec![error(code, "an answer")]),
    }
}

fn error(expected: &str, got: &str) -> Difference {
    let path = "error".to_owned();
    Difference { path, expected: expected.to_owned(), got: got.to_owned() }
}

fn refusal_json(refusal: &StepRefusal) -> Value {
    json!({ "error": refusal.code, "message": refusal.message })
}

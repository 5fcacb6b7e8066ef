//! Playing a scenario: its steps in order, up to the first answer that was not as expected.
//!
//! Must not know what verbs do.

use catraca_core::time::Span;
use serde_json::{Value, json};

use super::Scenario;
use super::act::{Refused, Stage};
use super::matching::differences;
use super::report::{Difference, Mismatch, Played};
use super::step::{Step, Want};
use super::verb::Verb;

impl Scenario {
    /// Runs the steps over a fresh engine.
    pub fn play(&self) -> Played {
        let mut player =
            Player { stage: Stage::new((*self.catalog).clone(), self.start), calls: 0 };
        let mismatch = self
            .steps
            .iter()
            .enumerate()
            .find_map(|(place, step)| player.step(step).map(|found| found.located(place + 1)));
        let (name, passed) = (self.name.clone(), mismatch.is_none());
        Played { name, passed, steps: player.calls, mismatch }
    }
}

struct Player {
    stage: Stage,
    calls: usize,
}

/// A mismatch whose step is known but not its place.
struct Found(Mismatch);

impl Player {
    fn step(&mut self, step: &Step) -> Option<Found> {
        (1..=step.times).find_map(|n| {
            let passed = step.every.times(n as i64 - 1);
            self.stage.clock.set(step.at.after(if n > 1 { passed } else { Span::ZERO }));
            self.once(step, n, step.times)
        })
    }

    fn once(&mut self, step: &Step, n: usize, times: usize) -> Option<Found> {
        if let Verb::Cycle(steps) = &step.verb {
            return steps.iter().find_map(|step| self.once(step, n, times));
        }
        self.calls += 1;
        let answer = self.stage.act(&step.verb, step.keep.as_deref(), n);
        let last = n == times;
        let (expected, diff) = judge(&step.want, last, &answer);
        if diff.is_empty() {
            return None;
        }
        let got = answer.unwrap_or_else(|refused| told(&refused));
        let (at, line) = (catraca::Clock::now(&self.stage.clock), step.line);
        let repetition = (n, times);
        Some(Found(Mismatch { step: 0, repetition, at, line, expected, got, diff }))
    }
}

impl Found {
    fn located(self, step: usize) -> Mismatch {
        Mismatch { step, ..self.0 }
    }
}

/// What was expected of this answer, and where it differs.
fn judge(want: &Want, last: bool, answer: &Result<Value, Refused>) -> (Value, Vec<Difference>) {
    let own = want.last.as_ref().filter(|_| last);
    let expected = own.or(want.each.as_ref()).cloned().unwrap_or_else(|| json!({}));
    match (&want.error, answer) {
        (None, Ok(got)) => {
            let diff = differences(&expected, got);
            (expected, diff)
        }
        (None, Err(refused)) => {
            let got = format!("{}: {}", refused.code, refused.message);
            (expected, vec![error("no refusal", &got)])
        }
        (Some(code), Err(refused)) if refused.code == *code => (json!({ "error": code }), vec![]),
        (Some(code), Err(refused)) => {
            let got = format!("{}: {}", refused.code, refused.message);
            (json!({ "error": code }), vec![error(code, &got)])
        }
        (Some(code), Ok(_)) => (json!({ "error": code }), vec![error(code, "an answer")]),
    }
}

fn error(expected: &str, got: &str) -> Difference {
    let path = "error".to_owned();
    Difference { path, expected: expected.to_owned(), got: got.to_owned() }
}

fn told(refused: &Refused) -> Value {
    json!({ "error": refused.code, "message": refused.message })
}

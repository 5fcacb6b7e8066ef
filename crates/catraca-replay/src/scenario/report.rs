//! Results of a scenario run, as data and as text.
//!
//! The caller prints them and chooses the exit code.

use std::fmt;

use catraca_core::time::Time;
use serde_json::Value;

/// The results of one scenario file.
#[derive(Clone, Debug)]
pub struct Report {
    /// The path of the file.
    pub file: String,
    /// One per scenario, in order.
    pub scenarios: Vec<ScenarioResult>,
}

/// The result of one scenario.
#[derive(Clone, Debug)]
pub struct ScenarioResult {
    /// The scenario's name.
    pub name: String,
    /// Whether every answer was as expected.
    pub passed: bool,
    /// The number of calls made, repetitions included.
    pub steps: usize,
    /// The first answer that differs from its expectation; the run ends there.
    pub mismatch: Option<StepMismatch>,
}

/// An answer that differs from its expectation.
#[derive(Clone, Debug)]
pub struct StepMismatch {
    /// The number of the step, from one.
    pub step: usize,
    /// The number of the repetition, from one, and the number of repetitions.
    pub repetition: (usize, usize),
    /// The instant of the call.
    pub at: Time,
    /// The line of the step's verb.
    pub line: usize,
    /// The expected fields.
    pub expected: Value,
    /// The whole answer.
    pub got: Value,
    /// The fields that differ.
    pub diff: Vec<Difference>,
}

/// One field that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The path of the field, such as `policies[0].reason`.
    pub path: String,
    /// The expected value.
    pub expected: String,
    /// The actual value.
    pub got: String,
}

impl Report {
    /// Whether every scenario passed.
    pub fn has_passed(&self) -> bool {
        self.scenarios.iter().all(|scenario| scenario.passed)
    }
}

/// One line per scenario, with its differences below, and a last line with the totals.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for scenario in &self.scenarios {
            match &scenario.mismatch {
                None => writeln!(f, "ok    {}", scenario.name)?,
                Some(mismatch) => {
                    writeln!(f, "FAIL  {}", scenario.name)?;
                    writeln!(f, "      {}:{mismatch}", self.file)?;
                }
            }
        }
        let passed = self.scenarios.iter().filter(|scenario| scenario.passed).count();
        let failed = self.scenarios.len() - passed;
        write!(f, "{}: {passed} passed, {failed} failed", self.file)
    }
}

impl fmt::Display for StepMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: step {} at {}", self.line, self.step, self.at)?;
        if self.repetition.1 > 1 {
            write!(f, ", time {} of {}", self.repetition.0, self.repetition.1)?;
        }
        for found in &self.diff {
            write!(f, "\n        {found}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: expected {}, got {}", self.path, self.expected, self.got)
    }
}

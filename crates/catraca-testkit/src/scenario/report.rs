//! What a run of scenarios came to, for people and for programs.
//!
//! Must not decide an exit code nor print: whoever runs the suite does.

use std::fmt;

use catraca_core::time::Time;
use serde_json::Value;

/// The scenarios of one file, run.
#[derive(Clone, Debug)]
pub struct Report {
    /// The file.
    pub file: String,
    /// One per scenario, in order.
    pub scenarios: Vec<Played>,
}

/// A scenario, run.
#[derive(Clone, Debug)]
pub struct Played {
    /// Its name.
    pub name: String,
    /// Whether every answer was as expected.
    pub passed: bool,
    /// How many calls were made, repetitions included.
    pub steps: usize,
    /// The first answer that was not as expected; the run ends there.
    pub mismatch: Option<Mismatch>,
}

/// An answer that was not as expected.
#[derive(Clone, Debug)]
pub struct Mismatch {
    /// Which step, counted from one.
    pub step: usize,
    /// Which repetition of how many, counted from one.
    pub repetition: (usize, usize),
    /// The instant.
    pub at: Time,
    /// The line of the step's verb.
    pub line: usize,
    /// What was expected.
    pub expected: Value,
    /// The whole answer.
    pub got: Value,
    /// Only what differs.
    pub diff: Vec<Difference>,
}

/// One field that differs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Which, such as `policies[0].reason`.
    pub path: String,
    /// What was expected.
    pub expected: String,
    /// What came.
    pub got: String,
}

impl Report {
    /// Whether every scenario passed.
    pub fn passed(&self) -> bool {
        self.scenarios.iter().all(|scenario| scenario.passed)
    }
}

/// One line per scenario, with what differs below, and a last line that counts.
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

impl fmt::Display for Mismatch {
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

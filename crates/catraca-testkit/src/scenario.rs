//! Scenarios: steps at instants and the answers they must get, in TOML that users write too.
//!
//! `catraca test` runs these files and so do our own tests. Time is virtual, so a scenario of ten
//! years ends at once and never depends on the machine. Must not know a rule of deciding: it asks
//! an engine and compares.

mod act;
mod expect;
mod instant;
mod matching;
mod names;
mod node;
mod play;
mod read;
mod report;
mod schema;
mod step;
#[cfg(test)]
mod tests;
mod verb;

use std::io;
use std::path::Path;
use std::sync::Arc;

use catraca::{Catalog, Time};
use catraca_core::catalog::diagnostic::{Diagnostic, Diagnostics};

pub use report::{Difference, Mismatch, Played, Report};

use step::Step;

/// The scenarios of one file, read and checked, ready to run.
#[derive(Clone, Debug)]
pub struct Suite {
    /// The file, as it was named.
    pub file: String,
    /// Its scenarios, in order.
    pub scenarios: Vec<Scenario>,
    /// What is probably not meant in the catalogs that they use.
    pub warnings: Vec<Diagnostic>,
}

/// Steps at instants, over a fresh engine.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// What it shows, in words.
    pub name: String,
    /// The requirements that it holds.
    pub covers: Vec<String>,
    /// The line it starts at.
    pub line: usize,
    catalog: Arc<Catalog>,
    start: Time,
    steps: Vec<Step>,
}

/// Why a file has no scenarios to run.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file cannot be read.
    #[error("cannot read {file}: {error}")]
    Unreadable {
        /// The file.
        file: String,
        /// Why.
        error: io::Error,
    },
    /// The file, or a catalog that it names, is wrong; everything that is, at once.
    #[error("{0}")]
    Wrong(Diagnostics),
}

/// Reads a file of scenarios, and the catalogs it names relative to itself.
pub fn load(path: &Path) -> Result<Suite, ScenarioError> {
    let file = path.display().to_string();
    match std::fs::read_to_string(path) {
        Ok(text) => parse(&file, &text, path.parent().unwrap_or(Path::new("."))),
        Err(error) => Err(ScenarioError::Unreadable { file, error }),
    }
}

/// Reads the text of a file of scenarios; catalogs are looked for in `folder`.
pub fn parse(file: &str, text: &str, folder: &Path) -> Result<Suite, ScenarioError> {
    read::suite(file, text, folder).map_err(ScenarioError::Wrong)
}

impl Suite {
    /// Runs every scenario, each over an engine of its own.
    pub fn run(&self) -> Report {
        let scenarios = self.scenarios.iter().map(Scenario::play).collect();
        Report { file: self.file.clone(), scenarios }
    }
}

//! Scenario files: calls at given instants and their expected answers, in TOML.
//!
//! `catraca test` runs the files of users; Catraca's own tests use the same format. The clock is
//! manual, so a scenario of ten years runs at once and gives the same result on any machine. This
//! module holds no rate-limiting rules: it calls an engine and compares.

mod compare_json;
mod engine_calls;
mod expectation;
mod fields;
mod instant;
mod parse;
mod report;
mod runner;
mod schema;
mod step;
#[cfg(test)]
mod tests;
mod verb;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use catraca::{Catalog, Time};
use catraca_core::catalog::diagnostic::{Diagnostic, Diagnostics};

pub use report::{Difference, Report, ScenarioResult, StepMismatch};

use step::Step;

/// The scenarios of one file, read and checked, ready to run.
#[derive(Clone, Debug)]
pub struct Suite {
    /// The path of the file, as the caller gave it.
    pub file: String,
    /// Its scenarios, in order.
    pub scenarios: Vec<Scenario>,
    /// Warnings of the catalogs that the scenarios use.
    pub warnings: Vec<Diagnostic>,
    /// The files of those catalogs, each with its variables once.
    pub catalogs: Vec<CatalogFile>,
}

/// A catalog that a scenario names, for callers that read its sections about the process too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogFile {
    /// The path, relative to the working directory.
    pub path: PathBuf,
    /// The values of its variables.
    pub variables: BTreeMap<String, String>,
}

/// One scenario: a catalog, a start and steps, run on a new engine.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The name, in words.
    pub name: String,
    /// The ids of the requirements that it tests.
    pub covers: Vec<String>,
    /// The line of the file at which it starts.
    pub line: usize,
    catalog: Arc<Catalog>,
    start: Time,
    steps: Vec<Step>,
}

/// Why the scenarios of a file cannot run.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file could not be read.
    #[error("cannot read {file}: {error}")]
    Unreadable {
        /// The path.
        file: String,
        /// The I/O error.
        error: io::Error,
    },
    /// The file, or a catalog that it names, is invalid; holds all errors, not only the first.
    #[error("{0}")]
    Invalid(Diagnostics),
}

/// Reads a scenario file and the catalogs that it names, relative to its folder.
pub fn load(path: &Path) -> Result<Suite, ScenarioError> {
    let file = path.display().to_string();
    match std::fs::read_to_string(path) {
        Ok(text) => parse(&file, &text, path.parent().unwrap_or(Path::new("."))),
        Err(error) => Err(ScenarioError::Unreadable { file, error }),
    }
}

/// Parses the text of a scenario file; the names of catalogs are relative to `folder`.
pub fn parse(file: &str, text: &str, folder: &Path) -> Result<Suite, ScenarioError> {
    parse::suite(file, text, folder).map_err(ScenarioError::Invalid)
}

impl Suite {
    /// Runs every scenario, each on its own engine.
    pub fn run(&self) -> Report {
        let scenarios = self.scenarios.iter().map(Scenario::run).collect();
        Report { file: self.file.clone(), scenarios }
    }
}

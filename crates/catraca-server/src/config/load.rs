//! Loads a catalog together with the sections about the process.

use std::path::Path;

use catraca::core::catalog::read::{ParsedCatalog, read_with};
use catraca::core::located::{Diagnostic, Diagnostics};
use catraca::{Catalog, LoadError, environment, load_sections};

use super::process::{ProcessConfig, ProcessReader};

/// A catalog with the configuration of the process.
#[derive(Clone, Debug)]
pub struct LoadedCatalog {
    /// The catalog.
    pub catalog: Catalog,
    /// The configuration of the process.
    pub(crate) process: ProcessConfig,
    /// Probable mistakes, sorted by file and position.
    pub warnings: Vec<Diagnostic>,
}

impl LoadedCatalog {
    /// Joins what was read of one catalog.
    pub(crate) fn new(parsed: ParsedCatalog, reader: ProcessReader) -> Result<Self, Diagnostics> {
        // A reader without a configuration has reported an error, so there is no catalog either.
        let process = reader.config.ok_or(Diagnostics { all: Vec::new() })?;
        Ok(Self { catalog: parsed.catalog, process, warnings: parsed.warnings })
    }
}

/// Loads a catalog and the files that it includes. Variables come from the environment.
pub fn load(path: &Path) -> Result<LoadedCatalog, LoadError> {
    load_with(path, &environment)
}

/// The same with other variables.
pub(crate) fn load_with(
    path: &Path,
    variables: &dyn Fn(&str) -> Option<String>,
) -> Result<LoadedCatalog, LoadError> {
    let mut reader = ProcessReader::default();
    let parsed = load_sections(path, variables, &mut reader)?;
    LoadedCatalog::new(parsed, reader).map_err(LoadError::Invalid)
}

/// Reads a catalog from one text, without included files and variables.
pub fn parse(text: &str) -> Result<LoadedCatalog, Diagnostics> {
    let mut reader = ProcessReader::default();
    let mut include = |name: &str| Err(format!("`{name}` cannot be included in a text"));
    let parsed = read_with("catalog", text, &mut include, &|_| None, &mut reader)?;
    LoadedCatalog::new(parsed, reader)
}

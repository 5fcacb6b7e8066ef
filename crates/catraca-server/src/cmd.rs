//! The verbs of the command line, one module each, and two helpers that several of them share.

pub mod backup;
pub mod config_schema;
pub mod conformance;
pub mod explain;
pub mod hash;
pub mod import;
pub mod init;
pub mod keygen;
pub mod lint;
pub mod openapi;
pub mod policies;
pub mod presets;
pub mod remote;
pub mod secret;
pub mod serve;
pub mod shell;
pub mod simulate;
pub mod test;
pub mod types;
pub mod variables;

use std::path::Path;

use anyhow::{Result, bail};
use catraca::{Catalog, LoadError};

use crate::config::{self, LoadedCatalog};
use crate::render::{Paint, count_noun, diagnostic, eprint_line};

/// Loads a catalog, and checks its sections about the process.
fn catalog(path: &Path) -> Result<Catalog> {
    load_catalog(path).map(|loaded| loaded.catalog)
}

/// Loads a catalog with the configuration of the process. Prints its errors, or the number of its
/// warnings, to standard error.
fn load_catalog(path: &Path) -> Result<LoadedCatalog> {
    let name = path.display();
    match config::load(path) {
        Ok(reading) => {
            if !reading.warnings.is_empty() {
                let warnings = count_noun(reading.warnings.len(), "warning", "warnings");
                eprint_line(format_args!("{name}: {warnings}; see `catraca lint {name}`"));
            }
            Ok(reading)
        }
        Err(LoadError::Invalid(diagnostics)) => {
            for diagnostic in &diagnostics.all {
                eprint_line(format_args!(
                    "{}\n",
                    diagnostic::render(diagnostic, Paint::for_stderr())
                ));
            }
            bail!("{name} has {}", count_noun(diagnostics.errors().count(), "error", "errors"))
        }
        Err(other) => bail!(other),
    }
}

/// Refuses a subject with two values for one attribute: it is unknown which of them is meant.
fn refuse_repeated(subject: &[(String, String)]) -> Result<()> {
    for (index, (name, _)) in subject.iter().enumerate() {
        if subject[..index].iter().any(|(earlier, _)| earlier == name) {
            bail!("`{name}` is given twice: a caller has one value for each attribute");
        }
    }
    Ok(())
}

//! The verbs of the command line, and what several of them do first: load a catalog,
//! and read who a caller is.

pub mod backup;
pub mod explain;
pub mod keygen;
pub mod lint;
pub mod openapi;
pub mod remote;
pub mod secret;
pub mod serve;
pub mod shell;
pub mod simulate;
pub mod test;

use std::path::Path;

use anyhow::{Result, bail};
use catraca::{Catalog, LoadError};

use crate::render::{Paint, counted, diagnostic, tell};

/// A catalog that can be used. What is wrong with it goes to standard error.
fn catalog(path: &Path) -> Result<Catalog> {
    let shown = path.display();
    match catraca::load(path) {
        Ok(reading) => {
            if !reading.warnings.is_empty() {
                let warnings = counted(reading.warnings.len(), "warning", "warnings");
                tell(format_args!("{shown}: {warnings}; see `catraca lint {shown}`"));
            }
            Ok(reading.catalog)
        }
        Err(LoadError::Wrong(found)) => {
            for one in &found.all {
                tell(format_args!("{}\n", diagnostic::render(one, Paint::for_stderr())));
            }
            bail!("{shown} has {}", counted(found.errors().count(), "error", "errors"))
        }
        Err(other) => bail!(other),
    }
}

/// Two values for one attribute: neither is more meant than the other.
fn refuse_repeated(subject: &[(String, String)]) -> Result<()> {
    for (place, (name, _)) in subject.iter().enumerate() {
        if subject[..place].iter().any(|(earlier, _)| earlier == name) {
            bail!("`{name}` is given twice: a caller has one value of each attribute");
        }
    }
    Ok(())
}

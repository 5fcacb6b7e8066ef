//! Loading a catalog from files: the only place of the library that reads them.

use std::path::Path;

use catraca_core::catalog::diagnostic::Diagnostics;
use catraca_core::catalog::read::{Reading, read};

/// Reads a catalog from a file and what it includes, relative to it.
pub fn load(path: &Path) -> Result<Reading, LoadError> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| LoadError::Unreadable { file: path.display().to_string(), error })?;
    let folder = path.parent().unwrap_or(Path::new(".")).to_owned();
    let mut include =
        |name: &str| std::fs::read_to_string(folder.join(name)).map_err(|error| error.to_string());
    read(&path.display().to_string(), &text, &mut include).map_err(LoadError::Wrong)
}

/// Why a catalog could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("cannot read {file}: {error}")]
    Unreadable {
        /// The file.
        file: String,
        /// Why.
        error: std::io::Error,
    },
    /// The catalog is wrong.
    #[error("{0}")]
    Wrong(Diagnostics),
}

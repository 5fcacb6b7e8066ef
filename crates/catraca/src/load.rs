//! Loading a catalog from files: the only place of the library that reads them.
//!
//! A catalog names other files, so it must not be a way to read what is no catalog: an included
//! file is a regular one, called `*.toml`, and read no further than a catalog may be long.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use catraca_core::catalog::diagnostic::Diagnostics;
use catraca_core::catalog::read::{CATALOG_BYTES_MAX, Loaded, Reading, Variable, read};

/// Reads a catalog from a file and what it includes, relative to it. Variables are those of the
/// process's environment.
pub fn load(path: &Path) -> Result<Reading, LoadError> {
    load_with(path, &environment)
}

/// A variable of the process's environment; one that is no text counts as not set.
pub fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The same with variables of the caller's own.
pub fn load_with(path: &Path, variable: Variable<'_>) -> Result<Reading, LoadError> {
    let file = path.display().to_string();
    let unreadable = |error| LoadError::Unreadable { file: file.clone(), error };
    // Whoever names a pipe means it, as in `catraca lint /dev/stdin`.
    let text = File::open(path).and_then(bounded).map_err(unreadable)?;
    let mut includes = Includes::of(path);
    read(&file, &text, &mut |name| includes.load(name), variable).map_err(LoadError::Wrong)
}

/// Finds the files that a catalog includes, each once.
#[derive(Debug)]
pub struct Includes {
    folder: PathBuf,
    /// Where the files are that were read, with the names they were read under.
    known: HashMap<PathBuf, String>,
}

impl Includes {
    /// For the catalog in this file, whose folder the names count from.
    pub fn of(root: &Path) -> Self {
        let folder = root.parent().unwrap_or(Path::new("")).to_owned();
        let at = root.canonicalize().into_iter();
        Self { folder, known: at.map(|at| (at, root.display().to_string())).collect() }
    }

    /// The file of a name, or why it cannot be read.
    pub fn load(&mut self, name: &str) -> Result<Loaded, String> {
        if Path::new(name).extension().is_none_or(|extension| extension != "toml") {
            return Err("a file that is included is called *.toml".to_owned());
        }
        let path = self.folder.join(name);
        let at = path.canonicalize().map_err(|error| error.to_string())?;
        if let Some(known) = self.known.get(&at) {
            return Ok(Loaded::Again(known.clone()));
        }
        // Before it is opened: a pipe would wait for somebody to write.
        let is_file = at.metadata().map_err(|error| error.to_string())?.is_file();
        if !is_file {
            return Err("it is not a regular file".to_owned());
        }
        let text = File::open(&at).and_then(bounded).map_err(|error| error.to_string())?;
        self.known.insert(at, name.to_owned());
        Ok(Loaded::Text(text))
    }
}

/// A file's text, one byte further than a catalog may be long: the reader then refuses its size.
fn bounded(file: File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(CATALOG_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > CATALOG_BYTES_MAX {
        // The cut may go through a character; the text is refused for its size whatever it says.
        bytes = vec![b'#'; bytes.len()];
    }
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "not UTF-8"))
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
        error: io::Error,
    },
    /// The catalog is wrong.
    #[error("{0}")]
    Wrong(Diagnostics),
}

//! Loads a catalog and the files that it includes. No other part of the library reads catalog
//! files.
//!
//! Includes must not become a way to read arbitrary files: an included file must be a regular file
//! called `*.toml`, and no more is read than the maximum size of a catalog.

use std::collections::HashMap;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use catraca_core::catalog::diagnostic::Diagnostics;
use catraca_core::catalog::read::{
    CATALOG_BYTES_MAX, IgnoreProcessSections, IncludedFile, ParsedCatalog, ProcessSections,
    VariableLookup, read_with,
};

/// Reads a catalog and the files that it includes, whose names are relative to it. Variables come
/// from the environment of the process. Sections such as `[server]` are not checked: the program
/// that owns them does so with [`load_sections`].
///
/// ```
/// # let file = std::env::temp_dir().join(format!("catraca-load-{}.toml", std::process::id()));
/// # std::fs::write(&file, "[policy.login]\nby = ['ip']\nwindow = '0 per 1m'\n")?;
/// let parsed = catraca::load(&file)?;
/// for warning in &parsed.warnings {
///     eprintln!("{warning}");
/// }
/// let engine = catraca::Engine::new(parsed.catalog);
/// # assert_eq!(parsed.warnings[0].code, "never-admits");
/// # std::fs::remove_file(&file)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn load(path: impl AsRef<Path>) -> Result<ParsedCatalog, LoadError> {
    load_with(path.as_ref(), &environment)
}

/// A variable of the process's environment. One that is not valid UTF-8 counts as not set.
pub fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Like [`load`], with variables from `variable`.
pub fn load_with(path: &Path, variable: VariableLookup<'_>) -> Result<ParsedCatalog, LoadError> {
    load_sections(path, variable, &mut IgnoreProcessSections)
}

/// Like [`load_with`], and lets the owner of the process sections read them.
pub fn load_sections(
    path: &Path,
    variable: VariableLookup<'_>,
    process: &mut dyn ProcessSections,
) -> Result<ParsedCatalog, LoadError> {
    let file = path.display().to_string();
    let unreadable = |error| LoadError::Unreadable { file: file.clone(), error };
    // Only included files must be regular: the root may be a pipe, as in `catraca lint /dev/stdin`.
    let text = File::open(path).and_then(read_bounded).map_err(unreadable)?;
    let mut includes = Includes::of(path);
    let mut include = |name: &str| includes.load(name);
    read_with(&file, &text, &mut include, variable, process).map_err(LoadError::Invalid)
}

/// Reads the files that a catalog includes, each once.
///
/// ```
/// use catraca::Includes;
/// use catraca::core::catalog::read::IncludedFile;
///
/// # let folder = std::env::temp_dir().join(format!("catraca-includes-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// # std::fs::write(folder.join("limits.toml"), "[policy.a]\nby = ['ip']\nwindow = '9 per 1m'\n")?;
/// let mut includes = Includes::of(&folder.join("catraca.toml"));
/// assert!(matches!(includes.load("limits.toml")?, IncludedFile::Text(_)));
/// assert!(matches!(includes.load("limits.toml")?, IncludedFile::AlreadyRead(_)));
/// assert!(includes.load("/etc/hostname").is_err(), "only names that end in .toml");
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Includes {
    folder: PathBuf,
    /// Canonical paths of the files read so far, with the names they were read under.
    known: HashMap<PathBuf, String>,
}

impl Includes {
    /// For the catalog `root`; included names are relative to its folder.
    pub fn of(root: &Path) -> Self {
        let folder = root.parent().unwrap_or(Path::new("")).to_owned();
        let canonical = root.canonicalize().into_iter();
        Self {
            folder,
            known: canonical.map(|canonical| (canonical, root.display().to_string())).collect(),
        }
    }

    /// The text of an included file, or a note that it was read before. The error says why it
    /// cannot be read.
    pub fn load(&mut self, name: &str) -> Result<IncludedFile, String> {
        if Path::new(name).extension().is_none_or(|extension| extension != "toml") {
            return Err("the name of an included file must end in .toml".to_owned());
        }
        let path = self.folder.join(name);
        let canonical = path.canonicalize().map_err(|error| error.to_string())?;
        if let Some(known) = self.known.get(&canonical) {
            return Ok(IncludedFile::AlreadyRead(known.clone()));
        }
        // Checked before opening: opening a pipe would block until a writer comes.
        let is_file = canonical.metadata().map_err(|error| error.to_string())?.is_file();
        if !is_file {
            return Err("it is not a regular file".to_owned());
        }
        let text =
            File::open(&canonical).and_then(read_bounded).map_err(|error| error.to_string())?;
        self.known.insert(canonical, name.to_owned());
        Ok(IncludedFile::Text(text))
    }
}

/// Reads one byte more than the maximum size of a catalog, so that the parser can see and refuse a
/// file that is too long.
fn read_bounded(file: File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(CATALOG_BYTES_MAX as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > CATALOG_BYTES_MAX {
        // The cut may split a character, which would be reported as "not UTF-8". The content does
        // not matter: the parser refuses the text for its size.
        bytes = vec![b'#'; bytes.len()];
    }
    String::from_utf8(bytes).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "not UTF-8"))
}

/// Why a catalog could not be loaded.
///
/// ```
/// use catraca::LoadError;
///
/// let error = catraca::load("no-such-file.toml").err().expect("there is no such file");
/// assert!(matches!(&error, LoadError::Unreadable { .. }));
/// assert!(error.to_string().starts_with("cannot read no-such-file.toml"));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum LoadError {
    /// The file cannot be read.
    Unreadable {
        /// The file.
        file: String,
        /// The cause.
        error: io::Error,
    },
    /// The catalog is invalid.
    Invalid(Diagnostics),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { file, error } => write!(f, "cannot read {file}: {error}"),
            Self::Invalid(diagnostics) => diagnostics.fmt(f),
        }
    }
}

impl std::error::Error for LoadError {}

//! Why a catalog on disk is not applied: the location of the first error, and all errors with their
//! fixes.

use std::path::Path;

use catraca::LoadError;

/// The most bytes of `why`.
const WHY_BYTES_MAX: usize = 4_000;

/// Why a catalog is not applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReloadError {
    /// The location of the first error, as `file:line:column` as far as known. It is shown without
    /// a key, so it holds nothing of the file's contents or path.
    pub location: String,
    /// All errors, with fixes.
    pub why: String,
}

impl ReloadError {
    /// The server runs without a file.
    pub fn no_file() -> Self {
        let why = "the built-in demo has no file; start with `catraca serve -c FILE`";
        Self { location: String::new(), why: why.to_owned() }
    }

    /// The catalog is unreadable or invalid.
    pub fn of_load(path: &Path, error: &LoadError) -> Self {
        let location = match error {
            LoadError::Invalid(found) => found.errors().next().map(|first| {
                format!("{}:{}:{}", file_name(Path::new(&first.file)), first.line, first.column)
            }),
            _ => None,
        };
        let why = match error {
            LoadError::Invalid(found) => {
                found.errors().map(ToString::to_string).collect::<Vec<_>>().join("\n")
            }
            other => other.to_string(),
        };
        Self { location: location.unwrap_or_else(|| file_name(path)), why: truncate(why) }
    }

    /// The server cannot apply the catalog.
    pub fn of_settings(path: &Path, error: &anyhow::Error) -> Self {
        let why = format!("{}: {error:#}", path.display());
        Self { location: file_name(path), why: truncate(why) }
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

fn truncate(mut text: String) -> String {
    if text.len() > WHY_BYTES_MAX {
        text.truncate(text.floor_char_boundary(WHY_BYTES_MAX));
        text.push_str("\n...");
    }
    text
}

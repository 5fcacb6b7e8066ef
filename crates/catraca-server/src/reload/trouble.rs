//! Why a catalog on disk is not in force: where it is wrong, and how to put it right.
//!
//! Must not show more of a file in its place than the file's own name.

use std::path::Path;

use catraca::LoadError;

/// The most text of one trouble.
const TEXT_MAX: usize = 4_000;

/// Why a catalog is not in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// Where, as `file:line:column` as far as it is known; nothing of what is written there.
    pub place: String,
    /// Everything that is wrong, with fixes.
    pub why: String,
}

impl Trouble {
    /// There is nothing to read.
    pub fn no_file() -> Self {
        let why = "the built-in demo has no file; start with `catraca serve --config FILE`";
        Self { place: String::new(), why: why.to_owned() }
    }

    /// A catalog that cannot be read.
    pub fn of_load(path: &Path, error: &LoadError) -> Self {
        let place = match error {
            LoadError::Wrong(found) => found.errors().next().map(|first| {
                format!("{}:{}:{}", name(Path::new(&first.file)), first.line, first.column)
            }),
            LoadError::Unreadable { .. } => None,
        };
        let why = match error {
            LoadError::Wrong(found) => {
                found.errors().map(ToString::to_string).collect::<Vec<_>>().join("\n")
            }
            other => other.to_string(),
        };
        Self { place: place.unwrap_or_else(|| name(path)), why: cut(why) }
    }

    /// A catalog whose settings the server cannot obey.
    pub fn of_settings(path: &Path, error: &anyhow::Error) -> Self {
        let why = format!("{}: {error:#}", path.display());
        Self { place: name(path), why: cut(why) }
    }
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

fn cut(mut text: String) -> String {
    if text.len() > TEXT_MAX {
        text.truncate(text.floor_char_boundary(TEXT_MAX));
        text.push_str("\n...");
    }
    text
}

//! Why a catalog cannot be built.

use std::fmt;

use super::text::CatalogText;
use crate::located::{Diagnostic, Diagnostics};

/// The mistakes of a catalog, found by the same reader that reads files.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BuildError {
    /// The mistakes, in the order of the catalog; never empty.
    pub mistakes: Vec<BuildMistake>,
}

/// One mistake of a catalog that a program builds.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BuildMistake {
    /// The part of the catalog, such as ``policy `login` ``.
    pub section: String,
    /// The field; absent if the mistake is in the part as a whole.
    pub field: Option<String>,
    /// The stable code of the mistake, as in the diagnostics of a file.
    pub code: &'static str,
    /// A description of the mistake.
    pub message: String,
    /// How to correct it, in the words of a catalog file.
    pub fix: Option<String>,
}

impl BuildError {
    pub(super) fn new(diagnostics: &Diagnostics, text: &CatalogText) -> Self {
        let mistake = |error: &Diagnostic| {
            let (section, field) = text.owner(error.line).cloned().unwrap_or_default();
            let Diagnostic { code, message, fix, .. } = error.clone();
            BuildMistake { section, field, code, message, fix }
        };
        Self { mistakes: diagnostics.errors().map(mistake).collect() }
    }
}

impl fmt::Display for BuildMistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.section)?;
        self.field.iter().try_for_each(|field| write!(f, ", `{field}`"))?;
        write!(f, ": {}", self.message)?;
        self.fix.iter().try_for_each(|fix| write!(f, " (fix: {fix})"))
    }
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, mistake) in self.mistakes.iter().enumerate() {
            write!(f, "{}{mistake}", if at > 0 { "\n" } else { "" })?;
        }
        Ok(())
    }
}

impl std::error::Error for BuildError {}

//! Diagnostics: errors and warnings with their location and a fix.
//!
//! Plain data, shown in terminals, editors and HTTP responses.

use std::fmt;

/// One error or warning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Whether the catalog can be used.
    pub severity: Severity,
    /// A stable identifier in kebab-case, which the owner of the reader
    /// registers.
    pub code: &'static str,
    /// The file's name, as the catalog or the caller gives it.
    pub file: String,
    /// Where the offending text starts, in bytes.
    pub start: usize,
    /// Where the offending text ends, in bytes.
    pub end: usize,
    /// The line, counted from one.
    pub line: usize,
    /// The column, counted from one, in characters.
    pub column: usize,
    /// The offending text, cut to one short line.
    pub text: String,
    /// A description of the mistake.
    pub message: String,
    /// How to correct it.
    pub fix: Option<String>,
    /// The source line, for rendering.
    pub line_text: String,
}

/// Whether a catalog with this diagnostic can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The catalog is not used.
    Error,
    /// The catalog is used, but probably contains a mistake.
    Warning,
}

/// The errors and warnings of a catalog that has at least one error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostics {
    /// Sorted by file, in the order of reading, and by position.
    pub all: Vec<Diagnostic>,
}

impl Diagnostics {
    /// The errors alone.
    pub fn errors(&self) -> impl Iterator<Item = &Diagnostic> {
        self.all.iter().filter(|diagnostic| diagnostic.severity == Severity::Error)
    }

    /// The warnings alone.
    pub fn warnings(&self) -> impl Iterator<Item = &Diagnostic> {
        self.all.iter().filter(|diagnostic| diagnostic.severity == Severity::Warning)
    }
}

impl Severity {
    /// `error` or `warning`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Shows the offending text before the message, unless the message already quotes it.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, severity, code, message, .. } = self;
        write!(f, "{file}:{line}:{column}: {severity}[{code}]: ")?;
        let quoted = format!("`{}`", self.text.trim_matches('"'));
        if !self.text.is_empty() && !message.contains(&quoted) {
            write!(f, "`{}`: ", self.text)?;
        }
        f.write_str(message)?;
        self.fix.iter().try_for_each(|fix| write!(f, "\n  fix: {fix}"))
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, diagnostic) in self.all.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            diagnostic.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}

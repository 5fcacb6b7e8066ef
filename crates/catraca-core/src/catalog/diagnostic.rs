//! What is wrong with a catalog, where, and what to write instead.
//!
//! Plain data for every shell that shows it: a terminal, an editor, an HTTP answer.
//! Must not read files nor decide what is wrong: the reader does.

mod codes;

use std::fmt;

pub use codes::CODES;

/// One thing that is wrong with a catalog, or that is probably not meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Whether it refuses the catalog.
    pub severity: Severity,
    /// Its stable name, in kebab-case.
    pub code: &'static str,
    /// The file, as it was named to the reader.
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
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub fix: Option<String>,
    /// The source line, for rendering.
    pub line_text: String,
}

/// Whether a diagnostic refuses the catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The catalog is refused.
    Error,
    /// The catalog stands, and somebody should look.
    Warning,
}

/// Everything found in a refused catalog: errors and warnings, by file and position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostics {
    /// Sorted by file, in the order of reading, and by position.
    pub all: Vec<Diagnostic>,
}

impl Diagnostics {
    /// Those that refuse the catalog.
    pub fn errors(&self) -> impl Iterator<Item = &Diagnostic> {
        self.all.iter().filter(|found| found.severity == Severity::Error)
    }

    /// Those that do not.
    pub fn warnings(&self) -> impl Iterator<Item = &Diagnostic> {
        self.all.iter().filter(|found| found.severity == Severity::Warning)
    }
}

impl Severity {
    /// The word shown to people.
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

/// The offending text is always shown: in the message if it quotes it, else before it.
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
        for (at, found) in self.all.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            found.fmt(f)?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}

//! Collects errors and warnings while a text is read, and makes diagnostics of them at the end.
//!
//! Reading continues after a mistake, so reporting never returns early. Must not show a private
//! value: `private_error` replaces its text by asterisks in the diagnostic.

use super::{Diagnostic, Severity};

/// Diagnostics of one report.
pub const DIAGNOSTICS_MAX: usize = 500;

/// One of the files that are read together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceFile<'a> {
    /// The name shown in diagnostics.
    pub name: &'a str,
    /// Its text.
    pub text: &'a str,
}

/// Diagnostic codes with their meanings.
type Codes = &'static [(&'static str, &'static str)];

/// A range of bytes in one of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceLocation {
    /// The file's index, in the order of reading.
    pub file: usize,
    /// The first byte.
    pub start: usize,
    /// The byte after the last one.
    pub end: usize,
}

/// The errors and warnings found so far.
#[derive(Debug, Default)]
pub struct Report {
    pending: Vec<PendingDiagnostic>,
    /// The lists of codes that may be reported; empty if they are not checked.
    registers: Vec<Codes>,
    /// Ranges in which further mistakes are not reported: they would be consequences of another.
    hidden: Vec<SourceLocation>,
    /// Whether some declarations could not be read, so that an unknown name may be a declared one.
    names_incomplete: bool,
    has_errors: bool,
}

/// An error or warning whose line and column are not computed yet.
#[derive(Debug)]
struct PendingDiagnostic {
    severity: Severity,
    code: &'static str,
    location: SourceLocation,
    message: String,
    fix: Option<String>,
    private: bool,
}

impl Report {
    /// An empty report. In debug builds, a code that is in none of the lists is a panic.
    pub fn with_codes(registers: &[&'static [(&'static str, &'static str)]]) -> Self {
        Self { registers: registers.to_vec(), ..Self::default() }
    }

    /// Adds an error. A catalog with errors is not used.
    pub fn error(
        &mut self,
        code: &'static str,
        location: SourceLocation,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) {
        self.add(Severity::Error, code, location, message.into(), fix.into());
    }

    /// Adds a warning about a probable mistake.
    pub fn warn(
        &mut self,
        code: &'static str,
        location: SourceLocation,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) {
        self.add(Severity::Warning, code, location, message.into(), fix.into());
    }

    /// Adds an error about a value that must not be shown.
    pub fn private_error(
        &mut self,
        code: &'static str,
        location: SourceLocation,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) {
        // `error` adds nothing if the error is hidden or the report is full.
        let before = self.pending.len();
        self.error(code, location, message, fix);
        self.pending[before..].iter_mut().for_each(|pending| pending.private = true);
    }

    /// Adds an error after which the text in `hides` means nothing: later mistakes in that range
    /// are not reported.
    pub fn error_hiding(
        &mut self,
        code: &'static str,
        location: SourceLocation,
        hides: SourceLocation,
        message: String,
        fix: String,
    ) {
        self.add(Severity::Error, code, location, message, fix);
        self.hidden.push(hides);
    }

    /// Records that some declarations could not be read. Unknown policies and gates are not
    /// reported from then on, because they may be declared there.
    pub fn mark_names_incomplete(&mut self) {
        self.names_incomplete = true;
    }

    /// Whether there was an error, shown or hidden.
    pub fn has_errors(&self) -> bool {
        self.has_errors
    }

    fn add(
        &mut self,
        severity: Severity,
        code: &'static str,
        location: SourceLocation,
        message: String,
        fix: String,
    ) {
        debug_assert!(self.is_registered(code), "{code} is not registered");
        // Also an error that is not shown makes the catalog unusable.
        self.has_errors |= severity == Severity::Error;
        let echo = self.names_incomplete && matches!(code, "unknown-policy" | "unknown-gate");
        if echo
            || !self.has_room(severity)
            || self.hidden.iter().any(|hidden| hidden.covers(location))
        {
            return;
        }
        let message = shorten(message, MESSAGE_SHOWN);
        let fix = Some(shorten(fix, FIX_SHOWN)).filter(|fix| !fix.is_empty());
        let private = false;
        self.pending.push(PendingDiagnostic { severity, code, location, message, fix, private });
    }

    fn is_registered(&self, code: &str) -> bool {
        let mut codes = self.registers.iter().flat_map(|register| register.iter());
        self.registers.is_empty() || codes.any(|(known, _)| *known == code)
    }

    /// Whether a further error would not be shown; its message then need not be built.
    pub fn is_full(&self) -> bool {
        !self.has_room(Severity::Error)
    }

    /// Whether another diagnostic is stored. The number is bounded, so that a hostile text cannot
    /// make reading slow; warnings use at most half of it, so that an error always has room.
    fn has_room(&self, severity: Severity) -> bool {
        let most = match severity {
            Severity::Error => DIAGNOSTICS_MAX,
            Severity::Warning => DIAGNOSTICS_MAX / 2,
        };
        self.pending.len() < most
    }

    /// The diagnostics with lines and columns, sorted by file and position.
    pub fn finish(mut self, sources: &[SourceFile<'_>]) -> Vec<Diagnostic> {
        self.pending.sort_by_key(|pending| pending.location);
        self.pending.into_iter().map(|pending| pending.locate(sources)).collect()
    }
}

impl SourceLocation {
    /// The start of a file.
    pub const fn start_of(file: usize) -> Self {
        Self { file, start: 0, end: 0 }
    }

    /// Whether the other range starts within this one; an empty range covers its own position.
    fn covers(self, other: Self) -> bool {
        self.file == other.file && (self.start..self.end.max(self.start + 1)).contains(&other.start)
    }
}

impl PendingDiagnostic {
    fn locate(self, sources: &[SourceFile<'_>]) -> Diagnostic {
        let source = &sources[self.location.file];
        let line = SourceLine::around(source.text, self.location.start);
        let shown = source.text.get(self.location.start..self.location.end).unwrap_or_default();
        let text: String =
            shown.lines().next().unwrap_or_default().chars().take(TEXT_SHOWN).collect();
        // A private value may occur in its line more than once.
        let (text, line_text) = match self.private {
            true => (asterisks(&text), line.text.replace(shown, &asterisks(shown))),
            false => (text, line.text.to_owned()),
        };
        Diagnostic {
            severity: self.severity,
            code: self.code,
            file: source.name.to_owned(),
            start: self.location.start,
            end: self.location.end,
            line: line.number,
            column: line.column,
            text,
            message: self.message,
            fix: self.fix,
            line_text: line_text.chars().take(LINE_SHOWN).collect(),
        }
    }
}

/// A line of a file, with the number and column of one position in it.
struct SourceLine<'a> {
    text: &'a str,
    number: usize,
    column: usize,
}

impl<'a> SourceLine<'a> {
    fn around(source: &'a str, at: usize) -> Self {
        let mut at = at.min(source.len());
        // The parser's positions may lie inside a character of several bytes.
        while !source.is_char_boundary(at) {
            at -= 1;
        }
        let (before, after) = source.split_at(at);
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let end = at + after.find('\n').unwrap_or(after.len());
        let number = 1 + before.bytes().filter(|byte| *byte == b'\n').count();
        // Editors do not count a byte order mark as a column.
        let column = 1 + source[start..at].chars().filter(|c| *c != '\u{feff}').count();
        Self { text: source[start..end].trim_end_matches('\r'), number, column }
    }
}

fn asterisks(text: &str) -> String {
    text.chars().map(|_| '*').collect()
}

/// Cuts the middle out of a long text: a message that quotes a value may be as long as a catalog.
fn shorten(text: String, shown: usize) -> String {
    let length = text.chars().count();
    if length <= shown {
        return text;
    }
    let start: String = text.chars().take(shown / 2).collect();
    let end: String = text.chars().skip(length - shown / 2).collect();
    format!("{start}…{end}")
}

/// The longest message, in characters.
const MESSAGE_SHOWN: usize = 400;

/// The longest fix, in characters: it may list all known names.
const FIX_SHOWN: usize = 2_400;

/// The longest offending text shown, in characters.
const TEXT_SHOWN: usize = 80;

/// The longest source line shown, in characters.
const LINE_SHOWN: usize = 400;

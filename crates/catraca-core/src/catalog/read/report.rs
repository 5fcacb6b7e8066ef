//! Collects what is wrong while reading goes on, and locates it at the end.
//!
//! Reading never stops at the first mistake, so nothing here returns early. Must not show a private
//! value: whoever reports one says so, and it is starred out wherever it would be shown.

use super::Source;
use super::bounds::DIAGNOSTICS_MAX;
use crate::catalog::diagnostic::{CODES, Diagnostic, Severity};

/// A stretch of text in one of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// The file, by the order of reading.
    pub file: usize,
    /// The first byte.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
}

/// Everything found so far.
#[derive(Debug, Default)]
pub(super) struct Report {
    faults: Vec<Fault>,
    hidden: Vec<Place>,
    /// Whether names may have been declared where nobody could read them.
    names_lost: bool,
    refused: bool,
}

/// One thing found, not yet located.
#[derive(Debug)]
struct Fault {
    severity: Severity,
    code: &'static str,
    place: Place,
    message: String,
    fix: Option<String>,
    private: bool,
}

impl Report {
    /// Something that refuses the catalog.
    pub fn error(
        &mut self,
        code: &'static str,
        place: Place,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) {
        self.add(Severity::Error, code, place, (message.into(), fix.into()));
    }

    /// Something that is probably not meant.
    pub fn warn(
        &mut self,
        code: &'static str,
        place: Place,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) {
        self.add(Severity::Warning, code, place, (message.into(), fix.into()));
    }

    /// An error about a value that must not be shown.
    pub fn private_error(
        &mut self,
        code: &'static str,
        place: Place,
        message: impl Into<String>,
        fix: impl Into<String>,
    ) {
        let before = self.faults.len();
        self.error(code, place, message, fix);
        self.faults[before..].iter_mut().for_each(|fault| fault.private = true);
    }

    /// Damage to the text itself, which hides whatever else is found at `shadow`.
    pub fn damage(
        &mut self,
        code: &'static str,
        place: Place,
        shadow: Place,
        says: (String, String),
    ) {
        self.add(Severity::Error, code, place, says);
        self.hidden.push(shadow);
    }

    /// Says that declarations could not be read, so that nobody calls a name unknown.
    pub fn lose_names(&mut self) {
        self.names_lost = true;
    }

    /// Whether the catalog is refused.
    pub fn has_errors(&self) -> bool {
        self.refused
    }

    fn add(
        &mut self,
        severity: Severity,
        code: &'static str,
        place: Place,
        says: (String, String),
    ) {
        debug_assert!(CODES.iter().any(|(known, _)| *known == code), "{code} has no meaning");
        self.refused |= severity == Severity::Error;
        let echo = self.names_lost && matches!(code, "unknown-policy" | "unknown-gate");
        if echo || !self.has_room(severity) || self.hidden.iter().any(|hidden| hidden.covers(place))
        {
            return;
        }
        let (message, fix) = (shortened(says.0, MESSAGE_SHOWN), shortened(says.1, FIX_SHOWN));
        let fix = Some(fix).filter(|fix| !fix.is_empty());
        self.faults.push(Fault { severity, code, place, message, fix, private: false });
    }

    /// Whether another error would not be shown.
    pub fn is_full(&self) -> bool {
        !self.has_room(Severity::Error)
    }

    /// What nobody would be shown is not kept, so that hostile text takes no longer for it.
    /// Warnings leave room, so that a refusal never goes without its error.
    fn has_room(&self, severity: Severity) -> bool {
        let most = match severity {
            Severity::Error => DIAGNOSTICS_MAX,
            Severity::Warning => DIAGNOSTICS_MAX / 2,
        };
        self.faults.len() < most
    }

    /// Locates everything, sorted by file and position.
    pub fn finish(mut self, sources: &[Source<'_>]) -> Vec<Diagnostic> {
        self.faults.sort_by_key(|fault| fault.place);
        self.faults.into_iter().map(|fault| fault.locate(sources)).collect()
    }
}

impl Place {
    /// The start of a file.
    pub const fn start_of(file: usize) -> Self {
        Self { file, start: 0, end: 0 }
    }

    fn covers(self, other: Self) -> bool {
        self.file == other.file && (self.start..self.end.max(self.start + 1)).contains(&other.start)
    }
}

impl Fault {
    fn locate(self, sources: &[Source<'_>]) -> Diagnostic {
        let source = &sources[self.place.file];
        let line = Line::around(source.text, self.place.start);
        let shown = source.text.get(self.place.start..self.place.end).unwrap_or_default();
        let text: String =
            shown.lines().next().unwrap_or_default().chars().take(TEXT_SHOWN).collect();
        let (text, line_text) = match self.private {
            true => (stars(&text), line.text.replace(shown, &stars(shown))),
            false => (text, line.text.to_owned()),
        };
        Diagnostic {
            severity: self.severity,
            code: self.code,
            file: source.name.to_owned(),
            start: self.place.start,
            end: self.place.end,
            line: line.number,
            column: line.column,
            text,
            message: self.message,
            fix: self.fix,
            line_text: line_text.chars().take(LINE_SHOWN).collect(),
        }
    }
}

/// A line of source and a position in it.
struct Line<'a> {
    text: &'a str,
    number: usize,
    column: usize,
}

impl<'a> Line<'a> {
    fn around(source: &'a str, at: usize) -> Self {
        let mut at = at.min(source.len());
        while !source.is_char_boundary(at) {
            at -= 1;
        }
        let (before, after) = source.split_at(at);
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let end = at + after.find('\n').unwrap_or(after.len());
        let number = 1 + before.bytes().filter(|byte| *byte == b'\n').count();
        // A byte order mark is not a character that anybody sees.
        let column = 1 + source[start..at].chars().filter(|c| *c != '\u{feff}').count();
        Self { text: source[start..end].trim_end_matches('\r'), number, column }
    }
}

fn stars(text: &str) -> String {
    text.chars().map(|_| '*').collect()
}

/// What quotes a whole value may be as long as a catalog: its start and end say enough.
fn shortened(says: String, shown: usize) -> String {
    let length = says.chars().count();
    if length <= shown {
        return says;
    }
    let start: String = says.chars().take(shown / 2).collect();
    let end: String = says.chars().skip(length - shown / 2).collect();
    format!("{start}…{end}")
}

/// Characters of a message that are kept.
const MESSAGE_SHOWN: usize = 400;

/// Characters of a fix that are kept: it may list the names that are known.
const FIX_SHOWN: usize = 2_400;

/// Characters of the offending text that are shown.
const TEXT_SHOWN: usize = 80;

/// Characters of the source line that are kept.
const LINE_SHOWN: usize = 400;

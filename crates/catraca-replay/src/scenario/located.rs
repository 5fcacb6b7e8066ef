//! TOML values with their positions in the file, and the collector of errors.
//!
//! An accessor that finds a value of the wrong type reports the error itself and returns `None`, so
//! that parsing continues and one run reports all errors of a file.

use std::borrow::Cow;

use catraca_core::catalog::diagnostic::{Diagnostic, Diagnostics, Severity};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::suggestions;

/// A range of the text, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct SourcePosition {
    pub start: usize,
    pub end: usize,
}

/// A TOML value and its position.
#[derive(Clone, Copy)]
pub(super) struct Node<'t> {
    pub position: SourcePosition,
    pub value: &'t DeValue<'t>,
}

/// The known fields of a table, in the order of the text.
pub(super) struct Fields<'t> {
    pub position: SourcePosition,
    pub entries: Vec<(SourcePosition, &'t str, Node<'t>)>,
}

/// Collects the errors of a scenario file.
pub(super) struct DiagnosticSink<'t> {
    pub file: &'t str,
    pub text: &'t str,
    found: Vec<Diagnostic>,
}

impl<'t> DiagnosticSink<'t> {
    pub fn new(file: &'t str, text: &'t str) -> Self {
        Self { file, text, found: Vec::new() }
    }

    /// Reports an error at a position, and its fix.
    pub fn error(
        &mut self,
        code: &'static str,
        position: SourcePosition,
        message: String,
        fix: String,
    ) {
        let before = &self.text[..self.text.floor_char_boundary(position.start)];
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let invalid = self.text.get(position.start..position.end).unwrap_or_default();
        self.found.push(Diagnostic {
            severity: Severity::Error,
            code,
            file: self.file.to_owned(),
            start: position.start,
            end: position.end,
            line: self.line(position),
            column: 1 + before[start..].chars().count(),
            text: invalid.lines().next().unwrap_or_default().chars().take(TEXT_CHARS).collect(),
            message: cut(&message, MESSAGE_CHARS),
            fix: Some(cut(&fix, MESSAGE_CHARS)),
            line_text: cut(self.text[start..].lines().next().unwrap_or_default(), LINE_CHARS),
        });
    }

    /// The line of a position, from one.
    pub fn line(&self, position: SourcePosition) -> usize {
        1 + self.text.as_bytes().iter().take(position.start).filter(|byte| **byte == b'\n').count()
    }

    /// Adds the diagnostics of a catalog.
    pub fn add(&mut self, found: impl IntoIterator<Item = Diagnostic>) {
        self.found.extend(found);
    }

    /// Fails with all errors so far, if any, in the order of the text; those of other files last.
    pub fn finish(&mut self) -> Result<(), Diagnostics> {
        let mut all = std::mem::take(&mut self.found);
        all.sort_by_key(|found| (found.file != self.file, found.line, found.column));
        if all.is_empty() { Ok(()) } else { Err(Diagnostics { all }) }
    }
}

impl<'t> Node<'t> {
    fn new(value: &'t Spanned<DeValue<'t>>) -> Self {
        let span = value.span();
        Self {
            position: SourcePosition { start: span.start, end: span.end },
            value: value.get_ref(),
        }
    }

    /// A text; `wanted` describes it for the error message, with an example.
    pub fn text(self, diagnostics: &mut DiagnosticSink<'_>, wanted: &str) -> Option<&'t str> {
        self.value.as_str().or_else(|| self.refuse(diagnostics, wanted))
    }

    /// A text, or a date in TOML's own notation.
    pub fn moment(
        self,
        diagnostics: &mut DiagnosticSink<'_>,
        wanted: &str,
    ) -> Option<Cow<'t, str>> {
        match self.value {
            DeValue::Datetime(datetime) => Some(Cow::Owned(datetime.to_string())),
            _ => self.text(diagnostics, wanted).map(Cow::Borrowed),
        }
    }

    /// An integer of at least `least`.
    pub fn integer(self, diagnostics: &mut DiagnosticSink<'_>, least: i64) -> Option<i64> {
        let read = integer(self.value).filter(|read| *read >= least);
        read.or_else(|| self.refuse(diagnostics, &format!("a whole number of at least {least}")))
    }

    /// A boolean.
    pub fn flag(self, diagnostics: &mut DiagnosticSink<'_>) -> Option<bool> {
        self.value.as_bool().or_else(|| self.refuse(diagnostics, "true or false"))
    }

    /// The items of a list.
    pub fn items(
        self,
        diagnostics: &mut DiagnosticSink<'_>,
        wanted: &str,
    ) -> Option<Vec<Node<'t>>> {
        let items = self.value.as_array().or_else(|| self.refuse(diagnostics, wanted))?;
        Some(items.iter().map(Node::new).collect())
    }

    /// The entries of a table with any names, in the order of the text.
    pub fn entries(
        self,
        diagnostics: &mut DiagnosticSink<'_>,
        wanted: &str,
    ) -> Option<Vec<(SourcePosition, &'t str, Node<'t>)>> {
        self.value.as_table().map(entries).or_else(|| self.refuse(diagnostics, wanted))
    }

    /// A table of texts, such as a subject.
    pub fn texts(
        self,
        diagnostics: &mut DiagnosticSink<'_>,
        wanted: &str,
    ) -> Option<Vec<(String, String)>> {
        let entries = self.entries(diagnostics, wanted)?;
        let read = entries.into_iter().map(|(_, name, node)| {
            Some((name.to_owned(), node.text(diagnostics, "a text in quotes")?.to_owned()))
        });
        read.collect::<Vec<_>>().into_iter().collect()
    }

    /// Reports a value of the wrong type.
    pub fn refuse<T>(self, diagnostics: &mut DiagnosticSink<'_>, wanted: &str) -> Option<T> {
        let message = format!("expected {wanted}, found {}", describe_type(self.value));
        diagnostics.error("wrong-type", self.position, message, format!("write {wanted}"));
        None
    }
}

impl<'t> Fields<'t> {
    /// The fields of a table; a field that is not in `known` is an error.
    pub fn read(
        diagnostics: &mut DiagnosticSink<'_>,
        node: Node<'t>,
        what: &str,
        known: &[&str],
    ) -> Option<Self> {
        let entries = node.entries(diagnostics, &format!("a table with the fields of a {what}"))?;
        Some(Self::keep_known(diagnostics, node.position, entries, what, known))
    }

    /// The fields of the whole file.
    pub fn root(
        diagnostics: &mut DiagnosticSink<'_>,
        table: &'t DeTable<'t>,
        known: &[&str],
    ) -> Self {
        let position = SourcePosition { start: 0, end: 0 };
        Self::keep_known(diagnostics, position, entries(table), "scenario file", known)
    }

    /// Reports the fields that are not in `known`, and keeps the others.
    fn keep_known(
        diagnostics: &mut DiagnosticSink<'_>,
        position: SourcePosition,
        mut entries: Vec<(SourcePosition, &'t str, Node<'t>)>,
        what: &str,
        known: &[&str],
    ) -> Self {
        for (position, name, _) in entries.iter().filter(|(_, name, _)| !known.contains(name)) {
            let message = format!("a {what} has no field `{name}`");
            diagnostics.error(
                "unknown-field",
                *position,
                message,
                suggestions::suggest(name, known),
            );
        }
        entries.retain(|(_, name, _)| known.contains(name));
        Self { position, entries }
    }

    /// A field, if present.
    pub fn get(&self, name: &str) -> Option<Node<'t>> {
        self.entries.iter().find(|(_, key, _)| *key == name).map(|(_, _, node)| *node)
    }

    /// A required field; the error message quotes `example`.
    pub fn need(
        &self,
        diagnostics: &mut DiagnosticSink<'_>,
        name: &str,
        example: &str,
    ) -> Option<Node<'t>> {
        let found = self.get(name);
        if found.is_none() {
            let message = format!("the field `{name}` is missing");
            diagnostics.error(
                "missing-field",
                self.position,
                message,
                format!("add {name} = {example}"),
            );
        }
        found
    }

    /// A required text.
    pub fn text(
        &self,
        diagnostics: &mut DiagnosticSink<'_>,
        name: &str,
        example: &str,
    ) -> Option<String> {
        self.need(diagnostics, name, example)?.text(diagnostics, example).map(str::to_owned)
    }

    /// An optional text; the outer `None` means that the field is not a text.
    pub fn text_or(
        &self,
        diagnostics: &mut DiagnosticSink<'_>,
        name: &str,
    ) -> Option<Option<String>> {
        match self.get(name) {
            Some(node) => {
                node.text(diagnostics, "a text in quotes").map(|text| Some(text.to_owned()))
            }
            None => Some(None),
        }
    }
}

/// An integer that fits in 64 bits.
pub(super) fn integer(value: &DeValue<'_>) -> Option<i64> {
    let digits = value.as_integer()?;
    i64::from_str_radix(digits.as_str(), digits.radix()).ok()
}

/// A table's entries in the order of the text; the TOML parser sorts them by name.
fn entries<'t>(table: &'t DeTable<'t>) -> Vec<(SourcePosition, &'t str, Node<'t>)> {
    let located = |(key, value): (&'t Spanned<Cow<'t, str>>, &'t Spanned<DeValue<'t>>)| {
        let span = key.span();
        let name: &'t str = key.get_ref();
        (SourcePosition { start: span.start, end: span.end }, name, Node::new(value))
    };
    let mut entries: Vec<_> = table.iter().map(located).collect();
    entries.sort_by_key(|(position, ..)| *position);
    entries
}

/// What an error message says was found instead of the wanted value.
fn describe_type(value: &DeValue<'_>) -> String {
    match value.type_str() {
        "array" => "a list".to_owned(),
        "string" => "a text".to_owned(),
        "integer" => format!("the integer {}", value.as_integer().map_or("", |int| int.as_str())),
        other => format!("a {other}"),
    }
}

/// Shortens a text: a message that quotes a value could be as long as the file.
fn cut(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Maximum characters of a message or a fix.
const MESSAGE_CHARS: usize = 800;
/// Maximum characters of the quoted source line.
const LINE_CHARS: usize = 400;
/// Maximum characters of the quoted invalid text.
const TEXT_CHARS: usize = 80;

//! Located values: what a file says and where, and everything wrong with it at once.
//!
//! A question answered with the wrong type reports it, so that readers only say what they want.
//! Must not know steps or verbs.

use std::borrow::Cow;

use catraca_core::catalog::diagnostic::{Diagnostic, Diagnostics, Severity};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::names;

/// A stretch of the text, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub start: usize,
    pub end: usize,
}

/// A value and its place.
#[derive(Clone, Copy)]
pub(super) struct Node<'t> {
    pub place: Place,
    pub value: &'t DeValue<'t>,
}

/// A table's fields in the order of the text; only known ones.
pub(super) struct Fields<'t> {
    pub place: Place,
    pub entries: Vec<(Place, &'t str, Node<'t>)>,
}

/// Everything wrong so far.
pub(super) struct Desk<'t> {
    pub file: &'t str,
    pub text: &'t str,
    faults: Vec<Diagnostic>,
}

impl<'t> Desk<'t> {
    pub fn new(file: &'t str, text: &'t str) -> Self {
        Self { file, text, faults: Vec::new() }
    }

    /// Reports what is wrong at a place, and what to write instead.
    pub fn error(&mut self, code: &'static str, place: Place, message: String, fix: String) {
        let before = &self.text[..self.text.floor_char_boundary(place.start)];
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let shown = self.text.get(place.start..place.end).unwrap_or_default();
        self.faults.push(Diagnostic {
            severity: Severity::Error,
            code,
            file: self.file.to_owned(),
            start: place.start,
            end: place.end,
            line: self.line(place),
            column: 1 + before[start..].chars().count(),
            text: shown.lines().next().unwrap_or_default().chars().take(TEXT_SHOWN).collect(),
            message: cut(&message, SAYS_SHOWN),
            fix: Some(cut(&fix, SAYS_SHOWN)),
            line_text: cut(self.text[start..].lines().next().unwrap_or_default(), LINE_SHOWN),
        });
    }

    /// The line of a place, counted from one.
    pub fn line(&self, place: Place) -> usize {
        1 + self.text.as_bytes().iter().take(place.start).filter(|byte| **byte == b'\n').count()
    }

    /// What a catalog's reader found.
    pub fn add(&mut self, found: impl IntoIterator<Item = Diagnostic>) {
        self.faults.extend(found);
    }

    /// Whether nothing is wrong; else everything that is, by position.
    pub fn finish(&mut self) -> Result<(), Diagnostics> {
        let mut all = std::mem::take(&mut self.faults);
        all.sort_by_key(|fault| (fault.file != self.file, fault.line, fault.column));
        if all.is_empty() { Ok(()) } else { Err(Diagnostics { all }) }
    }
}

impl<'t> Node<'t> {
    fn new(value: &'t Spanned<DeValue<'t>>) -> Self {
        let span = value.span();
        Self { place: Place { start: span.start, end: span.end }, value: value.get_ref() }
    }

    /// A text; `wanted` says what it should be, with an example.
    pub fn text(self, desk: &mut Desk<'_>, wanted: &str) -> Option<&'t str> {
        self.value.as_str().or_else(|| self.refuse(desk, wanted))
    }

    /// A text, or a date in TOML's own notation.
    pub fn moment(self, desk: &mut Desk<'_>, wanted: &str) -> Option<Cow<'t, str>> {
        match self.value {
            DeValue::Datetime(datetime) => Some(Cow::Owned(datetime.to_string())),
            _ => self.text(desk, wanted).map(Cow::Borrowed),
        }
    }

    /// A whole number of at least `least`.
    pub fn integer(self, desk: &mut Desk<'_>, least: i64) -> Option<i64> {
        let read = integer(self.value).filter(|read| *read >= least);
        read.or_else(|| self.refuse(desk, &format!("a whole number of at least {least}")))
    }

    /// True or false.
    pub fn flag(self, desk: &mut Desk<'_>) -> Option<bool> {
        self.value.as_bool().or_else(|| self.refuse(desk, "true or false"))
    }

    /// The items of a list.
    pub fn items(self, desk: &mut Desk<'_>, wanted: &str) -> Option<Vec<Node<'t>>> {
        let items = self.value.as_array().or_else(|| self.refuse(desk, wanted))?;
        Some(items.iter().map(Node::new).collect())
    }

    /// A table whose names are anybody's, in the order of the text.
    pub fn entries(
        self,
        desk: &mut Desk<'_>,
        wanted: &str,
    ) -> Option<Vec<(Place, &'t str, Node<'t>)>> {
        self.value.as_table().map(entries).or_else(|| self.refuse(desk, wanted))
    }

    /// A table of texts, such as a subject.
    pub fn texts(self, desk: &mut Desk<'_>, wanted: &str) -> Option<Vec<(String, String)>> {
        let entries = self.entries(desk, wanted)?;
        let read = entries.into_iter().map(|(_, name, node)| {
            Some((name.to_owned(), node.text(desk, "a text in quotes")?.to_owned()))
        });
        read.collect::<Vec<_>>().into_iter().collect()
    }

    /// Reports a value of the wrong type.
    pub fn refuse<T>(self, desk: &mut Desk<'_>, wanted: &str) -> Option<T> {
        let message = format!("expected {wanted}, found {}", found(self.value));
        desk.error("wrong-type", self.place, message, format!("write {wanted}"));
        None
    }
}

impl<'t> Fields<'t> {
    /// The fields of a table that has only these.
    pub fn read(desk: &mut Desk<'_>, node: Node<'t>, what: &str, known: &[&str]) -> Option<Self> {
        let entries = node.entries(desk, &format!("a table with the fields of a {what}"))?;
        Some(Self::known(desk, node.place, entries, (what, known)))
    }

    /// The fields of the whole file.
    pub fn root(desk: &mut Desk<'_>, table: &'t DeTable<'t>, known: &[&str]) -> Self {
        let place = Place { start: 0, end: 0 };
        Self::known(desk, place, entries(table), ("scenario file", known))
    }

    fn known(
        desk: &mut Desk<'_>,
        place: Place,
        mut entries: Vec<(Place, &'t str, Node<'t>)>,
        (what, known): (&str, &[&str]),
    ) -> Self {
        for (place, name, _) in entries.iter().filter(|(_, name, _)| !known.contains(name)) {
            let message = format!("a {what} has no field `{name}`");
            desk.error("unknown-field", *place, message, names::suggest(name, known));
        }
        entries.retain(|(_, name, _)| known.contains(name));
        Self { place, entries }
    }

    /// A field, if it is there.
    pub fn get(&self, name: &str) -> Option<Node<'t>> {
        self.entries.iter().find(|(_, key, _)| *key == name).map(|(_, _, node)| *node)
    }

    /// A field that must be there; `example` shows how it is written.
    pub fn need(&self, desk: &mut Desk<'_>, name: &str, example: &str) -> Option<Node<'t>> {
        let found = self.get(name);
        if found.is_none() {
            let message = format!("the field `{name}` is missing");
            desk.error("missing-field", self.place, message, format!("add {name} = {example}"));
        }
        found
    }

    /// A text that must be there.
    pub fn text(&self, desk: &mut Desk<'_>, name: &str, example: &str) -> Option<String> {
        self.need(desk, name, example)?.text(desk, example).map(str::to_owned)
    }

    /// A text that may be there; nothing at all if it is not a text.
    pub fn text_or(&self, desk: &mut Desk<'_>, name: &str) -> Option<Option<String>> {
        match self.get(name) {
            Some(node) => node.text(desk, "a text in quotes").map(|text| Some(text.to_owned())),
            None => Some(None),
        }
    }
}

/// A whole number that fits in 64 bits.
pub(super) fn integer(value: &DeValue<'_>) -> Option<i64> {
    let digits = value.as_integer()?;
    i64::from_str_radix(digits.as_str(), digits.radix()).ok()
}

/// A table's entries in the order of the text; the parser keeps them by name.
fn entries<'t>(table: &'t DeTable<'t>) -> Vec<(Place, &'t str, Node<'t>)> {
    let located = |(key, value): (&'t Spanned<Cow<'t, str>>, &'t Spanned<DeValue<'t>>)| {
        let span = key.span();
        let name: &'t str = key.get_ref();
        (Place { start: span.start, end: span.end }, name, Node::new(value))
    };
    let mut entries: Vec<_> = table.iter().map(located).collect();
    entries.sort_by_key(|(place, ..)| *place);
    entries
}

fn found(value: &DeValue<'_>) -> String {
    match value.type_str() {
        "array" => "a list".to_owned(),
        "string" => "a text".to_owned(),
        "integer" => format!("the integer {}", value.as_integer().map_or("", |int| int.as_str())),
        other => format!("a {other}"),
    }
}

/// What quotes a whole value may be as long as the file.
fn cut(text: &str, shown: usize) -> String {
    match text.char_indices().nth(shown) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Characters of a message or a fix that are shown.
const SAYS_SHOWN: usize = 800;
/// Characters of the source line that are kept.
const LINE_SHOWN: usize = 400;
/// Characters of the offending text that are shown.
const TEXT_SHOWN: usize = 80;

//! Values of the parsed text with their places, and the questions that readers ask of them.
//!
//! A question that is answered with the wrong type reports it, so that readers only say what they
//! want. Must not know the catalog's sections or their rules.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::names;
use super::report::{Place, Report};
use crate::request::is_storable;

/// A value and its place.
#[derive(Clone, Copy)]
pub(super) struct Node<'t> {
    pub place: Place,
    pub value: &'t DeValue<'t>,
}

/// A key and its place.
#[derive(Clone, Copy)]
pub(super) struct Key<'t> {
    pub place: Place,
    pub text: &'t str,
}

/// A table's entries, in the order of the text.
pub(super) struct Fields<'t> {
    /// Where the table is named.
    pub place: Place,
    entries: Vec<(Key<'t>, Node<'t>)>,
}

/// What became of a field: a bad one was reported and must not be called missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Given<T> {
    Absent,
    Bad,
    Good(T),
}

impl<'t> Node<'t> {
    pub fn new(file: usize, value: &'t Spanned<DeValue<'t>>) -> Self {
        let span = value.span();
        Self { place: Place { file, start: span.start, end: span.end }, value: value.get_ref() }
    }

    /// A text; `wanted` says what it should be, with an example.
    pub fn text(self, report: &mut Report, wanted: &str) -> Option<&'t str> {
        let text = self.value.as_str().or_else(|| self.refuse(report, wanted))?;
        if !is_storable(text) {
            let message = "the text contains U+0000, which cannot be stored";
            // It may be a private value, so it is not shown.
            report.private_error("bad-text", self.place, message, "remove it");
            return None;
        }
        Some(text)
    }

    /// A whole number that fits in 64 bits.
    pub fn integer(self, report: &mut Report, wanted: &str) -> Option<i64> {
        let read =
            self.value.as_integer().map(|int| i64::from_str_radix(int.as_str(), int.radix()));
        match read {
            Some(Ok(int)) => Some(int),
            Some(Err(_)) => self.refuse_size(report),
            None => self.refuse(report, wanted),
        }
    }

    /// True or false.
    pub fn flag(self, report: &mut Report) -> Option<bool> {
        self.value.as_bool().or_else(|| self.refuse(report, "true or false"))
    }

    /// The items of a list.
    pub fn items(self, report: &mut Report, wanted: &str) -> Option<Vec<Node<'t>>> {
        let items = self.value.as_array().or_else(|| self.refuse(report, wanted))?;
        Some(items.iter().map(|item| Node::new(self.place.file, item)).collect())
    }

    /// One text or a list of texts; nothing if any of them is not a text.
    pub fn texts(self, report: &mut Report, wanted: &str) -> Option<Vec<(Node<'t>, &'t str)>> {
        let items = match self.value {
            DeValue::String(_) => vec![self],
            _ => self.items(report, wanted)?,
        };
        let texts: Vec<_> = items.iter().map(|item| item.text(report, wanted)).collect();
        items.into_iter().zip(texts).map(|(item, text)| text.map(|text| (item, text))).collect()
    }

    /// A table whose keys are anybody's, in the order of the text.
    pub fn entries(self, report: &mut Report, wanted: &str) -> Option<Vec<(Key<'t>, Node<'t>)>> {
        let table = self.value.as_table().or_else(|| self.refuse(report, wanted))?;
        Some(entries(self.place.file, table))
    }

    /// Reports a value of the wrong type.
    pub fn refuse<T>(self, report: &mut Report, wanted: &str) -> Option<T> {
        let found = match self.value.type_str() {
            "array" => "a list".to_owned(),
            "integer" => "an integer".to_owned(),
            "string" => "a text".to_owned(),
            other => format!("a {other}"),
        };
        let message = format!("expected {wanted}, found {found}");
        report.error("wrong-type", self.place, message, format!("write {wanted}"));
        None
    }

    fn refuse_size<T>(self, report: &mut Report) -> Option<T> {
        let fix = "write a whole number below 9007199254740992";
        report.error("inexact", self.place, "the number is too large to be counted exactly", fix);
        None
    }
}

impl<'t> Fields<'t> {
    /// The fields of a table that has only these; `place` is where the table is named.
    pub fn read(
        report: &mut Report,
        (place, node): (Place, Node<'t>),
        what: &str,
        known: &[&str],
    ) -> Option<Self> {
        let what = names::an(what);
        let entries = node.entries(report, &format!("a table with the fields of {what}"))?;
        for (key, _) in entries.iter().filter(|(key, _)| !known.contains(&key.text)) {
            let message = format!("{what} has no field `{}`", key.text);
            report.error(
                "unknown-field",
                key.place,
                message,
                names::suggest(report, key.text, known),
            );
        }
        Some(Self { place, entries })
    }

    /// The fields of a table that stands on its own, as an item of a list.
    pub fn item(report: &mut Report, node: Node<'t>, what: &str, known: &[&str]) -> Option<Self> {
        Self::read(report, (node.place, node), what, known)
    }

    /// A field, if it is there.
    pub fn get(&self, name: &str) -> Option<Node<'t>> {
        self.entries.iter().find(|(key, _)| key.text == name).map(|(_, node)| *node)
    }

    /// Where a field is named, if it is there.
    pub fn key(&self, name: &str) -> Option<Place> {
        self.entries.iter().find(|(key, _)| key.text == name).map(|(key, _)| key.place)
    }

    /// Whether a field is there, good or bad.
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// A field that must be there; `example` shows how it is written.
    pub fn need(&self, report: &mut Report, name: &str, example: &str) -> Option<Node<'t>> {
        if !self.has(name) {
            let message = format!("the field `{name}` is missing");
            report.error("missing-field", self.place, message, format!("add {name} = {example}"));
        }
        self.get(name)
    }

    /// What a reader makes of a field.
    pub fn given<T>(&self, name: &str, read: impl FnOnce(Node<'t>) -> Option<T>) -> Given<T> {
        match self.get(name).map(read) {
            None => Given::Absent,
            Some(None) => Given::Bad,
            Some(Some(good)) => Given::Good(good),
        }
    }
}

impl<T> Given<T> {
    /// The value, or what stands for an absent one; nothing if it was bad.
    pub fn or(self, absent: T) -> Option<T> {
        match self {
            Self::Absent => Some(absent),
            Self::Bad => None,
            Self::Good(good) => Some(good),
        }
    }

    /// The value if there is one; nothing at all if it was bad.
    pub fn optional(self) -> Option<Option<T>> {
        match self {
            Self::Absent => Some(None),
            Self::Bad => None,
            Self::Good(good) => Some(Some(good)),
        }
    }

    /// The value alone.
    pub fn good(&self) -> Option<&T> {
        match self {
            Self::Good(good) => Some(good),
            Self::Absent | Self::Bad => None,
        }
    }
}

/// A table's entries in the order of the text; the parser keeps them by name.
pub(super) fn entries<'t>(file: usize, table: &'t DeTable<'t>) -> Vec<(Key<'t>, Node<'t>)> {
    let key = |key: &'t Spanned<_>| {
        let span = key.span();
        let text: &'t std::borrow::Cow<'t, str> = key.get_ref();
        Key { place: Place { file, start: span.start, end: span.end }, text }
    };
    let mut entries: Vec<_> =
        table.iter().map(|(name, value)| (key(name), Node::new(file, value))).collect();
    entries.sort_by_key(|(key, _)| key.place);
    entries
}

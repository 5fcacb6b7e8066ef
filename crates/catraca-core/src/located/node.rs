//! TOML values with their location in the text, and typed access to them.
//!
//! Access as the wrong type reports an error and returns `None`, so the readers of sections contain
//! no type checks of their own.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::names;
use super::{Report, SourceLocation, TableSchema};
use crate::request::is_storable;

/// A value and its location.
#[derive(Clone, Copy, Debug)]
pub struct Node<'t> {
    /// Where it is.
    pub location: SourceLocation,
    /// The value as parsed.
    pub value: &'t DeValue<'t>,
}

/// A key and its location.
#[derive(Clone, Copy, Debug)]
pub struct LocatedKey<'t> {
    /// Where it is.
    pub location: SourceLocation,
    /// The key.
    pub text: &'t str,
}

/// The fields of a table, in the order of the text.
#[derive(Debug)]
pub struct TableFields<'t> {
    /// The location of the table's name, or of the table itself if it has none.
    pub location: SourceLocation,
    schema: &'static TableSchema,
    entries: Vec<(LocatedKey<'t>, Node<'t>)>,
    /// The fields that were probably meant by unknown names.
    misspelt: Vec<&'static str>,
}

/// The result of reading an optional field. An invalid field was already reported, so it must not
/// be treated as absent: that would apply the default and report follow-up errors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldResult<T> {
    /// The field is not there.
    Absent,
    /// It is there, and an error was reported.
    Invalid,
    /// It is there and valid.
    Valid(T),
}

impl<'t> Node<'t> {
    /// A value of a file.
    pub fn new(file: usize, value: &'t Spanned<DeValue<'t>>) -> Self {
        let span = value.span();
        Self {
            location: SourceLocation { file, start: span.start, end: span.end },
            value: value.get_ref(),
        }
    }

    /// A text; `wanted` describes what the field expects, with an example, for the error message.
    pub fn text(self, report: &mut Report, wanted: &str) -> Option<&'t str> {
        let text = self.value.as_str().or_else(|| self.report_wrong_type(report, wanted))?;
        if !is_storable(text) {
            let message = "the text contains U+0000, which cannot be stored";
            // The text may be a private value, so the diagnostic does not show it.
            report.private_error("bad-text", self.location, message, "remove it");
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
            Some(Err(_)) => self.report_too_large(report),
            None => self.report_wrong_type(report, wanted),
        }
    }

    /// A boolean.
    pub fn flag(self, report: &mut Report) -> Option<bool> {
        self.value.as_bool().or_else(|| self.report_wrong_type(report, "true or false"))
    }

    /// The items of a list.
    pub fn items(self, report: &mut Report, wanted: &str) -> Option<Vec<Node<'t>>> {
        self.as_items().or_else(|| self.report_wrong_type(report, wanted))
    }

    /// The items of a list, or nothing if it is another value, which is not reported.
    pub fn as_items(self) -> Option<Vec<Node<'t>>> {
        let items = self.value.as_array()?;
        Some(items.iter().map(|item| Node::new(self.location.file, item)).collect())
    }

    /// One text or a list of texts; `None` if any item is not a text.
    pub fn texts(self, report: &mut Report, wanted: &str) -> Option<Vec<(Node<'t>, &'t str)>> {
        let items = match self.value {
            DeValue::String(_) => vec![self],
            _ => self.items(report, wanted)?,
        };
        // Every item is read before the first invalid one makes the result `None`, so that all
        // mistakes are reported.
        let texts: Vec<_> = items.iter().map(|item| item.text(report, wanted)).collect();
        items.into_iter().zip(texts).map(|(item, text)| text.map(|text| (item, text))).collect()
    }

    /// The entries of a table with arbitrary keys, in the order of the text.
    pub fn entries(
        self,
        report: &mut Report,
        wanted: &str,
    ) -> Option<Vec<(LocatedKey<'t>, Node<'t>)>> {
        self.as_entries().or_else(|| self.report_wrong_type(report, wanted))
    }

    /// The entries of a table, or nothing if it is another value, which is not reported.
    pub fn as_entries(self) -> Option<Vec<(LocatedKey<'t>, Node<'t>)>> {
        self.value.as_table().map(|table| entries(self.location.file, table))
    }

    /// Reports a value of the wrong type.
    pub fn report_wrong_type<T>(self, report: &mut Report, wanted: &str) -> Option<T> {
        let found = match self.value.type_str() {
            "array" => "a list".to_owned(),
            "integer" => "an integer".to_owned(),
            "string" => "a text".to_owned(),
            other => format!("a {other}"),
        };
        let message = format!("expected {wanted}, found {found}");
        report.error("wrong-type", self.location, message, format!("write {wanted}"));
        None
    }

    fn report_too_large<T>(self, report: &mut Report) -> Option<T> {
        let fix = "write a whole number below 9007199254740992";
        report.error(
            "inexact",
            self.location,
            "the number is too large to be counted exactly",
            fix,
        );
        None
    }
}

impl<'t> TableFields<'t> {
    /// The fields of a table, after reporting those that the schema does not have. `location` is
    /// that of the table's name.
    pub fn read(
        report: &mut Report,
        location: SourceLocation,
        node: Node<'t>,
        schema: &'static TableSchema,
    ) -> Option<Self> {
        let what = names::with_article(schema.name);
        let entries = node.entries(report, &format!("a table with the fields of {what}"))?;
        let mut misspelt = Vec::new();
        for (key, _) in entries.iter().filter(|(key, _)| schema.field(key.text).is_none()) {
            let known: Vec<&str> = schema.names().collect();
            let message = format!("{what} has no field `{}`", key.text);
            let fix = names::suggest(report, key.text, &known);
            report.error("unknown-field", key.location, message, fix);
            if !report.is_full() {
                misspelt.extend(names::nearest(key.text, &known));
            }
        }
        Some(Self { location, schema, entries, misspelt })
    }

    /// The fields of a table without a name of its own, such as an item of a list.
    pub fn read_item(
        report: &mut Report,
        node: Node<'t>,
        schema: &'static TableSchema,
    ) -> Option<Self> {
        Self::read(report, node.location, node, schema)
    }

    /// A table that the text leaves out.
    pub fn absent(schema: &'static TableSchema) -> Self {
        let location = SourceLocation::start_of(0);
        Self { location, schema, entries: Vec::new(), misspelt: Vec::new() }
    }

    /// Whether an unknown field was reported that is probably this one. Errors that only follow
    /// from its absence are then left out.
    pub fn is_misspelt(&self, name: &str) -> bool {
        self.misspelt.contains(&name)
    }

    /// The declaration of the table.
    pub fn schema(&self) -> &'static TableSchema {
        self.schema
    }

    /// The value of a field, if present.
    pub fn get(&self, name: &str) -> Option<Node<'t>> {
        self.entry(name).map(|(_, node)| *node)
    }

    /// The location of a field's name, if present.
    pub fn key(&self, name: &str) -> Option<SourceLocation> {
        self.entry(name).map(|(key, _)| key.location)
    }

    /// A field that the schema has; another name would be a mistake in the reader.
    fn entry(&self, name: &str) -> Option<&(LocatedKey<'t>, Node<'t>)> {
        debug_assert!(self.schema.field(name).is_some(), "`{name}` is not declared");
        self.entries.iter().find(|(key, _)| key.text == name)
    }

    /// Whether a field is present, valid or not.
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// The value of a required field, or an error that shows `example`.
    pub fn require(&self, report: &mut Report, name: &str, example: &str) -> Option<Node<'t>> {
        if !self.has(name) && !self.is_misspelt(name) {
            let message = format!("the field `{name}` is missing");
            report.error(
                "missing-field",
                self.location,
                message,
                format!("add {name} = {example}"),
            );
        }
        self.get(name)
    }

    /// Applies `read` to an optional field; `read` returns `None` if it reported an error.
    pub fn parse<T>(&self, name: &str, read: impl FnOnce(Node<'t>) -> Option<T>) -> FieldResult<T> {
        match self.get(name).map(read) {
            None => FieldResult::Absent,
            Some(None) => FieldResult::Invalid,
            Some(Some(value)) => FieldResult::Valid(value),
        }
    }
}

impl<T> FieldResult<T> {
    /// The value, or `default` if the field is absent; `None` if it is invalid.
    pub fn or(self, default: T) -> Option<T> {
        match self {
            Self::Absent => Some(default),
            Self::Invalid => None,
            Self::Valid(value) => Some(value),
        }
    }

    /// The value if the field is present; the outer `None` means that it is invalid.
    pub fn optional(self) -> Option<Option<T>> {
        match self {
            Self::Absent => Some(None),
            Self::Invalid => None,
            Self::Valid(value) => Some(Some(value)),
        }
    }

    /// The value if it is present and valid.
    pub fn valid(&self) -> Option<&T> {
        match self {
            Self::Valid(value) => Some(value),
            Self::Absent | Self::Invalid => None,
        }
    }
}

/// A table's entries in the order of the text; the parser returns them sorted by name.
pub fn entries<'t>(file: usize, table: &'t DeTable<'t>) -> Vec<(LocatedKey<'t>, Node<'t>)> {
    let key = |key: &'t Spanned<_>| {
        let span = key.span();
        let text: &'t std::borrow::Cow<'t, str> = key.get_ref();
        LocatedKey { location: SourceLocation { file, start: span.start, end: span.end }, text }
    };
    let mut entries: Vec<_> =
        table.iter().map(|(name, value)| (key(name), Node::new(file, value))).collect();
    entries.sort_by_key(|(key, _)| key.location);
    entries
}

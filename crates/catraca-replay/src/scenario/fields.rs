//! The fields of a table in a scenario file, and readers of their values.
//!
//! A reader that finds a value of the wrong type reports the error itself and returns `None`, so
//! that one run reports all errors of a file. Texts are not checked further: a scenario may test
//! that the engine refuses one.

use std::borrow::Cow;

use catraca_core::located::{LocatedKey, Node, Report, SourceLocation, names};
use toml::de::DeValue;

/// The known fields of a table, in the order of the text.
pub(super) struct Fields<'t> {
    pub location: SourceLocation,
    pub entries: Vec<(LocatedKey<'t>, Node<'t>)>,
}

impl<'t> Fields<'t> {
    /// The fields of a table; a field that is not in `known` is an error.
    pub fn read(report: &mut Report, node: Node<'t>, what: &str, known: &[&str]) -> Option<Self> {
        let entries = node.entries(report, &format!("a table with the fields of a {what}"))?;
        Some(Self::keep_known(report, node.location, entries, what, known))
    }

    /// Reports the fields that are not in `known`, and keeps the others.
    pub fn keep_known(
        report: &mut Report,
        location: SourceLocation,
        mut entries: Vec<(LocatedKey<'t>, Node<'t>)>,
        what: &str,
        known: &[&str],
    ) -> Self {
        for (key, _) in entries.iter().filter(|(key, _)| !known.contains(&key.text)) {
            let message = format!("a {what} has no field `{}`", key.text);
            let fix = names::suggest(report, key.text, known);
            report.error("unknown-field", key.location, message, fix);
        }
        entries.retain(|(key, _)| known.contains(&key.text));
        Self { location, entries }
    }

    /// A field, if present.
    pub fn get(&self, name: &str) -> Option<Node<'t>> {
        self.entries.iter().find(|(key, _)| key.text == name).map(|(_, node)| *node)
    }

    /// A required field; the error message quotes `example`.
    pub fn need(&self, report: &mut Report, name: &str, example: &str) -> Option<Node<'t>> {
        let found = self.get(name);
        if found.is_none() {
            let message = format!("the field `{name}` is missing");
            let fix = format!("add {name} = {example}");
            report.error("missing-field", self.location, message, fix);
        }
        found
    }

    /// A required text.
    pub fn text(&self, report: &mut Report, name: &str, example: &str) -> Option<String> {
        let node = self.need(report, name, example)?;
        text(report, node, example).map(str::to_owned)
    }

    /// An optional text; the outer `None` means that the field is not a text.
    pub fn text_or(&self, report: &mut Report, name: &str) -> Option<Option<String>> {
        match self.get(name) {
            Some(node) => text(report, node, "a text in quotes").map(|text| Some(text.to_owned())),
            None => Some(None),
        }
    }
}

/// A text; `wanted` describes it for the error message, with an example.
pub(super) fn text<'t>(report: &mut Report, node: Node<'t>, wanted: &str) -> Option<&'t str> {
    node.value.as_str().or_else(|| node.report_wrong_type(report, wanted))
}

/// A text, or a date in TOML's own notation.
pub(super) fn moment<'t>(
    report: &mut Report,
    node: Node<'t>,
    wanted: &str,
) -> Option<Cow<'t, str>> {
    match node.value {
        DeValue::Datetime(datetime) => Some(Cow::Owned(datetime.to_string())),
        _ => text(report, node, wanted).map(Cow::Borrowed),
    }
}

/// A table of texts, such as a subject.
pub(super) fn pairs(
    report: &mut Report,
    node: Node<'_>,
    wanted: &str,
) -> Option<Vec<(String, String)>> {
    let entries = node.entries(report, wanted)?;
    let read = entries.into_iter().map(|(key, node)| {
        Some((key.text.to_owned(), text(report, node, "a text in quotes")?.to_owned()))
    });
    // All values are read before the first invalid one makes the result `None`.
    read.collect::<Vec<_>>().into_iter().collect()
}

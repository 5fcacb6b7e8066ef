//! Variables in texts: `${NAME}` and `${NAME:otherwise}` become what the surroundings say.
//!
//! Only values of texts are filled in, after the file was parsed: what a variable holds can never
//! be syntax, and every place stays that of the file. Must not ask the surroundings itself.

use std::borrow::Cow;
use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::bounds::VARIABLE_MAX;
use super::report::{Place, Report};
use super::section::SETTINGS;

/// Says what a variable holds, if it is set.
pub type Variable<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What opens a variable, and what stands for those two characters themselves.
const OPEN: &str = "${";
const LITERAL: &str = "$${";

/// Fills in variables, and remembers which ones the surroundings gave.
pub(super) struct Filling<'a> {
    variable: Variable<'a>,
    /// Those that were set where something is decided: a catalog that reads others is another one.
    /// Settings of the process are left out, as passwords are there: whoever sees a revision must
    /// not be able to try them out.
    pub given: BTreeMap<String, String>,
    decides: bool,
}

impl<'a> Filling<'a> {
    pub fn new(variable: Variable<'a>) -> Self {
        Self { variable, given: BTreeMap::new(), decides: true }
    }

    /// Fills in the texts of a file.
    pub fn file(&mut self, report: &mut Report, file: usize, root: &mut DeTable<'_>) {
        for (section, value) in root.iter_mut() {
            self.decides = !SETTINGS.contains(&&**section.get_ref());
            self.value(report, file, value);
        }
    }

    fn table(&mut self, report: &mut Report, file: usize, table: &mut DeTable<'_>) {
        for (_, value) in table.iter_mut() {
            self.value(report, file, value);
        }
    }

    fn value(&mut self, report: &mut Report, file: usize, value: &mut Spanned<DeValue<'_>>) {
        let span = value.span();
        let place = Place { file, start: span.start, end: span.end };
        match value.get_mut() {
            DeValue::String(text) if text.contains(OPEN) => {
                *text = Cow::Owned(self.text(report, place, text));
            }
            DeValue::Array(items) => {
                items.iter_mut().for_each(|item| self.value(report, file, item));
            }
            DeValue::Table(table) => self.table(report, file, table),
            _ => {}
        }
    }

    fn text(&mut self, report: &mut Report, place: Place, text: &str) -> String {
        let (mut filled, mut rest) = (String::new(), text);
        while let Some(at) = rest.find(OPEN) {
            if rest[..at].ends_with('$') {
                filled.push_str(&rest[..at - 1]);
                filled.push_str(OPEN);
                rest = &rest[at + OPEN.len()..];
                continue;
            }
            filled.push_str(&rest[..at]);
            let Some((inside, after)) = rest[at + OPEN.len()..].split_once('}') else {
                refuse(report, place);
                return filled;
            };
            filled.push_str(&self.filled(report, place, inside));
            rest = after;
        }
        filled.push_str(rest);
        filled
    }

    /// What stands for a variable; one that is set to nothing counts as not set.
    fn filled(&mut self, report: &mut Report, place: Place, inside: &str) -> String {
        let (name, otherwise) = match inside.split_once(':') {
            Some((name, otherwise)) => (name, Some(otherwise)),
            None => (inside, None),
        };
        if !is_name(name) {
            refuse(report, place);
            return String::new();
        }
        let held = (self.variable)(name).filter(|held| !held.is_empty());
        if let Some(held) = held.filter(|held| fits(report, place, name, held)) {
            if self.decides {
                self.given.insert(name.to_owned(), held.clone());
            }
            return held;
        }
        if otherwise.is_none() {
            let message = format!("the variable `{name}` is not set");
            let fix = format!("set it, or write what holds without it: ${{{name}:…}}");
            report.damage("unset-variable", place, place, (message, fix));
        }
        otherwise.unwrap_or_default().to_owned()
    }
}

fn is_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !name.is_empty() && name.bytes().all(plain) && !name.as_bytes()[0].is_ascii_digit()
}

fn fits(report: &mut Report, place: Place, name: &str, held: &str) -> bool {
    let fits = held.len() <= VARIABLE_MAX;
    if !fits {
        let message = format!("the variable `{name}` holds {} bytes", held.len());
        let fix = format!("keep it within {VARIABLE_MAX}");
        report.damage("bad-variable", place, place, (message, fix));
    }
    fits
}

fn refuse(report: &mut Report, place: Place) {
    let message = format!("`{OPEN}` begins a variable, and this is none");
    let fix =
        format!("write ${{NAME}} or ${{NAME:otherwise}}, or `{LITERAL}` for those characters");
    report.damage("bad-variable", place, place, (message, fix));
}

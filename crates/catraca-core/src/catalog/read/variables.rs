//! Variables in texts: replaces `${NAME}` and `${NAME:default}` by values from the environment.
//!
//! Substitution happens after parsing, and only in string values. So the value of a variable is
//! never parsed as TOML, and diagnostics keep the positions in the file (docs/adr/0017).
//! Must not read the environment: the caller passes a function.

use std::borrow::Cow;
use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::bounds::VARIABLE_MAX;
use super::section::PROCESS_SECTIONS;
use crate::located::{Report, SourceLocation};

/// Returns the value of a variable, if it is set.
pub type VariableLookup<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The beginning of a variable.
const OPEN: &str = "${";
/// The escape for the characters `${` themselves.
const LITERAL: &str = "$${";

/// Substitutes variables, and records the values that decisions depend on.
pub(super) struct VariableSubstitution<'a> {
    variable: VariableLookup<'a>,
    /// The variables used in sections that influence decisions; they are part of the catalog's
    /// revision. Those of process sections are left out: these contain passwords, and with the
    /// revision one could test guesses of them.
    pub used: BTreeMap<String, String>,
    /// Whether the section being substituted influences decisions.
    is_decision_section: bool,
}

impl<'a> VariableSubstitution<'a> {
    pub fn new(variable: VariableLookup<'a>) -> Self {
        Self { variable, used: BTreeMap::new(), is_decision_section: true }
    }

    /// Substitutes all variables of a file.
    pub fn substitute_file(&mut self, report: &mut Report, file: usize, root: &mut DeTable<'_>) {
        for (section, value) in root.iter_mut() {
            self.is_decision_section = !PROCESS_SECTIONS.contains(&&**section.get_ref());
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
        let location = SourceLocation { file, start: span.start, end: span.end };
        match value.get_mut() {
            DeValue::String(text) if text.contains(OPEN) => {
                *text = Cow::Owned(self.text(report, location, text));
            }
            DeValue::Array(items) => {
                items.iter_mut().for_each(|item| self.value(report, file, item));
            }
            DeValue::Table(table) => self.table(report, file, table),
            _ => {}
        }
    }

    fn text(&mut self, report: &mut Report, location: SourceLocation, text: &str) -> String {
        let mut result = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(OPEN) {
            if rest[..at].ends_with('$') {
                // `$${` is the escape for `${`.
                result.push_str(&rest[..at - 1]);
                result.push_str(OPEN);
                rest = &rest[at + OPEN.len()..];
                continue;
            }
            result.push_str(&rest[..at]);
            let Some((inside, after)) = rest[at + OPEN.len()..].split_once('}') else {
                report_not_a_variable(report, location);
                return result;
            };
            let value = self.value_of(report, location, inside);
            if has_unit_twice(&value, after) {
                report_second_unit(report, location, inside, &value);
            }
            result.push_str(&value);
            rest = after;
        }
        result.push_str(rest);
        result
    }

    /// The value of a variable, given the text between its braces. A variable that is set to the
    /// empty string counts as not set.
    fn value_of(&mut self, report: &mut Report, location: SourceLocation, inside: &str) -> String {
        let (name, default) = match inside.split_once(':') {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        if !is_name(name) {
            report_not_a_variable(report, location);
            return String::new();
        }
        let value = (self.variable)(name).filter(|value| !value.is_empty());
        if let Some(value) = value.filter(|value| is_in_bounds(report, location, name, value)) {
            if self.is_decision_section {
                self.used.insert(name.to_owned(), value.clone());
            }
            return value;
        }
        if default.is_none() {
            let message = format!("the variable `{name}` is not set");
            let fix = format!("set it, or write a default: ${{{name}:…}}");
            report.error_hiding("unset-variable", location, location, message, fix);
        }
        default.unwrap_or_default().to_owned()
    }
}

fn is_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !name.is_empty() && name.bytes().all(allowed) && !name.as_bytes()[0].is_ascii_digit()
}

fn is_in_bounds(report: &mut Report, location: SourceLocation, name: &str, value: &str) -> bool {
    let is_in_bounds = value.len() <= VARIABLE_MAX;
    if !is_in_bounds {
        let message = format!("the variable `{name}` has {} bytes", value.len());
        let fix = format!("set it to at most {VARIABLE_MAX} bytes");
        report.error_hiding("bad-variable", location, location, message, fix);
    }
    is_in_bounds
}

/// Whether a number with a unit is followed by another unit: `1m` before `s` would be `1ms`, which
/// is a valid duration of another length.
fn has_unit_twice(value: &str, after: &str) -> bool {
    let is_quantity = value.starts_with(|c: char| c.is_ascii_digit())
        && value.ends_with(|c: char| c.is_ascii_alphabetic());
    is_quantity && after.starts_with(|c: char| c.is_ascii_alphabetic())
}

fn report_second_unit(report: &mut Report, location: SourceLocation, inside: &str, value: &str) {
    let name = inside.split(':').next().unwrap_or_default();
    let shown = value.escape_debug();
    let message = format!("`{shown}` of the variable `{name}` has a unit, and another one follows");
    let fix = "set it to a number without a unit, or remove the unit after the variable";
    report.error_hiding("bad-variable", location, location, message, fix.to_owned());
}

fn report_not_a_variable(report: &mut Report, location: SourceLocation) {
    let message = format!("`{OPEN}` does not begin a valid variable");
    let fix = format!("write ${{NAME}} or ${{NAME:default}}, or `{LITERAL}` for those characters");
    report.error_hiding("bad-variable", location, location, message, fix);
}

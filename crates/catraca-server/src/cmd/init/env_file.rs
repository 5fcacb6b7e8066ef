//! `catraca init --env`: takes the values of an `.env` file over as the defaults of a preset.
//!
//! Each preset has variables of its own, in its own units. Variables of another preset are refused,
//! because the same prefix means seconds in one and milliseconds in another.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use crate::cmd::presets::{PRESETS, Preset};
use crate::cmd::variables::{CatalogVariable, find_variables, has_password};
use crate::regular_file;

/// The beginnings of names that belong to limits and locks: an unknown one is a mistake, and not a
/// variable of the application.
const LIMIT_PREFIXES: [&str; 2] = ["RATE_LIMIT_", "OPTIMISTIC_LOCK_"];

/// Values for variables of a preset.
#[derive(Default)]
pub(super) struct ImportedValues {
    values: BTreeMap<String, String>,
    /// Names that no preset has.
    ignored: Vec<String>,
    /// Names whose values have a password, which must not be in a catalog.
    passwords: Vec<String>,
}

/// Reads the values that concern a preset.
pub(super) fn read(file: &Path, preset: &Preset) -> Result<ImportedValues> {
    let place = || format!("cannot read {}", file.display());
    regular_file::ensure(file).with_context(place)?;
    let text = fs::read_to_string(file).with_context(place)?;
    let own = find_variables(catalog_of(preset));
    let mut imported = ImportedValues::default();
    for (index, line) in text.lines().enumerate() {
        let place = format!("{}:{}", file.display(), index + 1);
        let Some((name, value)) = parse_line(line).with_context(|| place.clone())? else {
            continue;
        };
        let Some(variable) = own.iter().find(|variable| variable.name == name) else {
            refuse_foreign(name, preset).with_context(|| place.clone())?;
            imported.ignored.push(name.to_owned());
            continue;
        };
        ensure!(!value.is_empty(), "{place}: {name} is empty");
        if variable.is_secret_in(catalog_of(preset)) && has_password(value) {
            imported.passwords.push(name.to_owned());
            continue;
        }
        ensure!(is_plain(value), "{place}: {name} has a character that no value needs");
        imported.values.insert(name.to_owned(), value.to_owned());
    }
    Ok(imported)
}

/// A line `NAME=VALUE`; empty lines and comments are none.
fn parse_line(line: &str) -> Result<Option<(&str, &str)>> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let line = line.strip_prefix("export ").unwrap_or(line);
    // The source of one preset writes them as YAML. The value of either may have the other's sign.
    let separators = ["=", ": "].into_iter().filter_map(|sign| Some((line.find(sign)?, sign)));
    let (_, sign) = separators.min().context("this line is not NAME=VALUE")?;
    let (name, value) = line.split_once(sign).context("this line is not NAME=VALUE")?;
    let value = value.split(" #").next().unwrap_or_default().trim();
    let unquoted = ['"', '\'']
        .into_iter()
        .find_map(|quote| value.strip_prefix(quote).and_then(|value| value.strip_suffix(quote)));
    Ok(Some((name.trim(), unquoted.unwrap_or(value))))
}

/// Whether a value can be written into a text of TOML and between the braces of a variable.
fn is_plain(value: &str) -> bool {
    let is_special = |c: char| matches!(c, '"' | '\'' | '\\' | '{' | '}' | '$') || c.is_control();
    !value.contains(is_special)
}

fn refuse_foreign(name: &str, preset: &Preset) -> Result<()> {
    let owner = PRESETS.iter().find(|other| variable_names(other).contains(&name));
    if let Some(owner) = owner {
        bail!(
            "{name} is a variable of the preset {}, and not of {}, whose units may differ",
            owner.name,
            preset.name
        );
    }
    if LIMIT_PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
        let names = variable_names(preset).join(", ");
        bail!("the preset {} has no variable {name}; it has {names}", preset.name);
    }
    Ok(())
}

fn catalog_of(preset: &Preset) -> &'static str {
    preset.files[0].1
}

fn variable_names(preset: &Preset) -> Vec<&'static str> {
    let variables = find_variables(catalog_of(preset));
    variables.into_iter().map(|variable| variable.name).collect()
}

impl ImportedValues {
    /// The catalog with these values as defaults.
    pub(super) fn write_defaults(&self, catalog: &str) -> String {
        let mut changed = String::with_capacity(catalog.len());
        let mut written = 0;
        for CatalogVariable { name, default, range } in find_variables(catalog) {
            let Some(value) = self.values.get(name).filter(|_| default.is_some()) else { continue };
            changed.push_str(&catalog[written..range.start]);
            changed.push_str(&format!("${{{name}:{value}}}"));
            written = range.end;
        }
        changed.push_str(&catalog[written..]);
        changed
    }

    /// A sentence about what was taken over.
    pub(super) fn summary(&self) -> String {
        let names: Vec<&str> = self.values.keys().map(String::as_str).collect();
        let mut parts = Vec::new();
        if !names.is_empty() {
            parts.push(format!("defaults from the file: {}", names.join(", ")));
        } else if self.passwords.is_empty() {
            parts.push("no value of this preset is in the file".to_owned());
        }
        for name in &self.passwords {
            parts.push(format!("{name} has a password; leave it in the environment"));
        }
        if !self.ignored.is_empty() {
            parts.push(format!("not of this preset: {}", self.ignored.join(", ")));
        }
        parts.join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_env_files_and_of_yaml_are_read() {
        for (line, pair) in [
            ("A=1", Some(("A", "1"))),
            (" export A = \"1\" ", Some(("A", "1"))),
            ("A: 300  # five minutes", Some(("A", "300"))),
            ("A='x y' # z", Some(("A", "x y"))),
            ("A=redis://h:6379", Some(("A", "redis://h:6379"))),
            ("A: redis://h:6379?x=1", Some(("A", "redis://h:6379?x=1"))),
            ("A=x: y", Some(("A", "x: y"))),
            ("A=", Some(("A", ""))),
            ("# A=1", None),
            ("", None),
        ] {
            assert_eq!(parse_line(line).unwrap(), pair, "{line}");
        }
        assert!(parse_line("A").is_err());
    }

    #[test]
    fn a_value_cannot_leave_its_place_in_the_catalog() {
        assert!(is_plain("60000") && is_plain("redis://h:6379"));
        for value in ["1\"", "1}", "${X}", "1\n2", "\\"] {
            assert!(!is_plain(value), "{value:?}");
        }
    }
}

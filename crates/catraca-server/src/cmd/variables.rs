//! `catraca variables`: prints the variables of a catalog with their values, each in the unit of
//! its place.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::io::Write;
use std::ops::Range;
use std::path::Path;

use anyhow::{Context, Result};

use crate::args::VariablesArgs;
use crate::exit::Exit;
use crate::regular_file;
use crate::render::StdoutPipe;

/// Sections whose variables may be passwords.
const SECRET_SECTIONS: [&str; 5] = ["server", "proxy", "store", "records", "auth"];

/// A variable in the text of a catalog.
pub struct CatalogVariable<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its default, if it has one.
    pub default: Option<&'a str>,
    /// The bytes of the text that it has, from `${` to `}`.
    pub range: Range<usize>,
}

/// Prints the variables.
pub fn run(args: &VariablesArgs) -> Result<Exit> {
    let path = args.catalog.as_deref().or(args.file.as_deref());
    let path = path.context("name the catalog with -c FILE")?;
    // A catalog with errors has no meaning that could be printed.
    super::catalog(path)?;
    let text = read(path)?;
    let mut out = StdoutPipe::stdout();
    for line in variable_lines(&text, |name| env::var(name).ok()) {
        writeln!(out, "{line}")?;
    }
    Ok(Exit::Yes)
}

fn read(path: &Path) -> Result<String> {
    let place = || format!("cannot read {}", path.display());
    regular_file::ensure(path).with_context(place)?;
    fs::read_to_string(path).with_context(place)
}

/// Two lines for each variable: its place, which shows the unit, and its value.
fn variable_lines(text: &str, value_of: impl Fn(&str) -> Option<String>) -> Vec<String> {
    let mut lines = Vec::new();
    let mut printed = BTreeSet::new();
    for CatalogVariable { name, default, range } in find_variables(text) {
        if !printed.insert(name) {
            continue;
        }
        let place = text[..range.start].lines().next_back().unwrap_or_default().len();
        let start = range.start - place;
        let line = text[start..].lines().next().unwrap_or_default().trim();
        let section = section_at(&text[..range.start]);
        let is_secret = is_secret_section(section);
        let shown = match is_secret && has_password(line) {
            true => line.split('=').next().unwrap_or_default().trim_end(),
            false => line,
        };
        lines.push(format!("# [{section}] {shown}"));
        let set = value_of(name).filter(|value| !value.is_empty());
        lines.push(match (set, default) {
            (Some(_), _) if is_secret => format!("# {name} is set"),
            (Some(value), _) => format!("{name}={value}"),
            (None, Some(default)) if is_secret && has_password(default) => {
                format!("# {name} has a default with a password")
            }
            (None, Some(default)) => format!("{name}={default}"),
            (None, None) => format!("# {name} is not set"),
        });
    }
    lines
}

impl CatalogVariable<'_> {
    /// Whether it is in a section of this catalog whose variables may be passwords.
    pub fn is_secret_in(&self, catalog: &str) -> bool {
        is_secret_section(section_at(&catalog[..self.range.start]))
    }
}

fn is_secret_section(section: &str) -> bool {
    SECRET_SECTIONS.contains(&section.split('.').next().unwrap_or_default())
}

/// Whether the URL of a server contains a password: before its host, or as a parameter.
pub fn has_password(url: &str) -> bool {
    let after_scheme = url.split_once("://").map_or(url, |(_, rest)| rest);
    let user = after_scheme.rsplit_once('@').map(|(user, _)| user);
    user.is_some_and(|user| user.contains(':')) || url.to_ascii_lowercase().contains("password=")
}

/// The name of the section that the end of a text is in.
fn section_at(before: &str) -> &str {
    let mut heads = before.lines().filter(|line| line.starts_with('['));
    let head = heads.next_back().unwrap_or_default();
    head.trim_start_matches('[').split(']').next().unwrap_or_default()
}

/// The variables in the values of a catalog, in the order of the text. Those in comments are left
/// out, and so is the escape `$${`.
pub fn find_variables(text: &str) -> Vec<CatalogVariable<'_>> {
    let mut found = Vec::new();
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        if !line.trim_start().starts_with('#') {
            found.extend(line_variables(line, offset));
        }
        offset += line.len();
    }
    found
}

fn line_variables(line: &str, offset: usize) -> impl Iterator<Item = CatalogVariable<'_>> {
    line.match_indices("${").filter_map(move |(at, _)| {
        let is_escape = line[..at].ends_with('$');
        let inside = line[at + 2..].split('}').next().filter(|_| !is_escape)?;
        let end = at + 2 + inside.len() + 1;
        let (name, default) = match inside.split_once(':') {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let is_variable = end <= line.len() && !name.is_empty() && name.chars().all(is_name);
        let range = offset + at..offset + end;
        is_variable.then_some(CatalogVariable { name, default, range })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CATALOG: &str = "# ${COMMENT:1}\n[policy.a]\nwindow = \"${N:10} per ${W:60000}ms\"\n\
                           message = \"$${NOT:1}\"\n[store]\nurl = \"${URL:memory:}\"\n";

    #[test]
    fn variables_are_found_with_their_defaults_and_units() {
        let lines = variable_lines(CATALOG, |_| None);
        let window = "# [policy.a] window = \"${N:10} per ${W:60000}ms\"";
        assert_eq!(
            lines,
            [
                window,
                "N=10",
                window,
                "W=60000",
                "# [store] url = \"${URL:memory:}\"",
                "URL=memory:"
            ]
        );
        let ranges: Vec<&str> =
            find_variables(CATALOG).into_iter().map(|found| &CATALOG[found.range]).collect();
        assert_eq!(ranges, ["${N:10}", "${W:60000}", "${URL:memory:}"]);
    }

    #[test]
    fn the_environment_goes_before_defaults_and_passwords_are_not_printed() {
        let lines = variable_lines(CATALOG, |name| Some(format!("{name}-secret")));
        assert!(lines.contains(&"N=N-secret".to_owned()), "{lines:?}");
        assert!(lines.contains(&"# URL is set".to_owned()), "{lines:?}");
        assert!(!lines.iter().any(|line| line.contains("URL-secret")));
        let catalog = CATALOG.replace("memory:", "redis://:hunter2@h:6379");
        let lines = variable_lines(&catalog, |_| None);
        assert_eq!(lines[4..], ["# [store] url", "# URL has a default with a password"]);
    }

    #[test]
    fn a_password_of_a_url_is_found() {
        for url in [
            "redis://:hunter2@h:6379",
            "rediss://user:p@ss@h/0",
            "postgres://h/db?user=a&password=b",
            "host=h password=b",
        ] {
            assert!(has_password(url), "{url}");
        }
        for url in ["memory:", "redis://h:6379", "redis://user@h:6379", "127.0.0.1:7880"] {
            assert!(!has_password(url), "{url}");
        }
    }
}

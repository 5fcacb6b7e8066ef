//! `docs/trust.md`, `docs/quiet-failures.md`, `docs/sources.md` and `docs/guarantees.md`: every
//! test that the tables name must exist, by its file, its function, or the title of a scenario or
//! of a test for Node.
//!
//! Must not judge whether the test holds what the row says.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use catraca_conformance::Repo;

use super::Finding;
use crate::test::SCENARIO_SUFFIX;

const DOCUMENTS: [&str; 4] =
    ["docs/trust.md", "docs/quiet-failures.md", "docs/sources.md", "docs/guarantees.md"];

/// What the last column of the table may name.
#[derive(Default)]
struct TestNames {
    /// Files and folders.
    paths: Vec<String>,
    /// Functions, modules, files without their ending, and folders: where each name is, as the
    /// names around it.
    names: BTreeMap<String, BTreeSet<Vec<String>>>,
    /// Titles of scenarios and of tests for Node.
    titles: BTreeSet<String>,
}

pub(crate) fn check(repo: &Repo, files: &[String]) -> Result<Vec<Finding>> {
    let mut known = TestNames::default();
    for file in files {
        known.add_path(file);
        if file.ends_with(".rs") {
            known.add_items(file, &repo.read(file)?);
        } else if file.ends_with("_test.go") {
            known.add_names(&[], &repo.read(file)?, "func ");
        } else if file.ends_with(SCENARIO_SUFFIX) {
            known.add_titles(&repo.read(file)?, "name ");
        } else if file.ends_with(".test.ts") || file.ends_with(".test.js") {
            known.add_titles(&repo.read(file)?, "test(");
        }
    }
    let mut findings = Vec::new();
    for document in DOCUMENTS {
        findings.extend(missing(document, &repo.read(document)?, &known));
    }
    Ok(findings)
}

fn missing(document: &str, table: &str, known: &TestNames) -> Vec<Finding> {
    let rows = table.lines().enumerate().filter(|(_, line)| line.starts_with("| "));
    let mut findings = Vec::new();
    for (index, row) in rows {
        let tests = row.trim_end_matches([' ', '|']).rsplit(" | ").next().unwrap_or_default();
        // Every second piece is between backticks.
        for name in tests.split('`').skip(1).step_by(2).filter(|name| !known.has(name)) {
            let message =
                format!("{document}:{}: there is no test `{name}`: correct the name", index + 1);
            findings.push(Finding::new("trust", document, 1, message));
        }
    }
    findings
}

impl TestNames {
    fn add_path(&mut self, file: &str) {
        let mut path = file;
        loop {
            let mut around = modules(path);
            self.names.entry(around.pop().unwrap_or_default()).or_default().insert(around);
            self.paths.push(format!("/{path}"));
            match path.rsplit_once('/') {
                Some((folder, _)) => path = folder,
                None => return,
            }
        }
    }

    /// Titles between quotes on lines that start with a word.
    fn add_titles(&mut self, text: &str, word: &str) {
        for line in text.lines().filter_map(|line| line.strip_prefix(word)) {
            let quote = line.chars().find(|one| matches!(one, '"' | '\''));
            let title = quote.and_then(|quote| line.split(quote).nth(1));
            self.titles.extend(title.map(str::to_owned));
        }
    }

    /// The functions of a Rust file, and those of its inline modules.
    fn add_items(&mut self, file: &str, text: &str) {
        let around = modules(file);
        let mut inline = None;
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("mod ").and_then(|line| line.strip_suffix(" {")) {
                self.names.entry(name.to_owned()).or_default().insert(around.clone());
                inline = Some(name.to_owned());
            } else if line == "}" {
                inline = None;
            }
            let around: Vec<String> = around.iter().cloned().chain(inline.clone()).collect();
            self.add_names(&around, line, "fn ");
        }
    }

    /// The names that follow a keyword.
    fn add_names(&mut self, around: &[String], text: &str, keyword: &str) {
        let is_part = |character: char| character.is_alphanumeric() || character == '_';
        for piece in text.split(keyword).skip(1) {
            let name: String = piece.chars().take_while(|one| is_part(*one)).collect();
            self.names.entry(name).or_default().insert(around.to_vec());
        }
    }

    fn has(&self, name: &str) -> bool {
        if name.contains(' ') {
            return self.titles.contains(name);
        }
        if name.contains(['/', '.']) {
            return self.paths.iter().any(|path| path.ends_with(&format!("/{name}")));
        }
        let mut around: Vec<String> = name.split("::").map(str::to_owned).collect();
        let places = around.pop().and_then(|last| self.names.get(&last));
        places.is_some_and(|places| places.iter().any(|place| place.ends_with(&around)))
    }
}

/// The folders of a path and its file, without the ending of the file.
fn modules(path: &str) -> Vec<String> {
    let stem = |name: &str| name.split_once('.').map_or(name, |(stem, _)| stem).to_owned();
    path.split('/').map(stem).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tests_that_do_not_exist_are_found() {
        let mut known = TestNames::default();
        let file = "crates/a/tests/http/auth.rs";
        known.add_path(file);
        let text = "#[test]\nfn a_key_is_refused() {}\nmod tests {\n    fn one() {}\n}\n";
        known.add_items(file, text);
        known.add_path("crates/a/src/proxy.rs");
        known.add_names(&[], "func TestALimit(t *testing.T) {", "func ");
        known.add_titles("name   = \"one's ban ends\"\n  name = 'inner'", "name ");
        known.add_titles("test('a page reads it', async () => {", "test(");
        let table = "Not `in_the_table`\n\
            | Found | Test |\n\
            | `any_word` is no test | `http::auth::a_key_is_refused`, `tests/http/auth.rs` |\n\
            | two | `auth.rs`, `auth::tests::one`, `http::auth::a_key_is_gone` |\n\
            | three | `http/gone.rs`, `gone.rs` |\n\
            | four | `one's ban ends`, `a page reads it`, `TestALimit`, `a page is gone` |\n\
            | five | `proxy::a_key_is_refused`, `auth::one`, `http::auth` |\n";
        let found: Vec<String> =
            missing("docs/trust.md", table, &known).into_iter().map(|one| one.message).collect();
        let of = |line: usize, name: &str| {
            format!("docs/trust.md:{line}: there is no test `{name}`: correct the name")
        };
        let expected = [
            (4, "http::auth::a_key_is_gone"),
            (5, "http/gone.rs"),
            (5, "gone.rs"),
            (6, "a page is gone"),
            // Each part exists, and not there.
            (7, "proxy::a_key_is_refused"),
            (7, "auth::one"),
        ]
        .map(|(line, name)| of(line, name));
        assert_eq!(found, expected);
    }
}

//! `docs/trust.md`, `docs/quiet-failures.md`, `docs/sources.md` and `docs/guarantees.md`: every
//! test that the tables name must exist, by its file, its function, or the title of a scenario or
//! of a test for Node.
//!
//! Must not judge whether the test holds what the row says.

use std::collections::BTreeSet;

use anyhow::Result;
use catraca_conformance::Repo;

use super::Finding;
use crate::test::SCENARIO_SUFFIX;

const DOCUMENTS: [&str; 4] =
    ["docs/trust.md", "docs/quiet-failures.md", "docs/sources.md", "docs/guarantees.md"];
/// Metrics are named in full in documents, and without these parts in the sources.
const METRIC: &str = "catraca_";

/// What the last column of the table may name.
#[derive(Default)]
struct TestNames {
    /// Files and folders.
    paths: Vec<String>,
    /// Names of functions, modules, files without their ending, and folders.
    names: BTreeSet<String>,
    /// Titles of scenarios and of tests for Node.
    titles: BTreeSet<String>,
}

pub(crate) fn check(repo: &Repo, files: &[String]) -> Result<Vec<Finding>> {
    let mut known = TestNames::default();
    for file in files {
        known.add_path(file);
        if file.ends_with(".rs") {
            known.add_names(&repo.read(file)?, &["fn ", "mod "]);
        } else if file.ends_with("_test.go") {
            known.add_names(&repo.read(file)?, &["func "]);
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
            let name = path.rsplit('/').next().unwrap_or(path);
            let stem = name.split_once('.').map_or(name, |(stem, _)| stem);
            self.names.insert(stem.to_owned());
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

    fn add_names(&mut self, text: &str, keywords: &[&str]) {
        let is_part = |character: char| character.is_alphanumeric() || character == '_';
        for keyword in keywords {
            for piece in text.split(keyword).skip(1) {
                let name: String = piece.chars().take_while(|one| is_part(*one)).collect();
                self.names.insert(name);
            }
        }
        for piece in text.split('"').filter(|piece| piece.chars().all(is_part)) {
            self.names.insert(format!("{METRIC}{piece}_total"));
        }
    }

    fn has(&self, name: &str) -> bool {
        if name.contains(' ') {
            return self.titles.contains(name);
        }
        if name.contains(['/', '.']) {
            return self.paths.iter().any(|path| path.ends_with(&format!("/{name}")));
        }
        name.split("::").all(|part| self.names.contains(part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_tests_that_do_not_exist_are_found() {
        let mut known = TestNames::default();
        known.add_path("crates/a/tests/http/auth.rs");
        let text = "#[test]\nfn a_key_is_refused() {}\ncounter(\"accepted\");";
        known.add_names(text, &["fn "]);
        known.add_names("func TestALimit(t *testing.T) {", &["func "]);
        known.add_titles("name   = \"one's ban ends\"\n  name = 'inner'", "name ");
        known.add_titles("test('a page reads it', async () => {", "test(");
        let table = "Not `in_the_table`\n\
            | Found | Test |\n\
            | `any_word` is no test | `http::auth::a_key_is_refused`, `tests/http/auth.rs` |\n\
            | two | `auth.rs`, `catraca_accepted_total`, `http::auth::a_key_is_gone` |\n\
            | three | `http/gone.rs`, `gone.rs` |\n\
            | four | `one's ban ends`, `a page reads it`, `TestALimit`, `a page is gone` |\n";
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
        ]
        .map(|(line, name)| of(line, name));
        assert_eq!(found, expected);
    }
}

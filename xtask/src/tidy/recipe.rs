//! The recipe of a new algorithm in `ARCHITECTURE.md`: it must name every file that names the fixed
//! window, which is its model, and apart every file that names the limit of another algorithm, or
//! that reads or writes catalogs and names its field.
//!
//! So a switch over algorithms in a new place fails here. Must not look at tests and documents,
//! which the recipe lists apart.

use std::collections::BTreeSet;

use anyhow::Result;
use catraca_conformance::Repo;

use super::Finding;
use super::documents::{ARCHITECTURE, expand_braces};
use super::source::code_lines;

/// A list of files in the recipe, and what they have in common.
struct FileList {
    start: &'static str,
    /// What follows the list.
    end: &'static str,
    /// Each file has one of these in its path or in its code.
    names: &'static [&'static str],
    /// Or it reads or writes catalogs, and has one of these fields in its code.
    fields: &'static [&'static str],
    says_count: bool,
}

const MODEL: FileList = FileList {
    start: "- **An algorithm.**",
    end: "Test kit:",
    // The fixed window's cell, terms, files, functions, and field in a catalog.
    names: &[
        "FixedWindow",
        "FixedTerms",
        "Limit::Fixed",
        "fixed_window",
        "make_fixed",
        "\"fixed\"",
        "\"fixed ",
        "`fixed`",
    ],
    fields: &[],
    says_count: true,
};
const OTHERS: FileList = FileList {
    start: "that treat other algorithms apart",
    end: "\n- **",
    names: &["Limit::Bucket(", "Limit::Window(", "Limit::Inflight("],
    fields: &["\"bucket\"", "\"window\"", "\"inflight\""],
    says_count: false,
};
/// The sources that read or write the text of a catalog. Elsewhere the names of the fields are
/// common words.
const CATALOG_SOURCES: [&str; 3] = [
    "crates/catraca-core/src/catalog/",
    "crates/catraca-server/src/config/",
    "crates/catraca-server/src/cmd/",
];
const SOURCES: [&str; 4] = [
    "crates/catraca-core/src/",
    "crates/catraca/src/",
    "crates/catraca-replay/src/",
    "crates/catraca-server/src/",
];

pub(crate) fn check(repo: &Repo, files: &[String]) -> Result<Vec<Finding>> {
    let map = repo.read(ARCHITECTURE)?;
    let mut model = Vec::new();
    let mut others = Vec::new();
    for file in files.iter().filter(|file| is_source(file)) {
        let text = repo.read(file)?;
        // A file of the model is listed once.
        if MODEL.is_named_in(file, &text) {
            model.push(file.as_str());
        } else if OTHERS.is_named_in(file, &text) {
            others.push(file.as_str());
        }
    }
    let mut findings = MODEL.compare(MODEL.text(&map).unwrap_or_default(), &model);
    findings.extend(OTHERS.compare(OTHERS.text(&map).unwrap_or_default(), &others));
    Ok(findings)
}

fn is_source(file: &str) -> bool {
    let is_code = file.ends_with(".rs") || file.ends_with(".lua");
    let is_test = file.ends_with("/tests.rs") || file.contains("/tests/");
    is_code && !is_test && SOURCES.iter().any(|source| file.starts_with(source))
}

impl FileList {
    fn text<'a>(&self, map: &'a str) -> Option<&'a str> {
        let (_, rest) = map.split_once(self.start)?;
        rest.split_once(self.end).map(|(text, _)| text)
    }

    /// Also by its path: the model's own file need not name it.
    fn is_named_in(&self, file: &str, text: &str) -> bool {
        let code = text.lines().take(code_lines(text));
        let names = |line: &str| self.names.iter().any(|name| line.contains(name));
        let is_of_catalogs = CATALOG_SOURCES.iter().any(|source| file.starts_with(source));
        let fields = if is_of_catalogs { self.fields } else { &[] };
        let has_field = |line: &str| fields.iter().any(|field| line.contains(field));
        names(file) || code.into_iter().any(|line| names(line) || has_field(line))
    }

    /// Both directions, and the number of files that the recipe states.
    fn compare(&self, text: &str, naming: &[&str]) -> Vec<Finding> {
        let quoted = text.split('`').skip(1).step_by(2);
        let paths = quoted.filter(|text| text.ends_with(".rs") || text.ends_with(".lua"));
        let paths: BTreeSet<String> = paths.flat_map(expand_braces).collect();
        let is_at = |file: &str, path: &String| file.ends_with(&format!("/src/{path}"));
        let named = self.names[0];
        let missing = naming.iter().filter(|file| !paths.iter().any(|path| is_at(file, path)));
        let missing = missing.map(|file| format!("{file} names `{named}` or the like: list it"));
        let extra = paths.iter().filter(|path| !naming.iter().any(|file| is_at(file, path)));
        let extra = extra.map(|path| format!("`{path}` does not name `{named}`: remove it"));
        let count = format!("{} files", naming.len());
        let is_wrong_count = self.says_count && !text.contains(&count);
        let wrong_count = is_wrong_count.then(|| format!("it must say `{count}`"));
        let messages = missing.chain(extra).chain(wrong_count);
        let finding = |message| {
            let message = format!("{ARCHITECTURE}: the recipe of an algorithm: {message}");
            Finding::new("algorithm-recipe", ARCHITECTURE, 1, message)
        };
        messages.map(finding).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECIPE: &str = " 3 files. Core: `cell.rs`, `algorithm/fixed_window.rs`; `x.lua`. ";
    const NAMING: [&str; 3] = ["a/src/cell.rs", "a/src/algorithm/fixed_window.rs", "b/src/x.lua"];

    #[test]
    fn the_recipe_lists_exactly_the_files_that_name_the_model() {
        assert!(MODEL.compare(RECIPE, &NAMING).is_empty());
        let more = [NAMING.as_slice(), &["a/src/run.rs"]].concat();
        // The file, and the count.
        assert_eq!(MODEL.compare(RECIPE, &more).len(), 2);
        assert_eq!(MODEL.compare(RECIPE, &NAMING[1..]).len(), 2);
        assert_eq!(MODEL.compare(" 3 files. `{cell,limit}.rs` ", &NAMING).len(), 3);
        assert_eq!(MODEL.compare("", &NAMING).len(), 4);
    }

    #[test]
    fn the_recipe_ends_before_the_test_kit() {
        let map = "a `x.rs`\n- **An algorithm.** 1 files `y.rs`. Test kit: `z.rs`\n";
        assert_eq!(MODEL.text(map), Some(" 1 files `y.rs`. "));
        assert_eq!(MODEL.text("nothing"), None);
    }

    #[test]
    fn tests_may_name_the_model_anywhere() {
        let file = "crates/catraca/src/a.rs";
        assert!(is_source(file) && is_source("crates/catraca/src/redis/a.lua"));
        assert!(!is_source("crates/catraca/tests/a.rs") && !is_source("docs/a.md"));
        assert!(!is_source("crates/catraca-core/src/codec/tests.rs"));
        assert!(MODEL.is_named_in(file, "let a = FixedTerms;\n"));
        assert!(!MODEL.is_named_in(file, "#[cfg(test)]\nmod tests {\n    FixedTerms\n}\n"));
        assert!(!MODEL.is_named_in(file, "// a fixed number of windows\n"));
        assert!(OTHERS.is_named_in(file, "matches!(limit, Limit::Bucket(_))\n"));
        assert!(OTHERS.compare("`a.rs`", &["crates/catraca/src/a.rs"]).is_empty());
    }

    #[test]
    fn the_field_of_an_algorithm_counts_where_catalogs_are_read_or_written() {
        let reader = "crates/catraca-server/src/config/hold_check.rs";
        assert!(OTHERS.is_named_in(reader, "field(policy, \"inflight\")\n"));
        let endpoint = "crates/catraca-server/src/http/table/decisions.rs";
        assert!(!OTHERS.is_named_in(endpoint, "name: \"bucket\",\n"));
        assert!(MODEL.is_named_in("crates/catraca/src/a.rs", "let kind = \"fixed \";\n"));
    }
}

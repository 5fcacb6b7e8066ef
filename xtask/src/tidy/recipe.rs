//! The recipe of a new algorithm in `ARCHITECTURE.md`: it must name every file that names the fixed
//! window, which is its model, and apart every file that names the limit of another algorithm.
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
        "`fixed`",
    ],
    says_count: true,
};
const OTHERS: FileList = FileList {
    start: "that treat buckets or sliding windows apart:",
    end: "\n",
    names: &["Limit::Bucket(", "Limit::Window(", "Limit::Inflight("],
    says_count: false,
};
const SOURCES: [&str; 4] = [
    "crates/catraca-core/src/",
    "crates/catraca/src/",
    "crates/catraca-replay/src/",
    "crates/catraca-server/src/",
];

pub(crate) fn check(repo: &Repo, files: &[String]) -> Result<Vec<Finding>> {
    let map = repo.read(ARCHITECTURE)?;
    let mut findings = Vec::new();
    for list in [&MODEL, &OTHERS] {
        let mut naming = Vec::new();
        for file in files.iter().filter(|file| is_source(file)) {
            if list.is_named_in(file, &repo.read(file)?) {
                naming.push(file.as_str());
            }
        }
        findings.extend(list.compare(list.text(&map).unwrap_or_default(), &naming));
    }
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
        names(file) || code.into_iter().any(names)
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
}

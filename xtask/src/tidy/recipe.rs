//! The recipe of a new algorithm in `ARCHITECTURE.md`: it must name every file that names the fixed
//! window, which is its model, and no other.
//!
//! So a switch over algorithms in a new place fails here. Must not look at tests and documents,
//! which the recipe lists apart.

use std::collections::BTreeSet;

use anyhow::Result;
use catraca_conformance::Repo;

use super::Finding;
use super::documents::{ARCHITECTURE, expand_braces};
use super::source::code_lines;

const START: &str = "- **An algorithm.**";
/// The test kit and the documents follow.
const END: &str = "Test kit:";
const SOURCES: [&str; 4] = [
    "crates/catraca-core/src/",
    "crates/catraca/src/",
    "crates/catraca-replay/src/",
    "crates/catraca-server/src/",
];
/// The names of the fixed window: its cell, its terms, its files, its functions, and its field in a
/// catalog.
const NAMES: [&str; 7] = [
    "FixedWindow",
    "FixedTerms",
    "Limit::Fixed",
    "fixed_window",
    "make_fixed",
    "\"fixed\"",
    "`fixed`",
];

pub(crate) fn check(repo: &Repo, files: &[String]) -> Result<Vec<Finding>> {
    let recipe = recipe(&repo.read(ARCHITECTURE)?).map(str::to_owned).unwrap_or_default();
    let mut naming = Vec::new();
    for file in files.iter().filter(|file| is_source(file)) {
        if names_the_model(file, &repo.read(file)?) {
            naming.push(file.as_str());
        }
    }
    Ok(compare(&recipe, &naming))
}

fn recipe(map: &str) -> Option<&str> {
    let (_, rest) = map.split_once(START)?;
    rest.split_once(END).map(|(recipe, _)| recipe)
}

fn is_source(file: &str) -> bool {
    let is_code = file.ends_with(".rs") || file.ends_with(".lua");
    let is_test = file.ends_with("/tests.rs") || file.contains("/tests/");
    is_code && !is_test && SOURCES.iter().any(|source| file.starts_with(source))
}

/// Also by its path: its own file need not.
fn names_the_model(file: &str, text: &str) -> bool {
    let code = text.lines().take(code_lines(text));
    let names = |line: &str| NAMES.iter().any(|name| line.contains(name));
    names(file) || code.into_iter().any(names)
}

/// Both directions, and the number of files that the recipe states.
fn compare(recipe: &str, naming: &[&str]) -> Vec<Finding> {
    let quoted = recipe.split('`').skip(1).step_by(2);
    let paths = quoted.filter(|text| text.ends_with(".rs") || text.ends_with(".lua"));
    let paths: BTreeSet<String> = paths.flat_map(expand_braces).collect();
    let is_at = |file: &str, path: &String| file.ends_with(&format!("/src/{path}"));
    let missing = naming.iter().filter(|file| !paths.iter().any(|path| is_at(file, path)));
    let missing = missing.map(|file| format!("{file} names the fixed window: list it"));
    let extra = paths.iter().filter(|path| !naming.iter().any(|file| is_at(file, path)));
    let extra = extra.map(|path| format!("`{path}` does not name the fixed window: remove it"));
    let count = format!("{} files", naming.len());
    let wrong_count = (!recipe.contains(&count)).then(|| format!("it must say `{count}`"));
    let messages = missing.chain(extra).chain(wrong_count);
    let finding = |message| {
        let message = format!("{ARCHITECTURE}: the recipe of an algorithm: {message}");
        Finding::new("algorithm-recipe", ARCHITECTURE, 1, message)
    };
    messages.map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECIPE: &str = " 3 files. Core: `cell.rs`, `algorithm/fixed_window.rs`; `x.lua`. ";
    const NAMING: [&str; 3] = ["a/src/cell.rs", "a/src/algorithm/fixed_window.rs", "b/src/x.lua"];

    #[test]
    fn the_recipe_lists_exactly_the_files_that_name_the_model() {
        assert!(compare(RECIPE, &NAMING).is_empty());
        let more = [NAMING.as_slice(), &["a/src/run.rs"]].concat();
        // The file, and the count.
        assert_eq!(compare(RECIPE, &more).len(), 2);
        assert_eq!(compare(RECIPE, &NAMING[1..]).len(), 2);
        assert_eq!(compare(" 3 files. `{cell,limit}.rs` ", &NAMING).len(), 3);
        assert_eq!(compare("", &NAMING).len(), 4);
    }

    #[test]
    fn the_recipe_ends_before_the_test_kit() {
        let map = "a `x.rs`\n- **An algorithm.** 1 files `y.rs`. Test kit: `z.rs`\n";
        assert_eq!(recipe(map), Some(" 1 files `y.rs`. "));
        assert_eq!(recipe("nothing"), None);
    }

    #[test]
    fn tests_may_name_the_model_anywhere() {
        let file = "crates/catraca/src/a.rs";
        assert!(is_source(file) && is_source("crates/catraca/src/redis/a.lua"));
        assert!(!is_source("crates/catraca/tests/a.rs") && !is_source("docs/a.md"));
        assert!(!is_source("crates/catraca-core/src/codec/tests.rs"));
        assert!(names_the_model(file, "let a = FixedTerms;\n"));
        assert!(!names_the_model(file, "#[cfg(test)]\nmod tests {\n    FixedTerms\n}\n"));
        assert!(!names_the_model(file, "// a fixed number of windows\n"));
    }
}

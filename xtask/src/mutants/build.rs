//! Builds the tests with all mutants of a sample in them.
//!
//! cargo-mutants would build and test them one at a time: some minutes each, instead of seconds.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::ops::Range;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use catraca_conformance::{ProcessGuard, Repo, binary::executable};
use serde_json::Value;

use super::mutant::Mutant;
use super::switched::{self, SwitchedText};
use crate::change_switch;
use crate::source_copy::SourceCopy;

const FOLDER: &str = "mutants";
/// Attempts to find all mutants that do not compile: the compiler stops early.
const ATTEMPTS: usize = 12;
const CORE: &str = "catraca_core";
const CATALOG: &str = "catalog";
const RULES: &str = "rules";
/// All unit tests of core, some of its catalog, and modules of the rules' tests in the test kit;
/// the fastest first. A mutant that one of them catches needs no further test.
const TESTS: [(&str, &str); 11] = [
    (CORE, ""),
    (CATALOG, "codes::"),
    (CATALOG, "valid::"),
    (RULES, "locks::"),
    (RULES, "oracle::"),
    (RULES, "properties::"),
    (RULES, "lock_history::"),
    (RULES, "contract::"),
    (RULES, "tiers::"),
    (RULES, "full_memory::"),
    (RULES, "full_pools::"),
];

/// An executable, and the beginning of the names of the tests to run.
pub(super) struct MutantTest {
    pub(super) executable: PathBuf,
    pub(super) filter: &'static str,
}

/// The tests, and the mutants that are not in them.
pub(super) struct MutantBuild {
    pub(super) tests: Vec<MutantTest>,
    pub(super) unviable: BTreeSet<usize>,
}

/// Builds the tests. Mutants that do not compile are left out.
pub(super) fn build(
    repo: &Repo,
    processes: &ProcessGuard,
    mutants: &[Mutant],
) -> Result<MutantBuild> {
    let mut unviable = BTreeSet::new();
    for _ in 0..ATTEMPTS {
        let (copy, branches) = write_copy(repo, mutants, &unviable)?;
        let messages = build_copy(repo, processes, &copy)?;
        let errors = errors(&messages);
        let Some(first) = errors.first() else {
            return Ok(MutantBuild { tests: tests(&messages)?, unviable });
        };
        let broken = broken_mutants(&errors, &branches);
        ensure!(!broken.is_empty(), "{}", first["message"]["rendered"].as_str().unwrap_or("?"));
        unviable.extend(broken);
    }
    bail!("after {ATTEMPTS} attempts there are still mutants that do not compile")
}

/// The branches of each file of the copy.
type Branches = BTreeMap<String, Vec<(usize, Range<usize>)>>;

fn write_copy(
    repo: &Repo,
    mutants: &[Mutant],
    unviable: &BTreeSet<usize>,
) -> Result<(SourceCopy, Branches)> {
    let mut files: BTreeMap<&str, Vec<(usize, &Mutant)>> = BTreeMap::new();
    for (number, mutant) in mutants.iter().enumerate().filter(|(n, _)| !unviable.contains(n)) {
        files.entry(&mutant.file).or_default().push((number, mutant));
    }
    let mut switched: BTreeMap<String, SwitchedText> = BTreeMap::new();
    for (file, mutants) in files {
        let text = switched::switch(&repo.read(file)?, &mutants)?;
        switched.insert(file.to_owned(), text);
    }
    let copy = SourceCopy::write(repo, FOLDER, |file, text| {
        let text = switched.get(file).map_or(text, |switched| switched.text.clone());
        Ok(change_switch::add_to(file, text))
    })?;
    let branches = switched
        .into_iter()
        .map(|(file, switched)| (SourceCopy::relative(&file), switched.branches));
    Ok((copy, branches.collect()))
}

/// Builds the tests of the copy and returns cargo's messages, one JSON object per line.
fn build_copy(repo: &Repo, processes: &ProcessGuard, copy: &SourceCopy) -> Result<String> {
    let messages = copy.root().join("messages.json");
    let args = ["test", "--no-run", "-p", "catraca-core", "-p", "catraca-testkit"];
    let mut cargo = copy.cargo(repo, &args);
    cargo.args(["--profile", "ci", "--message-format=json", "--lib"]);
    cargo.args(["--test", CATALOG, "--test", RULES]);
    // The tests run for seconds: to optimize more would cost more than it saves.
    cargo.env("CARGO_PROFILE_CI_OPT_LEVEL", "1").stdout(File::create(&messages)?);
    // Errors are in the messages.
    processes.status(&mut cargo)?;
    let messages = fs::read_to_string(&messages)?;
    ensure!(messages.contains("\"build-finished\""), "cargo did not build the copy");
    Ok(messages)
}

fn tests(messages: &str) -> Result<Vec<MutantTest>> {
    let found = TESTS.into_iter().map(|(target, filter)| {
        let executable = executable(messages, target);
        let executable = executable.with_context(|| format!("cargo built no test {target}"))?;
        Ok(MutantTest { executable, filter })
    });
    found.collect()
}

/// The errors of the compiler.
fn errors(messages: &str) -> Vec<Value> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    messages.filter(|message| message["message"]["level"] == "error").collect()
}

/// The mutants in whose branches the compiler found errors.
fn broken_mutants(errors: &[Value], branches: &Branches) -> BTreeSet<usize> {
    let spans = errors.iter().filter_map(|error| error["message"]["spans"].as_array()).flatten();
    spans.filter_map(|span| mutant_at(span, branches)).collect()
}

fn mutant_at(span: &Value, branches: &Branches) -> Option<usize> {
    let at = usize::try_from(span["byte_start"].as_u64()?).ok()?;
    let branches = branches.get(span["file_name"].as_str()?)?;
    branches.iter().find(|(_, bytes)| bytes.contains(&at)).map(|(number, _)| *number)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_error_belongs_to_the_mutant_in_whose_branch_it_is() {
        let span = |file: &str, at: usize| json!({ "file_name": file, "byte_start": at });
        let message = |level: &str, span: Value| {
            json!({ "message": { "level": level, "spans": [span] } }).to_string()
        };
        let messages = [
            message("error", span("a.rs", 15)),
            message("warning", span("a.rs", 25)),
            message("error", span("b.rs", 25)),
            message("error", span("a.rs", 40)),
        ];
        let branches = Branches::from([("a.rs".to_owned(), vec![(3, 10..20), (5, 20..30)])]);
        assert_eq!(broken_mutants(&errors(&messages.join("\n")), &branches), BTreeSet::from([3]));
    }
}

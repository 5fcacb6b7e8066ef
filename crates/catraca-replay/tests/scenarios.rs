//! Runs the scenarios of the presets, and the scenarios that reproduce cases of other limiters.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use catraca_replay::scenario::{Suite, load};

const SUFFIX: &str = ".scenario.toml";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All files under a folder whose names end with `ending`.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let entries = std::fs::read_dir(folder).unwrap_or_else(|error| panic!("{folder:?}: {error}"));
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            found.extend(files(&path, ending));
        } else if path.to_string_lossy().ends_with(ending) {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn suites(folder: &Path) -> Vec<Suite> {
    let files = files(folder, SUFFIX);
    assert!(!files.is_empty(), "no *{SUFFIX} under {folder:?}");
    files.iter().map(|file| load(file).unwrap_or_else(|error| panic!("{error}"))).collect()
}

fn assert_all_pass(suites: &[Suite]) {
    let reports: Vec<_> = suites.iter().map(Suite::run).collect();
    reports.iter().for_each(|report| println!("{report}\n"));
    let failed: Vec<_> = reports.iter().filter(|report| !report.has_passed()).collect();
    let texts: Vec<String> = failed.iter().map(ToString::to_string).collect();
    assert!(failed.is_empty(), "{}", texts.join("\n\n"));
}

#[test]
fn the_presets_do_what_they_say() {
    assert_all_pass(&suites(&root().join("presets")));
}

#[test]
fn the_presets_are_clean() {
    for file in files(&root().join("presets"), "catalog.toml") {
        let reading = catraca::load(&file).unwrap_or_else(|error| panic!("{error}"));
        assert!(reading.warnings.is_empty(), "{file:?}: {:#?}", reading.warnings);
    }
    for suite in suites(&root().join("presets")) {
        assert!(suite.warnings.is_empty(), "{}: {:#?}", suite.file, suite.warnings);
    }
}

#[test]
fn the_cases_of_other_limiters_hold() {
    assert_all_pass(&suites(&Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios")));
}

/// Otherwise the removal of a scenario would go unnoticed.
#[test]
fn no_case_is_left_out() {
    let suites = suites(&Path::new(env!("CARGO_MANIFEST_DIR")).join("scenarios"));
    let scenarios = suites.iter().flat_map(|suite| &suite.scenarios);
    let named: BTreeSet<&str> =
        scenarios.filter_map(|scenario| scenario.name.split([':', ' ']).next()).collect();
    let missing: Vec<_> = CASES.iter().filter(|case| !named.contains(**case)).collect();
    assert!(missing.is_empty(), "no scenario for {missing:?}");
}

const CASES: [&str; 34] = [
    "TB1", "TB2", "TB3", "TB4", "TB5", "TB6", "TB7", "TB8", "SL1", "SL2", "SL3", "SL4", "FW1",
    "FW2", "FW3", "BL1", "BL2", "BL3", "BL4", "BL5", "F2B1", "F2B2", "RC1", "RC2", "RC3", "RC4",
    "DC1", "DC2", "DC3", "DC4", "ML1", "LS1", "KX1", "CF1",
];

//! Every diagnostic code has a text that causes it, with position, message and fix.

use std::collections::BTreeSet;
use std::fs;

use catraca_core::catalog::diagnostic::CODES;
use catraca_core::catalog::read::{
    CATALOG_BYTES_MAX, DIAGNOSTICS_MAX, FILES_MAX, GATE_POLICIES_MAX, POLICIES_MAX, ROUTES_MAX,
    TIERS_MAX,
};
use catraca_core::lock::terms::KINDS_MAX;

use super::helpers::{codes, diagnostics_of, fixtures};

/// Texts too large for fixture files, each with the only code that it must give.
pub fn generated_texts() -> Vec<(&'static str, String)> {
    let policy = |at| format!("[policy.p{at}]\nby = []\nwindow = \"1 per 1s\"\n");
    let policies = |count| (0..count).map(policy).collect::<String>();
    let names: Vec<_> = (0..=GATE_POLICIES_MAX).map(|at| format!("\"p{at}\"")).collect();
    let tier = |at| format!("{{ when = {{ plan = \"{at}\" }}, cost = 1 }}, ");
    let tiers: String = (0..=TIERS_MAX).map(tier).collect();
    let route = |at| format!("[[route]]\nmatch = \"/r{at}\"\ngate = \"p0\"\n");
    let routes: String = (0..=ROUTES_MAX).map(route).collect();
    let files: String = (0..=FILES_MAX).map(|at| format!("#--- f{at}\n")).collect();
    let included: Vec<_> = (0..FILES_MAX).map(|at| format!("\"f{at}\"")).collect();
    vec![
        ("too-large", "#".repeat(CATALOG_BYTES_MAX + 1)),
        ("too-many-policies", policies(POLICIES_MAX + 1)),
        (
            "too-many-policies",
            format!("{}[gate.all]\npolicies = [{}]\n", policies(64), names.join(", ")),
        ),
        ("too-many-routes", format!("{}{routes}", policies(1))),
        ("too-many-kinds", (0..=KINDS_MAX).map(|at| format!("[locks.kind.k{at}]\n")).collect()),
        ("too-many-tiers", format!("{}tier = [{tiers}]\n", policies(1))),
        ("too-many-files", format!("include = [{}]\n{files}", included.join(", "))),
    ]
}

///
#[test]
fn each_fixture_gives_its_code_and_exactly_what_lies_beside_it() {
    let bless = std::env::var_os("CATRACA_BLESS").is_some();
    for (code, text) in code_fixtures() {
        let found = diagnostics_of(&text);
        assert!(found.iter().any(|found| found.code == code), "{code}: {found:#?}");
        let printed: String = found.iter().map(|found| format!("{found}\n")).collect();
        let path = fixtures().join("codes").join(format!("{code}.expected"));
        if bless {
            fs::write(&path, &printed).unwrap();
        }
        assert_eq!(printed, fs::read_to_string(&path).unwrap(), "{code}");
    }
}

/// Regression: two halves of all addresses gave no warning.
#[test]
fn ranges_that_are_everyone_together_give_a_warning() {
    let halves = "[network]\ntrusted_proxies = ['0.0.0.0/1', '128.0.0.0/1', '10.0.0.0/8']\n";
    assert_eq!(codes(halves), ["trusts-everyone"]);
    assert!(codes("[network]\ntrusted_proxies = ['0.0.0.0/1', '10.0.0.0/8']\n").is_empty());
}

#[test]
fn each_text_too_large_to_keep_gives_its_code_alone() {
    for (code, text) in generated_texts() {
        assert_eq!(codes(&text), [code]);
    }
}

#[test]
fn every_code_is_given_by_some_text_and_no_other_is() {
    let in_files: BTreeSet<String> = code_fixtures().into_iter().map(|(code, _)| code).collect();
    let generated = generated_texts().into_iter().map(|(code, _)| code.to_owned());
    let given: BTreeSet<String> = in_files.into_iter().chain(generated).collect();
    let known: BTreeSet<String> = CODES.iter().map(|(code, _)| (*code).to_owned()).collect();
    assert_eq!(given, known);
    assert!(CODES.is_sorted(), "the list is in alphabetical order");
}

/// The guide names every field of the sections that core reads.
#[test]
fn the_guide_names_every_field() {
    let guide =
        fs::read_to_string(fixtures().join("../../../../../docs/guide/catalog.md")).unwrap();
    let words: BTreeSet<&str> = guide.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    let policy = "[policy.p]\nby = []\nwindow = \"1 per 1s\"\n";
    for text in [
        "[zzzzzzzzzzzz]\n".to_owned(),
        format!("{policy}zzzzzzzzzzzz = 1\n"),
        format!("{policy}tier = [ {{ zzzzzzzzzzzz = 1 }} ]\n"),
        format!("{policy}ban = [ {{ zzzzzzzzzzzz = 1 }} ]\n"),
        format!("{policy}watch = {{ zzzzzzzzzzzz = 1 }}\n"),
        format!("{policy}block = {{ zzzzzzzzzzzz = 1 }}\n"),
        format!("{policy}[gate.g]\nzzzzzzzzzzzz = 1\n"),
        "[[route]]\nzzzzzzzzzzzz = 1\n".to_owned(),
        "[[allowlist]]\nzzzzzzzzzzzz = 1\n".to_owned(),
        "[attribute.a]\nzzzzzzzzzzzz = 1\n".to_owned(),
        "[network]\nzzzzzzzzzzzz = 1\n".to_owned(),
    ] {
        let found = diagnostics_of(&text);
        let fixes = found.iter().filter_map(|found| found.fix.as_deref());
        let known: Vec<_> = fixes.filter_map(|fix| fix.strip_prefix("use one of: ")).collect();
        assert_eq!(known.len(), 1, "{text}: {found:?}");
        for name in known[0].split(", ") {
            assert!(words.contains(name), "`{name}` is not in the guide");
        }
    }
}

#[test]
fn every_diagnostic_names_its_text_and_a_fix() {
    for (code, text) in code_fixtures() {
        for found in diagnostics_of(&text) {
            assert!(found.fix.as_ref().is_some_and(|fix| !fix.is_empty()), "{code}: {found}");
            assert!(found.to_string().contains(found.text.trim_matches('"')), "{code}: {found}");
            assert!(found.line >= 1 && found.column >= 1, "{code}: {found}");
        }
    }
}

#[test]
fn what_is_said_is_bounded() {
    let text: String = (0..DIAGNOSTICS_MAX + 10).map(|at| format!("[x{at}]\n")).collect();
    assert_eq!(codes(&text).len(), DIAGNOSTICS_MAX);
}

/// The fixture texts, each with the code that it must give.
pub fn code_fixtures() -> Vec<(String, String)> {
    let files = fs::read_dir(fixtures().join("codes")).unwrap();
    let paths = files.map(|file| file.unwrap().path());
    let texts = paths.filter(|path| path.extension().is_some_and(|name| name == "toml"));
    let mut fixtures: Vec<_> = texts
        .map(|path| {
            let code = path.file_stem().unwrap().to_str().unwrap().to_owned();
            (code, fs::read_to_string(&path).unwrap())
        })
        .collect();
    fixtures.sort();
    fixtures
}

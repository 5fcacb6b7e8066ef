//! Diagnostics of the sections that the server reads, beside those of the catalog.
//!
//! Each file of `fixtures/catalog/codes` is named after the code that it must give; its diagnostics
//! are in the `.expected` file beside it. `CATRACA_BLESS=1` writes those files again, for review.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use catraca_core::catalog::diagnostic::CODES;
use catraca_core::catalog::read::ProcessSections;
use catraca_server::ProcessReader;

use crate::cli::helpers::{codes, diagnostics_of};

const KEYS_MAX: usize = 10_000;

/// The codes of the server.
pub fn process_codes() -> &'static [(&'static str, &'static str)] {
    ProcessReader::default().codes()
}

/// Catalogs with sections of the server, each with the code that it must give.
pub fn process_fixtures() -> Vec<(String, String)> {
    let files = fs::read_dir(folder()).unwrap();
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

/// A text too large for a file, with the only code that it must give.
pub fn generated_text() -> (String, String) {
    let key = |at| {
        format!("[[auth.key]]\nname = \"k{at}\"\nrole = \"read\"\nhash = \"blake3:{at:064x}\"\n")
    };
    ("too-many-keys".to_owned(), (0..=KEYS_MAX).map(key).collect())
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/catalog/codes")
}

///
#[test]
fn each_fixture_of_the_server_gives_exactly_what_lies_beside_it() {
    let bless = std::env::var_os("CATRACA_BLESS").is_some();
    for (code, text) in process_fixtures() {
        let found = diagnostics_of(&text);
        assert!(found.iter().any(|found| found.code == code), "{code}: {found:#?}");
        let printed: String = found.iter().map(|found| format!("{found}\n")).collect();
        let path = folder().join(format!("{code}.expected"));
        if bless {
            fs::write(&path, &printed).unwrap();
        }
        assert_eq!(printed, fs::read_to_string(&path).unwrap(), "{code}");
    }
}

#[test]
fn every_code_of_the_server_is_given_by_some_text_and_is_no_code_of_core() {
    let generated = generated_text();
    assert_eq!(codes(&generated.1), [&*generated.0]);
    let fixtures = process_fixtures().into_iter().chain([generated]);
    let given: BTreeSet<String> = fixtures.map(|(code, _)| code).collect();
    for (code, _) in process_codes() {
        assert!(given.contains(*code), "{code}");
        assert!(!CODES.iter().any(|(known, _)| known == code), "{code}");
    }
    assert!(process_codes().is_sorted(), "the list is in alphabetical order");
}

/// Regression: misspelt or mistyped settings of the process were accepted without a diagnostic.
#[test]
fn the_sections_of_the_process_are_checked() {
    for (field, code) in [
        ("lisen = \"127.0.0.1:1\"", "unknown-field"),
        ("listen = 5", "wrong-type"),
        ("listen = \"localhost\"", "bad-address"),
        ("x_ratelimit = \"yes\"", "wrong-type"),
        ("connections_max = 0", "bad-amount"),
        ("connections_max = 1_000_001", "bad-amount"),
        ("idle_timeout = \"soon\"", "bad-duration"),
        // Before, these were found only when the server started.
        ("idle_timeout = \"2h\"", "bad-duration"),
        ("log = \"xml\"", "unknown-word"),
        ("denial = \"json\"", "unknown-word"),
        ("hosts = [\"a.example/\"]", "bad-address"),
        ("cors_origins = [\"https://a.example/\"]", "bad-address"),
        ("cors_origins = [\"*\", \"https://a.example\"]", "bad-address"),
        ("client_address = \"a b\"", "bad-name"),
        ("traces = \"https://a:1\"", "bad-url"),
        ("tls_cert = \"cert.pem\"", "misplaced-setting"),
    ] {
        let found = diagnostics_of(&format!("\n[server]\n{field}\n"));
        let positions: Vec<_> = found.iter().map(|found| (found.code, found.line)).collect();
        assert_eq!(positions, [(code, 3)], "{field}");
    }
    assert_eq!(codes("server = 5\n"), ["wrong-type"]);
    assert_eq!(codes("[server]\n#--- never.toml\n"), [""; 0]);
}

/// Mistakes of core's sections and of the server's are reported together, in their order.
#[test]
fn all_mistakes_of_a_file_are_reported_at_once() {
    let text = "[store]\nnodes = 0\n[policy.a]\nwindw = 1\n[server]\nlog = 5\n[gate.g]\n\
                policies = ['b']\n[records]\nkeep_audit = '1m'\n";
    let found = diagnostics_of(text);
    let positions: Vec<_> = found.iter().map(|found| (found.line, found.code)).collect();
    let expected = [
        (2, "bad-amount"),
        (3, "no-key"),
        (4, "unknown-field"),
        (6, "wrong-type"),
        (8, "unknown-policy"),
        (10, "bad-duration"),
    ];
    assert_eq!(positions, expected);
}

/// The guide of the catalog names every field of the server's sections.
#[test]
fn the_guide_names_every_field_of_the_server() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/catalog.md");
    let guide = fs::read_to_string(guide).unwrap();
    let words: BTreeSet<&str> = guide.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
    for section in ["[server]", "[auth]", "[[auth.key]]", "[records]", "[store]"] {
        let found = diagnostics_of(&format!("{section}\nzzzzzzzzzzzz = 1\n"));
        let fixes = found.iter().filter_map(|found| found.fix.as_deref());
        let known: Vec<_> = fixes.filter_map(|fix| fix.strip_prefix("use one of: ")).collect();
        assert_eq!(known.len(), 1, "{section}: {found:?}");
        for name in known[0].split(", ") {
            assert!(words.contains(name), "`{name}` is not in the guide");
        }
    }
}

//! Every test that `docs/guarantees.md` cites exists.

use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

#[test]
fn every_guarantee_names_tests_that_exist() {
    let doc = fs::read_to_string(Path::new(ROOT).join("docs/guarantees.md")).unwrap();
    let rows = doc.lines().filter(|line| line.starts_with("| ") && line.contains('`'));
    let named: Vec<&str> = rows
        .filter_map(|row| row.trim_end_matches(" |").rsplit("| ").next())
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .collect();
    assert!(named.len() > 10, "{named:?}");
    let mut code = String::new();
    for folder in ["crates", "conformance"] {
        sources(&Path::new(ROOT).join(folder), &mut |file| {
            code += &fs::read_to_string(file).unwrap();
        });
    }
    for name in named {
        assert!(code.contains(&format!("fn {name}(")), "no test is called {name}");
    }
}

fn sources(folder: &Path, visit: &mut dyn FnMut(&Path)) {
    let found = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> = found.collect();
    found.sort();
    for path in found {
        if path.is_dir() {
            sources(&path, visit);
        } else if path.extension().is_some_and(|end| end == "rs") {
            visit(&path);
        }
    }
}

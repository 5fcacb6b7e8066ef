//! Documents that must stay short, and an index that must stay complete.
//!
//! Must not judge prose.

use anyhow::Result;
use catraca_conformance::Repo;

use super::Finding;

pub(super) const ARCHITECTURE: &str = "ARCHITECTURE.md";
/// One place per line, so that a list is not hidden in a sentence.
const ARCHITECTURE_LINES: usize = 270;
const ARCHITECTURE_LINE_CHARACTERS: usize = 400;
/// The files whose modules the map must describe.
const CRATE_ROOTS: [&str; 3] = [
    "crates/catraca-core/src/lib.rs",
    "crates/catraca/src/lib.rs",
    "crates/catraca-server/src/lib.rs",
];
const RECORDS: &str = "docs/adr/";
const RECORD_LINES: usize = 70;
const INDEX: &str = "docs/adr/README.md";

pub(crate) fn check(repo: &Repo, files: &[String]) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    match repo.read(ARCHITECTURE) {
        Ok(text) => {
            findings.extend(length(ARCHITECTURE, &text, ARCHITECTURE_LINES));
            findings.extend(long_lines(ARCHITECTURE, &text, ARCHITECTURE_LINE_CHARACTERS));
            findings.extend(missing_paths(&text, files));
            for root in CRATE_ROOTS {
                findings.extend(unmapped_modules(root, &repo.read(root)?, &text));
            }
        }
        Err(error) => {
            findings.push(Finding::new("document-missing", ARCHITECTURE, 1, format!("{error:#}")));
        }
    }
    let index = repo.read(INDEX)?;
    for file in files.iter().filter(|file| is_record(file)) {
        findings.extend(length(file, &repo.read(file)?, RECORD_LINES));
        findings.extend(missing_from_index(file, &index));
    }
    Ok(findings)
}

/// The modules of a crate that the map does not name in backticks.
fn unmapped_modules(root: &str, source: &str, map: &str) -> Vec<Finding> {
    let declared = source.lines().filter_map(|line| {
        let line = line.strip_prefix("pub ").unwrap_or(line);
        line.strip_prefix("mod ")?.strip_suffix(';')
    });
    let missing = declared.filter(|name| {
        let named = [format!("`{name}`"), format!("`{name}/`"), format!("`{name}.rs`")];
        !named.iter().any(|name| map.contains(name.as_str()))
    });
    missing
        .map(|name| {
            let message = format!("{ARCHITECTURE}: no line for module `{name}` of {root}");
            Finding::new("architecture-map", root, 1, message)
        })
        .collect()
}

/// Source files that the map names in backticks and that do not exist. A path may begin at the root
/// or below any folder, and `a/{b,c}.rs` names two files.
fn missing_paths(map: &str, files: &[String]) -> Vec<Finding> {
    let quoted = map.split('`').skip(1).step_by(2);
    let paths = quoted.filter(|text| text.ends_with(".rs") || text.ends_with(".lua"));
    let missing = paths.flat_map(expand_braces).filter(|path| {
        let ending = format!("/{path}");
        !files.iter().any(|file| *file == *path || file.ends_with(&ending))
    });
    missing
        .map(|path| {
            let message = format!("{ARCHITECTURE}: there is no file `{path}`");
            Finding::new("architecture-path", ARCHITECTURE, 1, message)
        })
        .collect()
}

pub(super) fn expand_braces(path: &str) -> Vec<String> {
    let Some((before, rest)) = path.split_once('{') else { return vec![path.to_owned()] };
    let Some((names, after)) = rest.split_once('}') else { return vec![path.to_owned()] };
    names.split(',').flat_map(|name| expand_braces(&format!("{before}{name}{after}"))).collect()
}

/// `docs/adr/NNNN-title.md`
fn is_record(file: &str) -> bool {
    let name = file.strip_prefix(RECORDS).and_then(|name| name.strip_suffix(".md"));
    name.and_then(|name| name.split_once('-'))
        .is_some_and(|(number, _)| number.len() == 4 && number.bytes().all(|b| b.is_ascii_digit()))
}

fn length(file: &str, text: &str, limit: usize) -> Option<Finding> {
    let lines = text.lines().count();
    let message = format!("{file}: {lines} lines of {limit}");
    (lines > limit).then(|| Finding::new("document-lines", file, lines, message))
}

fn long_lines(file: &str, text: &str, limit: usize) -> Vec<Finding> {
    let lines = (1..).zip(text.lines().map(|line| line.chars().count()));
    let finding = |(line, length)| {
        let message = format!("{file}:{line}: {length} characters of {limit}: make it a list");
        Finding::new("document-lines", file, line, message)
    };
    lines.filter(|(_, length)| *length > limit).map(finding).collect()
}

fn missing_from_index(file: &str, index: &str) -> Option<Finding> {
    let name = file.strip_prefix(RECORDS).unwrap_or(file);
    let message = format!("{file}: not listed in {INDEX}");
    (!index.contains(&format!("({name})"))).then(|| Finding::new("adr-index", file, 1, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_have_four_digits() {
        assert!(is_record("docs/adr/0001-store-port.md"));
        assert!(!is_record("docs/adr/README.md"));
        assert!(!is_record("docs/adr/001-store.md"));
        assert!(!is_record("docs/0001-store.md"));
    }

    #[test]
    fn a_page_has_a_limit() {
        assert!(length("a", &"x\n".repeat(70), 70).is_none());
        assert!(length("a", &"x\n".repeat(71), 70).is_some());
    }

    #[test]
    fn a_line_has_a_limit() {
        let text = format!("{}\n{}\n", "é".repeat(400), "x".repeat(401));
        let found = long_lines("a", &text, 400);
        assert_eq!(found.len(), 1);
        assert!(long_lines("a", &text, 401).is_empty());
    }

    #[test]
    fn every_top_module_has_a_line() {
        let source = "pub mod engine;\nmod world;\nmod tests {\n}\n";
        assert!(unmapped_modules("lib.rs", source, "`engine/` and `world`").is_empty());
        assert_eq!(unmapped_modules("lib.rs", source, "`engine` of the world").len(), 1);
    }

    #[test]
    fn every_path_of_the_map_exists() {
        let files =
            ["crates/a/src/run/check.rs".to_owned(), "crates/a/src/run/settle.rs".to_owned()];
        assert!(missing_paths("`run/{check,settle}.rs` and `run/`", &files).is_empty());
        assert_eq!(missing_paths("`run/{check,credit}.rs`, `heck.rs`", &files).len(), 2);
    }

    #[test]
    fn the_index_must_link_every_record() {
        let index = "| [0001](0001-a.md) | a |";
        assert!(missing_from_index("docs/adr/0001-a.md", index).is_none());
        assert!(missing_from_index("docs/adr/0002-b.md", index).is_some());
    }
}

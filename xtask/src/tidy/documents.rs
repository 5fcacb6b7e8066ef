//! Documents that must stay short, and an index that must stay complete.
//!
//! Must not judge prose.

use anyhow::Result;

use super::Finding;
use crate::repo::Repo;

const ARCHITECTURE: &str = "ARCHITECTURE.md";
const ARCHITECTURE_LINES: usize = 200;
const RECORDS: &str = "docs/adr/";
const RECORD_LINES: usize = 70;
const INDEX: &str = "docs/adr/README.md";

pub(crate) fn check(repo: &Repo, files: &[String]) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    match repo.read(ARCHITECTURE) {
        Ok(text) => findings.extend(length(ARCHITECTURE, &text, ARCHITECTURE_LINES)),
        Err(error) => {
            findings.push(Finding::new("document-missing", ARCHITECTURE, 1, format!("{error:#}")));
        }
    }
    let index = repo.read(INDEX)?;
    for file in files.iter().filter(|file| is_record(file)) {
        findings.extend(length(file, &repo.read(file)?, RECORD_LINES));
        findings.extend(listed(file, &index));
    }
    Ok(findings)
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

fn listed(file: &str, index: &str) -> Option<Finding> {
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
    fn the_index_must_link_every_record() {
        let index = "| [0001](0001-a.md) | a |";
        assert!(listed("docs/adr/0001-a.md", index).is_none());
        assert!(listed("docs/adr/0002-b.md", index).is_some());
    }
}

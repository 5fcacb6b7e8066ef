//! The register of requirements, read from its Markdown tables.
//!
//! A row is a line whose first cell is an id. Must not read the requirement's text.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};

use super::ids::Id;

/// All known requirements, in the order of the document.
pub(crate) struct Register {
    ids: Vec<Id>,
    known: BTreeSet<Id>,
}

impl Register {
    pub(crate) fn parse(markdown: &str) -> Result<Self> {
        let ids: Vec<Id> = markdown.lines().filter_map(row).collect();
        let mut known = BTreeSet::new();
        for id in &ids {
            ensure!(known.insert(id.clone()), "{id} is registered twice");
        }
        ensure!(!ids.is_empty(), "the register has no rows");
        Ok(Self { ids, known })
    }

    pub(crate) fn has(&self, id: &Id) -> bool {
        self.known.contains(id)
    }

    /// The source documents, in order of appearance.
    pub(crate) fn sources(&self) -> Vec<&str> {
        let mut sources: Vec<&str> = Vec::new();
        for id in &self.ids {
            if !sources.contains(&id.source.as_str()) {
                sources.push(&id.source);
            }
        }
        sources
    }

    pub(crate) fn of<'a>(&'a self, source: &'a str) -> impl Iterator<Item = &'a Id> {
        self.ids.iter().filter(move |id| id.source == source)
    }
}

fn row(line: &str) -> Option<Id> {
    line.strip_prefix('|')?.split('|').next()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_among_prose_and_headers() {
        let text =
            "# T\n| ID | Requirement |\n|---|---|\n| B-02 | a |\nX-01 is prose\n| 000-01 | b |";
        let register = Register::parse(text).unwrap();
        assert_eq!(register.sources(), ["B", "000"]);
        assert!(register.has(&"B-02".parse().unwrap()));
        assert!(!register.has(&"X-01".parse().unwrap()));
        assert_eq!(register.of("000").count(), 1);
    }

    #[test]
    fn a_repeated_id_and_an_empty_register_are_errors() {
        assert!(Register::parse("| B-02 | a |\n| B-02 | b |").is_err());
        assert!(Register::parse("nothing").is_err());
    }
}

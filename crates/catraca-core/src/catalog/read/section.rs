//! The top-level sections of a catalog, collected from all its files.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::DeTable;

use super::schema::CATALOG;
use crate::located::{LocatedKey, Node, Report, entries, names};

/// Sections that configure a process. They do not influence decisions, and only their names are
/// known here: the program that runs the process reads them.
pub(super) const PROCESS_SECTIONS: [&str; 9] =
    ["server", "proxy", "store", "records", "auth", "jwt", "dict", "rls", "resp"];
/// How many of them a fix may recommend: the others are reserved for later versions.
const RECOMMENDED_SECTIONS: usize = 7;

/// Every section of every file, in the order of reading.
#[derive(Debug)]
pub struct Sections<'t> {
    by_name: BTreeMap<&'t str, Vec<(LocatedKey<'t>, Node<'t>)>>,
}

impl<'t> Sections<'t> {
    /// Collects the sections and reports unknown ones.
    pub(super) fn collect(report: &mut Report, trees: &'t [Spanned<DeTable<'t>>]) -> Self {
        let known: Vec<&str> = CATALOG.names().chain(PROCESS_SECTIONS).collect();
        let reserved = PROCESS_SECTIONS.len() - RECOMMENDED_SECTIONS;
        let recommended = &known[..known.len() - reserved];
        let mut by_name: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (file, tree) in trees.iter().enumerate() {
            for (key, node) in entries(file, tree.get_ref()) {
                if known.contains(&key.text) {
                    by_name.entry(key.text).or_default().push((key, node));
                } else {
                    let message = format!("a catalog has no section `{}`", key.text);
                    let fix = names::suggest(report, key.text, recommended);
                    report.error("unknown-section", key.location, message, fix);
                }
            }
        }
        Self { by_name }
    }

    /// A section that only one file may have.
    pub fn single(&self, report: &mut Report, name: &str) -> Option<(LocatedKey<'t>, Node<'t>)> {
        let all = self.all(name);
        for (key, _) in all.iter().skip(1) {
            let message = format!("`{name}` is given in another file already");
            report.error("duplicate-section", key.location, message, "keep one of them");
        }
        all.first().copied()
    }

    /// The named tables of a section, such as `[policy.login]`, in the order of the text. A second
    /// table of the same name is reported and left out.
    pub(super) fn named_tables(
        &self,
        report: &mut Report,
        name: &str,
    ) -> Vec<(LocatedKey<'t>, Node<'t>)> {
        let wanted = format!("tables such as [{name}.example]");
        let tables = self.all(name).iter().flat_map(|(_, node)| node.entries(report, &wanted));
        let tables: Vec<_> = tables.flatten().collect();
        let mut by_name: BTreeMap<&str, (LocatedKey<'t>, Node<'t>)> = BTreeMap::new();
        for (key, node) in tables {
            if by_name.contains_key(key.text) {
                let message =
                    format!("the {name} `{}` is declared in another file already", key.text);
                report.error("duplicate-name", key.location, message, "rename one of them");
            } else {
                // An invalid name is kept, so that references to it are not reported as unknown.
                names::check_key(report, key, name);
                by_name.insert(key.text, (key, node));
            }
        }
        let mut tables: Vec<_> = by_name.into_values().collect();
        tables.sort_by_key(|(key, _)| key.location);
        tables
    }

    /// The items of a list of tables, such as `[[route]]`.
    pub(super) fn list_items(&self, report: &mut Report, name: &str) -> Vec<Node<'t>> {
        let wanted = format!("a list of tables such as [[{name}]]");
        let lists = self.all(name).iter().flat_map(|(_, node)| node.items(report, &wanted));
        lists.flatten().collect()
    }

    /// A section in each file that has it.
    pub fn all(&self, name: &str) -> &[(LocatedKey<'t>, Node<'t>)] {
        self.by_name.get(name).map_or(&[], Vec::as_slice)
    }
}

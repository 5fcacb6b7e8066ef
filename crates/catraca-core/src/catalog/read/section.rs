//! The sections of a catalog, gathered over all its files.
//!
//! Must not read what is inside them: each has its own reader.

use std::collections::BTreeMap;

use toml::Spanned;
use toml::de::DeTable;

use super::names;
use super::node::{Key, Node, entries};
use super::report::Report;

/// Sections that belong to the process and are kept as read.
pub(super) const SETTINGS: [&str; 6] = ["server", "store", "records", "auth", "rls", "resp"];

/// Sections that decide.
const DECIDING: [&str; 13] = [
    "policy",
    "gate",
    "route",
    "attribute",
    "facts",
    "allowlist",
    "blocklist",
    "network",
    "default",
    "include",
    "language",
    "locks",
    "settle",
];

/// Every section of every file, in the order of reading.
pub(super) struct Sections<'t> {
    found: BTreeMap<&'t str, Vec<(Key<'t>, Node<'t>)>>,
}

impl<'t> Sections<'t> {
    /// Gathers the sections; reports those that nobody knows.
    pub fn gather(report: &mut Report, trees: &'t [Spanned<DeTable<'t>>]) -> Self {
        let known = [&DECIDING[..], &SETTINGS[..]].concat();
        let mut found: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (file, tree) in trees.iter().enumerate() {
            for (key, node) in entries(file, tree.get_ref()) {
                if known.contains(&key.text) {
                    found.entry(key.text).or_default().push((key, node));
                } else {
                    let message = format!("a catalog has no section `{}`", key.text);
                    let fix = names::suggest(report, key.text, &known);
                    report.error("unknown-section", key.place, message, fix);
                }
            }
        }
        Self { found }
    }

    /// A section that may be given once.
    pub fn single(&self, report: &mut Report, name: &str) -> Option<(Key<'t>, Node<'t>)> {
        let all = self.all(name);
        for (key, _) in all.iter().skip(1) {
            let message = format!("`{name}` is given in another file already");
            report.error("duplicate-section", key.place, message, "keep one of them");
        }
        all.first().copied()
    }

    /// The tables of a section by name, such as `[policy.login]`; each name once.
    pub fn named(&self, report: &mut Report, name: &str) -> Vec<(Key<'t>, Node<'t>)> {
        let wanted = format!("tables such as [{name}.example]");
        let tables = self.all(name).iter().flat_map(|(_, node)| node.entries(report, &wanted));
        let tables: Vec<_> = tables.flatten().collect();
        let mut kept: BTreeMap<&str, (Key<'t>, Node<'t>)> = BTreeMap::new();
        for (key, node) in tables {
            if kept.contains_key(key.text) {
                let message =
                    format!("the {name} `{}` is declared in another file already", key.text);
                report.error("duplicate-name", key.place, message, "rename one of them");
            } else {
                // A bad name is still a name: who mentions it must not be told that it is unknown.
                names::check(report, key, name);
                kept.insert(key.text, (key, node));
            }
        }
        let mut kept: Vec<_> = kept.into_values().collect();
        kept.sort_by_key(|(key, _)| key.place);
        kept
    }

    /// The tables of a list, such as `[[route]]`.
    pub fn listed(&self, report: &mut Report, name: &str) -> Vec<Node<'t>> {
        let wanted = format!("a list of tables such as [[{name}]]");
        let lists = self.all(name).iter().flat_map(|(_, node)| node.items(report, &wanted));
        lists.flatten().collect()
    }

    /// A section as each file gives it.
    pub fn all(&self, name: &str) -> &[(Key<'t>, Node<'t>)] {
        self.found.get(name).map_or(&[], Vec::as_slice)
    }
}

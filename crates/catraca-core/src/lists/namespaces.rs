//! One list by namespace: the entries of all namespaces, and those of single ones.
//!
//! A caller is looked up in the entries of all namespaces and in those of its own, so the entries
//! of one namespace neither match nor slow down the callers of another.

use std::collections::BTreeMap;

use super::index::{Index, later};
use super::{AccessListEntry, CallerIdentity};
use crate::time::Time;

/// The entries of one list.
#[derive(Clone, Debug)]
pub struct NamespaceIndexes {
    shared: Index,
    own: BTreeMap<String, Index>,
    /// Whether there is no entry in any namespace.
    is_empty: bool,
}

impl Default for NamespaceIndexes {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

impl NamespaceIndexes {
    pub fn new(entries: Vec<AccessListEntry>) -> Self {
        let is_empty = entries.is_empty();
        let mut shared = Vec::new();
        let mut own: BTreeMap<String, Vec<AccessListEntry>> = BTreeMap::new();
        for entry in entries {
            match &entry.namespace {
                None => shared.push(entry),
                Some(namespace) => own.entry(namespace.clone()).or_default().push(entry),
            }
        }
        let own = own.into_iter().map(|(namespace, entries)| (namespace, Index::new(entries)));
        Self { shared: Index::new(shared), own: own.collect(), is_empty }
    }

    /// The entries that apply in a namespace.
    fn indexes(&self, namespace: &str) -> impl Iterator<Item = &Index> {
        std::iter::once(&self.shared).chain(self.own.get(namespace))
    }

    #[inline]
    pub fn is_empty_in(&self, namespace: &str) -> bool {
        // Most installations have no list. Every check asks.
        if self.is_empty {
            return true;
        }
        self.indexes(namespace).all(Index::is_empty)
    }

    pub fn has_pseudonyms(&self, namespace: &str, attribute: &str) -> bool {
        self.indexes(namespace).any(|index| index.has_pseudonyms(attribute))
    }

    /// The entry that matches the caller and expires last; of entries that expire together, one of
    /// all namespaces goes first.
    pub fn find(&self, who: &CallerIdentity<'_>, now: Time) -> Option<&AccessListEntry> {
        self.indexes(who.namespace).filter_map(|index| index.find(who, now)).reduce(later)
    }
}

//! Facts by namespace: those of all namespaces, and those of single ones.
//!
//! A fact of a namespace goes before one of all namespaces, and no other namespace sees it: neither
//! its value, nor that its name is a fact.

use std::collections::BTreeMap;

use super::{Facts, FormOfValue};
use crate::digest::Digester;
use crate::policy::Name;

/// The facts of all namespaces, and those of single ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FactSets {
    shared: Facts,
    own: BTreeMap<Name, Facts>,
}

/// The facts that apply in one namespace.
#[derive(Clone, Copy, Debug)]
pub struct NamespaceFacts<'f> {
    shared: &'f Facts,
    own: Option<&'f Facts>,
}

impl From<Facts> for FactSets {
    /// Facts of all namespaces.
    fn from(shared: Facts) -> Self {
        Self { shared, own: BTreeMap::new() }
    }
}

impl FactSets {
    /// The facts that apply in a namespace.
    pub fn in_namespace(&self, namespace: &str) -> NamespaceFacts<'_> {
        NamespaceFacts { shared: &self.shared, own: self.own.get(namespace) }
    }

    /// The facts of one namespace alone, or without a name those of all namespaces.
    pub fn of(&self, namespace: Option<&str>) -> Option<&Facts> {
        namespace.map_or(Some(&self.shared), |namespace| self.own.get(namespace))
    }

    /// Like [`Self::of`], to add facts.
    pub fn of_mut(&mut self, namespace: Option<&str>) -> &mut Facts {
        match namespace {
            None => &mut self.shared,
            Some(namespace) => self.own.entry(namespace.into()).or_default(),
        }
    }

    /// Removes all facts of a namespace about a value, as [`Facts::forget`] does.
    pub fn forget(&mut self, namespace: Option<&str>, attribute: &str, value: &str) -> bool {
        let Some(namespace) = namespace else { return self.shared.forget(attribute, value) };
        let Some(facts) = self.own.get_mut(namespace) else { return false };
        let had_facts = facts.forget(attribute, value);
        if facts.is_empty() {
            self.own.remove(namespace);
        }
        had_facts
    }

    /// Removes the facts about a value in every namespace.
    pub fn forget_everywhere(&mut self, attribute: &str, value: &str) {
        self.shared.forget(attribute, value);
        self.own.retain(|_, facts| {
            facts.forget(attribute, value);
            !facts.is_empty()
        });
    }

    /// The same facts about other forms of the values, as [`Facts::with_values`].
    pub fn with_values(&self, form: FormOfValue<'_>) -> (Self, u64) {
        let (shared, mut left_out) = self.shared.with_values(form);
        let mut own = BTreeMap::new();
        for (namespace, facts) in &self.own {
            let (facts, more) = facts.with_values(form);
            left_out += more;
            own.insert(namespace.clone(), facts);
        }
        (Self { shared, own }, left_out)
    }

    /// Moves the facts about one form of a value to another form, in every namespace, as
    /// [`Facts::move_value`].
    pub fn move_value(&mut self, attribute: &str, from: &str, into: &str) {
        let all = std::iter::once(&mut self.shared).chain(self.own.values_mut());
        all.for_each(|facts| facts.move_value(attribute, from, into));
    }

    /// The values of an attribute that have facts in any namespace, as they are stored.
    pub fn values(&self, attribute: &str) -> impl Iterator<Item = &Name> {
        let all = std::iter::once(&self.shared).chain(self.own.values());
        all.flat_map(move |facts| facts.values(attribute))
    }

    /// How many facts of each namespace have one of these names and are about another attribute
    /// than `attribute`. If the names are facts of all namespaces about it, these are left out.
    pub fn namesakes<'n>(
        &self,
        attribute: &str,
        names: impl Iterator<Item = &'n str> + Clone,
    ) -> BTreeMap<Name, usize> {
        let count = |facts: &Facts| -> usize {
            let is_other =
                |name: &&str| facts.source(name).is_some_and(|owner| **owner != *attribute);
            names.clone().filter(is_other).map(|name| facts.count_named(name)).sum()
        };
        let counts = self.own.iter().map(|(namespace, facts)| (namespace.clone(), count(facts)));
        counts.filter(|(_, count)| *count > 0).collect()
    }

    /// Calls [`Facts::enable_pseudonym_lookup`] for all of them.
    pub fn enable_pseudonym_lookup(&mut self, digester: &Digester) {
        let all = std::iter::once(&mut self.shared).chain(self.own.values_mut());
        all.for_each(|facts| facts.enable_pseudonym_lookup(digester));
    }

    /// Adds the facts of `stated` as [`Facts::overlay`] does; returns how many are left out. A name
    /// that is a fact of all namespaces is about the same attribute in each of them.
    pub fn overlay(&mut self, stated: &Self, is_sent: impl Fn(&str) -> bool) -> u64 {
        let mut left_out = self.shared.overlay(&stated.shared, &is_sent);
        for (namespace, facts) in &stated.own {
            let mut own = Facts::default();
            let is_other = |name: &str| {
                self.shared.source(name).is_some_and(|owner| Some(owner) != facts.source(name))
            };
            left_out += own.overlay(facts, |name| is_sent(name) || is_other(name));
            self.own.insert(namespace.clone(), own);
        }
        left_out
    }
}

impl<'f> NamespaceFacts<'f> {
    /// Facts of all namespaces alone.
    pub const fn of_all(shared: &'f Facts) -> Self {
        Self { shared, own: None }
    }

    /// The attribute that `name` is a fact about, if it is a fact.
    pub fn source(&self, name: &str) -> Option<&'f Name> {
        self.shared.source(name).or_else(|| self.own?.source(name))
    }

    /// One fact about a value.
    pub fn lookup(&self, attribute: &str, value: &str, name: &str) -> Option<&'f Name> {
        let own = self.own.and_then(|own| own.lookup(attribute, value, name));
        own.or_else(|| self.shared.lookup(attribute, value, name))
    }

    /// All facts about a value.
    pub fn about(&self, attribute: &str, value: &str) -> BTreeMap<Name, Name> {
        let mut facts = self.shared.about(attribute, value);
        facts.extend(self.own.into_iter().flat_map(|own| own.about(attribute, value)));
        facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(sets: &mut FactSets, namespace: Option<&str>, name: &str, fact: &str) {
        sets.of_mut(namespace).insert_fact(("customer", "ana"), name, fact).unwrap();
    }

    fn plan<'f>(sets: &'f FactSets, namespace: &str) -> Option<&'f str> {
        let facts = sets.in_namespace(namespace);
        facts.lookup("customer", "ana", "plan").map(|fact| &**fact)
    }

    #[test]
    fn a_fact_of_the_namespace_goes_before_operators_and_they_before_the_catalog() {
        let mut catalog = Facts::default();
        catalog.insert_fact(("customer", "ana"), "plan", "free").unwrap();
        let mut stated = FactSets::default();
        state(&mut stated, Some("shop"), "plan", "gold");
        let mut facts = FactSets::from(catalog.clone());
        assert_eq!(facts.overlay(&stated, |_| false), 0);
        assert_eq!(["shop", "blog"].map(|name| plan(&facts, name)), [Some("gold"), Some("free")]);
        state(&mut stated, None, "plan", "silver");
        let mut facts = FactSets::from(catalog.clone());
        facts.overlay(&stated, |_| false);
        assert_eq!(["shop", "blog"].map(|name| plan(&facts, name)), [Some("gold"), Some("silver")]);
        assert!(stated.forget(Some("shop"), "customer", "ana"));
        assert!(!stated.forget(Some("shop"), "customer", "ana"));
        let mut facts = FactSets::from(catalog);
        facts.overlay(&stated, |_| false);
        assert_eq!(plan(&facts, "shop"), Some("silver"));
        stated.forget_everywhere("customer", "ana");
        assert_eq!(stated, FactSets::default());
    }

    /// The name of a fact is reserved, so a name of one namespace must not be one elsewhere.
    #[test]
    fn a_name_of_one_namespace_is_free_in_others() {
        let mut sets = FactSets::default();
        state(&mut sets, Some("shop"), "region", "eu");
        let source = |sets: &FactSets, namespace: &str| {
            sets.in_namespace(namespace).source("region").map(ToString::to_string)
        };
        assert_eq!(source(&sets, "shop").as_deref(), Some("customer"));
        assert_eq!(source(&sets, "blog"), None);
        let other = sets.of_mut(Some("blog")).insert_fact(("site", "a"), "region", "us");
        assert_eq!(other, Ok(()));
        assert_eq!(source(&sets, "blog").as_deref(), Some("site"));
    }

    /// Otherwise a tenant could keep an operator of all namespaces from using a name.
    #[test]
    fn a_name_of_all_namespaces_goes_before_that_of_one() {
        let mut stated = FactSets::default();
        state(&mut stated, Some("shop"), "region", "eu");
        stated.of_mut(None).insert_fact(("site", "a"), "region", "us").unwrap();
        let mut facts = FactSets::default();
        let ignored = stated.namesakes("site", ["region", "plan"].into_iter());
        assert_eq!(ignored, BTreeMap::from([("shop".into(), 1)]));
        assert!(stated.namesakes("customer", ["region"].into_iter()).is_empty());
        assert_eq!(facts.overlay(&stated, |_| false), 1);
        let shop = facts.in_namespace("shop");
        assert_eq!(shop.source("region").map(|name| &**name), Some("site"));
        assert_eq!(shop.lookup("customer", "ana", "region"), None);
        assert_eq!(shop.about("site", "a").len(), 1);
    }
}

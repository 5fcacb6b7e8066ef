//! Facts: data about an attribute's value, such as the plan of a customer, that tiers match on.
//!
//! Facts come from the catalog and from operators. A request that sends the name of a fact is
//! refused, because it could choose its own tier.

use std::collections::{BTreeMap, BTreeSet};

use crate::digest::Digester;
use crate::policy::Name;

/// The names of facts, each with the attribute that it is a fact about. Callers may not send them.
pub type Sources = BTreeMap<Name, Name>;

/// All facts, by attribute, value and name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    by_attribute: BTreeMap<Name, BTreeMap<Name, BTreeMap<Name, Name>>>,
    sources: Sources,
    pseudonyms: PseudonymLookup,
}

/// Finds facts that are stored under the pseudonym of a value: records contain only pseudonyms of
/// private values.
#[derive(Clone, Debug, Default)]
struct PseudonymLookup(Option<Digester>);

/// Always equal, so that two `Facts` are compared by their facts alone.
impl PartialEq for PseudonymLookup {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for PseudonymLookup {}

impl Facts {
    /// From now on, facts are also looked up by the pseudonym of a value. That costs a digest for
    /// every value without facts, so it is enabled only if there are facts under pseudonyms.
    pub fn enable_pseudonym_lookup(&mut self, digester: &Digester) {
        self.pseudonyms = PseudonymLookup(Some(digester.clone()));
    }

    /// Declares `name` as a fact about `attribute`. If the name is already a fact about another
    /// attribute, returns that attribute.
    pub fn declare(&mut self, attribute: &str, name: &str) -> Result<(), Name> {
        match self.sources.get(name) {
            Some(other) if **other != *attribute => Err(other.clone()),
            Some(_) => Ok(()),
            None => {
                self.sources.insert(name.into(), attribute.into());
                Ok(())
            }
        }
    }

    /// Adds or replaces a fact about an attribute and value (`about`). If the name is already a
    /// fact about another attribute, returns that attribute.
    pub fn insert_fact(
        &mut self,
        about: (&str, &str),
        name: &str,
        value: &str,
    ) -> Result<(), Name> {
        self.declare(about.0, name)?;
        let values = self.by_attribute.entry(about.0.into()).or_default();
        values.entry(about.1.into()).or_default().insert(name.into(), value.into());
        Ok(())
    }

    /// Removes all facts about a value; returns whether there were any. A name without any fact
    /// left is undeclared, so that it can become a fact about another attribute.
    pub fn forget(&mut self, attribute: &str, value: &str) -> bool {
        let pseudonyms: Vec<String> = self.pseudonyms_of(attribute, value).collect();
        let Some(values) = self.by_attribute.get_mut(attribute) else { return false };
        let mut had_facts = values.remove(value).is_some();
        // All of them: the value may have facts under an older secret too.
        for pseudonym in pseudonyms {
            had_facts |= values.remove(&*pseudonym).is_some();
        }
        let is_used = |name: &Name| values.values().any(|facts| facts.contains_key(name));
        self.sources.retain(|name, owner| **owner != *attribute || is_used(name));
        had_facts
    }

    /// One fact about a value.
    pub fn lookup(&self, attribute: &str, value: &str, name: &str) -> Option<&Name> {
        let values = self.by_attribute.get(attribute)?;
        let found = values.get(value).and_then(|facts| facts.get(name));
        found.or_else(|| {
            let mut pseudonyms = self.pseudonyms_of(attribute, value);
            pseudonyms.find_map(|pseudonym| values.get(&*pseudonym)?.get(name))
        })
    }

    fn pseudonyms_of(&self, attribute: &str, value: &str) -> impl Iterator<Item = String> {
        let digester = self.pseudonyms.0.iter();
        digester.flat_map(move |digester| digester.pseudonyms(attribute, value))
    }

    /// All facts about a value.
    pub fn all(&self, attribute: &str, value: &str) -> Option<&BTreeMap<Name, Name>> {
        self.by_attribute.get(attribute)?.get(value)
    }

    /// The attribute that `name` is a fact about, if it is a fact.
    pub fn source(&self, name: &str) -> Option<&Name> {
        self.sources.get(name)
    }

    /// The names of all facts, each with its attribute.
    pub fn names(&self) -> impl Iterator<Item = (&Name, &Name)> {
        self.sources.iter()
    }

    /// Adds the facts of `other`, which replace facts about the same value and name: run-time facts
    /// override those of the catalog. Facts whose name belongs to another attribute here, or is an
    /// attribute that callers send (`is_sent`), are left out; returns their number.
    pub fn overlay(&mut self, other: &Self, is_sent: impl Fn(&str) -> bool) -> u64 {
        if other.pseudonyms.0.is_some() {
            self.pseudonyms = other.pseudonyms.clone();
        }
        // Selected before the first fact is added, because `insert_fact` declares names.
        let names = other.sources.iter();
        let names = names.filter(|(name, owner)| !is_sent(name) && self.may_own(name, owner));
        let names: BTreeSet<&Name> = names.map(|(name, _)| name).collect();
        let mut left_out = 0;
        for (attribute, values) in &other.by_attribute {
            for (value, facts) in values {
                for (name, fact) in facts {
                    let about = (&**attribute, &**value);
                    let stated =
                        names.contains(name) && self.insert_fact(about, name, fact).is_ok();
                    left_out += u64::from(!stated);
                }
            }
        }
        left_out
    }

    fn may_own(&self, name: &str, attribute: &str) -> bool {
        self.sources.get(name).is_none_or(|owner| **owner == *attribute)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_without_facts_can_be_used_for_another_attribute() {
        let mut facts = Facts::default();
        facts.insert_fact(("customer", "a"), "plan", "gold").unwrap();
        facts.insert_fact(("customer", "b"), "plan", "gold").unwrap();
        assert!(facts.forget("customer", "a"));
        assert_eq!(facts.source("plan").map(|name| &**name), Some("customer"), "a fact about b");
        assert!(facts.forget("customer", "b"));
        assert_eq!(facts.source("plan"), None);
        assert!(facts.insert_fact(("tenant", "t"), "plan", "gold").is_ok());
        assert!(!facts.forget("customer", "b"));
    }

    #[test]
    fn an_overlay_leaves_out_names_of_other_attributes_and_of_callers() {
        let mut catalog = Facts::default();
        let mut stated = Facts::default();
        catalog.declare("participant", "category").unwrap();
        stated.insert_fact(("customer", "a"), "category", "A").unwrap();
        stated.insert_fact(("customer", "a"), "plan", "gold").unwrap();
        stated.insert_fact(("customer", "a"), "session", "s").unwrap();
        assert_eq!(catalog.overlay(&stated, |name| name == "session"), 2);
        assert_eq!(catalog.lookup("customer", "a", "plan").map(|name| &**name), Some("gold"));
        assert_eq!(catalog.lookup("customer", "a", "session"), None);
        assert_eq!(catalog.source("session"), None, "callers may still send it");
        assert_eq!(catalog.source("category").map(|name| &**name), Some("participant"));
    }
}

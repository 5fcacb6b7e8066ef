//! Facts: what we know of an attribute's value, such as a participant's category or a token's plan.
//!
//! Must not come from callers: a caller who could state a fact could choose a tier.

use std::collections::{BTreeMap, BTreeSet};

use crate::digest::Digester;
use crate::policy::Name;

/// Names that callers may not send, each with the attribute it comes from.
pub type Sources = BTreeMap<Name, Name>;

/// Everything known of attribute values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    known: BTreeMap<Name, BTreeMap<Name, BTreeMap<Name, Name>>>,
    sources: Sources,
    hidden: Hidden,
}

/// Finds facts whose value is only known by its pseudonym, which is all that records keep of a
/// private one.
#[derive(Clone, Debug, Default)]
struct Hidden(Option<Digester>);

/// How a fact is found is no part of what is known.
impl PartialEq for Hidden {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Hidden {}

impl Facts {
    /// From now on a value is also known by its pseudonym. That costs a digest for every value
    /// that nothing is known of, so it is for those who have such facts.
    pub fn know_pseudonyms(&mut self, digester: &Digester) {
        self.hidden = Hidden(Some(digester.clone()));
    }

    /// Declares that `name` is a fact about `attribute`; refuses a second source.
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

    /// States one fact about a value; refuses a name that another attribute owns.
    pub fn state(&mut self, about: (&str, &str), name: &str, value: &str) -> Result<(), Name> {
        self.declare(about.0, name)?;
        let values = self.known.entry(about.0.into()).or_default();
        values.entry(about.1.into()).or_default().insert(name.into(), value.into());
        Ok(())
    }

    /// Forgets all facts about a value; says whether there were any. A name that nothing is known
    /// by any more is free again, also one that was only declared.
    pub fn forget(&mut self, attribute: &str, value: &str) -> bool {
        let hidden: Vec<String> = self.pseudonyms(attribute, value).collect();
        let Some(values) = self.known.get_mut(attribute) else { return false };
        let had = hidden.iter().filter(|hidden| values.remove(&***hidden).is_some()).count();
        let had = values.remove(value).is_some() || had > 0;
        let known = |name: &Name| values.values().any(|facts| facts.contains_key(name));
        self.sources.retain(|name, owner| **owner != *attribute || known(name));
        had
    }

    /// One fact about a value.
    pub fn about(&self, attribute: &str, value: &str, name: &str) -> Option<&Name> {
        let values = self.known.get(attribute)?;
        let found = values.get(value).and_then(|facts| facts.get(name));
        found.or_else(|| {
            let mut hidden = self.pseudonyms(attribute, value);
            hidden.find_map(|hidden| values.get(&*hidden)?.get(name))
        })
    }

    fn pseudonyms(&self, attribute: &str, value: &str) -> impl Iterator<Item = String> {
        let digester = self.hidden.0.iter();
        digester.flat_map(move |digester| digester.pseudonyms(attribute, value))
    }

    /// All facts about a value.
    pub fn all(&self, attribute: &str, value: &str) -> Option<&BTreeMap<Name, Name>> {
        self.known.get(attribute)?.get(value)
    }

    /// The attribute that a name is a fact about, if it is one.
    pub fn source(&self, name: &str) -> Option<&Name> {
        self.sources.get(name)
    }

    /// Every name that is a fact.
    pub fn names(&self) -> impl Iterator<Item = (&Name, &Name)> {
        self.sources.iter()
    }

    /// Adds what `other` knows, which wins where both speak; used to lay run-time facts over the
    /// catalog's. Names that have another owner here, or that callers send, stay theirs; says how
    /// many facts were left out for that.
    pub fn overlay(&mut self, other: &Self, is_sent: impl Fn(&str) -> bool) -> u64 {
        if other.hidden.0.is_some() {
            self.hidden = other.hidden.clone();
        }
        let names = other.sources.iter();
        let names = names.filter(|(name, owner)| !is_sent(name) && self.may_own(name, owner));
        let names: BTreeSet<&Name> = names.map(|(name, _)| name).collect();
        let mut left_out = 0;
        for (attribute, values) in &other.known {
            for (value, facts) in values {
                for (name, fact) in facts {
                    let about = (&**attribute, &**value);
                    let stated = names.contains(name) && self.state(about, name, fact).is_ok();
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
    fn a_name_that_nothing_is_known_by_any_more_is_free() {
        let mut facts = Facts::default();
        facts.state(("customer", "a"), "plan", "gold").unwrap();
        facts.state(("customer", "b"), "plan", "gold").unwrap();
        assert!(facts.forget("customer", "a"));
        assert_eq!(facts.source("plan").map(|name| &**name), Some("customer"), "known of b");
        assert!(facts.forget("customer", "b"));
        assert_eq!(facts.source("plan"), None);
        assert!(facts.state(("tenant", "t"), "plan", "gold").is_ok());
        assert!(!facts.forget("customer", "b"));
    }

    #[test]
    fn what_is_laid_over_leaves_out_names_of_others_and_of_callers() {
        let (mut catalog, mut stated) = (Facts::default(), Facts::default());
        catalog.declare("participant", "category").unwrap();
        stated.state(("customer", "a"), "category", "A").unwrap();
        stated.state(("customer", "a"), "plan", "gold").unwrap();
        stated.state(("customer", "a"), "session", "s").unwrap();
        assert_eq!(catalog.overlay(&stated, |name| name == "session"), 2);
        assert_eq!(catalog.about("customer", "a", "plan").map(|name| &**name), Some("gold"));
        assert_eq!(catalog.about("customer", "a", "session"), None);
        assert_eq!(catalog.source("session"), None, "callers may go on sending it");
        assert_eq!(catalog.source("category").map(|name| &**name), Some("participant"));
    }
}

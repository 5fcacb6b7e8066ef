//! Facts: data about an attribute's value, such as the plan of a customer, that tiers match on.
//!
//! Facts come from the catalog and from operators. A request that sends the name of a fact is
//! refused, because it could choose its own tier.

mod namespaces;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use crate::digest::{Digester, is_pseudonym};
use crate::policy::Name;

pub use namespaces::{FactSets, NamespaceFacts};

/// The prefix of a value that a catalog states by its hash.
pub const HASH_PREFIX: &str = "blake3:";
/// Separates these hashes from every other use of the same hash function.
const HASH_CONTEXT: &str = "catraca 2026 fact value";

/// The hash by which a catalog may state a value, so that its file does not contain the value. The
/// attribute is part of it, so that a value cannot be linked across attributes. There is no secret:
/// a value that can be guessed can be found by trying.
pub fn hash_value(attribute: &str, value: &str) -> String {
    let mut hasher = blake3::Hasher::new_derive_key(HASH_CONTEXT);
    for part in [attribute, value] {
        let length = u32::try_from(part.len()).unwrap_or(u32::MAX);
        hasher.update(&length.to_le_bytes()).update(part.as_bytes());
    }
    format!("{HASH_PREFIX}{}", hasher.finalize().to_hex())
}

/// Whether a text has the form of a hashed value. A caller may send such a text as a value, so it
/// must never be compared with stated values as it is.
pub fn is_hashed_value(text: &str) -> bool {
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let digits = text.strip_prefix(HASH_PREFIX).map(str::as_bytes);
    digits.is_some_and(|digits| digits.len() == 64 && digits.iter().all(is_digit))
}

/// The names of facts, each with the attribute that it is a fact about. Callers may not send them.
pub type Sources = BTreeMap<Name, Name>;

/// Another form of an attribute's value, if it has one.
pub type FormOfValue<'f> = &'f dyn Fn(&str, &str) -> Option<String>;

/// All facts, by attribute, value and name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    by_attribute: BTreeMap<Name, BTreeMap<Name, BTreeMap<Name, Name>>>,
    sources: Sources,
    pseudonyms: PseudonymLookup,
}

/// Finds facts that are stored under the pseudonym of a value, as the records store those about
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
    /// From now on, facts are also looked up by the pseudonym of a value, which costs a digest if
    /// the value's attribute has facts under pseudonyms.
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
        let pseudonyms = self.pseudonyms_of(attribute, value);
        let pseudonyms: Vec<String> = pseudonyms.chain(self.hash_of(attribute, value)).collect();
        let Some(values) = self.by_attribute.get_mut(attribute) else { return false };
        let mut had_facts = values.remove(value).is_some();
        // All of them: the value may have facts under an older secret, or from the time when its
        // attribute was private, or was not.
        for pseudonym in pseudonyms {
            had_facts |= values.remove(&*pseudonym).is_some();
        }
        let is_used = |name: &Name| values.values().any(|facts| facts.contains_key(name));
        self.sources.retain(|name, owner| **owner != *attribute || is_used(name));
        if values.is_empty() {
            self.by_attribute.remove(attribute);
        }
        had_facts
    }

    /// Moves the facts about a value from its pseudonyms to `stored`, so that facts that are set
    /// now and those that the value had are in one place.
    pub fn merge_pseudonyms(&mut self, attribute: &str, value: &str, stored: &str) {
        let pseudonyms: Vec<String> = self.pseudonyms_of(attribute, value).collect();
        let Some(values) = self.by_attribute.get_mut(attribute) else { return };
        // The oldest first: of two facts with one name, that under the newest pseudonym stays.
        for pseudonym in pseudonyms.iter().rev().filter(|pseudonym| *pseudonym != stored) {
            let Some(facts) = values.remove(&**pseudonym) else { continue };
            values.entry(stored.into()).or_default().extend(facts);
        }
    }

    /// The same facts about other forms of the values. Facts about a value without such a form are
    /// left out; also returns their number. If two values become one, the facts of the one that had
    /// this form go first.
    pub fn with_values(&self, form: FormOfValue<'_>) -> (Self, u64) {
        let mut by_attribute = BTreeMap::new();
        let mut left_out = 0;
        for (attribute, values) in &self.by_attribute {
            let mut next: BTreeMap<Name, BTreeMap<Name, Name>> = BTreeMap::new();
            let mut unchanged = Vec::new();
            for (value, facts) in values {
                match form(attribute, value) {
                    Some(form) if form == **value => unchanged.push((value, facts)),
                    Some(form) => next.entry(form.into()).or_default().extend(facts.clone()),
                    None => left_out += facts.len() as u64,
                }
            }
            for (value, facts) in unchanged {
                next.entry(value.clone()).or_default().extend(facts.clone());
            }
            by_attribute.insert(attribute.clone(), next);
        }
        let sources = self.sources.clone();
        let pseudonyms = self.pseudonyms.clone();
        (Self { by_attribute, sources, pseudonyms }, left_out)
    }

    /// The values of an attribute that have facts, as they are stored.
    pub fn values(&self, attribute: &str) -> impl Iterator<Item = &Name> {
        self.by_attribute.get(attribute).into_iter().flat_map(BTreeMap::keys)
    }

    /// Moves the facts about one form of a value to another form, whose own facts go first.
    pub fn move_value(&mut self, attribute: &str, from: &str, into: &str) {
        let Some(values) = self.by_attribute.get_mut(attribute) else { return };
        let Some(moved) = values.remove(from) else { return };
        let facts = values.entry(into.into()).or_default();
        for (name, fact) in moved {
            facts.entry(name).or_insert(fact);
        }
    }

    /// One fact about a value. Facts under pseudonyms are set at run time, so they go before those
    /// under the value itself, which may be the catalog's.
    pub fn lookup(&self, attribute: &str, value: &str, name: &str) -> Option<&Name> {
        let values = self.by_attribute.get(attribute)?;
        let mut pseudonyms = self.pseudonyms_of(attribute, value);
        let found = pseudonyms.find_map(|pseudonym| values.get(&*pseudonym)?.get(name));
        let is_clear = !is_pseudonym(value) && !is_hashed_value(value);
        let found = found.or_else(|| values.get(value).filter(|_| is_clear)?.get(name));
        found.or_else(|| values.get(&*self.hash_of(attribute, value)?)?.get(name))
    }

    /// The hash of a value, if its attribute has facts under hashes.
    fn hash_of(&self, attribute: &str, value: &str) -> Option<String> {
        let values = self.by_attribute.get(attribute)?;
        let mut from = values.range::<str, _>((Bound::Included(HASH_PREFIX), Bound::Unbounded));
        let (first, _) = from.next()?;
        first.starts_with(HASH_PREFIX).then(|| hash_value(attribute, value))
    }

    /// The pseudonyms of a value, if its attribute has facts under pseudonyms.
    fn pseudonyms_of(&self, attribute: &str, value: &str) -> impl Iterator<Item = String> {
        let digester = self.pseudonyms.0.iter().filter(|_| self.has_pseudonyms(attribute));
        digester.flat_map(move |digester| digester.pseudonyms(attribute, value))
    }

    fn has_pseudonyms(&self, attribute: &str) -> bool {
        let Some(values) = self.by_attribute.get(attribute) else { return false };
        // Pseudonyms start with this character, so they follow each other.
        let from = values.range::<str, _>((Bound::Included("~"), Bound::Unbounded));
        let alike = from.map(|(value, _)| value).take_while(|value| value.starts_with('~'));
        alike.into_iter().any(|value| is_pseudonym(value))
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

    /// Every fact about a value, in whichever form it is stored.
    pub fn about(&self, attribute: &str, value: &str) -> BTreeMap<Name, Name> {
        let names = self.sources.iter().filter(|(_, owner)| ***owner == *attribute);
        let found = |(name, _): (&Name, &Name)| {
            Some((name.clone(), self.lookup(attribute, value, name)?.clone()))
        };
        names.filter_map(found).collect()
    }

    /// Whether there is no fact, and no name of one.
    pub fn is_empty(&self) -> bool {
        self.sources.is_empty()
    }

    /// The number of facts.
    pub fn count(&self) -> usize {
        let values = self.by_attribute.values().flat_map(BTreeMap::values);
        values.map(BTreeMap::len).sum()
    }

    /// The number of facts with this name.
    pub fn count_named(&self, name: &str) -> usize {
        let values = self.by_attribute.values().flat_map(BTreeMap::values);
        values.filter(|facts| facts.contains_key(name)).count()
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
    use crate::digest::Secret;

    fn plan<'f>(facts: &'f Facts, customer: &str) -> Option<&'f str> {
        facts.lookup("customer", customer, "plan").map(|fact| &**fact)
    }

    /// Regression: after a restart, the catalog's fact about a private value won over the
    /// operator's, which the records store under the pseudonym.
    #[test]
    fn a_fact_under_a_pseudonym_goes_before_the_catalogs() {
        let digester = Digester::new(&Secret::from_bytes([7; 32]));
        let hidden = digester.pseudonym("customer", "ana");
        let mut stated = Facts::default();
        stated.enable_pseudonym_lookup(&digester);
        stated.insert_fact(("customer", &hidden), "plan", "gold").unwrap();
        let mut facts = Facts::default();
        facts.insert_fact(("customer", "ana"), "plan", "free").unwrap();
        facts.insert_fact(("customer", "ana"), "country", "pt").unwrap();
        facts.overlay(&stated, |_| false);
        assert_eq!(plan(&facts, "ana"), Some("gold"));
        assert_eq!(facts.lookup("customer", "ana", "country").map(|fact| &**fact), Some("pt"));
        assert_eq!(plan(&facts, &hidden), None, "the pseudonym is not its value");
        facts.merge_pseudonyms("customer", "ana", "ana");
        facts.insert_fact(("customer", "ana"), "plan", "silver").unwrap();
        assert_eq!(plan(&facts, "ana"), Some("silver"));
        assert!(stated.forget("customer", "ana") && !stated.forget("customer", "ana"));
    }

    #[test]
    fn a_value_is_found_by_its_hash_and_the_hash_is_not_the_value() {
        let mut facts = Facts::default();
        let hash = hash_value("customer", "ana");
        assert!(is_hashed_value(&hash) && !is_hashed_value("blake3:00") && !hash.contains("ana"));
        facts.insert_fact(("customer", &hash), "plan", "gold").unwrap();
        assert_eq!(plan(&facts, "ana"), Some("gold"));
        assert_eq!(plan(&facts, "bea"), None);
        assert_eq!(plan(&facts, &hash), None, "a caller must know the value");
        assert_ne!(hash, hash_value("tenant", "ana"), "no link across attributes");
        assert!(facts.forget("customer", "ana") && plan(&facts, "ana").is_none());
    }

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

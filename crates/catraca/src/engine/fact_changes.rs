//! Facts that operators set at run time.

use catraca_core::digest::Digester;
use catraca_core::facts::FactSets;
use catraca_core::policy::Name;
use catraca_core::refusal::Refusal;
use catraca_core::request::validate_storable;
use catraca_core::select::normalise;

use super::Engine;
use super::stored_values::{earlier_values, fact_value};
use crate::rule_set::{RulePart, RuleSet};

impl<S> Engine<S> {
    /// Sets facts about an attribute's value, in one namespace or in all. They override the
    /// catalog's.
    pub fn state_facts(
        &self,
        namespace: Option<&str>,
        attribute: &str,
        value: &str,
        facts: &[(&str, &str)],
    ) -> Result<(), Refusal> {
        validate_storable("the attribute's name", attribute)?;
        for (name, fact) in facts {
            validate_storable("the name of a fact", name)?;
            validate_storable(format_args!("the fact `{name}`"), fact)?;
        }
        let namespace = namespace.map(str::to_owned);
        let attribute = attribute.to_owned();
        let value = value.to_owned();
        let owned = |(name, fact): &(&str, &str)| (Name::from(*name), Name::from(*fact));
        let facts: Vec<(Name, Name)> = facts.iter().map(owned).collect();
        let digester = self.digester.clone();
        self.change_rules(RulePart::Facts, move |rules| {
            let owner = FactOwner { namespace: namespace.as_deref(), attribute: &attribute };
            owner.state(rules, &value, &facts, &digester)
        })
    }

    /// Removes the facts set about a value, in one namespace or in all. The catalog's own facts
    /// remain. Returns whether there were any.
    pub fn forget_facts(
        &self,
        namespace: Option<&str>,
        attribute: &str,
        value: &str,
    ) -> Result<bool, Refusal> {
        let namespace = namespace.map(str::to_owned);
        self.forget_stated(attribute, value, move |stated, attribute, about| {
            stated.forget(namespace.as_deref(), attribute, about)
        })
    }

    /// Removes the facts set about a value, those of every namespace included.
    pub fn forget_facts_everywhere(&self, attribute: &str, value: &str) -> Result<(), Refusal> {
        let forgotten = self.forget_stated(attribute, value, |stated, attribute, about| {
            stated.forget_everywhere(attribute, about);
            true
        });
        forgotten.map(drop)
    }

    /// `forget` returns whether there were facts.
    fn forget_stated(
        &self,
        attribute: &str,
        value: &str,
        forget: impl Fn(&mut FactSets, &str, &str) -> bool + Send + Sync + 'static,
    ) -> Result<bool, Refusal> {
        let attribute = attribute.to_owned();
        let value = value.to_owned();
        self.change_rules(RulePart::Facts, move |rules| {
            let about = fact_value(rules, &attribute, &value)?;
            let earlier = earlier_values(rules, &attribute, &about);
            let stated = &mut rules.stated;
            let had_facts = forget(stated, &attribute, &about);
            let others = earlier.iter().map(|value| forget(stated, &attribute, value));
            Ok(others.fold(had_facts, |any, other| any | other))
        })
    }
}

/// The attribute that facts are about, and the namespace in which they apply.
struct FactOwner<'a> {
    namespace: Option<&'a str>,
    attribute: &'a str,
}

impl FactOwner<'_> {
    fn state(
        &self,
        rules: &mut RuleSet,
        value: &str,
        facts: &[(Name, Name)],
        digester: &Digester,
    ) -> Result<(), Refusal> {
        let clear = normalise(&rules.catalog, self.attribute, value)?.into_owned();
        facts.iter().try_for_each(|(name, _)| self.check_name(rules, name))?;
        // Memory holds the value itself; the records hold the pseudonym of a private one.
        let about = digester.stored_value(self.attribute, &clear, false);
        let earlier = earlier_values(rules, self.attribute, &about);
        let stated = rules.stated.of_mut(self.namespace);
        for value in earlier {
            stated.move_value(self.attribute, &value, &about);
        }
        stated.enable_pseudonym_lookup(digester);
        stated.merge_pseudonyms(self.attribute, &clear, &about);
        for (name, fact) in facts {
            let added = stated.insert_fact((self.attribute, &about), name, fact);
            added.map_err(|owner| other_owner_refusal(name, &owner))?;
        }
        Ok(())
    }

    /// Refuses a name that callers send, or that is a fact about another attribute.
    fn check_name(&self, rules: &RuleSet, name: &str) -> Result<(), Refusal> {
        if rules.catalog.is_caller_attribute(name) {
            return Err(caller_attribute_refusal(self.attribute, name));
        }
        let applied = rules.facts.of(self.namespace).into_iter().chain(rules.facts.of(None));
        let mut owners = applied.filter_map(|facts| facts.source(name));
        match owners.find(|owner| ***owner != *self.attribute) {
            Some(owner) => Err(other_owner_refusal(name, owner)),
            None => Ok(()),
        }
    }
}

fn caller_attribute_refusal(attribute: &str, name: &str) -> Refusal {
    let why = format!(
        "callers send the attribute `{name}`, so it cannot be a fact: calls that send it would all \
         be refused; choose another name for the fact"
    );
    Refusal::BadAttribute { attribute: attribute.to_owned(), why }
}

fn other_owner_refusal(name: &str, owner: &str) -> Refusal {
    let why = format!("the fact `{name}` already belongs to the attribute `{owner}`");
    Refusal::BadAttribute { attribute: owner.to_owned(), why }
}

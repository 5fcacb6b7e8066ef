//! Which of the rules that nodes share a change of this node removes, and which it adds.

use catraca_core::digest::Digester;
use catraca_core::lists::ListTarget;
use catraca_core::policy::Mode;

use super::known_rules::KnownRules;
use super::rule_item::{RuleItem, RuleName};
use crate::records::{RecordKind, RestoredFact};

/// The names of the rules that a change removes, and the rules that it adds.
pub(super) fn changed_rules(
    known: &KnownRules,
    change: &RecordKind,
    digester: &Digester,
) -> (Vec<RuleName>, Vec<RuleItem>) {
    match change {
        RecordKind::List(list, entry) => (vec![], vec![RuleItem::List(*list, entry.clone())]),
        RecordKind::Unlist(list, entry) => {
            let rule = RuleItem::List(*list, entry.clone());
            let name = rule.name(digester);
            let found = known.rule(&name).is_some();
            let names = if found { vec![name] } else { other_forms(known, &rule, digester) };
            (names, vec![])
        }
        RecordKind::SetFacts { namespace, about, facts } => {
            let fact = |(name, fact): &(String, String)| {
                RuleItem::Fact(RestoredFact {
                    namespace: namespace.clone(),
                    about: about.clone(),
                    name: name.clone(),
                    fact: fact.clone(),
                })
            };
            (vec![], facts.iter().map(fact).collect())
        }
        RecordKind::ForgetFacts { namespace, about } => {
            let found = known.rules().filter(|(_, rule)| rule.is_fact_about(namespace, about));
            (found.map(|(name, _)| name.clone()).collect(), vec![])
        }
        RecordKind::MergeFacts { into, from } => {
            let mut names = Vec::new();
            let mut moved = Vec::new();
            for (name, rule) in known.rules() {
                if let RuleItem::Fact(fact) = rule
                    && from.contains(&fact.about)
                {
                    names.push(name.clone());
                    moved
                        .push(RuleItem::Fact(RestoredFact { about: into.clone(), ..fact.clone() }));
                }
            }
            (names, moved)
        }
        RecordKind::Mode(policy, Some(mode)) => {
            (vec![], vec![RuleItem::Mode(policy.clone(), *mode)])
        }
        RecordKind::Mode(policy, None) => {
            let any = RuleItem::Mode(policy.clone(), Mode::Off);
            (vec![any.name(digester)], vec![])
        }
        RecordKind::ResetPolicy(reset) => (vec![], vec![RuleItem::Reset(reset.clone())]),
        _ => (vec![], vec![]),
    }
}

/// The entries about the same value in clear: its attribute has become private since.
fn other_forms(known: &KnownRules, removed: &RuleItem, digester: &Digester) -> Vec<RuleName> {
    let RuleItem::List(removed_list, removed) = removed else { return Vec::new() };
    let ListTarget::Value { attribute, value } = &removed.target else { return Vec::new() };
    let is_same = |rule: &RuleItem| {
        let RuleItem::List(list, entry) = rule else { return false };
        let ListTarget::Value { attribute: other, value: clear } = &entry.target else {
            return false;
        };
        list == removed_list
            && entry.namespace == removed.namespace
            && other == attribute
            && digester.pseudonyms(attribute, clear).any(|pseudonym| pseudonym == *value)
    };
    let found = known.rules().filter(|(_, rule)| is_same(rule));
    found.map(|(name, _)| name.clone()).collect()
}

//! By what keys are spread over the servers of a store: which of them share one.
//!
//! A decision is one step on one server, so all of its keys must be there. Must not learn where a
//! server is, nor how many there are: a group is a number of 16 bits, and the store knows the rest.

use std::borrow::Cow;

use crate::catalog::Catalog;
use crate::digest::Key;
use crate::policy::{Name, Policy, Who};
use crate::refusal::Refusal;
use crate::select::{Parts, normalise};
use crate::subject::Subject;

/// By what keys are spread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Spread {
    /// Not at all: one server has every key.
    #[default]
    Nowhere,
    /// One server has all keys of a namespace.
    Namespace,
    /// One server has all keys of a namespace that have one value of this attribute.
    Attribute(Name),
}

impl Spread {
    /// As a catalog wants it of a store that spreads.
    pub fn wanted(catalog: &Catalog) -> Self {
        catalog.shard_by().map_or(Self::Namespace, |attribute| Self::Attribute(attribute.into()))
    }

    /// Whether every key of a policy has a value to be spread by.
    pub fn has_all_of(&self, policy: &Policy) -> bool {
        let Self::Attribute(attribute) = self else { return true };
        match &policy.who {
            Who::By(parts) => {
                parts.iter().any(|part| matches!(&part[..], [one] if one == attribute))
            }
            Who::Each(names) => matches!(&names[..], [one] if one == attribute),
        }
    }

    /// A key in its group, where there are groups.
    #[inline]
    pub(crate) fn place(&self, key: Key, group: impl FnOnce() -> u16) -> Key {
        if *self == Self::Nowhere { key } else { key.in_group(group()) }
    }

    /// The value that a key is spread by.
    #[inline]
    pub(crate) fn value_in<'p>(&self, parts: &'p Parts<'_, '_>) -> Option<&'p str> {
        let Self::Attribute(attribute) = self else { return None };
        let part = parts.iter().find(|(name, _)| **name == **attribute);
        part.map(|(_, value)| &**value)
    }

    /// The value that a subject's keys are spread by.
    pub(crate) fn value_of<'s>(
        &self,
        catalog: &Catalog,
        subject: &Subject<'s>,
    ) -> Result<Option<Cow<'s, str>>, Refusal> {
        let Self::Attribute(attribute) = self else { return Ok(None) };
        let Some(raw) = subject.get(attribute) else {
            let why = "it is missing, and the store finds references by it: send it";
            let attribute = attribute.to_string();
            return Err(Refusal::BadAttribute { attribute, why: why.to_owned() });
        };
        normalise(catalog, attribute, raw).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::{Digester, Secret};
    use crate::plan::Scope;
    use crate::resets::Resets;

    const CATALOG: &str = "[policy.payer]\nby = ['bank', 'payer']\nwindow = '1 per 1s'\n\
                           [attribute.bank]\nkind = 'caseless'\n";

    fn parts<'s>(bank: &'s str, payer: &'s str) -> Parts<'static, 's> {
        Parts::from_iter([("bank", bank.into()), ("payer", payer.into())])
    }

    #[test]
    fn a_value_has_all_of_its_keys_references_and_marks_in_one_group() {
        let digester = Digester::new(&Secret::from_bytes([7; 32]));
        let (spread, catalog) =
            (Spread::Attribute("bank".into()), Catalog::parse(CATALOG).unwrap());
        let (resets, namespace) = (Resets::default(), "n");
        let (digester, spread) = (&digester, &spread);
        let scope = Scope { digester, namespace, unlisted: None, spread, resets: &resets };
        let row = scope.key("payer", &parts("a", "p"));
        assert_eq!(scope.key("other", &parts("a", "q")).group(), row.group());
        assert_ne!(scope.key("payer", &parts("b", "p")).group(), row.group());
        assert_eq!(scope.mark(9, row).group(), row.group());
        let subject = Subject::from_iter([("bank", "A "), ("payer", "x")]);
        let found = scope.find_reference(&catalog, "E1", &subject).unwrap();
        assert_eq!(found, scope.reference("E1", row), "found by the normal form");
        let nobody = Subject::from_iter([("payer", "x")]);
        assert!(scope.find_reference(&catalog, "E1", &nobody).is_err());
    }

    #[test]
    fn without_a_spread_keys_stay_as_they_are_and_with_one_a_namespace_is_whole() {
        let digester = Digester::new(&Secret::from_bytes([7; 32]));
        let (digester, resets, namespace) = (&digester, &Resets::default(), "n");
        let scope = |spread| Scope { digester, namespace, unlisted: None, spread, resets };
        let (bare, grouped) = (scope(&Spread::Nowhere), scope(&Spread::Namespace));
        let groups =
            |scope: Scope<'_>| ["a", "b"].map(|bank| scope.key("x", &parts(bank, "")).group());
        let [one, other] = groups(bare);
        assert_ne!(one, other);
        let [one, other] = groups(grouped);
        assert_eq!(one, other);
        let rows = ["a", "b"].map(|bank| bare.key("x", &parts(bank, "")));
        assert_eq!(bare.mark(9, rows[0]), bare.mark(9, rows[1]));
    }

    #[test]
    fn only_a_key_that_always_has_the_value_can_be_spread_by_it() {
        let spread = Spread::Attribute("bank".into());
        let who = |by: &str| {
            let text = format!("[policy.p]\n{by}\nwindow = '1 per 1s'");
            spread.has_all_of(&Catalog::parse(&text).unwrap().policies[0])
        };
        assert!(who("by = ['payer', 'bank']") && who("each = ['bank']"));
        assert!(!who("by = []") && !who("by = ['bank|ip']") && !who("each = ['bank', 'ip']"));
        assert!(!who("by = ['ip']"));
    }
}

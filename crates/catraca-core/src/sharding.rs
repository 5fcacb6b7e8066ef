//! Sharding: which keys must be on the same server of a store.
//!
//! A decision is one atomic operation on one server, so all of its keys must be there. A group is a
//! number of 16 bits inside the key; the store maps groups to servers.

use std::borrow::Cow;

use crate::catalog::Catalog;
use crate::policy::{KeySpec, Name, Policy};
use crate::refusal::Refusal;
use crate::select::{KeyParts, normalise_value};
use crate::subject::Subject;

/// How keys are sharded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Sharding {
    /// Not sharded: one server has all keys.
    #[default]
    Unsharded,
    /// By namespace: one server has all keys of a namespace.
    Namespace,
    /// By an attribute: one server has all keys of a namespace with the same value of it.
    Attribute(Name),
}

impl Sharding {
    /// The sharding that a catalog configures with `[store] shard_by`, for a store with several
    /// servers.
    pub fn from_catalog(catalog: &Catalog) -> Self {
        catalog.shard_by.clone().map_or(Self::Namespace, Self::Attribute)
    }

    /// Whether every key of a policy contains the shard attribute. A key without it would belong to
    /// no group.
    pub fn covers_policy(&self, policy: &Policy) -> bool {
        let Self::Attribute(attribute) = self else { return true };
        // `by = ["bank|ip"]` may use the other attribute, so only a part that is this attribute
        // alone counts.
        match &policy.key_spec {
            KeySpec::By(parts) => {
                parts.iter().any(|part| matches!(&part[..], [one] if one == attribute))
            }
            KeySpec::Each(names) => matches!(&names[..], [one] if one == attribute),
        }
    }

    /// The value of the shard attribute in the parts of a key.
    #[inline]
    pub(crate) fn value_of_parts<'p>(&self, parts: &'p KeyParts<'_, '_>) -> Option<&'p str> {
        let Self::Attribute(attribute) = self else { return None };
        let part = parts.iter().find(|(name, _)| **name == **attribute);
        part.map(|(_, value)| &**value)
    }

    /// The normalised value of the shard attribute in a subject.
    pub(crate) fn value_of_subject<'s>(
        &self,
        catalog: &Catalog,
        subject: &Subject<'s>,
    ) -> Result<Option<Cow<'s, str>>, Refusal> {
        let Self::Attribute(attribute) = self else { return Ok(None) };
        let Some(raw) = subject.get(attribute) else {
            let why = "missing, and needed to find the reference in a sharded store: send it";
            let attribute = attribute.to_string();
            return Err(Refusal::BadAttribute { attribute, why: why.to_owned() });
        };
        normalise_value(catalog, attribute, raw).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::{Digester, Secret};
    use crate::plan::{KeyScope, namespace_group};
    use crate::policy_epochs::PolicyEpochs;
    use crate::request::DEFAULT_NAMESPACE;

    const CATALOG: &str = "[policy.payer]\nby = ['bank', 'payer']\nwindow = '1 per 1s'\n\
                           [attribute.bank]\nkind = 'caseless'\n";

    fn parts<'s>(bank: &'s str, payer: &'s str) -> KeyParts<'static, 's> {
        KeyParts::from_iter([("bank", bank.into()), ("payer", payer.into())])
    }

    #[test]
    fn all_keys_references_and_markers_of_a_value_are_in_one_group() {
        let digester = Digester::new(&Secret::from_bytes([7; 32]));
        let sharding = Sharding::Attribute("bank".into());
        let catalog = Catalog::parse(CATALOG).unwrap();
        let epochs = PolicyEpochs::default();
        let scope = KeyScope {
            digester: &digester,
            namespace: "n",
            unlisted: None,
            sharding: &sharding,
            epochs: &epochs,
        };
        let row = scope.key("payer", &parts("a", "p"));
        assert_eq!(scope.key("other", &parts("a", "q")).group(), row.group());
        assert_ne!(scope.key("payer", &parts("b", "p")).group(), row.group());
        assert_eq!(scope.marker_key(9, row).group(), row.group());
        let subject = Subject::from_iter([("bank", "A "), ("payer", "x")]);
        let found = scope.reference_key_of(&catalog, "E1", &subject).unwrap();
        assert_eq!(found, scope.reference_key("E1", row), "found by the normal form");
        let without_bank = Subject::from_iter([("payer", "x")]);
        assert!(scope.reference_key_of(&catalog, "E1", &without_bank).is_err());
    }

    #[test]
    fn a_namespace_is_one_group_and_the_default_one_has_none_in_an_unsharded_store() {
        let digester = Digester::new(&Secret::from_bytes([7; 32]));
        let digester = &digester;
        let epochs = &PolicyEpochs::default();
        let scope = |namespace, sharding| KeyScope {
            digester,
            namespace,
            unlisted: None,
            sharding,
            epochs,
        };
        let bare = scope(DEFAULT_NAMESPACE, &Sharding::Unsharded);
        let grouped = scope("n", &Sharding::Namespace);
        let groups =
            |scope: KeyScope<'_>| ["a", "b"].map(|bank| scope.key("x", &parts(bank, "")).group());
        let [one, other] = groups(bare);
        assert_ne!(one, other);
        for scope in [grouped, scope("n", &Sharding::Unsharded)] {
            assert_eq!(groups(scope), [namespace_group(digester, "n"); 2]);
            assert_eq!(scope.marker_key(9, bare.key("x", &parts("a", ""))).group(), one);
        }
        let rows = ["a", "b"].map(|bank| bare.key("x", &parts(bank, "")));
        assert_eq!(bare.marker_key(9, rows[0]), bare.marker_key(9, rows[1]));
    }

    #[test]
    fn only_a_key_that_always_has_the_attribute_can_be_sharded_by_it() {
        let sharding = Sharding::Attribute("bank".into());
        let is_covered = |by: &str| {
            let text = format!("[policy.p]\n{by}\nwindow = '1 per 1s'");
            sharding.covers_policy(&Catalog::parse(&text).unwrap().policies[0])
        };
        assert!(is_covered("by = ['payer', 'bank']") && is_covered("each = ['bank']"));
        assert!(
            !is_covered("by = []")
                && !is_covered("by = ['bank|ip']")
                && !is_covered("each = ['bank', 'ip']")
        );
        assert!(!is_covered("by = ['ip']"));
    }
}

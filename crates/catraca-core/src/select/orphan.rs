//! Whether requests still have a key that was recorded under an earlier catalog.
//!
//! The digest of a key is made from the attributes and values of its parts. If a catalog counts by
//! other attributes, or normalises values differently, an old block is still stored and listed, and
//! no request has its key any more.

use std::fmt;

use super::normalise;
use crate::catalog::{AttributeKind, Catalog};
use crate::policy::KeySpec;

/// Pseudonyms begin with this character.
const PSEUDONYM: char = '~';

/// Why no request has a recorded key any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OrphanReason {
    /// The catalog has no such policy.
    NoPolicy,
    /// The policy counts by other attributes.
    OtherAttributes,
    /// Values of this attribute are normalised differently.
    OtherValues(String),
}

impl fmt::Display for OrphanReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPolicy => f.write_str("the policy is not in the catalog"),
            Self::OtherAttributes => f.write_str("the policy counts by other attributes"),
            Self::OtherValues(attribute) => {
                write!(f, "the values of `{attribute}` are normalised differently")
            }
        }
    }
}

/// Why no request has the key of a policy with these parts, given with their values as they are
/// shown. The normal form of a private value is not known from its pseudonym.
pub fn orphan_reason(
    catalog: &Catalog,
    policy: &str,
    parts: &[(String, String)],
) -> Option<OrphanReason> {
    let Some((_, policy)) = catalog.find(policy) else { return Some(OrphanReason::NoPolicy) };
    if !has_attributes(&policy.key_spec, parts) {
        return Some(OrphanReason::OtherAttributes);
    }
    let changed = parts.iter().find(|(attribute, value)| !is_normal(catalog, attribute, value));
    changed.map(|(attribute, _)| OrphanReason::OtherValues(attribute.clone()))
}

/// As [`orphan_reason`], when one catalog replaces another: the kind of a private attribute may
/// have changed too. Absent for a key that was an orphan before.
pub fn new_orphan_reason(
    before: &Catalog,
    after: &Catalog,
    policy: &str,
    parts: &[(String, String)],
) -> Option<OrphanReason> {
    if orphan_reason(before, policy, parts).is_some() {
        return None;
    }
    let changed = |(attribute, value): &&(String, String)| {
        value.starts_with(PSEUDONYM)
            && before.attribute_kind(attribute) != after.attribute_kind(attribute)
    };
    let private = || {
        let changed = parts.iter().find(changed);
        changed.map(|(attribute, _)| OrphanReason::OtherValues(attribute.clone()))
    };
    orphan_reason(after, policy, parts).or_else(private)
}

/// Whether keys can become orphans when one catalog replaces another.
pub fn may_orphan(before: &Catalog, after: &Catalog) -> bool {
    let is_same = |policy: &crate::policy::Policy| {
        let found = after.find(&policy.name);
        found.is_some_and(|(_, other)| other.key_spec == policy.key_spec)
    };
    before.network.ipv6_prefix != after.network.ipv6_prefix
        || before.attributes != after.attributes
        || !before.policies.iter().all(is_same)
}

fn has_attributes(key: &KeySpec, parts: &[(String, String)]) -> bool {
    match key {
        KeySpec::By(wanted) => {
            wanted.len() == parts.len()
                && wanted.iter().zip(parts).all(|(any, (own, _))| any.iter().any(|n| **n == **own))
        }
        KeySpec::Each(names) => match parts {
            [(own, _)] => names.iter().any(|name| **name == **own),
            _ => false,
        },
    }
}

fn is_normal(catalog: &Catalog, attribute: &str, value: &str) -> bool {
    if value.starts_with(PSEUDONYM) {
        return true;
    }
    if catalog.attribute_kind(attribute) == AttributeKind::Ip
        && let Some((_, prefix)) = value.split_once('/')
    {
        return prefix.parse() == Ok(catalog.network.ipv6_prefix);
    }
    normalise(catalog, attribute, value).is_ok_and(|normal| *normal == *value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalog(text: &str) -> Catalog {
        Catalog::parse(text).unwrap()
    }

    fn parts(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    const LOGIN: &str = "[policy.login]\nby = ['ip']\nwindow = '2 per 1h'\n";

    #[test]
    fn a_key_is_orphaned_by_its_policy_its_attributes_and_its_values() {
        let now = catalog(LOGIN);
        let reason = |policy, pairs: &[(&str, &str)]| orphan_reason(&now, policy, &parts(pairs));
        assert_eq!(reason("login", &[("ip", "198.51.100.7")]), None);
        assert_eq!(reason("login", &[("ip", "2001:db8::/64")]), None);
        assert_eq!(reason("other", &[("ip", "198.51.100.7")]), Some(OrphanReason::NoPolicy));
        for pairs in [&[][..], &[("user", "ana")], &[("ip", "198.51.100.7"), ("user", "ana")]] {
            assert_eq!(reason("login", pairs), Some(OrphanReason::OtherAttributes));
        }
        let values = Some(OrphanReason::OtherValues("ip".to_owned()));
        assert_eq!(reason("login", &[("ip", "2001:db8::/48")]), values);
        let each = catalog("[policy.p]\neach = ['customer', 'session']\nwindow = '2 per 1h'\n");
        let reason = |pairs: &[(&str, &str)]| orphan_reason(&each, "p", &parts(pairs));
        assert_eq!((reason(&[("session", "~x")]), reason(&[("customer", "c")])), (None, None));
        assert_eq!(reason(&[("ip", "198.51.100.7")]), Some(OrphanReason::OtherAttributes));
    }

    #[test]
    fn a_change_of_kind_orphans_what_is_not_normal_any_more_and_private_values() {
        let policy = "[policy.p]\nby = ['user']\nwindow = '2 per 1h'\n";
        let before = catalog(policy);
        let after = catalog(&format!("{policy}[attribute.user]\nkind = 'caseless'\n"));
        assert!(may_orphan(&before, &after) && !may_orphan(&before, &before));
        let reason =
            |value: &str| new_orphan_reason(&before, &after, "p", &parts(&[("user", value)]));
        let changed = Some(OrphanReason::OtherValues("user".to_owned()));
        assert_eq!(
            (reason("Ana"), reason("ana"), reason("~ab12")),
            (changed.clone(), None, changed)
        );
        let gone = catalog(LOGIN);
        assert_eq!(
            new_orphan_reason(&before, &gone, "p", &parts(&[("user", "ana")])),
            Some(OrphanReason::NoPolicy)
        );
        assert_eq!(new_orphan_reason(&gone, &gone, "p", &parts(&[("user", "ana")])), None);
    }
}

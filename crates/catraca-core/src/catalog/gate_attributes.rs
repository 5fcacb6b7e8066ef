//! The attributes that a gate reads from its callers, and which of them a check must send.

use super::Catalog;
use crate::facts::NamespaceFacts;
use crate::policy::{KeySpec, Name, OnMissing, Policy, PolicyId};

/// An attribute that a gate reads from its callers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateAttribute {
    /// Its name.
    pub name: Name,
    /// Whether every check without it is refused or denied.
    pub is_required: bool,
}

/// The attributes that the policies of a gate read, each once, in the order in which they are
/// first read; instead of a fact or a derived name, the attribute that it comes from.
pub fn gate_attributes(
    catalog: &Catalog,
    facts: NamespaceFacts<'_>,
    policies: &[PolicyId],
) -> Vec<GateAttribute> {
    let mut reader = AttributeReader { facts, attributes: Vec::new() };
    for first in policies {
        // Whether a check with complete keys may reach the policy: none before it has terms of its
        // own.
        let mut may_be_reached = true;
        for policy in catalog.fallback_chain(*first) {
            let is_last = policy.otherwise.is_none();
            let insists = is_last && policy.on_missing != OnMissing::Skip;
            reader.read_key(policy, may_be_reached && insists);
            reader.read_conditions(policy);
            may_be_reached &= policy.base.is_none();
        }
    }
    reader.attributes
}

struct AttributeReader<'f> {
    facts: NamespaceFacts<'f>,
    attributes: Vec<GateAttribute>,
}

impl AttributeReader<'_> {
    fn read_key(&mut self, policy: &Policy, is_required: bool) {
        match &policy.key_spec {
            KeySpec::By(parts) => {
                for part in parts {
                    // Of several alternatives, none is required by itself.
                    let is_only = part.len() == 1;
                    part.iter().for_each(|name| self.add(name, is_required && is_only));
                }
            }
            KeySpec::Each(names) => {
                let is_only = names.len() == 1;
                names.iter().for_each(|name| self.add(name, is_required && is_only));
            }
        }
    }

    /// Reads the conditions of tiers and ban rules, and the attributes of weights. Without an
    /// attribute, conditions do not match, and the default weight counts.
    fn read_conditions(&mut self, policy: &Policy) {
        let tiers = policy.tiers.iter().flat_map(|tier| tier.when.iter().map(|(name, _)| name));
        let bans = policy.bans.iter().flat_map(|ban| ban.when.attributes());
        let weights = policy.weights().map(|weights| &weights.by);
        tiers.chain(bans).chain(weights).for_each(|name| self.add(name, false));
    }

    /// Adds an attribute. Callers do not send a fact, but the attribute that it is about.
    fn add(&mut self, name: &Name, is_required: bool) {
        let name = self.facts.source(name).unwrap_or(name);
        match self.attributes.iter_mut().find(|known| known.name == *name) {
            Some(known) => known.is_required |= is_required,
            None => self.attributes.push(GateAttribute { name: name.clone(), is_required }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The attributes of a gate; those that a check may leave out are marked with `?`.
    fn described(catalog: &str, gate: &str) -> String {
        let catalog = Catalog::parse(catalog).unwrap();
        let facts = NamespaceFacts::of_all(&catalog.facts);
        let attributes = gate_attributes(&catalog, facts, &catalog.gates[gate].policies);
        let mark = |one: &GateAttribute| if one.is_required { "" } else { "?" };
        let attributes = attributes.iter().map(|one| format!("{}{}", one.name, mark(one)));
        attributes.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn key_attributes_are_required_unless_the_policy_does_without_them() {
        let catalog = r#"
            [policy.plain]
            by = ["ip", "user|session"]
            window = "1 per 1s"
            [policy.each]
            each = ["customer", "session"]
            window = "1 per 1s"
            [policy.each_of_one]
            each = ["customer"]
            window = "1 per 1s"
            [policy.skip]
            by = ["tenant"]
            on_missing = "skip"
            window = "1 per 1s"
            [policy.deny]
            by = ["tenant"]
            on_missing = "deny"
            window = "1 per 1s"
            [policy.all]
            by = []
            window = "1 per 1s"
            [gate.shop]
            policies = ["skip", "plain", "deny"]"#;
        for (gate, attributes) in [
            ("shop", "tenant ip user? session?"),
            ("plain", "ip user? session?"),
            ("each", "customer? session?"),
            ("each_of_one", "customer"),
            ("skip", "tenant?"),
            ("deny", "tenant"),
            ("all", ""),
        ] {
            assert_eq!(described(catalog, gate), attributes, "{gate}");
        }
    }

    #[test]
    fn a_check_may_leave_out_what_tiers_and_facts_are_read_from() {
        let catalog = r#"
            [policy.api]
            by = ["customer"]
            window = "1 per 1s"
            tier = [
              { when = { plan = "gold" }, window = "2 per 1s" },
              { when = { method = "POST" }, window = "3 per 1s" },
            ]
            [facts.customer.ana]
            plan = "gold""#;
        assert_eq!(described(catalog, "api"), "customer method?");
    }

    #[cfg(feature = "cel")]
    #[test]
    fn a_check_may_leave_out_what_ban_rules_read() {
        let catalog = r#"
            [policy.login]
            by = ["ip"]
            window = "9 per 1m"
            ban = [{ when = "subject.user == 'root'", for = "1h", reason = "root" }]"#;
        assert_eq!(described(catalog, "login"), "ip user?");
    }

    #[test]
    fn the_last_policy_of_a_chain_is_required_if_the_first_may_match_no_tier() {
        let chain = |base: &str| {
            let catalog = format!(
                r#"
                [policy.token]
                by = ["token"]
                {base}
                tier = [{{ when = {{ token = "a" }}, window = "2 per 1s" }}]
                otherwise = "address"
                [policy.address]
                by = ["ip"]
                window = "1 per 1s""#
            );
            described(&catalog, "token")
        };
        assert_eq!(chain(""), "token? ip");
        assert_eq!(chain(r#"window = "1 per 1s""#), "token? ip?");
    }
}

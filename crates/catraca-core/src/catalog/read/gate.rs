//! `[gate.…]` and `default`: which policies are passed together.
//!
//! Every policy is also a gate of its own name. Must not read policies.

use std::collections::{BTreeSet, HashMap};

use super::bounds::GATE_POLICIES_MAX;
use super::chain::{self, Ids};
use super::node::{Fields, Key, Node};
use super::report::Report;
use super::section::Sections;
use crate::catalog::Gate;
use crate::condition::Cost;
use crate::policy::{Name, Policy, PolicyId};

/// All gates, and the names of those that were declared, in order.
pub(super) struct Gates {
    pub all: HashMap<Name, Gate>,
    pub declared: Vec<Name>,
    /// All names in order, for whoever looks for one.
    pub names: BTreeSet<Name>,
}

/// Reads the declared gates and adds one for each policy.
pub(super) fn read(report: &mut Report, sections: &Sections<'_>, ids: &Ids<'_>) -> Gates {
    let single = |(name, id): (&&str, &PolicyId)| {
        let name: Name = (*name).into();
        (name.clone(), Gate { name, policies: vec![*id] })
    };
    let names = ids.keys().map(|name| Name::from(*name)).collect();
    let all = ids.iter().map(single).collect();
    let mut gates = Gates { all, declared: Vec::new(), names };
    for (key, node) in sections.named(report, "gate") {
        let policies = policies(report, ids, (key, node));
        let name: Name = key.text.into();
        gates.declared.push(name.clone());
        gates.names.insert(name.clone());
        // A gate may put others beside the policy of its name, but not let them stand in for it.
        let shadows = |own| policies.as_ref().is_some_and(|read| !read.contains(own));
        if ids.get(key.text).is_some_and(shadows) {
            let message = format!("`{name}` is also a policy, which this gate would leave out");
            let fix = format!("rename the gate, or add \"{name}\" to its policies");
            report.error("gate-shadows-policy", key.place, message, fix);
        }
        gates.all.insert(name.clone(), Gate { name, policies: policies.unwrap_or_default() });
    }
    gates
}

/// The cost of the ban rules of a gate, for the costliest one.
pub(super) fn rule_cost(gates: &Gates, policies: &[Policy]) -> Cost {
    let rules = |id: &PolicyId| policies.get(usize::from(id.0)).into_iter().flat_map(|p| &p.bans);
    let of_gate = |gate: &Gate| Cost::of(gate.policies.iter().flat_map(rules).map(|ban| &ban.when));
    let all = gates.names.iter().filter_map(|name| gates.all.get(name));
    all.map(of_gate).fold(Cost::default(), Cost::max)
}

fn policies(
    report: &mut Report,
    ids: &Ids<'_>,
    (key, node): (Key<'_>, Node<'_>),
) -> Option<Vec<PolicyId>> {
    let fields = Fields::read(report, (key.place, node), "gate", &["policies"])?;
    let Some(list) = fields.get("policies") else {
        return empty(report, key.place);
    };
    let items = list.items(report, "a list of policies such as [\"global\", \"login\"]")?;
    if items.is_empty() {
        return empty(report, list.place);
    }
    if let Some(extra) = items.get(GATE_POLICIES_MAX) {
        let message = format!("{} policies are too many for one decision", items.len());
        let fix = format!("keep at most {GATE_POLICIES_MAX}");
        report.error("too-many-policies", extra.place, message, fix);
    }
    let mut policies = Vec::new();
    for item in items.into_iter().take(GATE_POLICIES_MAX) {
        let Some(id) = policy(report, ids, item) else { continue };
        if policies.contains(&id) {
            let message = "the policy is in the gate already";
            report.error("policy-repeated", item.place, message, "name each policy once");
        }
        policies.push(id);
    }
    Some(policies)
}

fn empty<T>(report: &mut Report, place: super::report::Place) -> Option<T> {
    let message = "a gate without policies lets everything pass";
    report.error("empty-gate", place, message, "add policies = [\"…\"], or remove the gate");
    None
}

fn policy(report: &mut Report, ids: &Ids<'_>, item: Node<'_>) -> Option<PolicyId> {
    let name = item.text(report, "the name of a policy")?;
    let id = ids.get(name).copied();
    if id.is_none() {
        chain::unknown(report, item.place, name, ids);
    }
    id
}

/// Reads `default`.
pub(super) fn default(
    report: &mut Report,
    sections: &Sections<'_>,
    ids: &Ids<'_>,
) -> Option<PolicyId> {
    let (_, node) = sections.single(report, "default")?;
    policy(report, ids, node)
}

//! `[gate.…]` and `default`: the policies of each gate; and the check of `[store] shard_by`.
//!
//! Every policy is also a gate of its own name.

use std::collections::BTreeSet;

use super::bounds::GATE_POLICIES_MAX;
use super::otherwise_chain::{self, PolicyIds};
use super::policy::PolicyDraft;
use super::scalar;
use super::schema;
use super::section::Sections;
use crate::catalog::{Gate, NameMap};
use crate::condition::ConditionCost;
use crate::located::{
    FieldSchema, LocatedKey, Node, Report, SourceLocation, TableFields, TableSchema, ValueSchema,
};
use crate::policy::{Name, Policy, PolicyId};
use crate::sharding::Sharding;

/// The fields of `[gate.NAME]`.
pub(super) static GATE: TableSchema = TableSchema {
    name: "gate",
    fields: &[FieldSchema::new(
        "policies",
        ValueSchema::List { of: &schema::NAME, most: GATE_POLICIES_MAX },
        "evaluated in this order, in one decision: either all have room and all are charged, or \
         none is charged; each policy once",
    )
    .require()],
};

/// The gates of a catalog.
pub(super) struct Gates {
    /// The declared gates, and one gate for each policy.
    pub all: NameMap<Gate>,
    /// The names of the declared gates, in the order of the text.
    pub declared: Vec<Name>,
    /// The names of all gates, sorted, for suggestions.
    pub names: BTreeSet<Name>,
}

/// Reads the declared gates and adds one for each policy.
pub(super) fn read(report: &mut Report, sections: &Sections<'_>, ids: &PolicyIds<'_>) -> Gates {
    let single = |(name, id): (&&str, &PolicyId)| {
        let name: Name = (*name).into();
        (name.clone(), Gate { name, policies: vec![*id] })
    };
    let names = ids.keys().map(|name| Name::from(*name)).collect();
    let all = ids.iter().map(single).collect();
    let mut gates = Gates { all, declared: Vec::new(), names };
    for (key, node) in sections.named_tables(report, "gate") {
        let policies = policies(report, ids, key, node);
        let name: Name = key.text.into();
        gates.declared.push(name.clone());
        gates.names.insert(name.clone());
        // A gate may add policies to the one of its own name, but not replace it: a caller who
        // names the policy would silently get other limits.
        let shadows = |own| policies.as_ref().is_some_and(|read| !read.contains(own));
        if ids.get(key.text).is_some_and(shadows) {
            let message = format!("`{name}` is also a policy, which this gate would leave out");
            let fix = format!("rename the gate, or add \"{name}\" to its policies");
            report.error("gate-shadows-policy", key.location, message, fix);
        }
        gates.all.insert(name.clone(), Gate { name, policies: policies.unwrap_or_default() });
    }
    gates
}

/// The cost of evaluating all ban rules of a gate, of the gate where it is highest.
pub(super) fn rule_cost(gates: &Gates, policies: &[Policy]) -> ConditionCost {
    let rules = |id: &PolicyId| policies.get(usize::from(id.0)).into_iter().flat_map(|p| &p.bans);
    let of_gate =
        |gate: &Gate| ConditionCost::of(gate.policies.iter().flat_map(rules).map(|ban| &ban.when));
    let all = gates.names.iter().filter_map(|name| gates.all.get(name));
    all.map(of_gate).fold(ConditionCost::default(), ConditionCost::max)
}

fn policies(
    report: &mut Report,
    ids: &PolicyIds<'_>,
    key: LocatedKey<'_>,
    node: Node<'_>,
) -> Option<Vec<PolicyId>> {
    let fields = TableFields::read(report, key.location, node, &GATE)?;
    let Some(list) = fields.get("policies") else {
        return report_empty(report, key.location);
    };
    let items = list.items(report, "a list of policies such as [\"global\", \"login\"]")?;
    if items.is_empty() {
        return report_empty(report, list.location);
    }
    if let Some(extra) = items.get(GATE_POLICIES_MAX) {
        let message = format!("{} policies are too many for one decision", items.len());
        let fix = format!("keep at most {GATE_POLICIES_MAX}");
        report.error("too-many-policies", extra.location, message, fix);
    }
    let mut policies = Vec::new();
    for item in items.into_iter().take(GATE_POLICIES_MAX) {
        let Some(id) = policy_id(report, ids, item) else { continue };
        if policies.contains(&id) {
            let message = "the policy is in the gate already";
            report.error("policy-repeated", item.location, message, "name each policy once");
        }
        policies.push(id);
    }
    Some(policies)
}

fn report_empty<T>(report: &mut Report, location: SourceLocation) -> Option<T> {
    let message = "a gate without policies would admit all requests";
    report.error("empty-gate", location, message, "add policies = [\"…\"], or remove the gate");
    None
}

fn policy_id(report: &mut Report, ids: &PolicyIds<'_>, item: Node<'_>) -> Option<PolicyId> {
    let name = item.text(report, "the name of a policy")?;
    let id = ids.get(name).copied();
    if id.is_none() {
        otherwise_chain::report_unknown_policy(report, item.location, name, ids);
    }
    id
}

/// Reads `default`.
pub(super) fn default(
    report: &mut Report,
    sections: &Sections<'_>,
    ids: &PolicyIds<'_>,
) -> Option<PolicyId> {
    let (_, node) = sections.single(report, "default")?;
    policy_id(report, ids, node)
}

/// The words of `unlisted`, and whether each refuses undeclared gates.
pub(in crate::catalog) const UNLISTED: [(&str, bool); 2] = [("default", false), ("deny", true)];

/// Reads `unlisted`.
pub(super) fn denies_unlisted(report: &mut Report, sections: &Sections<'_>) -> bool {
    let field = sections.single(report, "unlisted");
    field.and_then(|(_, node)| scalar::keyword(report, node, &UNLISTED)).unwrap_or(false)
}

/// Reports every policy whose key does not always contain the attribute of `[store] shard_by`.
///
/// A gate is decided in one step on one server, so all its keys must be on that server. A key
/// without the attribute could be on another one. Policies without a declared gate are checked too,
/// because every policy is a gate.
pub(super) fn report_unsharded(
    report: &mut Report,
    drafts: &[PolicyDraft<'_>],
    gates: &Gates,
    shard_by: Option<&Name>,
) {
    let Some(attribute) = shard_by else { return };
    let sharding = Sharding::Attribute(attribute.clone());
    for (id, draft) in (0_u16..).map(PolicyId).zip(drafts) {
        let Some(policy) = draft.policy.as_ref().filter(|policy| !sharding.covers_policy(policy))
        else {
            continue;
        };
        let gate = shared_gate(gates, id).map(|gate| format!(" in the gate `{gate}`"));
        let message = format!(
            "the key of `{}` does not always contain `{attribute}`, the attribute of [store] \
             shard_by: it could be on another server than the keys of other policies{}",
            policy.name,
            gate.unwrap_or_default()
        );
        let fix = format!(
            "add \"{attribute}\" to its `by`, alone and without `|`, or remove shard_by: a \
             cluster then distributes keys by namespace"
        );
        report.error("not-sharded", draft.key.location, message, fix);
    }
}

/// The first declared gate in which the policy is together with others.
fn shared_gate(gates: &Gates, id: PolicyId) -> Option<&Name> {
    gates.declared.iter().find(|name| {
        gates
            .all
            .get(*name)
            .is_some_and(|gate| gate.policies.len() > 1 && gate.policies.contains(&id))
    })
}

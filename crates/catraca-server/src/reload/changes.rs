//! The differences between two catalogs as text, for the audit log and the response of a reload.
//!
//! Settings of the process, lists and facts may hold secrets or personal data: they are named, but
//! their values are not shown.

use std::collections::BTreeSet;
use std::fmt::{Debug, Display};

use catraca::Catalog;
use catraca::core::policy::{KeySpec, Policy, PolicyId, Terms};
use catraca::explain::describe_block;

/// The most changes that are listed.
const CHANGES_MAX: usize = 100;

/// Every change from one catalog to the next, and the process sections that differ; above
/// `CHANGES_MAX`, the last one counts the rest.
pub fn changes(before: &Catalog, after: &Catalog, changed_sections: &[&str]) -> Vec<String> {
    let mut changes = Vec::new();
    policies(before, after, &mut changes);
    gates(before, after, &mut changes);
    let default = |catalog: &Catalog| catalog.default.map(|id| name(catalog, id));
    field(&mut changes, "default", or_none(default(before)), or_none(default(after)));
    for (what, differs) in [
        ("attributes", before.attributes != after.attributes),
        ("routes", before.routes != after.routes),
        ("facts", before.facts != after.facts),
        ("allowlist", debug_text(&before.allowlist) != debug_text(&after.allowlist)),
        ("blocklist", debug_text(&before.blocklist) != debug_text(&after.blocklist)),
        ("locks", before.locks != after.locks),
        ("network", debug_text(&before.network) != debug_text(&after.network)),
        ("language", debug_text(&before.language) != debug_text(&after.language)),
    ] {
        changes.extend(differs.then(|| format!("{what} changed")));
    }
    changes.extend(changed_sections.iter().map(|name| format!("[{name}] changed")));
    if changes.len() > CHANGES_MAX {
        let rest = changes.len() - (CHANGES_MAX - 1);
        changes.truncate(CHANGES_MAX - 1);
        changes.push(format!("and {rest} more"));
    }
    changes
}

fn policies(before: &Catalog, after: &Catalog, changes: &mut Vec<String>) {
    for policy in &before.policies {
        if after.find(&policy.name).is_none() {
            changes.push(format!("policy {} removed", policy.name));
        }
    }
    for policy in &after.policies {
        match before.find(&policy.name) {
            None => changes.push(format!("policy {} added: {}", policy.name, terms(&policy.base))),
            Some((_, old)) => {
                let old = PolicyIn { catalog: before, policy: old };
                compare_policy(&old, &PolicyIn { catalog: after, policy }, changes);
            }
        }
    }
}

/// A policy and the catalog that it is in, which resolves its references.
struct PolicyIn<'c> {
    catalog: &'c Catalog,
    policy: &'c Policy,
}

/// Compares one policy. The most asked-for fields are shown with both values; any other difference
/// is only reported as such.
fn compare_policy(before: &PolicyIn<'_>, after: &PolicyIn<'_>, changes: &mut Vec<String>) {
    let old = before.policy;
    let new = after.policy;
    let listed = changes.len();
    let title = format!("policy {}", new.name);
    let of = |name: &str| format!("{title} {name}");
    field(changes, &of("counts"), key_spec(&old.key_spec), key_spec(&new.key_spec));
    field(changes, &of("limit"), terms(&old.base), terms(&new.base));
    field(changes, &of("block"), block(&old.base), block(&new.base));
    field(changes, &of("mode"), old.mode.as_str(), new.mode.as_str());
    field(changes, &of("debt"), old.debt, new.debt);
    field(changes, &of("tiers"), old.tiers.len(), new.tiers.len());
    field(changes, &of("bans"), old.bans.len(), new.bans.len());
    let otherwise = |at: &PolicyIn<'_>| or_none(at.policy.otherwise.map(|id| name(at.catalog, id)));
    field(changes, &of("otherwise"), otherwise(before), otherwise(after));
    let same = debug_text(&without_otherwise(old)) == debug_text(&without_otherwise(new));
    if listed == changes.len() && !same {
        changes.push(format!("{title} changed in other terms"));
    }
}

/// A policy without its `otherwise`, which is an index: it changes when policies before it are
/// added or removed.
fn without_otherwise(policy: &Policy) -> Policy {
    Policy { otherwise: None, ..policy.clone() }
}

fn gates(before: &Catalog, after: &Catalog, changes: &mut Vec<String>) {
    let names: BTreeSet<&str> =
        before.gate_names.iter().chain(&after.gate_names).map(|name| &**name).collect();
    for gate in names {
        let old = or_none(gate_policies(before, gate));
        let new = or_none(gate_policies(after, gate));
        field(changes, &format!("gate {gate}"), old, new);
    }
}

/// The policies of a declared gate; none if the catalog does not declare it.
fn gate_policies(catalog: &Catalog, gate: &str) -> Option<String> {
    let declared = catalog.gate_names.iter().any(|name| **name == *gate);
    let gate = catalog.gates.get(gate).filter(|_| declared)?;
    let names: Vec<String> = gate.policies.iter().map(|id| name(catalog, *id)).collect();
    Some(names.join(", "))
}

/// Adds a line for one field, if it differs.
fn field<T: PartialEq + Display>(changes: &mut Vec<String>, what: &str, before: T, after: T) {
    if before != after {
        changes.push(format!("{what}: {before} -> {after}"));
    }
}

fn or_none(name: Option<String>) -> String {
    name.unwrap_or_else(|| "none".to_owned())
}

fn name(catalog: &Catalog, id: PolicyId) -> String {
    catalog.policy(id).name.to_string()
}

fn terms(terms: &Option<Terms>) -> String {
    terms.as_ref().map_or_else(|| "by tier".to_owned(), |terms| terms.limit.describe())
}

fn block(terms: &Option<Terms>) -> String {
    let block = terms.as_ref().and_then(|terms| terms.block);
    block.map_or_else(|| "none".to_owned(), describe_block)
}

fn key_spec(spec: &KeySpec) -> String {
    match spec {
        KeySpec::By(parts) if parts.is_empty() => "all callers together".to_owned(),
        KeySpec::By(parts) => {
            let parts: Vec<String> = parts.iter().map(|part| part.join("|")).collect();
            format!("by {}", parts.join(", "))
        }
        KeySpec::Each(names) => format!("each of {}", names.join(", ")),
    }
}

/// A value as text, only to be compared: most of these types have no `PartialEq`.
fn debug_text(value: &impl Debug) -> String {
    format!("{value:?}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config;

    const BEFORE: &str = "default = 'a'\n\
        [policy.a]\nby = ['ip']\nwindow = '10 per 1h'\n\
        [policy.b]\nby = ['user']\nbucket = { size = 5, refill = '1 per 1m' }\n\
        [gate.g]\npolicies = ['a', 'b']\n";

    fn changes_to(after: &str) -> Vec<String> {
        let before = config::parse(BEFORE).unwrap();
        let after = config::parse(after).unwrap();
        let sections = after.process.changed_sections(&before.process);
        changes(&before.catalog, &after.catalog, &sections)
    }

    #[test]
    fn equal_catalogs_have_no_changes_and_every_difference_is_listed() {
        assert_eq!(changes_to(BEFORE), Vec::<String>::new());
        assert_eq!(changes_to(&format!("# only a comment\n{BEFORE}")), Vec::<String>::new());
        let after = BEFORE.replace("10 per 1h", "12 per 1h").replace("'a', 'b'", "'b'");
        assert_eq!(
            changes_to(&after),
            ["policy a limit: window 10 per 1h -> window 12 per 1h", "gate g: a, b -> b"]
        );
        let after = "[policy.b]\nby = ['user']\nbucket = { size = 5, refill = '1 per 1m' }\n\
                     message = 'wait'\n[policy.c]\nby = []\nfixed = '3 per 1d'\n\
                     [auth]\nmetrics = 'open'\n";
        let changes = changes_to(after);
        assert_eq!(changes[0], "policy a removed");
        assert_eq!(changes[1], "policy b changed in other terms");
        assert!(changes[2].starts_with("policy c added: "), "{changes:?}");
        assert_eq!(changes[3], "gate g: a, b -> none");
        assert_eq!(changes[4], "default: a -> none");
        assert_eq!(changes[5], "[auth] changed");
        assert!(!changes.join("\n").contains("open"));
    }

    #[test]
    fn a_flood_of_changes_is_cut_and_the_rest_counted() {
        let policy = |n| format!("[policy.p{n}]\nby = []\nwindow = '1 per 1h'\n");
        let many: String = (0..200).map(policy).collect();
        let changes = changes_to(&format!("{BEFORE}{many}"));
        assert_eq!((changes.len(), changes[99].as_str()), (100, "and 101 more"));
    }
}

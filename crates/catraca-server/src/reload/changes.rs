//! What differs between two catalogs, in words for the audit and for whoever reloads.
//!
//! Must not show what a section of the process holds, nor a value of a list or a fact: those are
//! only counted or named.

use std::collections::BTreeSet;
use std::fmt::{Debug, Display};

use catraca::Catalog;
use catraca::core::policy::{Policy, PolicyId, Terms, Who};
use catraca::explain::{limit, penalty};

/// The most changes that are told one by one.
const TOLD_MAX: usize = 100;

/// Every change from one catalog to the next; at most so many, the last one then counts the rest.
pub fn changes(before: &Catalog, after: &Catalog) -> Vec<String> {
    let mut told = Vec::new();
    policies(before, after, &mut told);
    gates(before, after, &mut told);
    let default = |catalog: &Catalog| catalog.default.map(|id| name(catalog, id));
    field(&mut told, "default", told_of(default(before)), told_of(default(after)));
    for (what, differs) in [
        ("attributes", before.attributes != after.attributes),
        ("routes", before.routes != after.routes),
        ("facts", before.facts != after.facts),
        ("allowlist", shown(&before.allowlist) != shown(&after.allowlist)),
        ("blocklist", shown(&before.blocklist) != shown(&after.blocklist)),
        ("locks", before.locks != after.locks),
        ("network", shown(&before.network) != shown(&after.network)),
        ("language", shown(&before.language) != shown(&after.language)),
    ] {
        told.extend(differs.then(|| format!("{what} changed")));
    }
    sections(before, after, &mut told);
    if told.len() > TOLD_MAX {
        let rest = told.len() - (TOLD_MAX - 1);
        told.truncate(TOLD_MAX - 1);
        told.push(format!("and {rest} more"));
    }
    told
}

fn policies(before: &Catalog, after: &Catalog, told: &mut Vec<String>) {
    for policy in &before.policies {
        if after.find(&policy.name).is_none() {
            told.push(format!("policy {} removed", policy.name));
        }
    }
    for policy in &after.policies {
        match before.find(&policy.name) {
            None => told.push(format!("policy {} added: {}", policy.name, terms(&policy.base))),
            Some((_, old)) => changed((before, old), (after, policy), told),
        }
    }
}

/// The fields that people ask about one by one; whatever else differs is told as that.
fn changed(
    (before, old): (&Catalog, &Policy),
    (after, new): (&Catalog, &Policy),
    told: &mut Vec<String>,
) {
    let known = told.len();
    let place = format!("policy {}", new.name);
    let of = |name: &str| format!("{place} {name}");
    field(told, &of("counts"), who(&old.who), who(&new.who));
    field(told, &of("limit"), terms(&old.base), terms(&new.base));
    field(told, &of("block"), block(&old.base), block(&new.base));
    field(told, &of("mode"), old.mode.as_str(), new.mode.as_str());
    field(told, &of("debt"), old.debt, new.debt);
    field(told, &of("tiers"), old.tiers.len(), new.tiers.len());
    field(told, &of("bans"), old.bans.len(), new.bans.len());
    let otherwise = |catalog, policy: &Policy| policy.otherwise.map(|id| name(catalog, id));
    let (was, is) = (otherwise(before, old), otherwise(after, new));
    field(told, &of("otherwise"), told_of(was), told_of(is));
    if known == told.len() && shown(&unplaced(old)) != shown(&unplaced(new)) {
        told.push(format!("{place} changed in other terms"));
    }
}

/// A policy without what only says where others stand in the file.
fn unplaced(policy: &Policy) -> Policy {
    Policy { otherwise: None, ..policy.clone() }
}

fn gates(before: &Catalog, after: &Catalog, told: &mut Vec<String>) {
    let names: BTreeSet<&str> =
        before.gate_names.iter().chain(&after.gate_names).map(|name| &**name).collect();
    for gate in names {
        let (was, is) = (passed(before, gate), passed(after, gate));
        field(told, &format!("gate {gate}"), told_of(was), told_of(is));
    }
}

/// The policies of a gate that a catalog declares.
fn passed(catalog: &Catalog, gate: &str) -> Option<String> {
    let declared = catalog.gate_names.iter().any(|name| **name == *gate);
    let gate = catalog.gates.get(gate).filter(|_| declared)?;
    let names: Vec<String> = gate.policies.iter().map(|id| name(catalog, *id)).collect();
    Some(names.join(", "))
}

fn sections(before: &Catalog, after: &Catalog, told: &mut Vec<String>) {
    let (before, after) = (&before.settings.sections, &after.settings.sections);
    let names: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    for name in names.into_iter().filter(|name| before.get(*name) != after.get(*name)) {
        told.push(format!("[{name}] changed"));
    }
}

/// Tells of one field, if it differs.
fn field<T: PartialEq + Display>(told: &mut Vec<String>, what: &str, before: T, after: T) {
    if before != after {
        told.push(format!("{what}: {before} -> {after}"));
    }
}

fn told_of(name: Option<String>) -> String {
    name.unwrap_or_else(|| "none".to_owned())
}

fn name(catalog: &Catalog, id: PolicyId) -> String {
    catalog.policy(id).name.to_string()
}

fn terms(terms: &Option<Terms>) -> String {
    terms.as_ref().map_or_else(|| "by tier".to_owned(), |terms| limit(&terms.limit))
}

fn block(terms: &Option<Terms>) -> String {
    let block = terms.as_ref().and_then(|terms| terms.block);
    block.map_or_else(|| "none".to_owned(), penalty)
}

fn who(who: &Who) -> String {
    match who {
        Who::By(parts) if parts.is_empty() => "everybody together".to_owned(),
        Who::By(parts) => {
            let parts: Vec<String> = parts.iter().map(|part| part.join("|")).collect();
            format!("by {}", parts.join(", "))
        }
        Who::Each(names) => format!("each of {}", names.join(", ")),
    }
}

/// Only to be compared.
fn shown(value: &impl Debug) -> String {
    format!("{value:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "default = 'a'\n\
        [policy.a]\nby = ['ip']\nwindow = '10 per 1h'\n\
        [policy.b]\nby = ['user']\nbucket = { size = 5, refill = '1 per 1m' }\n\
        [gate.g]\npolicies = ['a', 'b']\n";

    fn told(after: &str) -> Vec<String> {
        changes(&Catalog::parse(BEFORE).unwrap(), &Catalog::parse(after).unwrap())
    }

    #[test]
    fn nothing_differs_from_itself_and_every_difference_is_told() {
        assert_eq!(told(BEFORE), Vec::<String>::new());
        assert_eq!(told(&format!("# only words\n{BEFORE}")), Vec::<String>::new());
        let after = BEFORE.replace("10 per 1h", "12 per 1h").replace("'a', 'b'", "'b'");
        assert_eq!(
            told(&after),
            ["policy a limit: window 10 per 1h -> window 12 per 1h", "gate g: a, b -> b"]
        );
        let after = "[policy.b]\nby = ['user']\nbucket = { size = 5, refill = '1 per 1m' }\n\
                     message = 'wait'\n[policy.c]\nby = []\nfixed = '3 per 1d'\n\
                     [auth]\nmetrics = 'open'\n";
        let told = told(after);
        assert_eq!(told[0], "policy a removed");
        assert_eq!(told[1], "policy b changed in other terms");
        assert!(told[2].starts_with("policy c added: "), "{told:?}");
        assert_eq!(told[3], "gate g: a, b -> none");
        assert_eq!(told[4], "default: a -> none");
        assert_eq!(told[5], "[auth] changed");
        assert!(!told.join("\n").contains("open"));
    }

    #[test]
    fn a_flood_of_changes_is_cut_and_the_rest_counted() {
        let policy = |n| format!("[policy.p{n}]\nby = []\nwindow = '1 per 1h'\n");
        let many: String = (0..200).map(policy).collect();
        let told = told(&format!("{BEFORE}{many}"));
        assert_eq!((told.len(), told[99].as_str()), (100, "and 101 more"));
    }
}

//! A random catalog, and the versions of it that reloads switch between.
//!
//! Versions keep names and keys and mostly change numbers and modes, so that state is carried over.

use super::policy;
use super::rng::Rng;
use super::trace::START;
use crate::oracle::FOREVER;
use crate::oracle::catalog::{Catalog, Cost, Fact, Gate, ListEntry, Policy};

/// A random catalog of one to five policies.
pub fn catalog(rng: &mut Rng) -> Catalog {
    let count = rng.within(1, 5);
    let mut policies: Vec<Policy> =
        (0..count).map(|number| policy::policy(rng, &format!("p{number}"))).collect();
    // Only to later policies, so that chains of `otherwise` end.
    for number in 0..policies.len() - 1 {
        if rng.chance(15) {
            let later = rng.within(number as i64 + 1, count - 1);
            policies[number].otherwise = Some(format!("p{later}"));
        }
    }
    let gates = vec![gate(rng, "g0", count), gate(rng, "g1", count)];
    let default = rng.maybe(20, |rng| format!("p{}", rng.within(0, count - 1)));
    let mut allowlist = Vec::new();
    let mut blocklist = Vec::new();
    if rng.chance(10) {
        allowlist.extend(rng.maybe(50, list_entry));
        blocklist.extend(rng.maybe(70, list_entry));
    }
    let facts = facts(rng);
    Catalog { policies, gates, default, allowlist, blocklist, facts }
}

/// The grades of some users, by which tiers are selected.
fn facts(rng: &mut Rng) -> Vec<Fact> {
    let mut facts = Vec::new();
    for about in ["a", "b"] {
        let grade = rng.maybe(70, |rng| rng.pick(&policy::GRADES));
        facts.extend(grade.map(|grade| Fact {
            attribute: "user".to_owned(),
            about: about.to_owned(),
            name: "grade".to_owned(),
            value: grade.to_owned(),
        }));
    }
    facts
}

/// An entry for one value, with or without an end.
fn list_entry(rng: &mut Rng) -> ListEntry {
    let (attribute, value) = rng.pick(&[("ip", "192.0.2.2"), ("user", "b"), ("org", "x")]);
    let until = if rng.chance(50) { FOREVER } else { START + rng.within(1, 600) * 1_000_000 };
    ListEntry { attribute: attribute.to_owned(), value: value.to_owned(), until }
}

/// A gate over some of the policies, in any order.
fn gate(rng: &mut Rng, name: &str, count: i64) -> Gate {
    let mut policies: Vec<String> = (0..count).map(|number| format!("p{number}")).collect();
    for index in (1..policies.len()).rev() {
        policies.swap(index, rng.within(0, index as i64) as usize);
    }
    policies.truncate(rng.within(1, count) as usize);
    Gate { name: name.to_owned(), policies }
}

/// The catalog with some numbers, modes and facts changed, and sometimes without a policy. Some
/// versions change facts only, so that callers change their tiers and come back to them.
pub fn version(rng: &mut Rng, catalog: &Catalog) -> Catalog {
    let mut changed = catalog.clone();
    if rng.chance(35) {
        changed.facts = facts(rng);
        return changed;
    }
    for policy in &mut changed.policies {
        if rng.chance(50) {
            change(rng, policy);
        }
    }
    if rng.chance(50) {
        changed.facts = facts(rng);
    }
    if rng.chance(10) {
        let name = rng.pick(&changed.policies).name;
        drop_policy(&mut changed, &name);
    }
    changed
}

/// Removes a policy, unless a gate would be left empty.
fn drop_policy(catalog: &mut Catalog, name: &str) {
    if catalog.gates.iter().any(|gate| gate.policies == [name]) {
        return;
    }
    catalog.policies.retain(|policy| policy.name != name);
    catalog.gates.iter_mut().for_each(|gate| gate.policies.retain(|policy| policy != name));
    catalog.default.take_if(|default| default == name);
    for policy in &mut catalog.policies {
        policy.otherwise.take_if(|otherwise| otherwise == name);
    }
}

fn change(rng: &mut Rng, policy: &mut Policy) {
    match rng.within(1, 14) {
        14 => *policy = replace(rng, policy),
        1 | 8 => policy.mode = policy::mode(rng),
        2 | 9 if policy.terms.block.is_some() => policy.terms.block = Some(policy::length(rng)),
        3 | 10 if matches!(policy.terms.cost, Cost::Table(_)) => {
            policy.terms.cost = policy::cost(rng, policy::capacity(policy));
            let settled = matches!(policy.terms.cost, Cost::Table(_) | Cost::Reported);
            policy.reserve = if settled { policy.reserve.min(policy::capacity(policy)) } else { 1 };
        }
        // Only its last tier has a limit.
        4 if policy.limits_only_tiers() && policy.tiers.len() == 1 => {}
        4 if policy.limits_only_tiers() => drop(policy.tiers.pop()),
        4 => policy.tiers.clear(),
        5 => policy.tiers.reverse(),
        _ => change_numbers(rng, policy),
    }
    policy::limit_prices(policy);
}

/// Another policy under the same name and key, most likely with another algorithm.
fn replace(rng: &mut Rng, policy: &Policy) -> Policy {
    let fresh = policy::policy(rng, &policy.name);
    let Policy { by, each, otherwise, on_missing, .. } = policy.clone();
    Policy { by, each, otherwise, on_missing, ..fresh }
}

/// Changes the numbers of the algorithm; costs and reserves above the new capacity are lowered.
fn change_numbers(rng: &mut Rng, policy: &mut Policy) {
    policy.terms.algorithm = policy::other(rng, &policy.terms.algorithm);
    let capacity = policy::capacity(policy);
    policy.reserve = policy.reserve.min(capacity);
    if let Cost::Always(units) = &mut policy.terms.cost {
        *units = (*units).min(capacity);
    }
}

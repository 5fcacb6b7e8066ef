//! A random catalog, and the versions of it that reloads switch between.
//!
//! It must keep names and keys across versions: a reload mostly changes numbers and modes, so that
//! state carries over.

use super::dice::Dice;
use super::policy;
use super::story::START;
use crate::oracle::FOREVER;
use crate::oracle::catalog::{Catalog, Cost, Gate, Listed, Policy};

/// A random catalog of one to five policies.
pub fn catalog(dice: &mut Dice) -> Catalog {
    let count = dice.within(1, 5);
    let mut policies: Vec<Policy> =
        (0..count).map(|number| policy::policy(dice, &format!("p{number}"))).collect();
    // Only towards later policies, so that chains have an end.
    for number in 0..policies.len() - 1 {
        if dice.chance(15) {
            let later = dice.within(number as i64 + 1, count - 1);
            policies[number].otherwise = Some(format!("p{later}"));
        }
    }
    let gates = vec![gate(dice, "g0", count), gate(dice, "g1", count)];
    let default = dice.maybe(20, |dice| format!("p{}", dice.within(0, count - 1)));
    let mut allowlist = Vec::new();
    let mut blocklist = Vec::new();
    if dice.chance(10) {
        allowlist.extend(dice.maybe(50, listed));
        blocklist.extend(dice.maybe(70, listed));
    }
    Catalog { policies, gates, default, allowlist, blocklist }
}

/// An entry for one value, for good or for a while.
fn listed(dice: &mut Dice) -> Listed {
    let (attribute, value) = dice.pick(&[("ip", "192.0.2.2"), ("user", "b"), ("org", "x")]);
    let until = if dice.chance(50) { FOREVER } else { START + dice.within(1, 600) * 1_000_000 };
    Listed { attribute: attribute.to_owned(), value: value.to_owned(), until }
}

/// A gate over some of the policies, in any order.
fn gate(dice: &mut Dice, name: &str, count: i64) -> Gate {
    let mut policies: Vec<String> = (0..count).map(|number| format!("p{number}")).collect();
    for place in (1..policies.len()).rev() {
        policies.swap(place, dice.within(0, place as i64) as usize);
    }
    policies.truncate(dice.within(1, count) as usize);
    Gate { name: name.to_owned(), policies }
}

/// The same catalog with some numbers and modes changed, and sometimes a policy less.
pub fn version(dice: &mut Dice, catalog: &Catalog) -> Catalog {
    let mut changed = catalog.clone();
    for policy in &mut changed.policies {
        if dice.chance(50) {
            change(dice, policy);
        }
    }
    if dice.chance(10) {
        let gone = dice.pick(&changed.policies).name;
        drop_policy(&mut changed, &gone);
    }
    changed
}

/// Takes a policy out, unless a gate would be left empty.
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

fn change(dice: &mut Dice, policy: &mut Policy) {
    match dice.within(1, 14) {
        14 => *policy = anew(dice, policy),
        1 | 8 => policy.mode = policy::mode(dice),
        2 | 9 if policy.terms.block.is_some() => policy.terms.block = Some(policy::length(dice)),
        3 | 10 if matches!(policy.terms.cost, Cost::Table(_)) => {
            policy.terms.cost = policy::cost(dice, policy::capacity(policy));
            let settled = matches!(policy.terms.cost, Cost::Table(_) | Cost::Reported);
            policy.reserve = if settled { policy.reserve.min(policy::capacity(policy)) } else { 1 };
        }
        4 => policy.tiers.clear(),
        5 => policy.tiers.reverse(),
        _ => numbers(dice, policy),
    }
    policy::tame(policy);
}

/// Another policy under the same name and key, most likely with another algorithm.
fn anew(dice: &mut Dice, policy: &Policy) -> Policy {
    let fresh = policy::policy(dice, &policy.name);
    let Policy { by, each, otherwise, on_missing, .. } = policy.clone();
    Policy { by, each, otherwise, on_missing, ..fresh }
}

/// Other numbers; prices and reserves that no longer fit them are lowered.
fn numbers(dice: &mut Dice, policy: &mut Policy) {
    policy.terms.algorithm = policy::other(dice, &policy.terms.algorithm);
    let capacity = policy::capacity(policy);
    policy.reserve = policy.reserve.min(capacity);
    if let Cost::Always(units) = &mut policy.terms.cost {
        *units = (*units).min(capacity);
    }
}

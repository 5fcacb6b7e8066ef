//! The differences between two versions of a policy as text: its fields, tiers and bans.
//!
//! A tier is identified by its condition and a ban by its reason, so that one that moves is not
//! shown as another one.

use std::fmt::Display;

use catraca::Catalog;
use catraca::core::policy::{BanRule, Policy, Tier};
use catraca::explain::{TextField, ban_fields, policy_fields, terms_fields, tier_condition};

/// A policy and the catalog that it is in, which resolves its references.
pub(super) struct PolicyIn<'c> {
    pub catalog: &'c Catalog,
    pub policy: &'c Policy,
}

/// A tier or a ban as it is compared.
struct PolicyItem {
    /// The same in both catalogs.
    identity: String,
    title: String,
    fields: Vec<TextField>,
}

/// Every change from one version of a policy to the next.
pub(super) fn compare(before: &PolicyIn<'_>, after: &PolicyIn<'_>, changes: &mut Vec<String>) {
    let title = format!("policy {}", after.policy.name);
    let old = policy_fields(before.catalog, before.policy);
    compare_fields(&title, &old, &policy_fields(after.catalog, after.policy), changes);
    let tiers = |at: &PolicyIn<'_>| {
        at.policy.tiers.iter().map(|tier| tier_item(at.catalog, tier)).collect::<Vec<_>>()
    };
    compare_items(&title, "tiers", &tiers(before), &tiers(after), changes);
    let bans = |at: &PolicyIn<'_>| {
        let all = &at.policy.bans;
        (0..all.len()).map(|index| ban_item(all, index)).collect::<Vec<_>>()
    };
    compare_items(&title, "bans", &bans(before), &bans(after), changes);
}

fn tier_item(catalog: &Catalog, tier: &Tier) -> PolicyItem {
    PolicyItem {
        identity: tier.id.to_string(),
        title: format!("tier ({})", tier_condition(catalog, tier)),
        fields: terms_fields(&tier.terms),
    }
}

/// Several bans may have one reason; they are numbered.
fn ban_item(bans: &[BanRule], index: usize) -> PolicyItem {
    let reason = &bans[index].reason;
    let same_before = bans[..index].iter().filter(|ban| ban.reason == *reason).count();
    let title = match same_before {
        0 => format!("ban ({reason})"),
        _ => format!("ban ({reason}, {})", same_before + 1),
    };
    PolicyItem { identity: title.clone(), title, fields: ban_fields(&bans[index]) }
}

fn compare_items(
    policy: &str,
    kind: &str,
    before: &[PolicyItem],
    after: &[PolicyItem],
    changes: &mut Vec<String>,
) {
    let find = |items: &'_ [PolicyItem], identity: &str| {
        items.iter().position(|item| item.identity == identity)
    };
    for item in before.iter().filter(|item| find(after, &item.identity).is_none()) {
        changes.push(format!("{policy} {} removed", item.title));
    }
    for item in after {
        match find(before, &item.identity) {
            Some(index) => {
                let title = format!("{policy} {}", item.title);
                compare_fields(&title, &before[index].fields, &item.fields, changes);
            }
            None => changes.push(format!("{policy} {} added: {}", item.title, summary(item))),
        }
    }
    // The first tier that matches wins, so their order matters.
    let order = |items: &[PolicyItem], others: &[PolicyItem]| {
        let common = items.iter().filter(|item| find(others, &item.identity).is_some());
        common.map(|item| item.title.clone()).collect::<Vec<_>>().join(", ")
    };
    add_change(
        changes,
        &format!("{policy} order of {kind}"),
        order(before, after),
        order(after, before),
    );
}

fn summary(item: &PolicyItem) -> String {
    let set =
        item.fields.iter().filter_map(|(name, text)| Some(format!("{name} {}", text.as_ref()?)));
    set.collect::<Vec<_>>().join(", ")
}

/// Adds a line for each field that differs. Terms that only one side has count as unset.
fn compare_fields(
    title: &str,
    before: &[TextField],
    after: &[TextField],
    changes: &mut Vec<String>,
) {
    let text = |fields: &[TextField], name: &str| {
        let found = fields.iter().find(|(own, _)| *own == name);
        found.and_then(|(_, text)| text.clone()).unwrap_or_else(|| "none".to_owned())
    };
    let gone = before.iter().filter(|(name, _)| after.iter().all(|(own, _)| own != name));
    for (name, _) in after.iter().chain(gone) {
        add_change(changes, &format!("{title} {name}"), text(before, name), text(after, name));
    }
}

/// Adds a line for one value, if it differs.
pub(super) fn add_change<T: PartialEq + Display>(
    changes: &mut Vec<String>,
    what: &str,
    before: T,
    after: T,
) {
    if before != after {
        changes.push(format!("{what}: {before} -> {after}"));
    }
}

//! `tier`: other terms for some callers.
//!
//! A tier changes numbers, block, costs and credits, never the algorithm: one key must not be
//! counted in two ways. Must not match callers.

use std::collections::{BTreeMap, BTreeSet};

use super::attribute::Known;
use super::bounds::TIERS_MAX;
use super::limit::ALGORITHMS;
use super::names;
use super::node::{Fields, Key, Node};
use super::report::Report;
use crate::policy::Name;

/// What a tier asks of callers: each attribute must have one of its values.
pub(super) type When = Vec<(Name, Vec<Name>)>;

/// A tier's fields, whose terms are read with the policy's, and its callers if they are good.
pub(super) struct Draft<'t> {
    pub fields: Fields<'t>,
    pub when: Option<When>,
}

/// Reads the tiers' fields and callers; nothing if the list itself is bad.
pub(super) fn read<'t>(
    report: &mut Report,
    known: &Known,
    node: Node<'t>,
) -> Option<Vec<Draft<'t>>> {
    let wanted = "a list such as [ { when = { plan = \"gold\" }, window = \"100 per 1s\" } ]";
    let items = node.items(report, wanted)?;
    if let Some(extra) = items.get(TIERS_MAX) {
        let message = format!("{} tiers are too many", items.len());
        let fix = format!("keep at most {TIERS_MAX}: give callers a fact, such as a plan");
        report.error("too-many-tiers", extra.place, message, fix);
    }
    let tiers: Vec<_> =
        items.into_iter().take(TIERS_MAX).map(|item| tier(report, known, item)).collect();
    let tiers: Vec<_> = tiers.into_iter().collect::<Option<_>>()?;
    unreachable(report, &tiers);
    Some(tiers)
}

fn tier<'t>(report: &mut Report, known: &Known, item: Node<'t>) -> Option<Draft<'t>> {
    let known_fields = [&["when", "block", "cost", "credit"], &ALGORITHMS[..]].concat();
    let fields = Fields::item(report, item, "tier", &known_fields)?;
    let when = match fields.get("when") {
        Some(node) => when(report, known, node),
        None => without_when(report, fields.place),
    };
    Some(Draft { fields, when })
}

fn when(report: &mut Report, known: &Known, node: Node<'_>) -> Option<When> {
    let entries = node.entries(report, "a table such as { plan = \"gold\" }")?;
    if entries.is_empty() {
        return without_when(report, node.place);
    }
    let read: Vec<_> = entries.into_iter().map(|entry| asked(report, known, entry)).collect();
    read.into_iter().collect()
}

fn asked(
    report: &mut Report,
    known: &Known,
    (key, node): (Key<'_>, Node<'_>),
) -> Option<(Name, Vec<Name>)> {
    let named = names::check(report, key, "attribute");
    let texts = node.texts(report, "a text such as \"gold\", or a list of them")?;
    if texts.is_empty() {
        let message = format!("no value of `{}` is named, so nobody matches", key.text);
        report.error("bad-value", node.place, message, "name at least one value");
        return None;
    }
    let normal =
        |(item, text): (Node<'_>, &str)| known.normal(report, key.text, (item.place, text));
    let values: Vec<_> = texts.into_iter().map(normal).collect();
    let values: Option<Vec<Name>> = values.into_iter().map(|value| value.map(Name::from)).collect();
    Some((named.then(|| key.text.into())?, values?))
}

fn without_when<T>(report: &mut Report, place: super::report::Place) -> Option<T> {
    let message = "a tier without `when` would be everybody's";
    let fix = "add when = { plan = \"gold\" }, or give these terms to the policy itself";
    report.error("tier-without-when", place, message, fix);
    None
}

/// What tickets call a tier: a fingerprint of whom it asks for, in whatever order that is written.
pub fn id(when: &When) -> u32 {
    let mut hasher = blake3::Hasher::new();
    let mut add = |text: &str| {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    };
    for (name, values) in sets(when) {
        add(name);
        add(&values.len().to_string());
        values.into_iter().for_each(&mut add);
    }
    let [a, b, c, d, ..] = *hasher.finalize().as_bytes();
    u32::from_le_bytes([a, b, c, d])
}

/// What a tier asks, arranged so that comparing long lists of values takes no longer than reading
/// them.
type Sets<'w> = BTreeMap<&'w str, BTreeSet<&'w str>>;

/// Warns of tiers whose callers an earlier one takes all.
fn unreachable(report: &mut Report, tiers: &[Draft<'_>]) {
    let arranged: Vec<_> = tiers.iter().map(|tier| tier.when.as_ref().map(sets)).collect();
    for (at, (tier, later)) in tiers.iter().zip(&arranged).enumerate() {
        let Some(later) = later else { continue };
        if arranged[..at].iter().flatten().any(|earlier| takes_all(earlier, later)) {
            let message = "an earlier tier takes all callers of this one";
            let fix = "move this tier before it, or remove it";
            report.warn("tier-unreachable", tier.fields.place, message, fix);
        }
    }
}

fn sets(when: &When) -> Sets<'_> {
    when.iter()
        .map(|(name, values)| (&**name, values.iter().map(|value| &**value).collect()))
        .collect()
}

/// Whether whoever matches `later` matches `earlier`.
fn takes_all(earlier: &Sets<'_>, later: &Sets<'_>) -> bool {
    let narrower = |name| later.get(name);
    earlier.iter().all(|(name, values)| narrower(name).is_some_and(|asked| asked.is_subset(values)))
}

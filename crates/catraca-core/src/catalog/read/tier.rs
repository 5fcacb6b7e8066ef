//! `tier`: different terms for some callers.
//!
//! A tier changes numbers, block, costs and credits, never the algorithm: the state of a key has
//! the form of one algorithm, and a caller's tier may change.

use std::collections::{BTreeMap, BTreeSet};

use super::attribute::AttributeTable;
use super::bounds::TIERS_MAX;
use super::policy_schema;
use super::price;
use crate::limit::LIMIT_FIELDS;
use crate::located::schema::join;
use crate::located::{
    FieldSchema, LocatedKey, Node, Report, SourceLocation, TableFields, TableSchema, ValueSchema,
    names,
};
use crate::policy::Name;

/// The fields of an item of `tier`.
pub(super) static TIER: TableSchema = TableSchema { name: "tier", fields: &FIELDS };

static FIELDS: [FieldSchema; OTHER_FIELDS.len() + LIMIT_FIELDS.len()] =
    join(&[&OTHER_FIELDS, LIMIT_FIELDS]);

const OTHER_FIELDS: [FieldSchema; 4] = [
    FieldSchema::new(
        "when",
        ValueSchema::Map(&ValueSchema::AnyOf(&[
            ValueSchema::Text,
            ValueSchema::List { of: &ValueSchema::Text, most: usize::MAX },
        ])),
        "the attributes of the callers, each with its value or a list of them",
    )
    .require(),
    policy_schema::BLOCK,
    price::COST,
    price::CREDITS,
];

/// A tier's condition: attributes with their accepted values; all attributes must match.
pub(super) type When = Vec<(Name, Vec<Name>)>;

/// A tier before its terms are read, which `terms` does together with the policy's.
pub(super) struct TierDraft<'t> {
    pub fields: TableFields<'t>,
    /// `None` if it is missing or invalid.
    pub when: Option<When>,
}

/// Reads the fields and conditions of all tiers; `None` if the list itself is invalid.
pub(super) fn read<'t>(
    report: &mut Report,
    attributes: &AttributeTable,
    node: Node<'t>,
) -> Option<Vec<TierDraft<'t>>> {
    let wanted = "a list such as [ { when = { plan = \"gold\" }, window = \"100 per 1s\" } ]";
    let items = node.items(report, wanted)?;
    if let Some(extra) = items.get(TIERS_MAX) {
        let message = format!("{} tiers are too many", items.len());
        let fix = format!("keep at most {TIERS_MAX}: give callers a fact, such as a plan");
        report.error("too-many-tiers", extra.location, message, fix);
    }
    let tiers: Vec<_> =
        items.into_iter().take(TIERS_MAX).map(|item| tier(report, attributes, item)).collect();
    let tiers: Vec<_> = tiers.into_iter().collect::<Option<_>>()?;
    warn_of_unreachable(report, &tiers);
    Some(tiers)
}

fn tier<'t>(
    report: &mut Report,
    attributes: &AttributeTable,
    item: Node<'t>,
) -> Option<TierDraft<'t>> {
    let fields = TableFields::read_item(report, item, &TIER)?;
    let when = match fields.get("when") {
        Some(node) => when(report, attributes, node),
        None => report_without_when(report, fields.location),
    };
    Some(TierDraft { fields, when })
}

fn when(report: &mut Report, attributes: &AttributeTable, node: Node<'_>) -> Option<When> {
    let entries = node.entries(report, "a table such as { plan = \"gold\" }")?;
    if entries.is_empty() {
        return report_without_when(report, node.location);
    }
    let read =
        entries.into_iter().map(|(key, node)| accepted_values(report, attributes, key, node));
    let read: Vec<_> = read.collect();
    read.into_iter().collect()
}

/// One attribute of `when` with its accepted values, normalised.
fn accepted_values(
    report: &mut Report,
    attributes: &AttributeTable,
    key: LocatedKey<'_>,
    node: Node<'_>,
) -> Option<(Name, Vec<Name>)> {
    let is_valid_name = names::check_key(report, key, "attribute");
    let texts = node.texts(report, "a text such as \"gold\", or a list of them")?;
    if texts.is_empty() {
        let message = format!("no value of `{}` is given, so no caller matches", key.text);
        report.error("bad-value", node.location, message, "name at least one value");
        return None;
    }
    let normalise = |(item, text): (Node<'_>, &str)| {
        attributes.normalise_value(report, key.text, item.location, text)
    };
    let values: Vec<_> = texts.into_iter().map(normalise).collect();
    let values: Option<Vec<Name>> = values.into_iter().map(|value| value.map(Name::from)).collect();
    Some((is_valid_name.then(|| key.text.into())?, values?))
}

fn report_without_when<T>(report: &mut Report, location: SourceLocation) -> Option<T> {
    let message = "a tier without `when` would match all callers";
    let fix = "add when = { plan = \"gold\" }, or move its terms to the policy itself";
    report.error("tier-without-when", location, message, fix);
    None
}

/// The id of a tier in tickets: a hash of its condition, independent of the order in which the
/// attributes and values are written.
pub fn tier_id(when: &When) -> u32 {
    let mut hasher = blake3::Hasher::new();
    let mut add = |text: &str| {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    };
    for (name, values) in value_sets(when) {
        add(name);
        // The number of values, so that the last value is not mistaken for the next name.
        add(&values.len().to_string());
        values.into_iter().for_each(&mut add);
    }
    let [a, b, c, d, ..] = *hasher.finalize().as_bytes();
    u32::from_le_bytes([a, b, c, d])
}

/// A condition as sorted sets, so that two long conditions are compared without quadratic time.
type ValueSets<'w> = BTreeMap<&'w str, BTreeSet<&'w str>>;

/// Warns of tiers that never match because an earlier one matches all their callers.
fn warn_of_unreachable(report: &mut Report, tiers: &[TierDraft<'_>]) {
    let conditions: Vec<_> = tiers.iter().map(|tier| tier.when.as_ref().map(value_sets)).collect();
    for (at, (tier, later)) in tiers.iter().zip(&conditions).enumerate() {
        let Some(later) = later else { continue };
        if conditions[..at].iter().flatten().any(|earlier| covers(earlier, later)) {
            let message = "an earlier tier matches all callers of this one";
            let fix = "move this tier before it, or remove it";
            report.warn("tier-unreachable", tier.fields.location, message, fix);
        }
    }
}

fn value_sets(when: &When) -> ValueSets<'_> {
    when.iter()
        .map(|(name, values)| (&**name, values.iter().map(|value| &**value).collect()))
        .collect()
}

/// Whether every caller that matches `later` also matches `earlier`.
fn covers(earlier: &ValueSets<'_>, later: &ValueSets<'_>) -> bool {
    earlier
        .iter()
        .all(|(name, values)| later.get(name).is_some_and(|accepted| accepted.is_subset(values)))
}

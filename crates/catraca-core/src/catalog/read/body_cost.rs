//! `cost` of a policy that is a table with `from`: the fields of the outcome's body with the cost.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::attribute::AttributeTable;
use super::scalar;
use super::schema;
use crate::json_path::JsonPath;
use crate::located::{
    DefaultValue, FieldSchema, Node, Report, TableFields, TableSchema, ValueSchema, names,
};
use crate::policy::Policy;
use crate::price::{BodyCost, CostField, CostWeights, FieldWeights};
use crate::request::COST_MAX;

/// The most fields that are added up, and the most places of one field.
const FIELDS_MAX: usize = 8;

/// The fields of a `cost` from the body of the outcome.
pub(super) const BODY_COST: TableSchema = TableSchema {
    name: "cost from the body",
    fields: &[
        FieldSchema::new(
            "from",
            ValueSchema::AnyOf(&[
                FIELD,
                ValueSchema::List { of: &FIELD, most: FIELDS_MAX },
                ValueSchema::Map(&FIELD),
            ]),
            "the field of the outcome's JSON body that has the cost, such as \
             `body.usage.total_tokens`; of `\"body.a|body.b\"` the first that is present; the \
             fields of a list, or of a table that names them, are added up",
        )
        .require(),
        FieldSchema::new(
            "weight_by",
            schema::NAME,
            "an attribute of the request, such as `model`, whose value chooses the weight",
        )
        .or(DefaultValue::Absent("none: every unit costs one")),
        FieldSchema::new(
            "weights",
            ValueSchema::Map(&ValueSchema::AnyOf(&[WEIGHT, ValueSchema::Map(&WEIGHT)])),
            "what one unit costs for each value, or one unit of each named field: `{ large = { \
             input = 3, output = 15 } }`; `default` for all other values, which else have the \
             largest weight",
        ),
    ],
};

const FIELD: ValueSchema = ValueSchema::Pattern {
    pattern: "^body[.]",
    words: "a field such as `body.usage.total_tokens`",
};
const WEIGHT: ValueSchema = ValueSchema::Integer { least: 0, most: COST_MAX };
const WANTED: &str = "a field such as \"body.usage.total_tokens\"";

/// The places of all costs in outcome bodies, each once.
pub(super) fn all_paths(policies: &[Policy]) -> Arc<[JsonPath]> {
    let mut paths: Vec<JsonPath> = Vec::new();
    for path in policies.iter().flat_map(Policy::cost_fields).flat_map(|field| &field.paths) {
        if !paths.contains(path) {
            paths.push(path.clone());
        }
    }
    paths.into()
}

/// Reads a `cost` with `from`.
pub(super) fn read(
    report: &mut Report,
    node: Node<'_>,
    attributes: &AttributeTable,
) -> Option<BodyCost> {
    #[cfg(not(feature = "outcome-body"))]
    super::feature::report_missing(report, node.location, "a cost from the body", "cel");
    let fields = TableFields::read_item(report, node, &BODY_COST)?;
    let from = fields.require(report, "from", "\"body.usage.total_tokens\"");
    let from = from.and_then(|node| cost_fields(report, node))?;
    let weights = weights(report, &fields, attributes, &from)?;
    Some(BodyCost { from, weights })
}

/// One field, a list of fields, or a table of named fields.
fn cost_fields(report: &mut Report, node: Node<'_>) -> Option<Vec<CostField>> {
    let fields: Vec<Option<CostField>> = match node.as_entries() {
        Some(entries) => {
            let named = entries.into_iter().map(|(key, node)| {
                let is_valid_name = names::check_key(report, key, "field");
                let paths = node.text(report, WANTED).and_then(|text| paths(report, node, text));
                Some(CostField {
                    name: is_valid_name.then(|| Some(key.text.into()))?,
                    paths: paths?,
                })
            });
            named.collect()
        }
        None => {
            let texts = node.texts(report, "a field, a list of fields or a table of them")?;
            let unnamed = texts.into_iter().map(|(item, text)| {
                Some(CostField { name: None, paths: paths(report, item, text)? })
            });
            unnamed.collect()
        }
    };
    if !(1..=FIELDS_MAX).contains(&fields.len()) {
        let message = format!("{} fields are named", fields.len());
        report.error("bad-pick", node.location, message, format!("name 1 to {FIELDS_MAX}"));
        return None;
    }
    fields.into_iter().collect()
}

/// The places of a field: `body.a|body.b`.
fn paths(report: &mut Report, node: Node<'_>, text: &str) -> Option<Vec<JsonPath>> {
    let mut paths = Vec::new();
    for place in text.split('|').map(str::trim) {
        let Some(path) = place.strip_prefix("body.").and_then(JsonPath::parse) else {
            let message = format!("`{}` is not a field of a body", place.escape_debug());
            report.error("bad-pick", node.location, message, format!("write {WANTED}"));
            return None;
        };
        paths.push(path);
    }
    if paths.len() > FIELDS_MAX {
        let message = format!("{} places of one field are named", paths.len());
        report.error("bad-pick", node.location, message, format!("name 1 to {FIELDS_MAX}"));
        return None;
    }
    Some(paths)
}

/// The weights; the outer `None` means that they are invalid.
fn weights(
    report: &mut Report,
    fields: &TableFields<'_>,
    attributes: &AttributeTable,
    from: &[CostField],
) -> Option<Option<CostWeights>> {
    let (by, table) = match (fields.get("weight_by"), fields.get("weights")) {
        (None, None) => return Some(None),
        (Some(by), Some(table)) => (by, table),
        (by, table) => {
            let location = by.or(table).map_or(fields.location, |node| node.location);
            let message = "`weight_by` and `weights` belong together";
            report.error("bad-weight", location, message, "write both, or none");
            return None;
        }
    };
    let by = weighing_attribute(report, by, attributes)?;
    let mut weights = BTreeMap::new();
    let mut default = None;
    let mut is_valid = true;
    for (key, node) in table.entries(report, "a table such as { large = 10, default = 1 }")? {
        let weight = field_weights(report, node, from);
        is_valid &= weight.is_some();
        if key.text == "default" {
            default = weight;
            continue;
        }
        let value = attributes.normalise_value(report, by, key.location, key.text);
        is_valid &= value.is_some();
        weights.extend(value.zip(weight));
    }
    let Some(default) = default.or_else(|| largest(&weights)).filter(|_| is_valid) else {
        if is_valid {
            let message = "no weight is given";
            report.error("bad-weight", table.location, message, "write one, such as default = 1");
        }
        return None;
    };
    Some(Some(CostWeights { by: by.into(), weights, default }))
}

/// The largest weight of each field: an unknown value must not be the cheapest.
fn largest(weights: &BTreeMap<String, FieldWeights>) -> Option<FieldWeights> {
    let mut all = weights.values();
    let first = all.next()?.clone();
    Some(all.fold(first, |largest, weights| {
        let pairs = largest.0.into_iter().zip(&weights.0);
        FieldWeights(pairs.map(|(own, other)| own.max(*other)).collect())
    }))
}

/// The weight of every field: one for all, or a table with one for each.
fn field_weights(report: &mut Report, node: Node<'_>, from: &[CostField]) -> Option<FieldWeights> {
    let Some(entries) = node.as_entries() else {
        let weight = scalar::cost(report, node, 0)?;
        return Some(FieldWeights(vec![weight; from.len()]));
    };
    let mut weights: Vec<Option<i64>> = vec![None; from.len()];
    let mut is_valid = true;
    for (key, node) in entries {
        let weight = scalar::cost(report, node, 0);
        is_valid &= weight.is_some();
        let index = from.iter().position(|field| field.name.as_deref() == Some(key.text));
        let Some(index) = index else {
            let message = format!("`from` has no field with the name `{}`", key.text);
            report.error("bad-weight", key.location, message, names_fix(from));
            is_valid = false;
            continue;
        };
        weights[index] = weight;
    }
    if !is_valid {
        return None;
    }
    let missing = from.iter().zip(&weights).find(|(_, weight)| weight.is_none());
    if let Some((CostField { name, .. }, _)) = missing {
        let name = name.as_deref().unwrap_or("input");
        let message = format!("the weight of `{name}` is missing");
        report.error("bad-weight", node.location, message, format!("add {name} = 1"));
        return None;
    }
    Some(FieldWeights(weights.into_iter().flatten().collect()))
}

fn names_fix(from: &[CostField]) -> String {
    let names: Vec<&str> = from.iter().filter_map(|field| field.name.as_deref()).collect();
    match names.is_empty() {
        true => "name the fields: from = { input = \"body.usage.input_tokens\", … }".to_owned(),
        false => format!("write one of {}", names.join(", ")),
    }
}

/// The attribute that weights are chosen by; the settle sees only what the ticket has.
fn weighing_attribute<'t>(
    report: &mut Report,
    node: Node<'t>,
    attributes: &AttributeTable,
) -> Option<&'t str> {
    let name = node.text(report, "the name of an attribute")?;
    let why = if attributes.source(name).is_some() {
        "is a fact or derived"
    } else if attributes.by_name.get(name).is_some_and(|attribute| attribute.private) {
        "is private"
    } else {
        return Some(name);
    };
    let message = format!("`{name}` {why}, and a ticket does not contain its value");
    report.error("bad-weight", node.location, message, "write another attribute, or use tiers");
    None
}
